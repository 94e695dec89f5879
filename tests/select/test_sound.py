"""Planted selectors and classifiers whose radii are known: how often does a certificate lie?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import special, stats

from unicr import noise
from unicr.norms import l2
from unicr.select import Selector
from unicr.smoothing import Certificate, Counts, Curves, Plan, Request, Steps, answer_all
from unicr.smoothing.procedures import MemberVotes

ALPHA, TRIALS = 0.1, 2000
WORST = int(stats.binom.isf(1e-6, TRIALS, ALPHA))  # false alarms of a sound certifier: 1e-6
SIGMAS = (0.5, 1.0)
SETTINGS = Selector(noise.gaussian(sigma=1), tuple(noise.gaussian(sigma=s) for s in SIGMAS))
PLAN = SETTINGS.fit(Plan(n0=50, n=300, alpha=ALPHA))
CURVES = Curves((l2,), 2)


@dataclass(frozen=True)
class Planted:
    """At x: the distance to where s changes (positive: choice 1), and for each choice how far
    class 1 reaches (negative: x is in class 0). Everything is linear and in directions of its own,
    so that the selector's score and each classifier's are one Gaussian number.
    """

    lean: float
    reach: tuple[float, float]

    def answer(self, rng: np.random.Generator) -> Callable[[Request], Counts]:
        def counts(ask: Request) -> Counts:
            assert isinstance(ask.counted, MemberVotes)
            k = ask.counted.index
            away = self.lean if k == 0 else self.reach[k - 1] / SIGMAS[k - 1]
            ones = rng.binomial(ask.n, special.ndtr(away))
            return np.array([ask.n - ones, ones])

        return counts

    @property
    def label(self) -> int:
        return int(self.reach[int(self.lean > 0)] > 0)

    @property
    def radius(self) -> float:
        """The true one: directions are orthogonal, so a point with another answer has the other
        class under the chosen noise, or another choice and there the other class.
        """
        here = self.reach[int(self.lean > 0)]
        there = self.reach[1 - int(self.lean > 0)]
        other = 0.0 if here * there < 0 else abs(there)
        return min(abs(here), float(np.hypot(self.lean, other)))


def lies(planted: Planted, start: Callable[[], Steps[Certificate]], seed: int) -> int:
    """In how many of TRIALS the certificate claims another class, or more than is true."""
    rng = np.random.default_rng(seed)
    wrong = 0
    for _ in range(TRIALS):
        found = answer_all(start(), planted.answer(rng))
        if not found.abstained:
            wrong += found.predict != planted.label or found.radius() > planted.radius
    return wrong


def sound() -> Steps[Certificate]:
    return SETTINGS.steps(PLAN, SETTINGS.noise, CURVES)


def naive() -> Steps[Certificate]:
    """The noise is chosen by votes, and nobody asks whether a neighbour chooses another."""
    chosen = yield Request(PLAN.n0, 1000, counted=MemberVotes(0), purpose="choose")
    k = int(chosen[1] > chosen[0])
    law = SETTINGS.choices[k]
    inner = Plan().procedure.steps(PLAN, law, CURVES)
    asked = next(inner)
    while True:
        counts = yield Request(asked.n, asked.start, law, MemberVotes(1 + k))
        try:
            asked = inner.send(counts)
        except StopIteration as stop:
            found: Certificate = stop.value
            return found


CASES: Sequence[Planted] = (
    Planted(0.4, (-1.5, 1.2)),  # the selector limits
    Planted(-0.4, (1.2, -1.5)),
    Planted(2.5, (0.5, 0.8)),  # the classifier limits
    Planted(0.05, (0.6, 0.7)),  # undecided, the classifiers agree
    Planted(0.05, (0.02, 0.7)),  # undecided, one of them hardly
    Planted(0.1, (-0.02, 0.7)),  # undecided, and they do not agree
    Planted(1e-9, (-0.7, 0.7)),  # a coin decides: the true radius is 0
    Planted(1.0, (1e-9, 1e-9)),
)


SLOW = [pytest.param(one, marks=pytest.mark.slow) for one in CASES[4:]]


@pytest.mark.parametrize("planted", [*CASES[:4], *SLOW], ids=str)
def test_lies_are_as_rare_as_alpha_says(planted: Planted) -> None:
    assert lies(planted, sound, seed=1) <= WORST


def test_a_choice_that_is_not_certified_is_caught() -> None:
    assert lies(CASES[0], naive, seed=2) > TRIALS // 2


def test_the_certificates_are_of_use() -> None:
    rng = np.random.default_rng(3)
    for planted, least in ((CASES[0], 0.05), (CASES[2], 0.5), (CASES[3], 0.3)):
        radii = [answer_all(sound(), planted.answer(rng)).radius() for _ in range(60)]
        assert np.mean(radii) > least
        assert np.mean(radii) < planted.radius
