"""Certification as a conversation: a procedure asks for votes, whoever holds a model answers.

The procedure never sees the model, so the same one runs in this process, over a pool of processes
or over a cluster, with one early-stopping rule or a whole search for the best noise inside.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from unicr.noise import Noise
from unicr.smoothing._certificate import ABSTAIN, Certificate
from unicr.smoothing._plan import Plan, decided
from unicr.smoothing._radii import Radii

Counts = NDArray[np.int64]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Ask:
    """Votes that are wanted: those of the noisy copies number start … start + n − 1.

    `noise` is None for the noise that the smoothed classifier has; `clean` asks for the one vote
    of the input itself, without noise.
    """

    n: int
    start: int
    noise: Noise | None = None
    clean: bool = False


Procedure = Generator[Ask, Counts, Result]


def converse(procedure: Procedure[Result], answer: Callable[[Ask], Counts]) -> Result:
    """Answer every question of a procedure; its result."""
    try:
        ask = next(procedure)
        while True:
            ask = procedure.send(answer(ask))
    except StopIteration as stop:
        result: Result = stop.value
        return result


def certification(plan: Plan, radii: Radii, noise: Noise | None = None) -> Procedure[Certificate]:
    """n0 votes choose the class, n fresh ones bound its probability (Cohen et al.'s two steps).

    At confidence 1 − α over the fresh votes the radii hold. `noise` is given where it was chosen
    for this input: by anything but the samples n0 … n0 + n − 1.
    """
    selection = yield Ask(plan.n0, 0, noise)
    top = int(np.argsort(-selection, kind="stable")[0])
    counts = yield from _fresh(plan, radii, top, noise)
    return certificate(plan, radii, selection, counts, noise)


def certificate(
    plan: Plan, radii: Radii, selection: Counts, counts: Counts, noise: Noise | None = None
) -> Certificate:
    """What the votes of an input are worth; the same votes always give the same."""
    order = np.argsort(-selection, kind="stable")
    top = int(order[0])
    runner_up = int(order[1]) if len(order) > 1 else None
    p_a, p_b = radii.bounds(plan, as_tuple(counts), top, runner_up)
    return Certificate(
        predict=top if p_a > p_b else ABSTAIN,
        p_a=p_a,
        p_b=p_b,
        n0=plan.n0,
        n=int(counts.sum()),
        alpha=plan.alpha,
        selection=as_tuple(selection),
        counts=as_tuple(counts),
        radii=radii.at(p_a, p_b),
        noise=None if noise is None else noise.text,
    )


def _fresh(plan: Plan, radii: Radii, top: int, noise: Noise | None) -> Procedure[Counts]:
    """The votes that bound the probability of the top class: all n, or until they decide."""
    if plan.mode == "fixed":
        counts: Counts = yield Ask(plan.n, plan.n0, noise)
        return counts
    needed = radii.needed(plan.target) if plan.target is not None else None
    counts = np.zeros(0, dtype=np.int64)
    taken, look = 0, min(plan.look_every, 100)
    while True:
        step = min(look, plan.n - taken)
        counts = add(counts, (yield Ask(step, plan.n0 + taken, noise)))
        taken += step
        k = int(counts[top]) if top < len(counts) else 0
        if decided(plan, k, taken, radii.first, needed):
            return counts
        look = min(plan.look_every, taken)


def add(a: Counts, b: Counts) -> Counts:
    """Sum of two counts, of which one may know more classes."""
    total = np.zeros(max(len(a), len(b)), dtype=np.int64)
    total[: len(a)] += a
    total[: len(b)] += b
    return total


def as_tuple(counts: Counts) -> tuple[int, ...]:
    """Counts as plain whole numbers."""
    return tuple(int(c) for c in counts)
