"""Radii and curves by theorem (j), for i.i.d. noise, finite p > 0 and dimension ≥ 2."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import product

import numpy as np
from scipy import special

from unicr.noise import IID
from unicr.norms import Norm
from unicr.progress import tell
from unicr.radius._boundary import find_radius
from unicr.radius._question import Evidence
from unicr.radius._spectrum import Spectrum, equal_spectrum
from unicr.radius.bellman._apart import ApartSheet, balance_jumps
from unicr.radius.bellman._chord import find_falling_reach
from unicr.radius.bellman._kernel import make_both_laws
from unicr.radius.bellman._sheet import DUST, LOW_DIMENSION, Sheet
from unicr.tradeoff import TradeOff, compute_tradeoff
from unicr.tradeoff.internal import compute_margin
from unicr.values import Array

# Nothing here can make a radius wrong: `Sheet.holds` proves each. The numbers say where to look.
LARGEST_PROBIT = 6.75  # Φ⁻¹(p_A) at the end of a curve: p_A = 1 − 7e-12
SMALLEST_PROBIT = 0.02  # and at its beginning: p_A = 0.508
SCALE_RATIO = 1.4  # from one scale of a curve to the next, p ≤ 2, where users read
READ_FROM = 0.25  # Φ⁻¹(p_A) from there on; below it every second scale will do
TOLERANCE = 2e-4  # of the radius, at which bisection ends on the proved side
ABOVE_SEARCHED = 1.002  # of what no radius exceeds: flows are made for a little more
MOST_FLOWS = 26  # that are made beyond the first ones; of finer grids they count twice
NEARLY_WORST = 1e-3  # above the smallest margin: the widest of the cells below it is looked at
WORTHWHILE = 5e-4  # what is gained by a flow that was worth it
PATIENCE = 8  # flows in a row that were not
LEFT_OPEN = 0.75  # of what no radius exceeds: less than that is tried with jumps apart
CLOSE_ENOUGH = 0.993  # of what no radius exceeds: there half as much patience will do


@lru_cache(maxsize=256)
def bellman_radius(unit: IID, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
    """A proved radius at unit scale (docs/theory.md#theorem-j); 0 if nothing could be proved.

    Where that leaves much open, jumps are taken apart (docs/theory.md#jumps-apart).
    """
    if p_a <= p_b:
        return 0.0
    best, sheet = 0.0, None
    for make in (make_sheets, make_apart_sheets):
        if sheet is not None and best * ABOVE_SEARCHED >= LEFT_OPEN * sheet.r:
            break
        with contextlib.suppress(ValueError):  # numbers that no flow can be made of prove nothing
            for candidate in make(unit, norm, dim, p_a, p_b):
                radius = _bisect_sheet(candidate, p_a, p_b, 0.0)
                if sheet is None or radius > best:
                    best, sheet = radius, candidate
    return 0.0 if sheet is None or best == 0.0 else _refine_sheet(sheet.copy(), p_a, p_b)


def _refine_sheet(sheet: Sheet, p_a: float, p_b: float) -> float:
    """The radius of one scale, with the cells of u₁ that hold it back proved by tighter ones."""
    best, patience, spent = 0.0, PATIENCE, 0
    while True:
        radius = _bisect_sheet(sheet, p_a, p_b, best)
        patience = PATIENCE if radius > best * (1 + WORTHWHILE) else patience - 1
        best = radius
        close = best * ABOVE_SEARCHED > CLOSE_ENOUGH * sheet.r
        tired = patience <= (PATIENCE // 2 if close else 0) or spent >= MOST_FLOWS
        if tired or best in (0.0, sheet.r):
            return best
        above = best * (1 + TOLERANCE)
        margins = [sheet.bound_margin(i, above, p_a, p_b) for i in range(len(sheet.largest) - 1)]
        near = np.flatnonzero(margins <= np.min(margins) + NEARLY_WORST)
        cost = sheet.tighten(int(near[np.argmax(np.diff(sheet.largest)[near])]))
        spent += cost
        if cost == 0:
            return best


def bellman_curve(unit: IID, norm: Norm, dim: int) -> tuple[Array, Array]:
    """(α, r) with T_δ(α) ≥ 1/2 proved for all ‖δ‖_p ≤ r: radii for p_A from 0.51 to 1 − 1e-11.

    Every step is proved (docs/theory.md#theorem-j), and the largest radius so far holds for every
    larger p_A: between steps nothing is interpolated. Where that leaves much open, jumps are taken
    apart (docs/theory.md#jumps-apart).
    """
    curves, shifts, below = [], list_scales(norm.p), 0.0
    for j, shift in enumerate(shifts):
        p_a, p_b = float(special.ndtr(shift)), float(special.ndtr(-shift))
        sheets = make_sheets(unit, norm, dim, p_a, p_b)
        low = min(0.97 * below, 0.9 * sheets[0].r) or 0.5 * sheets[0].r
        steps = [sheet.copy().prove_steps(low) for sheet in sheets]
        reached = max(np.max(radius[alpha >= p_b], initial=0.0) for alpha, radius in steps)
        if reached * ABOVE_SEARCHED < LEFT_OPEN * sheets[0].r:
            with contextlib.suppress(ValueError):  # as for single radii
                for apart in make_apart_sheets(unit, norm, dim, p_a, p_b):
                    steps.append(apart.copy().prove_steps(min(low, 0.5 * apart.r)))
        curves += steps
        below = sheets[0].r
        tell(f"building the {norm} curve, once", j + 1, len(shifts))
    alpha = np.concatenate([alpha for alpha, _ in curves])
    radius = np.concatenate([radius for _, radius in curves])
    order = np.argsort(-alpha, kind="stable")
    alpha, radius = alpha[order], np.maximum.accumulate(radius[order])
    return alpha[alpha > 0], radius[alpha > 0]


def list_scales(p: float) -> list[float]:
    """Φ⁻¹(p_A) of the scales of a curve, rising."""
    apart = SCALE_RATIO if p <= 2 else max(1.15, 1.0 + 0.4 / (p - 1.0))
    shifts = [LARGEST_PROBIT]
    while shifts[-1] > SMALLEST_PROBIT:
        shifts.append(shifts[-1] / (apart if shifts[-1] > READ_FROM else apart**2))
    return shifts[::-1]


@lru_cache(maxsize=12)
def make_sheets(unit: IID, norm: Norm, dim: int, p_a: float, p_b: float) -> tuple[Sheet, ...]:
    """The bound at the scale of (p_A, p_B), with the κ that suits the worst direction known; in
    low dimension with several.
    """
    shift = 0.5 * float(special.ndtri(min(p_a, 1 - 1e-15)) - special.ndtri(max(p_b, 1e-15)))
    upper, coordinates = _bound_from_above(unit, norm, dim, p_a, p_b)
    p, r = norm.p, upper * ABOVE_SEARCHED
    least = DUST * r**p / dim
    kappas = {least, max(least, _balance_cost(unit, p, dim, r))}
    if len(kappas) > 1 and dim > LOW_DIMENSION:
        kappas = {max(kappas) if coordinates == dim else min(kappas)}
    return tuple(Sheet(unit, p, dim, shift, r, kappa) for kappa in sorted(kappas))


def make_apart_sheets(
    unit: IID, norm: Norm, dim: int, p_a: float, p_b: float
) -> Iterator[ApartSheet]:
    """The same with jumps apart, at the cost for which equal coordinates show most; up to where T
    surely falls as a shift grows.
    """
    reach = find_falling_reach(unit)
    if reach == 0:
        return
    shift = 0.5 * float(special.ndtri(min(p_a, 1 - 1e-15)) - special.ndtri(max(p_b, 1e-15)))
    upper, _ = _bound_from_above(unit, norm, dim, p_a, p_b)
    p, r = norm.p, min(upper * ABOVE_SEARCHED, reach)
    kappa = max(DUST * r**p / dim, balance_jumps(unit, p, dim, r))
    yield ApartSheet(unit, p, dim, shift, r, kappa)


def _balance_cost(unit: IID, p: float, dim: int, r: float) -> float:
    """The κ for which equal coordinates buy the most information, KL(u)/(u^p + κ)."""
    u = r * dim ** (-1 / p)

    def information(at: float) -> float:
        return max(float(np.sum(law.mass * law.loss)) for law in make_both_laws(unit, at))

    low, high = information(u / 1.05), information(1.05 * u)
    if not 0 < low < high:  # too small to be told from rounding
        return 0.0
    elasticity = math.log(high / low) / math.log(1.05**2)
    return (p / elasticity - 1.0) * u**p


def _bound_from_above(unit: IID, norm: Norm, dim: int, p_a: float, p_b: float) -> tuple[float, int]:
    """A radius that no proof can exceed, and of how many equal coordinates it is the boundary."""
    best, worst = math.inf, 1
    counts = {k for k in (1, 2, 3, 8, math.isqrt(dim), dim) if k <= dim}
    for k, sign in product(sorted(counts), (1.0,) if unit.facts.symmetric else (1.0, -1.0)):
        along = equal_spectrum(k, sign).unit(norm)

        def make_tradeoff(r: float, along: Spectrum = along) -> TradeOff:
            return compute_tradeoff(unit, along.shifts(r), spread=3e-4)

        if math.isfinite(best) and compute_margin(make_tradeoff(best), p_a, p_b) >= 0:
            continue
        guess = best if math.isfinite(best) else max(float(special.ndtri(p_a)), 1e-3)
        monotone = unit.facts.unimodal
        root = find_radius(
            make_tradeoff, Evidence(p_a, p_b), guess, monotone=monotone, tolerance=1e-3
        )
        best, worst = (root, k) if root < best else (best, worst)
    return best, worst


def _bisect_sheet(sheet: Sheet, p_a: float, p_b: float, low: float) -> float:
    """The largest r that a sheet proves, by bisection; monotone in r; `low` holds.

    See docs/theory.md#theorem-j.
    """
    if sheet.holds(sheet.r, p_a, p_b):
        return sheet.r
    high = sheet.r
    while high - low > TOLERANCE * high and high > 1e-9 * sheet.r:
        middle = 0.5 * (low + high) if low > 0 else 0.7 * high
        low, high = (middle, high) if sheet.holds(middle, p_a, p_b) else (low, middle)
    return low
