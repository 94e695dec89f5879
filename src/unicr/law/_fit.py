"""From a tabulated density to pieces on which its logarithm is straight: the law of a noise.

Nothing here is a proof: whatever comes out is the law that is sampled and proved
(docs/theory.md#tables). It is near to what was asked for, and has by construction the facts that
the density has but for rounding: mirrored where it is even, hulled where it is log-concave.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from unicr.law._pieces import Pieces
from unicr.law._quadrature import TabulatedDensity
from unicr.values import Array

# How far log p may be from the density's: so near that radii and quantiles agree to 1e-8, so coarse
# that some thousand knots do. Where less mass lies beyond than FAINT, or less than FEW between a
# point and the nearest pole, zero or jump, it may grow, like the root of it, up to LOOSE times.
CLOSE, FAINT, FEW, LOOSE = 1e-6, 1e-8, 1e-4, 1e4
OUTERMOST = 1e-19  # the mass beyond the last knot of an endless density
SAME = 0.1  # of that tolerance: what a density may miss a shape by that it is then given
MOST_KNOTS = 40_000  # beyond, the tolerance is made wider
MOST_ROUNDS = 40  # of halving
HIDDEN = 1e-20  # mass beside a pole, or a zero, in which the density counts as constant
STEEPER = 1e-12  # by which the tails of a hull are steeper than its last pieces


class NotOfThatShapeError(Exception):
    """A density was declared to have a shape that it has not."""

    def __init__(self, shape: str) -> None:
        super().__init__(shape)
        self.shape = shape


@dataclass
class Stretch:
    """Points of a smooth piece of the density, ascending, with its log there."""

    x: Array
    value: Array


def fit_pieces(
    density: TabulatedDensity, *, symmetric: bool | None = None, log_concave: bool | None = None
) -> Pieces:
    """The law that stands for a density; NotOfThatShapeError if it has not what is declared."""
    tolerance = CLOSE
    while True:
        pieces = _fit(density, tolerance, symmetric, log_concave)
        if pieces.knots.size <= MOST_KNOTS:
            return pieces
        tolerance *= 4


def _fit(
    density: TabulatedDensity, close: float, symmetric: bool | None, log_concave: bool | None
) -> Pieces:
    corners = np.asarray([-math.inf, *density.breakpoints, math.inf])

    def tolerance(x: Array) -> Array:
        mass = np.minimum(density.cdf(x), density.sf(x))
        i = np.clip(np.searchsorted(corners, x), 1, corners.size - 1)
        near = np.minimum(x - corners[i - 1], corners[i] - x)
        with np.errstate(invalid="ignore"):
            beside = near * density.pdf(x)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            scarce = np.fmax(FAINT / mass, FEW / beside)
            return close * np.clip(np.sqrt(scarce), 1.0, LOOSE)

    even = symmetric is not False and _is_even(density, tolerance)
    if symmetric and not even:
        raise NotOfThatShapeError("symmetric")
    ends = _find_ends(density)
    if even:
        ends = (0.0, ends[1], False, ends[3])
    stretches = _cut_stretches(density, ends)
    for earlier, later in pairwise(stretches):
        if abs(earlier.value[-1] - later.value[0]) <= SAME * float(tolerance(earlier.x[-1:])[0]):
            earlier.value[-1] = later.value[0] = max(earlier.value[-1], later.value[0])
    for stretch in stretches:
        _refine(density, stretch, tolerance)
    _make_flat(stretches, tolerance)
    concave = log_concave is not False and _make_concave(stretches, tolerance, even)
    if log_concave and not concave:
        raise NotOfThatShapeError("log_concave")
    if not concave:
        _make_unimodal(stretches, tolerance, even)
    for stretch in stretches:
        _thin(stretch, tolerance)
    return _join(stretches, ends, even, concave)


def _find_ends(density: TabulatedDensity) -> tuple[float, float, bool, bool]:
    """The outermost knots, and whether nothing lies beyond them."""
    low, high = density.support
    hard = (math.isfinite(low), math.isfinite(high))
    first = low if hard[0] else float(density.ppf(OUTERMOST))
    last = high if hard[1] else float(density.isf(OUTERMOST))
    return first, last, *hard


def _is_even(density: TabulatedDensity, tolerance: Callable[[Array], Array]) -> bool:
    low, high = density.support
    if not (math.isinf(low) and math.isinf(high)) and abs(low + high) > 1e-12 * abs(high):
        return False
    u = np.concatenate([np.geomspace(1e-15, 0.01, 200), np.linspace(0.01, 0.5, 1000)])
    x = np.unique(np.abs(np.concatenate([density.isf(u), density.ppf(u), density.mesh])))
    x = x[x <= float(density.isf(OUTERMOST))]
    corners = np.abs(np.asarray(density.breakpoints))
    near = np.min(np.abs(x[:, None] - corners), axis=1) <= 1e-9 * (1 + x)
    x = x[~near]
    right, left = density.logpdf(x), density.logpdf(-x)
    with np.errstate(invalid="ignore"):
        apart = np.where(right == left, 0.0, np.abs(right - left))
    return bool(np.all(apart <= SAME * tolerance(x)))


def _cut_stretches(
    density: TabulatedDensity, ends: tuple[float, float, bool, bool]
) -> list[Stretch]:
    """The smooth parts between breakpoints, with values up to both ends of each."""
    low, high = ends[:2]
    corners, tiny = [low], 1e-30 * float(density.isf(0.25) - density.ppf(0.25))
    for b in [*(b for b in density.breakpoints if low < b < high), high]:
        if b - corners[-1] > max(1e-14 * max(abs(b), abs(corners[-1])), tiny):
            corners.append(b)
    corners[-1] = high
    stretches = []
    for i, (a, b) in enumerate(pairwise(corners)):
        even = a + (b - a) * np.linspace(0, 1, 9)[1:-1]
        mesh = density.mesh[(density.mesh > a) & (density.mesh < b)]
        with np.errstate(over="ignore"):
            beside = np.minimum(mesh - a, b - mesh) * density.pdf(mesh)
        mesh = mesh[beside > HIDDEN]
        mesh = mesh[(mesh - a > 1e-12 * abs(a)) & (b - mesh > 1e-12 * abs(b))]
        inner = np.unique(np.concatenate([mesh, even]))
        with np.errstate(all="ignore"):
            value = density.logpdf(inner)
        if np.all(np.isneginf(value)):
            stretches.append(Stretch(np.array([a, b]), np.full(2, -math.inf)))
            continue
        soft = (
            i == 0 and math.isinf(density.support[0]) and a != 0.0,
            i == len(corners) - 2 and math.isinf(density.support[1]),
        )
        left = _approach(density, a, inner[0], soft[0])
        right = _approach(density, b, inner[-1], soft[1])
        x = np.concatenate([left[0], inner, right[0][::-1]])
        v = np.concatenate([left[1], value, right[1][::-1]])
        # beyond what floats hold the density counts as their least
        stretches.append(Stretch(x, np.where(v > -math.inf, v, np.min(v[v > -math.inf]))))
    return stretches


def _approach(
    density: TabulatedDensity, corner: float, first: float, soft: bool
) -> tuple[Array, Array]:
    """Points from a corner to near the first one inside, the corner's own value first.

    Where the density has no limit they go on until nothing is left, and the last value is the
    corner's: a pole, or a zero, is cut off.
    """
    reach = first - corner
    least = max(64 * float(np.spacing(abs(corner))), 1e-290)
    if soft:
        return np.array([corner]), density.logpdf(np.array([corner]))
    # a difference of logarithms: the quotient of the largest floats and the least would overflow
    depth = max(int(math.log2(max(abs(reach), least)) - math.log2(least)), 1)
    s = reach * 2.0 ** -np.arange(1.0, min(depth, 900) + 1)
    value = density.logpdf(corner + s)
    with np.errstate(invalid="ignore", over="ignore"):
        mass = np.abs(s) * np.exp(np.minimum(value, 700.0))
        change = np.abs(np.diff(value))
    settled = np.flatnonzero((change[:-1] < 1e-9) & (change[1:] < 1e-9))
    gone = np.flatnonzero((mass < HIDDEN) | np.isneginf(value))
    stop = min(
        int(settled[0]) if settled.size else s.size - 1, int(gone[0]) if gone.size else s.size - 1
    )
    while stop > 0 and not value[stop] > -math.inf:
        stop -= 1
    x, v = (corner + s[: stop + 1])[::-1], value[: stop + 1][::-1]
    if settled.size and stop == settled[0]:
        return np.append(corner, x[1:]), v  # the limit: it stands at the corner itself
    return np.append(corner, x), np.append(v[0], v)


def _refine(
    density: TabulatedDensity, stretch: Stretch, tolerance: Callable[[Array], Array]
) -> None:
    """Halve steps until the density is straight between the points, as far as is asked for."""
    if not np.any(stretch.value > -math.inf):
        return
    active = np.ones(stretch.x.size - 1, dtype=bool)
    for _ in range(MOST_ROUNDS):
        i = np.flatnonzero(active)
        if not i.size or stretch.x.size > 8 * MOST_KNOTS:
            break
        a, b = stretch.x[i], stretch.x[i + 1]
        looks = a[:, None] + (b - a)[:, None] * np.array([0.25, 0.5, 0.75])
        value = density.logpdf(looks)
        chord = stretch.value[i, None] + (stretch.value[i + 1] - stretch.value[i])[
            :, None
        ] * np.array([0.25, 0.5, 0.75])
        with np.errstate(invalid="ignore"):
            off = np.max(np.abs(value - chord), axis=1)
        bad = (off > tolerance(looks[:, 1])) & np.all(value > -math.inf, axis=1)
        bad &= (b - a) > 256 * np.spacing(np.maximum(np.abs(a), np.abs(b)))
        # beside a cut corner the value is the neighbour's: the step is flat
        bad &= stretch.value[i] != stretch.value[i + 1]
        if not bad.any():
            break
        x = np.concatenate([stretch.x, looks[bad].ravel()])
        v = np.concatenate([stretch.value, value[bad].ravel()])
        fresh = np.zeros(x.size, dtype=bool)
        fresh[i[bad]] = True
        fresh[stretch.x.size :] = True
        order = np.argsort(x, kind="stable")
        stretch.x, stretch.value = x[order], v[order]
        active = fresh[order][:-1]


def _make_flat(stretches: list[Stretch], tolerance: Callable[[Array], Array]) -> None:
    """Let the density be constant from jump to jump, where it is but for what does not matter."""
    jumps = [i for i, (a, b) in enumerate(pairwise(stretches), 1) if a.value[-1] != b.value[0]]
    for first, last in pairwise([0, *jumps, len(stretches)]):
        run = stretches[first:last]
        low = min(float(np.min(stretch.value)) for stretch in run)
        high = max(float(np.max(stretch.value)) for stretch in run)
        near = min(float(np.min(tolerance(stretch.x))) for stretch in run)
        if low > -math.inf and high - low <= SAME * near:
            for stretch in run:
                stretch.x, stretch.value = stretch.x[[0, -1]], np.full(2, high)


def _make_concave(
    stretches: list[Stretch], tolerance: Callable[[Array], Array], even: bool
) -> bool:
    """Put all values on their concave hull, if they are on it but for what does not matter."""
    if not all(np.all(stretch.value > -math.inf) for stretch in stretches):
        return False
    if any(stretch.value[-1] != after.value[0] for stretch, after in pairwise(stretches)):
        return False
    _drop_cut_ends(stretches, even)
    x = np.concatenate([stretch.x for stretch in stretches])
    v = np.concatenate([stretch.value for stretch in stretches])
    if even:
        x, v = np.concatenate([-x[::-1], x]), np.concatenate([v[::-1], v])
    keep: list[int] = []
    for k in range(x.size):
        if keep and x[k] == x[keep[-1]]:
            if v[k] <= v[keep[-1]]:
                continue
            keep.pop()
        while len(keep) > 1:
            i, j = keep[-2], keep[-1]
            if (v[j] - v[i]) * (x[k] - x[j]) > (v[k] - v[j]) * (x[j] - x[i]):
                break
            keep.pop()
        keep.append(k)
    hull = np.interp(x, x[keep], v[keep])
    if np.any(hull - v > SAME * tolerance(x)):
        return False
    if even:
        keep = [k for k in keep if x[k] >= 0]
    xs, vs = x[keep], v[keep]
    if even and xs[0] > 0:
        xs, vs = np.append(0.0, xs), np.append(float(np.max(vs)), vs)
    stretches[:] = [Stretch(xs, vs)]
    return True


def _drop_cut_ends(stretches: list[Stretch], even: bool) -> None:
    """Where the density goes to zero at an end, end it at the last point before."""
    first, last = stretches[0], stretches[-1]
    if not even and first.x.size > 2 and first.value[0] == first.value[1] < np.max(first.value) - 1:
        first.x, first.value = first.x[1:], first.value[1:]
    if last.x.size > 2 and last.value[-1] == last.value[-2] < np.max(last.value) - 1:
        last.x, last.value = last.x[:-1], last.value[:-1]


def _make_unimodal(
    stretches: list[Stretch], tolerance: Callable[[Array], Array], even: bool
) -> None:
    """Let values rise, then fall, if they do but for what does not matter; from 0 on where the
    other half is mirrored.
    """
    x = np.concatenate([stretch.x for stretch in stretches])
    v = np.concatenate([stretch.value for stretch in stretches])
    top = 0 if even else int(np.argmax(v))
    line = np.concatenate(
        [np.maximum.accumulate(v[:top]), np.maximum.accumulate(v[top:][::-1])[::-1]]
    )
    with np.errstate(invalid="ignore"):
        off = np.where(line == v, 0.0, line - v)
    if np.all(off <= SAME * tolerance(x)):
        at = 0
        for stretch in stretches:
            stretch.value = line[at : at + stretch.x.size]
            at += stretch.x.size


def _thin(stretch: Stretch, tolerance: Callable[[Array], Array]) -> None:
    """Leave out points near the chord of those that stay, by a cone of slopes that are near all."""
    x, v = stretch.x.tolist(), stretch.value.tolist()
    if len(x) < 3 or v[0] == -math.inf:
        return
    near = tolerance(stretch.x).tolist()
    keep, i = [0], 0
    low, high = -math.inf, math.inf
    for k in range(1, len(x)):
        step = x[k] - x[i]
        slope = (v[k] - v[i]) / step
        if not low <= slope <= high:
            i = k - 1
            keep.append(i)
            step = x[k] - x[i]
            slope = (v[k] - v[i]) / step
            low, high = -math.inf, math.inf
        low, high = max(low, slope - near[k] / step), min(high, slope + near[k] / step)
    keep.append(len(x) - 1)
    stretch.x, stretch.value = stretch.x[keep], stretch.value[keep]


def _join(
    stretches: list[Stretch], ends: tuple[float, float, bool, bool], even: bool, concave: bool
) -> Pieces:
    """Pieces of all stretches, mirrored where the law is even, with tails of the last slopes."""
    if concave:
        return _join_hull(stretches[0], ends, even)
    x = np.unique(np.concatenate([stretch.x for stretch in stretches]))
    first = np.concatenate([stretch.value[:-1] for stretch in stretches])
    last = np.concatenate([stretch.value[1:] for stretch in stretches])
    if even:
        first, last = np.concatenate([last[::-1], first]), np.concatenate([first[::-1], last])
        x = np.concatenate([-x[:0:-1], x])
    return Pieces(x, first, last, _choose_rates(x, first, last, ends, even))


def _join_hull(stretch: Stretch, ends: tuple[float, float, bool, bool], even: bool) -> Pieces:
    """The same for a hull: knots at which rounding bends it upwards are left out."""
    x, v = stretch.x, stretch.value
    if even:
        v[0] = max(v[0], v[1])
        x, v = np.concatenate([-x[:0:-1], x]), np.concatenate([v[:0:-1], v])
    while True:
        low, high = _choose_rates(x, v[:-1], v[1:], ends, even)
        # steeper than the last piece by more than a slope is rounded
        rates = (low * (1 + STEEPER), high * (1 + STEEPER))
        stay = np.ones(x.size, dtype=bool)
        stay[Pieces.convex_knots(x, v, rates)] = False
        stay &= stay[::-1] | (not even)
        stay[[0, -1]] = True
        if stay.all():
            return Pieces(x, v[:-1].copy(), v[1:].copy(), rates)
        x, v = x[stay], v[stay]


def _choose_rates(
    x: Array, first: Array, last: Array, ends: tuple[float, float, bool, bool], even: bool
) -> tuple[float, float]:
    """The slopes beyond the outermost knots: those of the last pieces, if these fall."""
    least = 1.0 / (x[-1] - x[0])
    low = max(float((last[0] - first[0]) / (x[1] - x[0])), least)
    high = min(float((last[-1] - first[-1]) / (x[-1] - x[-2])), -least)
    high = -math.inf if ends[3] else high
    return (-high if even else math.inf if ends[2] else low), high
