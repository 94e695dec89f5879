"""Compose coordinates: the law of a sum of independent log-ratios, and its trade-off function.

Two ways to invert the product of characteristic functions. Many coordinates: with a little Gaussian
noise the sum is smooth, and some thousand Fourier coefficients on a window hold it to rounding. Few
coordinates: the atoms go onto a fine grid (again by mean-preserving spread) and are convolved by
FFT. The window is chosen by Chernoff bounds, and what can fall outside is charged to the result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from unicr.errors import RadiusError
from unicr.tradeoff._base import Bound, Lines, combine_bounds
from unicr.tradeoff._ratio import RatioLaw
from unicr.values import Array

# Charged to every hockey-stick value (docs/theory.md#rounding-charges).
OUTSIDE_WINDOW = 1e-15  # probability that may lie outside the window, on each side
# Sums of some thousand terms of size 1 by FFT or Fourier series are off by fewer than 1000 units of
# 2e-16.
ROUNDING = 2e-13
# For each coordinate: a distribution function is right to 1.2e-15, and to 9e-15 of itself
# (incomplete gamma functions are the worst; tests/radius/test_oracle.py), and H has the mass of an
# event under Q and γ times that under P, which is no larger.
ROUNDING_EACH = 1.2e-14
SMALLEST_WIDTH = 1e-12  # of a window: a sum that varies less is one atom at the window's end
WINDOW_MARGIN = 1e-9  # by which the window is wider than asked, for the rounding of its ends
FLUSHED = 1e-150  # a factor below it counts as 0 among powers: far below every charge

FREQUENCIES = 6144  # coefficients at most; where more are needed the grid serves
BLOCK = 64  # frequencies computed at a time, a power of two
GRID_SPREAD = 2e-5  # of the variance of a sum, that splitting atoms onto a grid may add
SMOOTHING_SHARE = 8e-5  # of the variance of a sum: Gaussian noise that makes it smooth
SILENT_WIDTHS = 9.2  # widths of that noise: beyond, its coefficients are below 1e-18
LARGEST_GRID = 1 << 22  # points, 32 MB: a coarser grid is as sound and loses radius
SMALL_GRID = 1 << 15  # below this an FFT beats counting frequencies
RATES = np.geomspace(0.3, 60.0, 28)  # of Chernoff's bound, in deviations of the sum: each holds
LARGEST_PIECE = 300.0  # of log-ratios whose exponentials are summed together: e^300 is finite
# Deviations of moved atoms: by Hoeffding more has a probability of e^(−2·81), which leaves room for
# their mean, some step² each.
HOEFFDING = 9.0

Complex = NDArray[np.complex128]
Parts = Sequence[tuple[RatioLaw, int]]


def compose(parts: Parts) -> Lines:
    """The trade-off of independent coordinates: each law with the number of coordinates it has.

    A lower bound where the laws are (the default of `make_ratio_law`), up to floating point, which
    is charged (docs/theory.md#lemma-2). Upper bounds become an estimate, unless it is one
    coordinate.
    """
    parts = [(law, count) for law, count in parts if count > 0]
    for _, count in parts:
        if int(count) != count:
            raise RadiusError(f"{count} coordinates: the number must be whole")
    bound = combine_bounds([law.bound for law, _ in parts])
    parts = [
        (law, int(count))
        for law, count in parts
        if law.loss.size > 1 or law.infinite > 0 or law.charge > 0 or law.loss[0] != 0
    ]
    if not parts:
        return Lines(np.zeros(1), np.zeros(1), bound)
    log_finite = sum(
        count * math.log1p(-law.infinite) if law.infinite < 1 and law.loss.size else -math.inf
        for law, count in parts
    )
    # The sum of log-ratios is infinite if one of them is: 1 − Π(1 − infinite).
    infinite = -math.expm1(log_finite)
    count = sum(n for _, n in parts)
    # What the law of a coordinate may lack of H, H of the product lacks at most once for each.
    infinite += sum(n * law.charge for law, n in parts)
    if log_finite == -math.inf:
        return Lines(np.zeros(1), np.ones(1), bound)
    if len(parts) == 1 and parts[0][1] == 1:
        t, h = _list_lines(parts[0][0])
        return _add_charges(t, h, math.exp(log_finite), infinite, 1, bound)
    window = _choose_window(parts)
    if window[1] - window[0] <= SMALLEST_WIDTH:
        t = np.array([window[0], window[1] + SMALLEST_WIDTH])
        h = np.maximum(-np.expm1(t - window[1]), 0.0)
        return _add_charges(t, h, math.exp(log_finite), infinite, count, bound)
    step = _choose_step(parts, window)
    small = window[1] - window[0] < SMALL_GRID * step
    smooth = None if small else _transform_sum(parts, window)
    t, h = _convolve_on_grid(parts, window, step) if smooth is None else _invert_series(*smooth)
    bound = "estimate" if bound == "upper" else bound
    return _add_charges(t, h, math.exp(log_finite), infinite, count, bound)


def _add_charges(
    t: Array, h: Array, finite: float, infinite: float, count: int, bound: Bound
) -> Lines:
    charge = ROUNDING + 2 * OUTSIDE_WINDOW + count * ROUNDING_EACH
    charge = -charge if bound == "upper" else charge
    h = np.clip(finite * h + infinite + charge, 0.0, 1.0)
    return Lines(t, h, bound)


def _list_lines(law: RatioLaw) -> tuple[Array, Array]:
    """Exact: T of a list of atoms is piecewise linear with slopes at the atoms."""
    return law.loss, _hockey_sticks(law.loss, _normalise(law))


def _hockey_sticks(s: Array, q: Array) -> Array:
    """Σ_{j > i} q_j (1 − e^{s_i − s_j}) for each i, s ascending; in pieces, so e^s stays finite.

    Roundings of cumulated sums are of either sign: for 2^15 points they come to 1e-14, which
    `ROUNDING` pays (tests/radius/test_rounding.py). Larger grids are summed in long double.
    """
    q = q.astype(np.float64 if len(q) <= SMALL_GRID else np.longdouble)
    above = np.append(np.cumsum(q[::-1])[::-1][1:], 0.0)
    weighted = np.zeros_like(q)
    stop, carried = len(s), q.dtype.type(0.0)
    while stop > 0:
        start = int(np.searchsorted(s, s[stop - 1] - LARGEST_PIECE))
        piece, end = s[start:stop], float(s[stop - 1])
        terms = q[start:stop] * np.exp(end - piece)
        after = np.append(np.cumsum(terms[::-1])[::-1][1:], 0.0) + carried
        weighted[start:stop] = np.exp(piece - end) * after
        if start > 0:
            total = np.sum(terms) + carried
            carried = total * math.exp(float(s[start - 1]) - end)
        stop = start
    return (above - weighted).astype(np.float64)


def _normalise(law: RatioLaw) -> Array:
    return law.mass / float(np.sum(law.mass))


def _choose_window(parts: Parts) -> tuple[float, float]:
    """[A, B] that holds the sum but for `OUTSIDE_WINDOW` on each side (Chernoff)."""
    square = sum(n * float(np.sum(_normalise(law) * law.loss**2)) for law, n in parts)
    low = sum(n * float(law.loss[0]) for law, n in parts)
    high = sum(n * float(law.loss[-1]) for law, n in parts)
    if high - low <= SMALLEST_WIDTH:
        return low, high
    rates = RATES / math.sqrt(max(square, 1e-300))
    budget = -math.log(OUTSIDE_WINDOW)

    def reach(sign: float) -> float:
        log_moment = np.zeros_like(rates)
        for law, n in parts:
            exponent = sign * np.outer(rates, law.loss)
            top = exponent.max(axis=1)
            log_moment += n * (top + np.log(np.exp(exponent - top[:, None]) @ _normalise(law)))
        return float(np.min((log_moment + budget) / rates))

    return max(low, -reach(-1.0)) - WINDOW_MARGIN, min(high, reach(1.0)) + WINDOW_MARGIN


def _list_powers(base: Complex) -> Complex:
    """Rows base**0 … base**(BLOCK − 1), by doubling."""
    rows = np.ones((BLOCK, base.size), dtype=np.complex128)
    done = 1
    while done < BLOCK:
        rows[done : 2 * done] = rows[:done] * base
        base = base * base
        done *= 2
    return rows


def _raise_to_power(base: Complex, n: int) -> Complex:
    """base**n by squaring; magnitudes are at most 1, tiny ones are flushed to zero."""
    result = np.ones_like(base)
    while n:
        if n & 1:
            result = result * base
        n >>= 1
        if n:
            base = base * base
            base = np.where(np.abs(base) < FLUSHED, 0.0, base)
    return result


def _transform_sum(
    parts: Parts, window: tuple[float, float]
) -> tuple[Complex, tuple[float, float]] | None:
    """Fourier coefficients and window of the sum and a little Gaussian noise; None if too many.

    A Gaussian pair beside the coordinates can only help a tester. Without it nothing says where to
    stop: coefficients of log-ratios on a lattice (steps of a density, Laplace noise and small
    shifts) come back in full after any silence.
    """
    variance = 0.0
    for law, n in parts:
        mass = _normalise(law)
        variance += n * float(mass @ (law.loss - float(mass @ law.loss)) ** 2)
    s = math.sqrt(SMOOTHING_SHARE * variance)
    window = (window[0] - SILENT_WIDTHS * s, window[1] + SILENT_WIDTHS * s + s * s)
    step = 2 * math.pi / (window[1] - window[0])
    if s * step * FREQUENCIES < SILENT_WIDTHS:
        return None
    blocks = BLOCK * step * np.arange(math.ceil(SILENT_WIDTHS / (s * step * BLOCK)))
    omega = np.add.outer(blocks, step * np.arange(BLOCK))
    transform = np.exp(1j * (0.5 * s * s - window[0]) * omega - 0.5 * (s * omega) ** 2)
    for law, n in parts:
        turns, mass = _list_powers(np.exp(1j * step * law.loss)), _normalise(law)
        for row, first in zip(transform, blocks, strict=True):
            row *= _raise_to_power(turns @ (mass * np.exp(1j * first * law.loss)), n)
    return transform.ravel(), window


def _invert_series(coefficients: Complex, window: tuple[float, float]) -> tuple[Array, Array]:
    """H(t) = ∫_t (1 − e^{t−x}) g(x) dx term by term, on a grid of t over the window [A, B].

    g(x) = Σ_n conj(φ_n) E_n(x) / width over all integers n, E_n(x) = e^{iω_n(x−A)}, and the
    integral of (1 − e^{t−x}) E_n is (1 − E_n(t))/(iω(1 − iω)) + (e^{t−B} − 1)/(1 − iω): of the
    order of width², as H·width is, so that no digits cancel however small the shifts are.
    """
    origin, width = window[0], window[1] - window[0]
    size = max(4096, 4 * (1 << (len(coefficients) - 1).bit_length()))
    omega = 2 * math.pi / width * np.arange(1, len(coefficients), dtype=np.float64)
    before: Array = width / size * np.arange(size, 0, -1, dtype=np.float64)  # B − t
    ends = np.conj(coefficients[1:]) / (1.0 - 1j * omega)
    padded = np.zeros(size // 2 + 1, dtype=np.complex128)
    padded[1 : len(coefficients)] = ends / (1j * omega)
    waves = np.asarray(fft.irfft(padded, size) * size, dtype=np.float64)
    share = 1.0 + 2 * float(np.sum(ends.real))
    h = (before + np.expm1(-before) * share + waves[0] - waves) / width
    return origin + width - before, np.clip(h, 0.0, 1.0)


def _choose_step(parts: Parts, window: tuple[float, float]) -> float:
    """A grid step that adds at most `GRID_SPREAD` of the variance of the sum."""
    square = sum(n * float(np.sum(_normalise(law) * law.loss**2)) for law, n in parts)
    count = sum(n for _, n in parts)
    # An atom between two points adds f(1 − f)·step² of variance, which is step²/6 on average.
    step = math.sqrt(6 * GRID_SPREAD * square / count)
    return max(step, (window[1] - window[0]) / (LARGEST_GRID // 2))


def _convolve_on_grid(
    parts: Parts, window: tuple[float, float], step: float
) -> tuple[Array, Array]:
    """Atoms split onto a common grid, keeping P- and Q-mass, then convolved by FFT.

    A split moves a coordinate by less than a step, on average not at all: the window grows by what
    their sum can move but for a probability far below `OUTSIDE_WINDOW` (Hoeffding).
    """
    count = sum(n for _, n in parts)
    moved = step * min(count + 1, HOEFFDING * math.sqrt(count))
    window = (window[0] - moved, window[1] + moved)
    width = window[1] - window[0]
    reach = [(float(law.loss[0]), float(law.loss[-1])) for law, _ in parts]
    span = max(width, *(high - low for low, high in reach)) + 4 * step
    size = fft.next_fast_len(math.ceil(span / step) + 8, real=True)
    spectrum: Complex | None = None
    for law, n in parts:
        cell = np.floor(law.loss / step).astype(np.int64)
        # The share at the lower point that keeps Σ mass·e^(−L): both masses stay, the atom spreads
        # over two, and a tester can only see more (docs/theory.md#lemma-4).
        share = np.expm1(step * (cell + 1) - law.loss) / math.expm1(step)
        share = np.clip(share, 0.0, 1.0)
        mass = _normalise(law)
        line = np.bincount(cell % size, mass * share, size)
        line += np.bincount((cell + 1) % size, mass * (1 - share), size)
        power = _raise_to_power(fft.rfft(line), n)
        spectrum = power if spectrum is None else spectrum * power
    assert spectrum is not None
    total = fft.irfft(spectrum, size)
    # The transform counts places modulo its size; this is where the window begins among them.
    first = math.floor(window[0] / step) - 2
    s: Array = step * (first + np.arange(size, dtype=np.float64))
    total = np.roll(total, -(first % size))
    used = s <= window[1] + 2 * step
    s, q = s[used], total[used]
    return s, np.clip(_hockey_sticks(s, q), 0.0, 1.0)
