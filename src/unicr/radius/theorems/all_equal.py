"""(c) ℓ∞, or one dimension, symmetric unimodal noise: all coordinates move equally."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from unicr.noise import IID, Anisotropic, Noise
from unicr.norms import Norm
from unicr.radius._boundary import certified
from unicr.radius._spectrum import Spectrum, equal
from unicr.radius.theorems._base import Theorem, base_of, symmetric_unimodal
from unicr.tradeoff import TradeOff, shifted
from unicr.tradeoff.internal import start_guess

GROUPS = 48  # scales that are composed one by one


class AllEqual(Theorem):
    """R by d-fold composition of equal shifts, by groups of equal scales where these differ.

    H_γ between p and its shift by u grows with u: for γ ≥ 1 its derivative is γ·Σ(p(a) − p(b)) ≥ 0
    over the intervals (a, b), all beyond the mode, where p(z − u) > γ·p(z). So every T_u falls with
    |u|, products keep the order, and (a, …, a) is worst. Log-concavity is not needed.
    """

    letter, words = "c", "all-equal, unimodal"
    needs = "ℓ∞, or one dimension; symmetric unimodal coordinates"
    engine = "composition"

    def applies(self, noise: Noise, norm: Norm, dim: int) -> bool:
        return symmetric_unimodal(noise) and (math.isinf(norm.p) or dim == 1)

    def tight(self, noise: Noise, norm: Norm, dim: int) -> bool:
        few = not isinstance(noise, Anisotropic) or len(np.unique(noise.scales)) <= GROUPS
        return few and self.applies(noise, norm, dim)

    def radius(self, noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
        base, groups = _groups(noise, dim)
        total = math.sqrt(sum(n / s**2 for s, n in groups))
        guess = base.scale * start_guess(p_a, p_b) / total
        return certified(partial(_moved, base, groups), p_a, p_b, guess)

    def tradeoff(self, noise: Noise, norm: Norm, dim: int, r: float) -> TradeOff:
        return _moved(*_groups(noise, dim), r)

    def directions(self, noise: Noise, norm: Norm, dim: int) -> tuple[Spectrum, ...]:
        return (equal(dim),)


def _moved(base: IID, groups: list[tuple[float, int]], r: float) -> TradeOff:
    return shifted(base, [(r / s, n) for s, n in groups])


def _groups(noise: Noise, dim: int) -> tuple[IID, list[tuple[float, int]]]:
    """(scale, how many coordinates), at most GROUPS of them: others are rounded down to a grid.

    A smaller scale makes a shift easier to see, so rounding down is safe.
    """
    base = base_of(noise)
    assert isinstance(base, IID)
    if not isinstance(noise, Anisotropic):
        return base, [(1.0, dim)]
    values, counts = np.unique(noise.scales, return_counts=True)
    if len(values) > GROUPS:
        grid = np.geomspace(values[0], values[-1], GROUPS)
        grid[0], grid[-1] = values[0], values[-1]
        at = np.maximum(np.searchsorted(grid, values, side="right") - 1, 0)
        counts = np.bincount(at, weights=counts, minlength=GROUPS).astype(np.int64)
        values = grid
    return base, [(float(s), int(n)) for s, n in zip(values, counts, strict=True) if n]


THEOREM = AllEqual()
