"""Radii and curves by theorem (j), for i.i.d. noise, finite p > 0 and dimension ≥ 2."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from scipy import special

from unicr.noise import IID
from unicr.norms import Norm
from unicr.radius._boundary import first_root, margin, start_margin
from unicr.radius._spectrum import Spectrum, equal
from unicr.radius.bellman._kernel import laws_of
from unicr.radius.bellman._sheet import DUST, Sheet
from unicr.tradeoff import shifted
from unicr.values import Array

LARGEST = 6.75  # Φ⁻¹(p_A) at the end of a curve
SMALLEST = 0.02
FINER = 1.3  # from one scale to the next; a curve takes every other
COARSER = 2
TOLERANCE = 2e-4
ABOVE = 1.002
LOW = 300  # dimensions in which both κ are tried


def covers(noise: IID, norm: Norm, dim: int) -> bool:
    """Whether the theorem is built for this noise, norm and dimension."""
    return math.isfinite(norm.p) and dim >= 2


def bellman_radius(unit: IID, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
    """A proved radius at unit scale; 0 where nothing could be proved."""
    if p_a <= p_b:
        return 0.0
    shift = 0.5 * float(special.ndtri(min(p_a, 1 - 1e-15)) - special.ndtri(max(p_b, 1e-15)))
    level = math.floor(math.log(LARGEST / min(shift, LARGEST)) / math.log(FINER))
    best = 0.0
    for sheet in sheets(unit, norm, dim, level):
        best = max(best, _largest(partial(_margin, sheet, p_a, p_b), sheet.r))
    return best


def bellman_curve(
    unit: IID, norm: Norm, dim: int, report: Callable[[float], None] = lambda share: None
) -> tuple[Array, Array]:
    """(α, r) with T_δ(α) ≥ 1/2 proved for all ‖δ‖_p ≤ r: radii for p_A from 0.51 to 1 − 1e-11."""
    count = math.ceil(math.log(LARGEST / SMALLEST) / math.log(FINER) / COARSER)
    curves = []
    for j in range(count + 1):
        for sheet in sheets(unit, norm, dim, j * COARSER):
            curves.append(sheet.steps(sheet.r / (FINER**COARSER * 1.05)))
        report((j + 1) / (count + 1))
    alpha = np.concatenate([alpha for alpha, _ in curves])
    radius = np.concatenate([radius for _, radius in curves])
    order = np.argsort(-alpha, kind="stable")
    alpha, radius = alpha[order], np.maximum.accumulate(radius[order])
    return alpha[alpha > 0], radius[alpha > 0]


@lru_cache(maxsize=12)
def sheets(unit: IID, norm: Norm, dim: int, level: int) -> tuple[Sheet, ...]:
    """The bound at Gaussian shift `LARGEST`/`FINER`^level, with the κ that suits the worst
    direction known; in low dimension with two.
    """
    shift = LARGEST * FINER**-level
    p_a, p_b = float(special.ndtr(shift)), float(special.ndtr(-shift))
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

    elasticity = math.log(information(1.05 * u) / information(u / 1.05)) / math.log(1.05**2)
    return (p / elasticity - 1.0) * u**p


class Upper(NamedTuple):
    """A radius that no proof can exceed, and how many equal coordinates it has."""

    radius: float
    coordinates: int


def _upper(unit: IID, norm: Norm, dim: int, p_a: float, p_b: float) -> Upper:
    """The boundary along a few directions: no radius can be larger."""
    best, worst = math.inf, 1
    for k in sorted({1, 2, 3, min(dim, 8), math.isqrt(dim), dim} - {0}):
        if k > dim:
            break
        spectrum = equal(k).unit(norm)

        def value(r: float, along: Spectrum = spectrum) -> float:
            return margin(shifted(unit, along.shifts(r), spread=3e-4), p_a, p_b)

        if math.isfinite(best) and value(best) >= 0:
            continue
        guess = best if math.isfinite(best) else max(float(special.ndtri(p_a)), 1e-3)
        start = start_margin(p_a, p_b)
        root = first_root(value, start, guess, monotone=unit.facts.unimodal, tolerance=1e-3)
        best, worst = (root, k) if root < best else (best, worst)
    return Upper(best, worst)


def _margin(sheet: Sheet, p_a: float, p_b: float, r: float) -> float:
    return sheet.margin(r, p_a, p_b)


def _largest(value: Callable[[float], float], top: float) -> float:
    """The largest r ≤ top with value(r) ≥ 0, by bisection; the bound is monotone in r."""
    if value(top) >= 0:
        return top
    low, high = 0.0, top
    while high - low > TOLERANCE * high and high > 1e-9 * top:
        middle = 0.5 * (low + high) if low > 0 else 0.7 * high
        low, high = (middle, high) if value(middle) >= 0 else (low, middle)
    return low
