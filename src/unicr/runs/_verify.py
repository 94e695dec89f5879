"""Check a run again: every claim from the counts without the model, the votes with it.

What can be recomputed is: bounds, class, radii, and which inputs, norms and noises there must be.
With the data, labels and inputs are compared too; with the model the votes of some inputs, drawn
so that nobody can know which. All the rest is bound by the seal.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Protocol, runtime_checkable

from unicr.classifier import Classifier
from unicr.data import Dataset
from unicr.errors import UNREADABLE, RunError, UnicrError, listed
from unicr.extras import torch
from unicr.noise import Lattice, Noise
from unicr.radius.internal import guarantee_of
from unicr.runs._manifest import EVERY_INPUT, THIS_INPUT, Manifest
from unicr.runs._reopen import NOTHING, Own
from unicr.runs._run import Row, Run
from unicr.smoothing import (
    Certificate,
    NormRadius,
    Plan,
    Procedure,
    Radii,
    SmoothedClassifier,
    certification,
    converse,
)

SAME = 1e-6


class Choice(Protocol):
    """How a run chose noises: the search of `unicr.i_opt`, or the selector of `unicr.select`."""

    @property
    def noises(self) -> Collection[str]:
        """Every noise that it may choose."""
        ...

    def plan(self, n0: int, n: int, alpha: float) -> Plan:
        """The plan that its certificates need."""
        ...

    def again(self, manifest: Manifest) -> Callable[[torch.Tensor], Procedure[Any]]:
        """What makes the procedure of an input."""
        ...


@runtime_checkable
class Recounts(Protocol):
    """A choice of noise whose certificates join the votes of several noises."""

    def check(self, row: Row) -> str | None:
        """None, or the first thing about a stored certificate that its votes do not support."""
        ...


@dataclass(frozen=True)
class Problem:
    """What is wrong with a stored certificate, or (`idx` None) with the run as a whole."""

    idx: int | None
    text: str

    def __str__(self) -> str:
        return self.text if self.idx is None else f"input {self.idx}: {self.text}"


def verify(
    run: Run, *, own: Own = NOTHING, search: Choice | None = None, data: Dataset | None = None
) -> Iterator[Problem]:
    """Everything in a run that does not hold, without the model; nothing where all does.

    `search` is the search of a run that has one; with `data`, labels and inputs are compared.
    """
    manifest = run.manifest
    yield from (Problem(None, text) for text in _settings(manifest, own, search, data))
    yield from _seal(run)

    @cache
    def radii(text: str | None) -> tuple[Noise, Radii]:
        law = own.noise(manifest, text)
        return law, _radii(manifest, law)

    seen = []
    for record in run.records():
        seen.append(record["idx"])
        try:
            row = run.row(record)
            text = row.certificate.noise if row.certificate else None
            complaint = _noise(text, search) if row.certificate else None
            if isinstance(search, Recounts):
                complaint = complaint or search.check(row)
            else:
                complaint = complaint or check_row(row, manifest.plan, *radii(text))
            complaint = complaint or (None if data is None else _input(row, data, manifest.points))
        except (UnicrError, *UNREADABLE) as error:
            complaint = f"cannot be read: {error}"
        if complaint is not None:
            yield Problem(record["idx"], complaint)
    yield from (Problem(None, text) for text in _gaps(manifest, seen, data))


def _settings(
    manifest: Manifest, own: Own, search: Choice | None, data: Dataset | None
) -> Iterator[str]:
    """What the settings say against themselves, or against the data."""
    if manifest.dim != math.prod(manifest.shape):
        yield f"dim {manifest.dim} where the shape {manifest.shape} has {math.prod(manifest.shape)}"
    law = own.noise(manifest)
    if law.text != manifest.noise:
        yield f"the noise is written {manifest.noise!r}, it should be {law.text!r}"
    scope = EVERY_INPUT if manifest.i_opt is None else THIS_INPUT
    if manifest.scope != scope:
        yield f"scope {manifest.scope!r} where it should be {scope!r}"
    if (search is None) != (manifest.i_opt is None and manifest.selector is None):
        raise RunError("the run chose a noise for each input: its search is needed to check it")
    plan = manifest.plan
    if search is not None and plan != search.plan(plan.n0, plan.n, plan.alpha):
        yield f"the plan {plan.to_dict()} is not the one of the search"
    if search is not None and law.text not in search.noises:
        yield f"the noise {law.text} is none that the search may choose"
    if plan != manifest.keyed_plan:
        yield f"the rule {plan.rule.text} draws by another seed than the run's own"
    if search is None and plan.rule.name == "union":
        yield "a union bound over noises, and no search"
    if data is not None and manifest.data_size not in (None, len(data)):
        yield f"{manifest.data_size} inputs in the run's data, {len(data)} in yours"


def _seal(run: Run) -> Iterator[Problem]:
    stored = run.stored_seal()
    if stored is not None and stored != run.seal():
        yield Problem(None, "the run was changed after it was sealed")


def _noise(text: str | None, search: Choice | None) -> str | None:
    if search is None:
        return None if text is None else f"it has a noise of its own, {text}, in a run with one"
    if text is None or text not in search.noises:
        return f"its noise {text} is none that the search may choose"
    return None


def _input(row: Row, data: Dataset, lattice: Lattice | None) -> str | None:
    """What is not as in the data."""
    if row.idx >= len(data):
        return f"the data has {len(data)} inputs only"
    try:
        (x, label), digest = data[row.idx], data.digest_of(row.idx)
    except (UnicrError, OSError) as error:
        return None if row.certificate is None else f"it cannot be read: {error}"
    if row.certificate is None and row.label == -1:
        return None
    if digest != row.input_hash:
        return "the input is another one (its hash differs)"
    on = lattice is None or lattice.holds(x.numpy())
    if row.certificate is not None and row.certificate.moved == on:
        return f"the input is {'' if on else 'not '}on the lattice, its certificate says otherwise"
    return None if label == row.label else f"label {row.label} stored, {label} in the data"


def _gaps(manifest: Manifest, seen: list[int], data: Dataset | None) -> Iterator[str]:
    """Inputs that are missing, or that the settings do not ask for."""
    wanted = manifest.indices(None if data is None else len(data))
    if wanted is None:  # an older run does not say how many inputs its data has
        last = max(seen, default=-1) + 1
        wanted = manifest.indices(last) or []
    if len(seen) != len(set(seen)):
        yield f"{len(seen) - len(set(seen))} results are of inputs that have one already"
    if missing := sorted(set(wanted) - set(seen)):
        yield f"{len(missing)} of {len(wanted)} inputs have no result ({listed(missing, 5)})"
    if surplus := sorted(set(seen) - set(wanted)):
        some = listed(surplus, 5)
        yield f"{len(surplus)} results are of inputs that max and skip leave out ({some})"


def check_row(row: Row, plan: Plan, noise: Noise, radii: Radii) -> str | None:
    """None, or the first thing about a stored certificate that its counts do not support."""
    c = row.certificate
    if c is None:
        return None
    found = plan.measure.again(c, plan, radii, None if c.noise is None else noise)
    return found if isinstance(found, str) else difference(c, found)


def difference(c: Certificate, again: Certificate) -> str | None:
    """None, or the first thing that a stored certificate says and the one made again does not."""
    again = replace(again, seed=c.seed)
    for one in fields(c):
        old, new = getattr(c, one.name), getattr(again, one.name)
        if one.name == "radii":
            if [r.norm for r in old] != [r.norm for r in new]:
                return f"norms {[r.norm for r in old]} where the run has {[r.norm for r in new]}"
            for stored, right in zip(old, new, strict=True):
                for name in ("radius", "proved", "searched", "guarantee", "off"):
                    was, now = getattr(stored, name), getattr(right, name)
                    if not _same(was, now) and not (name in WEAKER and _weaker(stored, right)):
                        return f"{name} in l{right.norm} is {was!r} stored, {now!r} from the counts"
        elif not _same(old, new, 0.0 if one.name == "charge" else 1e-12):
            return f"{WORDS.get(one.name, one.name)} {old!r} stored, {new!r} from the counts"
    return None


WEAKER = ("radius", "proved", "guarantee")


def _weaker(stored: NormRadius, now: NormRadius) -> bool:
    """Whether a radius is less than today's theorem proves: an older proof's, and it holds."""
    claimed = stored.guarantee == guarantee_of(stored.proved, stored.searched) == "approximate"
    less = stored.proved <= now.proved and stored.radius <= now.radius
    return claimed and less and _same(stored.searched, now.searched)


WORDS = {"predict": "class", "p_a": "p_A", "p_b": "p_B"}


def _same(old: Any, new: Any, least: float = 1e-12) -> bool:
    if isinstance(new, float) and isinstance(old, float):
        return math.isclose(old, new, rel_tol=SAME, abs_tol=least)
    return bool(old == new)


def replay(
    run: Run,
    classifier: Classifier,
    data: Dataset,
    count: int,
    *,
    own: Own = NOTHING,
    search: Choice | None = None,
) -> Iterator[tuple[int, str | None]]:
    """Do `count` inputs again from their seeds: (input, None or what differs).

    They are drawn afresh, failed ones too: who made the run cannot know which. `caught` says what
    that is worth.
    """
    if count < 0:
        raise RunError(f"replay={count}: how many inputs to sample again, 0 or more")
    manifest = run.manifest
    if classifier.digest != manifest.model_hash:
        raise RunError("the model is another one than the run was made with (its hash differs)")
    rows = run.readable()
    chosen = random.SystemRandom().sample(rows, min(count, len(rows)))
    noise = own.noise(manifest)
    smoothed = SmoothedClassifier(classifier, noise, **manifest.smoothing)
    certify = certifier(manifest, smoothed, search)
    for row in sorted(chosen, key=lambda row: row.idx):
        yield row.idx, _input(row, data, manifest.points) or _replay_one(row, data, certify)


def certifier(
    manifest: Manifest, smoothed: SmoothedClassifier, search: Choice | None
) -> Callable[[torch.Tensor, int], Certificate]:
    """What certifies an input (and its number) as the run does: by its noise or by its search."""
    start: Callable[[torch.Tensor], Procedure[Any]]
    if search is None:
        radii = _radii(manifest, smoothed.noise)

        def start(x: torch.Tensor) -> Procedure[Certificate]:
            return certification(manifest.plan, radii.of(x))

    else:
        start = search.again(manifest)

    def certify(x: torch.Tensor, index: int) -> Certificate:
        found = converse(start(x), lambda ask: smoothed.answer(ask, x, index))
        return found[0] if isinstance(found, tuple) else found

    return certify


def _radii(manifest: Manifest, noise: Noise) -> Radii:
    dim, norms, points = math.prod(manifest.shape), manifest.parsed_norms, manifest.points
    return Radii(noise, norms, dim, searched=manifest.searched, lattice=points)


def _replay_one(
    row: Row, data: Dataset, certify: Callable[[torch.Tensor, int], Certificate]
) -> str | None:
    c = row.certificate
    try:
        again = certify(data[row.idx][0], row.idx)
    except Exception as error:  # a stranger's model may raise anything
        return None if c is None else f"it fails now: {type(error).__name__}: {error}"
    if c is None:
        return f"failed in the run ({row.reason}), and now it does not"
    if again.noise != c.noise:
        return f"noise {c.noise} stored, {again.noise} found now"
    for name in ("selection", "counts"):
        stored, now = getattr(c, name), getattr(again, name)
        if _trim(stored) != _trim(now):
            return f"{name} {list(stored)} stored, {list(now)} now"
    return None if type(c) is Certificate else difference(c, again)


def _trim(counts: tuple[int, ...]) -> list[int]:
    values = list(counts)
    while values and values[-1] == 0:
        values.pop()
    return values


def caught(total: int, replayed: int, forged: int) -> float:
    """The probability that at least one of `forged` rows is among those replayed.

    Rows are drawn without replacement, so it is 1 − C(total − forged, replayed) / C(total,
    replayed), rounded down to two digits.
    """
    missed = math.comb(total - forged, replayed) / math.comb(total, replayed)
    return math.floor(100 * (1 - missed)) / 100
