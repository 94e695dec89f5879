"""What the numbers of a row can come from: p_A behind a radius, counts behind p_A.

Between counts and radii stand two maps that never fall: Clopper–Pearson's bound of k of n votes,
and the radius at p_A. So the counts behind a printed number are an interval, found by bisection.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from scipy import special

from unicr.binomial import lower_bound
from unicr.errors import RunError
from unicr.noise import Noise
from unicr.norms import Norm
from unicr.values import Array


def l2_factor(norm: Norm, dim: int) -> float:
    """ℓ2 radius of Gaussian noise over its radius in this norm: d^(1/2 − 1/p), or 1 for p ≤ 2.

    The worst direction of Gaussian noise is any in which the ℓ2 length is largest (theory.md, (a)).
    """
    return float(dim ** max(0.0, 0.5 - 1 / norm.p))


def tells_p_a(noise: Noise) -> bool:
    """Whether a radius under this noise tells how large p_A was: `least_p_a`."""
    return noise.iid is not None and noise.iid.facts.symmetric


def least_p_a(radius: Array, noise: Noise, norm: Norm, dim: int) -> Array:
    """The least p_A at which any sound method can certify these radii: P(ε_1 ≤ radius).

    The classifier that asks whether the first coordinate is at most t has p_A = P(ε_1 ≤ t), and
    loses half of it when that coordinate moves by t less the median. So p_A was larger than that,
    in every norm. Gaussian noise knows its worst direction: there the answer is exact in any norm.
    In l1 it is exact for every symmetric log-concave noise (Laplace, uniform, General Normal).
    The radii must be those of p_A alone (p_B = 1 − p_A), as this format of logs has them.
    """
    law = noise.iid
    if law is None or not law.facts.symmetric:
        raise RunError(
            "only radii of symmetric noise with independent coordinates can be converted, not "
            f"those of {noise.text}"
        )
    if law.normal_sigma is not None:
        radius = radius * l2_factor(norm, dim)
    return np.asarray(law.cdf(radius))


def gaussian_sigma(noise: Noise) -> float | None:
    """σ of Gaussian noise with independent coordinates of one scale; None of any other."""
    return None if noise.iid is None else noise.iid.normal_sigma


def gaussian_radius(p_a: float, sigma: float, norm: Norm, dim: int) -> float:
    """σ Φ⁻¹(p_A) in this norm, 0 if p_A is not above 1/2."""
    return float(sigma * max(0.0, special.ndtri(p_a))) / l2_factor(norm, dim)


def needed_alpha(p_a: float, n: int) -> float:
    """The least α at which n votes, all for one class, give a bound as large as p_A: p_A^n."""
    return math.exp(n * math.log(p_a)) if p_a > 0 else 0.0


def largest_bound(n: int, alpha: float) -> float:
    """The bound of p_A from n votes that all agree, α^(1/n): no log of so many can claim more."""
    return lower_bound(n, n, alpha)


def counts_between(
    low: float, high: float, value: Callable[[float], float], n: int, alpha: float
) -> tuple[int, int]:
    """The counts k whose value(bound of k of n votes) lies in [low, high]: (first, last).

    first > last where there is none. `value` must not fall. Ends are widened by 1e-9 of their size,
    which is more than the error of the bounds and less than any printed digit.
    """

    @cache
    def at(k: int) -> float:
        return value(lower_bound(k, n, alpha))

    def first(wanted: float, strictly: bool) -> int:
        """The least k whose value is at least (strictly: above) what is wanted; n + 1 if none."""
        below, reaching = -1, n + 1
        while reaching - below > 1:
            middle = (below + reaching) // 2
            if at(middle) > wanted or (at(middle) == wanted and not strictly):
                reaching = middle
            else:
                below = middle
        return reaching

    slack = 1e-9
    return first(low * (1 - slack), False), first(high * (1 + slack), True) - 1
