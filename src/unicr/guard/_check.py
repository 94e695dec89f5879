"""Is a memory what its run and its own history make it? Regions are stored in order, so each can be
made again from those before it.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from unicr.classifier import Classifier
from unicr.errors import UNREADABLE, RunError, UnicrError
from unicr.extras import torch
from unicr.folder import changes
from unicr.guard._guard import policy
from unicr.guard._memory import FIRST_STREAM, FORMAT, SEED, Regions
from unicr.guard._metric import Metric
from unicr.guard._table import Table
from unicr.norms import Norm, parse_norm
from unicr.runs import NO_TRUST, Row, Spec, Trusted
from unicr.smoothing import Radii
from unicr.smoothing.procedures import IOpt

SAME = 1e-9  # relative; two processors differ in the last digits of a distance, by far less
SETTINGS = (
    *("model_hash", "shape", "noise", "norms", "plan"),
    *("seed", "searched", "nonce", "lattice"),
)


def made_for(spec: Spec) -> dict[str, Any]:
    """The settings for which the regions of a run hold; none of them may change."""
    values = spec.to_dict()
    return {name: values[name] for name in SETTINGS if name in values}


def check_memory(
    regions: Regions, spec: Spec, rows: Mapping[int, Row], trusted: Trusted = NO_TRUST
) -> Iterator[str]:
    """Yield what does not hold in the memory of a run; this needs neither model nor data.

    The seed, and the classes and radii of points that are no inputs of the run, need the model:
    `replay_memory` checks them. Here their radii are only checked to be ones that the run's plan
    could give (docs/theory.md#the-guard).

    Parameters
    ----------
    regions
        The open memory.
    spec, rows
        The spec of the run and its rows by input number.
    trusted
        Files whose code may run.
    """
    try:
        about = regions.settings("about")
        norm, shape = parse_norm(about["norm"]), tuple(spec.shape)
        seed = about.pop(SEED)
        wanted = {**made_for(spec), "norm": norm.text, "format": FORMAT}
        if says := changes(about, wanted):
            yield f"it is for something else ({says})"
        if norm.text not in spec.norm_texts or type(seed) is not int:
            yield f"norm {norm.text!r} and seed {seed!r}"
        draws = {r["stream"]: r["alpha"] for r in regions.read("SELECT * FROM draws")}
        for stream, alpha in draws.items():
            planted = rows.get(stream) if stream < FIRST_STREAM else None
            if stream < FIRST_STREAM and (planted is None or planted.certificate is None):
                yield f"certificate {stream} was counted, and is not in the run"
            if alpha != spec.plan.alpha:
                yield f"certificate {stream} counts with alpha {alpha!r}"
        fresh = sorted(stream for stream in draws if stream >= FIRST_STREAM)
        if fresh != list(range(FIRST_STREAM, FIRST_STREAM + len(fresh))):
            yield f"certificates of {len(fresh)} new points were counted, and others before them"
        largest = _largest_radius(spec, norm, trusted)
        table = Table(math.prod(shape))
        for record in regions.read("SELECT * FROM regions ORDER BY number"):
            complaint = _check_region(dict(record), table, Metric(norm), shape, rows, draws)
            if complaint is None and not record["certified"] <= largest(record["noise"]):
                complaint = f"no votes give {record['certified']!r} under {record['noise']}"
            if complaint is not None:
                yield f"region {record['number']}: {complaint}"
    except (UnicrError, *UNREADABLE) as error:
        yield f"it cannot be read: {error!r}"


def _largest_radius(spec: Spec, norm: Norm, trusted: Trusted) -> Callable[[str | None], float]:
    """The largest radius that a new point may have under the noise of a region; −1: none may."""
    procedure = spec.plan.procedure

    @cache
    def largest(noise: str | None) -> float:
        offered = procedure.offers(str(noise)) if isinstance(procedure, IOpt) else noise is None
        if not offered:
            return -1.0
        if spec.plan.rule.bounds_p_b:
            return math.inf
        law = trusted.noise(spec, noise)
        radii = Radii(law, [norm], math.prod(spec.shape), searched=spec.searched)
        return radii.largest(spec.plan)[norm.text] * (1 + SAME)

    return largest


def _check_region(
    r: dict[str, Any],
    table: Table,
    metric: Metric,
    shape: tuple[int, ...],
    rows: Mapping[int, Row],
    draws: Mapping[int, float],
) -> str | None:
    point = np.frombuffer(r["point"], "<f4")
    if r["number"] != table.size + 1 or point.size != math.prod(shape):
        raise RunError(f"region {r['number']} cannot come after region {table.size}")
    before = table.snapshot()
    table.append(point, r["reach"], r["class"])
    if r["stream"] not in draws:
        return "the certificate behind it was not counted"
    if not np.isfinite(point).all() or r["class"] < -1 or not r["certified"] >= 0:
        return f"class {r['class']} with radius {r['certified']} round a point of no sense"
    if r["class"] == -1 and r["certified"] != 0:
        return "an abstention with a radius"
    x = point.astype(np.float64)
    if any(before.label[at] != r["class"] for at, _ in before.list_holding(metric, x)):
        return "it lies in a region of another class"
    room = before.room(metric, x, r["class"], metric.reach(r["certified"]))
    if not math.isclose(r["reach"], room, rel_tol=SAME):
        return f"reach {r['reach']!r} stored, {room!r} from the regions before it"
    return _check_planted(r, shape, metric, rows.get(r["stream"]))


def _check_planted(
    r: dict[str, Any], shape: tuple[int, ...], metric: Metric, row: Row | None
) -> str | None:
    """How a region that came from the run differs from the run; None if it does not differ."""
    if r["stream"] >= FIRST_STREAM or row is None or row.certificate is None:
        return None
    claimed = row.certificate.in_norm(metric.norm.text)
    if claimed is None:
        return "the run has no radius in its norm"
    proved = row.predict >= 0 and r["reach"] <= metric.reach(claimed.proved)
    said = (row.predict, claimed.radius, row.certificate.noise)
    if (r["class"], r["certified"], r["noise"]) != said:
        return f"{(r['class'], r['certified'], r['noise'])} stored, {said} in the run"
    if r["guarantee"] != ("proved" if proved else claimed.guarantee):
        return f"guarantee {r['guarantee']!r}"
    head = "x".join(map(str, shape)).encode() + b":"
    if hashlib.sha256(head + r["point"]).hexdigest() != row.input_hash:
        return "its centre is not the input of the run"
    return None


def replay_memory(
    regions: Regions,
    spec: Spec,
    classifier: Classifier,
    count: int,
    trusted: Trusted = NO_TRUST,
) -> Iterator[str]:
    """Certify some points again that are no inputs of the run, and yield what differs.

    Parameters
    ----------
    regions
        The open memory.
    spec
        The spec of its run.
    classifier
        The base classifier of the run.
    count
        How many points are drawn, afresh in every call.
    trusted
        Files whose code may run.
    """
    about = regions.settings("about")
    norm = parse_norm(about["norm"])
    certify = policy(spec, classifier, about[SEED], trusted)
    fresh = regions.read("SELECT * FROM regions WHERE stream >= ?", (FIRST_STREAM,))
    for r in random.SystemRandom().sample(fresh, min(count, len(fresh))):
        point = np.frombuffer(r["point"], "<f4").reshape(spec.shape)
        again = certify(torch.from_numpy(point.copy()), r["stream"])
        said = (again.predict, again.radius(norm.text), again.noise)
        claimed = next(radius for radius in again.radii if radius.norm == norm.text)
        proved = again.predict >= 0 and r["reach"] <= Metric(norm).reach(claimed.proved)
        if (r["class"], r["certified"], r["noise"]) != said:
            yield f"region {r['number']}: {r['class']}, {r['certified']} stored, {said} now"
        elif r["guarantee"] != ("proved" if proved else claimed.guarantee):
            yield f"region {r['number']}: guarantee {r['guarantee']!r}"
