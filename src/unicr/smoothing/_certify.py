"""The walk of one input: select what to claim, then bound it (Cohen et al.'s two steps).

A procedure asks for counts and whoever holds a model answers, so the same few lines run in this
process, over a pool of processes or over a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from unicr.noise import Noise
from unicr.smoothing._certificate import Certificate
from unicr.smoothing._measure import Counts, Measure, add
from unicr.smoothing._plan import Plan
from unicr.smoothing._radii import Radii
from unicr.smoothing.measures import ClassVotes

Result = TypeVar("Result")
CLASSES = ClassVotes()


@dataclass(frozen=True)
class Ask:
    """Counts that are wanted: those of the noisy copies number start … start + n − 1.

    `noise` is None for the noise that the smoothed classifier has; `clean` asks for the one count
    of the input itself, without noise.
    """

    n: int
    start: int
    noise: Noise | None = None
    clean: bool = False
    measure: Measure = CLASSES


Procedure = Generator[Ask, Counts, Result]


def certification(plan: Plan, radii: Radii, noise: Noise | None = None) -> Procedure[Certificate]:
    """n0 samples choose the claim, fresh ones bound its probability until the rule has enough.

    With probability ≥ 1 − α over the fresh samples the certificate holds (the rule's proof; the
    radius theorem). `noise` is given where it was chosen for this input: by anything but the
    samples n0 … n0 + n − 1.
    """
    measure = plan.measure
    own = measure.walk(plan, radii, noise)
    if own is not None:
        return (yield from own)
    selection = yield Ask(plan.n0, 0, noise, measure=measure)
    counts: Counts = np.zeros(0, dtype=np.int64)
    while more := plan.rule.next(votes := measure.votes(selection, counts), plan, radii):
        start = plan.n0 + votes.n
        counts = add(counts, (yield Ask(more, start, noise, measure=measure)))
    return measure.conclude(plan, radii, selection, counts, noise)


def converse(procedure: Procedure[Result], answer: Callable[[Ask], Counts]) -> Result:
    """Answer every question of a procedure; its result."""
    try:
        ask = next(procedure)
        while True:
            ask = procedure.send(answer(ask))
    except StopIteration as stop:
        result: Result = stop.value
        return result
