"""Choose the noise of each input among some, stretched ones too, then certify from fresh votes.

Sets of different shapes are compared by one number that is fixed beforehand: the ball of the first
norm that they hold, or their volume.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from unicr.errors import CertifyError, UnicrError
from unicr.noise import Noise
from unicr.noise.internal import check_parses
from unicr.smoothing._certificate import Certificate
from unicr.smoothing._closed import ClosedNoise, read_noise
from unicr.smoothing._plan import THIS_INPUT, Plan
from unicr.smoothing._question import BOUND, CHOOSE, Counts, Request, Steps, at
from unicr.smoothing.procedures.i_opt import expect_p_a
from unicr.smoothing.procedures.two_steps import TwoSteps

if TYPE_CHECKING:
    from unicr.classifier import Classifier
    from unicr.smoothing._radii import Curves, Radii

UNITS = ("radius", "volume")
MOST = 64  # noises to choose from: each costs n0 votes of every input


@dataclass(frozen=True)
class Among(TwoSteps):
    """The run's noise or one of `choices`: whichever promises most `by` radius or volume.

    `radius` compares balls in the first norm, `volume` the sets that are proved in it. A candidate
    that votes for another class than the run's noise is never taken.
    """

    name = "among"
    scope = THIS_INPUT
    choices: tuple[Noise, ...]
    by: str = "radius"

    def __post_init__(self) -> None:
        if not 1 <= len(self.choices) <= MOST:
            raise CertifyError(
                f"among needs 1 to {MOST} noises beside --noise, not {len(self.choices)}"
            )
        if self.by not in UNITS:
            raise CertifyError(f"by={self.by} must be {' or '.join(UNITS)}")
        if len(set(self.choices)) < len(self.choices):
            raise CertifyError("a noise is named twice among the choices")

    @classmethod
    def of_words(cls, words: Sequence[str]) -> Self:
        """From the arguments of `among(NOISE, NOISE, by=volume)`."""
        noises = [word for word in words if not word.startswith("by=")]
        units = [word.removeprefix("by=") for word in words if word.startswith("by=")]
        if len(units) > 1:
            raise CertifyError("by= is given twice")
        return cls(tuple(map(read_noise, noises)), *units)

    @property
    def text(self) -> str:
        """The form that `parse` reads."""
        return f"among({', '.join([law.text for law in self.choices] + [f'by={self.by}'])})"

    def check_plan(self, plan: Plan) -> None:
        """A fixed number of samples: what a candidate promises is counted for all of them."""
        if plan.rule.name != "fixed":
            raise CertifyError(
                "among needs a fixed number of samples, so it cannot be used with the rule "
                f"{plan.rule.text}"
            )

    def check(self, plan: Plan, radii: Radii, model: Classifier | None = None) -> None:
        """The run's noise is a candidate by itself."""
        if radii.noise in self.choices:
            raise CertifyError(
                f"{radii.noise.text} is --noise already: leave it out of the choices"
            )

    def open_noises(self, open_noise: Callable[[Noise], Noise]) -> Self:
        """With noises that are code opened by `open_noise`, which may refuse."""
        return replace(self, choices=tuple(map(open_noise, self.choices)))

    def steps(self, plan: Plan, noise: Noise, curves: Curves) -> Steps[Certificate]:
        """Samples 0 … n0 − 1 of each candidate choose; n fresh ones of the chosen one bound.

        With probability ≥ 1 − α over the fresh samples the certificate holds for the classifier
        smoothed with that noise, whichever it is (docs/theory.md#what-optimisation-may-use).
        """
        votes: dict[Noise, Counts] = {}
        for law in (noise, *self.choices):
            votes[law] = yield Request(plan.n0, 0, law, self.counted, CHOOSE)
        label = self.choose(votes[noise])
        same = [law for law, counts in votes.items() if self.choose(counts) == label]
        promised = {law: self._value(plan, curves.of(law), votes[law], label) for law in same}
        chosen = max(same, key=lambda law: promised[law])
        counts = yield Request(plan.n, plan.n0, chosen, self.counted, BOUND)
        return self.conclude(plan, curves.of(chosen), votes[chosen], counts, chosen)

    def _value(self, plan: Plan, radii: Radii, votes: Counts, label: int) -> float:
        """What a candidate promises, in the unit of `by`; volumes as logarithms."""
        p_a = expect_p_a(at(votes, label), plan)
        first = radii.at(*radii.charge_bounds(p_a, 1.0 - p_a))[0]
        if self.by == "radius":
            return first.radius
        if first.reach is None:
            return radii.dim * math.log(first.radius) if first.radius > 0 else -math.inf
        return -math.inf if first.log_volume is None else first.log_volume

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the spec of a run."""
        return {"name": self.name, "choices": list(map(_write, self.choices)), "by": self.by}

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> Self:
        """From the settings that `to_dict` wrote; noises that are code stay closed."""
        values = {"name": cls.name, **settings}
        try:
            texts, by = values["choices"], values["by"]
            if not (isinstance(texts, list) and all(isinstance(text, str) for text in texts)):
                raise ValueError("texts of noises are needed")
            found = cls(tuple(map(read_noise, texts)), by)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, UnicrError):
                raise
            raise CertifyError(f"cannot read the choice {values!r}: {error!r}") from None
        if found.to_dict() != values:
            raise CertifyError(f"the choice {values!r} does not agree with itself")
        return found


def _write(noise: Noise) -> str:
    return noise.text if isinstance(noise, ClosedNoise) else check_parses(noise)
