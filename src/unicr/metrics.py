"""What a set of certificates is worth: certified accuracy, average radius, robustness score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from unicr.errors import UnicrError
from unicr.values import Array


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of one run in one norm: for every input its radius, whether it counts, and whether
    it abstained.

    With labels, an input counts if it is correct. Without labels (`labelled` is false), it counts
    if it is certified, and no share of inputs is called an accuracy. Failed inputs never count. If
    radii hold only between the points of a grid, `grid` is this grid; otherwise it is None. `p_a`
    are the lower bounds of the top class's probability of the certified inputs, or None if a log
    does not have them.
    """

    name: str
    norm: str
    radius: Array
    counted: Array
    abstained: Array
    alpha: float | None = None
    grid: str | None = None
    p_a: Array | None = None
    labelled: bool = True

    def __post_init__(self) -> None:
        if len(self.radius) == 0:
            raise UnicrError(f"{self.name} has no results yet")

    @property
    def _radii(self) -> Array:
        return np.where(self.counted.astype(bool), self.radius, -1.0)

    def certified_share(self, radius: float) -> float:
        """The share of inputs that count and have at least this radius."""
        return float(np.mean(self._radii >= radius))

    def certified_accuracy(self, radius: float) -> float:
        """The share of inputs that are correct and have at least this radius."""
        if not self.labelled:
            raise UnicrError(
                f"{self.name} has no labels, so it has no accuracy: use certified_share"
            )
        return self.certified_share(radius)

    @property
    def average_radius(self) -> float:
        """The mean certified radius. Inputs that do not count have radius 0."""
        return float(np.mean(np.maximum(self._radii, 0.0)))

    @property
    def median_radius(self) -> float:
        """The median of the same radii."""
        return float(np.median(np.maximum(self._radii, 0.0)))

    @property
    def p_a_percentiles(self) -> tuple[float, float, float] | None:
        """p_A at the 10th, 50th and 90th percentile of the certified inputs, if there are any."""
        if self.p_a is None or not len(self.p_a):
            return None
        low, middle, high = np.quantile(self.p_a, (0.1, 0.5, 0.9)).tolist()
        return low, middle, high

    @property
    def abstention(self) -> float:
        """The share of inputs without a class."""
        return float(np.mean(self.abstained))

    def accuracy_bound(self, radius: float, failure: float = 0.001) -> float:
        """A lower bound of the share of inputs that are correct and whose certificate is true, at
        confidence 1 − failure.

        Each certificate is wrong with probability at most α, independently: the number of wrong
        ones is at most the exact binomial quantile, and those are taken off.
        """
        if self.alpha is None:
            raise UnicrError(f"{self.name} does not say its alpha, so no bound can be given")
        m = len(self.radius)
        wrong = np.arange(m + 1)
        enough = special.bdtrc(wrong, m, self.alpha) <= failure
        return max(0.0, self.certified_accuracy(radius) - float(wrong[np.argmax(enough)]) / m)

    def steps(self) -> Array:
        """The radii at which the certified accuracy falls, ascending."""
        return np.unique(self._radii[self._radii > 0])


def robustness_score(runs: Sequence[Scores]) -> float:
    """∫ max over runs of the certified accuracy at R, dR: exact, the curves are steps."""
    if not runs:
        raise UnicrError("a robustness score needs at least one run")
    if len({run.norm for run in runs}) > 1:
        raise UnicrError(f"the runs are in different norms: {sorted({run.norm for run in runs})}")
    ends = np.unique(np.concatenate([run.steps() for run in runs]))
    if ends.size == 0:
        return 0.0
    if math.isinf(ends[-1]):
        return math.inf
    widths = np.diff(np.concatenate([[0.0], ends]))
    return float(np.sum(widths * envelope(runs, ends)))


def best_of(runs: Sequence[Scores]) -> Scores:
    """Scores whose certified accuracy at every radius is the best of the runs'.

    With all runs over as many inputs: the i-th largest radius is the largest of the runs' i-th
    ones. Their average radius is the robustness score; single inputs lose their place.
    """
    if len({len(run.radius) for run in runs}) != 1:
        raise UnicrError("the runs must have the same number of inputs")
    radii = np.max([np.sort(run._radii) for run in runs], axis=0)
    abstained = np.min([np.sort(run.abstained) for run in runs], axis=0)
    counted = (radii >= 0).astype(np.float64)
    return replace(runs[0], radius=np.maximum(radii, 0), counted=counted, abstained=abstained)


def envelope(runs: Sequence[Scores], radii: Array) -> Array:
    """The best certified accuracy (without labels: share) of any run at each radius."""
    curves = [accuracy_curve(run, radii) for run in runs]
    return np.max(curves, axis=0)


def accuracy_curve(run: Scores, radii: Array) -> Array:
    """Certified accuracy of one run (without labels: certified share) at many radii."""
    sorted_radii = np.sort(run._radii)
    below = np.searchsorted(sorted_radii, radii, side="left")
    return 1.0 - below / len(sorted_radii)
