"""Radii of a log in another norm, from the same votes and under the same noise.

A printed radius may have been rounded up, so half of the column's last digit is taken off. Where a
log also prints its counts or its bound of p_A, these are used, since a radius loses digits of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import numpy as np

from unicr.binomial import lower_bound
from unicr.errors import RunError
from unicr.noise import Noise
from unicr.norms import Norm, l2
from unicr.radius import Evidence, Question, RadiusCurve, SecondLaw
from unicr.radius.internal import check_two_laws, factor_of_inclusion, prove
from unicr.runs.logs._evidence import (
    counts_between,
    gaussian_radius,
    gaussian_sigma,
    l2_factor,
    largest_bound,
    least_p_a,
    needed_alpha,
    tells_p_a,
)
from unicr.runs.logs._read import BOUND, COUNTS, SECOND, LogRow
from unicr.values import Array

# A bound of p_A so near to 1 needs 7·10^12 votes that all agree, at α = .001. What is nearer to it
# is no bound of any sampling but a wrong σ, and P(ε_1 ≤ r) would soon be 1 in floating point.
SUREST = 1 - 1e-12


def recertify(
    rows: Iterable[LogRow],
    noise: Noise,
    norm: Norm,
    dim: int,
    *,
    origin: Norm = l2,
    n: int | None = None,
    alpha: float | None = None,
    searched: bool = False,
) -> list[LogRow]:
    """Compute radii in another norm from a log of certificates in the norm `origin`, under the same
    noise.

    If the log has votes and `n` and `alpha` are given, p_A is computed from the votes. Otherwise
    p_A is the larger of the log's own bound and the bound that follows from the radius; a log in
    which the two contradict each other is refused. For a log without votes, `n` and `alpha` must be
    those of the log. Then a radius that is impossible at n and alpha is refused, and each printed
    radius is replaced by the smallest one that a count gives. Gaussian radii are converted as
    balls, for any p_A. An input without p_A above 1/2 is an abstention. The certificates keep their
    confidence, because the same bound on p_A is used.
    """
    rows = list(rows)
    counted = n is not None and alpha is not None and all(row.count is not None for row in rows)
    if n is not None and alpha is not None and counted:
        p_a = _bounds_from_counts(rows, n, alpha)
        rows = [replace(row, radius=0.0, radius_most=None) for row in rows]
    else:
        _check_evidence(rows)
        p_a = np.array([row.p_a or 0.0 for row in rows])
        if not tells_p_a(noise) and all(row.p_a is not None for row in rows):
            rows = [replace(row, radius=0.0, radius_most=None) for row in rows]
        _check_columns(rows, noise, origin, dim)
        if n is not None and alpha is not None:
            rows = [_narrowed(row, noise, origin, dim, n, alpha) for row in rows]
    kept = np.array([row.predict != -1 for row in rows])
    _check_plausible(rows, p_a, noise)
    sigma = gaussian_sigma(noise)
    if sigma is not None:
        # less than exact by more than the rounding of these operations
        factor = l2_factor(origin, dim) / l2_factor(norm, dim) * (1 - 1e-13)
        known = [gaussian_radius(p, sigma, norm, dim) for p in p_a.tolist()]
        radii = np.maximum(known, [row.radius * factor for row in rows])
    else:
        if any(row.radius > 0 for row in rows):
            own = least_p_a(np.array([row.radius for row in rows]), noise, origin, dim)
            p_a = np.maximum(p_a, own)
            _check_plausible(rows, p_a, noise)
        curve = RadiusCurve(noise, norm, dim)
        radii = np.asarray(curve(np.where(kept, p_a, 0.0), searched=searched))
    known_p = counted or all(row.p_a is not None for row in rows)
    if known_p:
        kept &= p_a > 0.5
    return [
        replace(
            row,
            radius=float(new) if sure else 0.0,
            radius_most=None,
            predict=row.predict if sure else -1,
            correct=row.correct and bool(sure),
            norm=norm.text,
        )
        for row, new, sure in zip(rows, radii, kept, strict=True)
    ]


def _bounds_from_counts(rows: list[LogRow], n: int, alpha: float) -> Array:
    counts = [row.count for row in rows if row.count is not None and 0 <= row.count <= n]
    if len(counts) != len(rows):
        raise RunError(f"n={n}: the log has no column {COUNTS[0]} with counts from 0 to {n}")
    return np.array([lower_bound(k, n, alpha) for k in counts])


def _check_evidence(rows: list[LogRow]) -> None:
    if all(row.radius_most is None and row.p_a is None for row in rows):
        votes = any(row.count is not None for row in rows)
        more = "give the n and alpha of its counts" if votes else "it holds predictions only"
        raise RunError(f"the log has neither radii nor {BOUND}: {more}")


def _check_columns(rows: list[LogRow], noise: Noise, origin: Norm, dim: int) -> None:
    """Refuse a radius and a p_A of one row that cannot both be true.

    Under Gaussian noise each gives the other. Under other noises no sound method can have the
    radius at that p_A.
    """
    sigma = gaussian_sigma(noise)
    for row in rows:
        if row.predict == -1 or row.p_a is None or row.p_a_most is None or row.radius_most is None:
            continue
        if sigma is not None:
            low, high = (gaussian_radius(p, sigma, origin, dim) for p in (row.p_a, row.p_a_most))
            agree = low <= row.radius_most * (1 + 1e-9) and row.radius <= high * (1 + 1e-9)
        else:
            least = float(least_p_a(np.array([row.radius]), noise, origin, dim)[0])
            agree = least <= row.p_a_most * (1 + 1e-9)
        if not agree:
            raise RunError(
                f"input {row.idx}: the radius {row.radius:.6g} … {row.radius_most:.6g} and {BOUND} "
                f"{row.p_a:.6g} … {row.p_a_most:.6g} contradict each other for {noise.text} in "
                f"l{origin.text}: check the noise, the norm and sigma"
            )


def _narrowed(row: LogRow, noise: Noise, origin: Norm, dim: int, n: int, alpha: float) -> LogRow:
    """The row with its radius raised to the least that a count can give and print so.

    The true count gives a radius between the ends of what is printed, and is no smaller than the
    least such count, so the new radius is not above the true one.
    """
    if row.predict == -1 or row.radius == 0 or row.radius_most is None:
        return row
    p_a = float(least_p_a(np.array([row.radius]), noise, origin, dim)[0])
    if p_a > (top := largest_bound(n, alpha)):
        raise RunError(
            f"input {row.idx}: the radius {row.radius:.6g} under {noise.text} needs p_A >= "
            f"{p_a:.8g}, but n={n} votes at alpha={alpha:g} give at most {top:.8g}: check sigma, "
            f"or use alpha >= {needed_alpha(p_a, n):.3g}"
        )
    sigma = gaussian_sigma(noise)
    if sigma is None:
        return row
    least = _least_radius(row.radius, row.radius_most, sigma, origin, dim, n, alpha)
    return replace(row, radius=max(row.radius, least))


@cache
def _least_radius(
    low: float, high: float, sigma: float, origin: Norm, dim: int, n: int, alpha: float
) -> float:
    """σ Φ⁻¹ of the bound from the least count between two ends; 0 if there is none."""
    first, last = counts_between(
        low, high, lambda p: gaussian_radius(p, sigma, origin, dim), n, alpha
    )
    if first > last:
        raise RunError(
            f"no count of n={n} votes at alpha={alpha:g} gives a radius between {low:.6g} and "
            f"{high:.6g} under sigma={sigma:g}: check n, alpha and sigma"
        )
    return min(high, gaussian_radius(lower_bound(first, n, alpha), sigma, origin, dim))


def _check_plausible(rows: list[LogRow], p_a: Array, noise: Noise) -> None:
    worst = int(np.argmax(p_a))
    if p_a[worst] > SUREST:
        raise RunError(
            f"input {rows[worst].idx}: its radius {rows[worst].radius:.6g} or {BOUND} needs a p_A "
            f"above 1 - 1e-12 under {noise.text}, which no number of votes gives: check the noise"
        )


def recertify_two(rows: Iterable[LogRow], noise: Noise, norm: Norm, share: float) -> list[LogRow]:
    """Radii from a log's bounds under two laws, p_A and q_A, at the log's own confidence.

    q_A is under the same spherical noise within the ball that holds `share` of it.
    """
    check_two_laws(noise)
    question, found = Question(noise, norm), []
    home = Norm(noise.radial.order if noise.radial is not None else 2.0)
    alone = RadiusCurve(noise, home)
    for row in rows:
        if row.p_a is None or row.q_a is None:
            raise RunError(
                f"two laws need the columns {BOUND} and {SECOND}, but the log does not have both: "
                "leave --share out to use its radii or p_A alone, or give the file of DSRS's "
                "sampler for each law, the second one with --second"
            )
        kept = row.predict != -1 and row.p_a > 0.5
        radius = 0.0
        if kept:
            evidence = Evidence(row.p_a, second=SecondLaw(row.q_a, share))
            first = float(alone(row.p_a)) * factor_of_inclusion(norm, home, question.dim)
            radius = max(first, prove(question, evidence, laws=2).radius)
        new = replace(row, radius=radius, radius_most=None, norm=norm.text)
        found.append(new if kept else replace(new, predict=-1, correct=False))
    return found
