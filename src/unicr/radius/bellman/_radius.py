"""Radii and curves by theorem (j), for i.i.d. noise, finite p > 0 and dimension ≥ 2."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special

from unicr.noise import IID
from unicr.norms import Norm
from unicr.progress import tell
from unicr.radius._boundary import first_root
from unicr.radius._spectrum import Spectrum, equal
from unicr.radius.bellman._kernel import laws_of
from unicr.radius.bellman._sheet import DUST, LOW, Sheet
from unicr.tradeoff import shifted
from unicr.tradeoff.internal import margin, start_margin
from unicr.values import Array

LARGEST = 6.75  # Φ⁻¹(p_A) at the end of a curve
SMALLEST = 0.02
APART = 1.4  # from one scale of a curve to the next, p ≤ 2, where users read
READ = 0.25  # Φ⁻¹(p_A) from there on; below it every second scale will do
TOLERANCE = 2e-4
ABOVE = 1.002
BETTER = 25  # cells of u₁ that are looked at again
NEAR = 1e-3  # margins that are as good as the smallest: the widest of those cells is split
WORTH = 5e-4  # what splits must gain to be followed by others
PATIENCE = 4
CLOSE = 0.98  # of what no radius exceeds: a proof that is farther from it is tried on finer grids


def covers(noise: IID, norm: Norm, dim: int) -> bool:
    """Whether the theorem is built for this noise, norm and dimension."""
    return math.isfinite(norm.p) and dim >= 2


@lru_cache(maxsize=256)
def bellman_radius(unit: IID, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
    """A proved radius at unit scale; 0 where nothing could be proved."""
    if p_a <= p_b:
        return 0.0
    begun = sheets(unit, norm, dim, p_a, p_b)
    found = [_refined(sheet.twin(), p_a, p_b) for sheet in begun]
    sheet, (best, first) = max(zip(begun, found, strict=True), key=lambda pair: pair[1][0])
    if unit.facts.log_concave and best < CLOSE / ABOVE * sheet.r:
        best = max(best, _refined(sheet.finer(first), p_a, p_b)[0])
    return best


def _refined(sheet: Sheet, p_a: float, p_b: float) -> tuple[float, list[float]]:
    """The radius of one scale, with the cells of u₁ that hold it back proved by tighter ones; and
    the largest coordinates that were worth it.
    """
    best, first, patience = 0.0, sheet.first, PATIENCE
    for _ in range(BETTER + 1):
        found = _largest(lambda r: sheet.holds(r, p_a, p_b), best, sheet.r)
        if found > best * (1 + WORTH):
            first, patience = list(sheet.first), PATIENCE
        else:
            patience -= 1
        best = found
        if patience == 0 or found in (0.0, sheet.r):
            break
        margins = sheet.margins(found * (1 + TOLERANCE), p_a, p_b)
        near = np.flatnonzero(margins <= np.min(margins) + NEAR)
        if not sheet.better(int(near[np.argmax(sheet.widths()[near])])):
            break
    return best, first


def bellman_curve(unit: IID, norm: Norm, dim: int) -> tuple[Array, Array]:
    """(α, r) with T_δ(α) ≥ 1/2 proved for all ‖δ‖_p ≤ r: radii for p_A from 0.51 to 1 − 1e-11."""
    curves, shifts, below = [], scales(norm.p), 0.0
    for j, shift in enumerate(shifts):
        found = sheets(unit, norm, dim, special.ndtr(shift), special.ndtr(-shift))
        low = min(0.97 * below, 0.9 * found[0].r) or 0.5 * found[0].r
        curves += [sheet.twin().steps(low) for sheet in found]
        below = found[0].r
        tell(f"building the {norm} curve, once", j + 1, len(shifts))
    alpha = np.concatenate([alpha for alpha, _ in curves])
    radius = np.concatenate([radius for _, radius in curves])
    order = np.argsort(-alpha, kind="stable")
    alpha, radius = alpha[order], np.maximum.accumulate(radius[order])
    return alpha[alpha > 0], radius[alpha > 0]


def scales(p: float) -> list[float]:
    """Φ⁻¹(p_A) of the scales of a curve, rising."""
    apart = APART if p <= 2 else max(1.15, 1.0 + 0.4 / (p - 1.0))
    shifts = [LARGEST]
    while shifts[-1] > SMALLEST:
        shifts.append(shifts[-1] / (apart if shifts[-1] > READ else apart**2))
    return shifts[::-1]


@lru_cache(maxsize=12)
def sheets(unit: IID, norm: Norm, dim: int, p_a: float, p_b: float) -> tuple[Sheet, ...]:
    """The bound at the scale of (p_A, p_B), with the κ that suits the worst direction known; in
    low dimension with several.
    """
    shift = 0.5 * float(special.ndtri(min(p_a, 1 - 1e-15)) - special.ndtri(max(p_b, 1e-15)))
    upper = _upper(unit, norm, dim, p_a, p_b)
    p, r = norm.p, upper.radius * ABOVE
    least = DUST * r**p / dim
    kappas = {least, max(least, _even(unit, p, dim, r))}
    if len(kappas) > 1 and dim > LOW:
        kappas = {max(kappas) if upper.coordinates == dim else min(kappas)}
    return tuple(Sheet(unit, p, dim, shift, r, kappa) for kappa in sorted(kappas))


def _even(unit: IID, p: float, dim: int, r: float) -> float:
    """The κ for which equal coordinates buy the most information, KL(u)/(u^p + κ)."""
    u = r * dim ** (-1 / p)

    def information(at: float) -> float:
        return max(float(np.sum(law.mass * law.loss)) for law in laws_of(unit, at))

    low, high = information(u / 1.05), information(1.05 * u)
    if not 0 < low < high:  # too small to be told from rounding
        return 0.0
    elasticity = math.log(high / low) / math.log(1.05**2)
    return (p / elasticity - 1.0) * u**p


class Upper(NamedTuple):
    """A radius that no proof can exceed, and how many equal coordinates it has."""

    radius: float
    coordinates: int


def _upper(unit: IID, norm: Norm, dim: int, p_a: float, p_b: float) -> Upper:
    """The boundary along a few directions: no radius can be larger."""
    best, worst = math.inf, 1
    signs = (1.0,) if unit.facts.symmetric else (1.0, -1.0)
    for k in sorted({1, 2, 3, min(dim, 8), math.isqrt(dim), dim} - {0}):
        if k > dim:
            break
        both = [equal(k, sign).unit(norm) for sign in signs]

        def value(r: float, both: list[Spectrum] = both) -> float:
            found = [shifted(unit, along.shifts(r), spread=3e-4) for along in both]
            return min(margin(one, p_a, p_b) for one in found)

        if math.isfinite(best) and value(best) >= 0:
            continue
        guess = best if math.isfinite(best) else max(float(special.ndtri(p_a)), 1e-3)
        start = start_margin(p_a, p_b)
        root = first_root(value, start, guess, monotone=unit.facts.unimodal, tolerance=1e-3)
        best, worst = (root, k) if root < best else (best, worst)
    return Upper(best, worst)


def _largest(holds: Callable[[float], bool], low: float, top: float) -> float:
    """The largest r ≤ top that holds, by bisection; the bound is monotone in r, and `low` holds."""
    if holds(top):
        return top
    high = top
    while high - low > TOLERANCE * high and high > 1e-9 * top:
        middle = 0.5 * (low + high) if low > 0 else 0.7 * high
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
