"""Check a run again: radii from the counts without the model, votes from their seeds with it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from unicr.classifier import Classifier
from unicr.data import Dataset
from unicr.errors import RunError
from unicr.noise import parse
from unicr.norms import parse_norm
from unicr.runs._store import Row, Store
from unicr.smoothing import ABSTAIN, Plan, Radii, SmoothedClassifier

SAME = 1e-9


@dataclass(frozen=True)
class Problem:
    """What is wrong with one stored certificate."""

    idx: int
    text: str


def verify(store: Store) -> Iterator[Problem | None]:
    """For each stored input: None where everything follows from its counts, else what does not."""
    manifest = store.manifest()
    if not manifest:
        raise RunError(f"{store.path} has no manifest: it was never started")
    plan = Plan(**manifest["plan"])
    norms = [parse_norm(text) for text in manifest["norms"]]

    @cache
    def radii(noise: str) -> Radii:
        return Radii(parse(noise), norms, manifest["dim"], searched=manifest["searched"])

    for row in store.rows():
        text = check_row(row, plan, radii(noise_of(row, manifest)))
        yield None if text is None else Problem(row.idx, text)


def noise_of(row: Row, manifest: dict[str, Any]) -> str:
    """The noise that a certificate speaks of: its own, or the one of the whole run."""
    own = None if row.certificate is None else row.certificate.noise
    return own or manifest["noise"]


def check_row(row: Row, plan: Plan, radii: Radii) -> str | None:
    """None, or the first thing about a stored certificate that its counts do not support."""
    c = row.certificate
    if c is None:
        return None
    if sum(c.selection) != plan.n0 or c.n0 != plan.n0:
        return f"{sum(c.selection)} selection votes where n0 = {plan.n0}"
    if sum(c.counts) != c.n or c.n > plan.n or (plan.mode == "fixed" and c.n != plan.n):
        return f"{sum(c.counts)} votes where n = {c.n} of at most {plan.n}"
    if c.alpha != plan.alpha:
        return f"alpha {c.alpha} where the run has {plan.alpha}"
    order = np.argsort(-np.asarray(c.selection), kind="stable")
    runner_up = int(order[1]) if len(order) > 1 else None
    p_a, p_b = radii.bounds(plan, c.counts, int(order[0]), runner_up)
    if not (math.isclose(c.p_a, p_a, rel_tol=SAME) and math.isclose(c.p_b, p_b, rel_tol=SAME)):
        return f"p_A, p_B = {c.p_a!r}, {c.p_b!r} stored, {p_a!r}, {p_b!r} from the counts"
    predict = int(order[0]) if p_a > p_b else ABSTAIN
    if predict != c.predict:
        return f"class {c.predict} stored, {predict} from the counts"
    for stored, again in zip(c.radii, radii.at(p_a, p_b), strict=True):
        for name in ("radius", "proved", "searched"):
            old, new = getattr(stored, name), getattr(again, name)
            if not math.isclose(old, new, rel_tol=1e-6, abs_tol=1e-12):
                return f"{name} in l{stored.norm} is {old!r} stored, {new!r} from the counts"
        if stored.guarantee != again.guarantee:
            return f"guarantee {stored.guarantee!r} stored, {again.guarantee!r} recomputed"
    return None


def replay(
    store: Store, classifier: Classifier, data: Dataset, count: int
) -> Iterator[tuple[int, str | None]]:
    """Sample `count` certificates again from their seeds: (input, None or what differs)."""
    manifest = store.manifest()
    if classifier.digest != manifest["model_hash"]:
        raise RunError("the model is another one than the run was made with (its hash differs)")
    noise = parse(manifest["noise"])
    smoothed = SmoothedClassifier(classifier, noise, batch=manifest["batch"], seed=manifest["seed"])
    rows = [row for row in store.rows() if row.certificate is not None]
    chosen: Sequence[Row] = rows
    if count < len(rows):
        picked = np.random.default_rng(manifest["seed"]).choice(len(rows), count, replace=False)
        chosen = [rows[i] for i in sorted(picked)]
    for row in chosen:
        yield row.idx, _replay_one(row, smoothed, data, manifest)


def _replay_one(
    row: Row, smoothed: SmoothedClassifier, data: Dataset, manifest: dict[str, Any]
) -> str | None:
    c = row.certificate
    assert c is not None
    if data.digest_of(row.idx) != row.input_hash:
        return "the input is another one (its hash differs)"
    x, _ = data[row.idx]
    noise = parse(noise_of(row, manifest))
    selection = smoothed.votes(x, c.n0, start=0, input_index=row.idx, noise=noise)
    counts = smoothed.votes(x, c.n, start=c.n0, input_index=row.idx, noise=noise)
    if _trim(selection) != _trim(np.asarray(c.selection)):
        return f"selection votes {list(c.selection)} stored, {selection.tolist()} now"
    if _trim(counts) != _trim(np.asarray(c.counts)):
        return f"votes {list(c.counts)} stored, {counts.tolist()} now"
    return None


def _trim(counts: Any) -> list[int]:
    values = [int(v) for v in counts]
    while values and values[-1] == 0:
        values.pop()
    return values
