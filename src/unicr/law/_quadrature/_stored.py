"""A tabulated density as plain data: written exactly, and read back without trusting a number.

Reading runs no code and allocates no more than the text holds. The panels must tile their support,
carry the mass that their own series integrate to, and rise to one; the moments must be theirs.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unicr.errors import NoiseError
from unicr.law._quadrature._adapt import MAX_PANELS
from unicr.law._quadrature._chebyshev import WEIGHTS, N
from unicr.law._quadrature._panels import INNER_POWER, LINEAR, LOG, Panels
from unicr.law._quadrature._shape import is_log_concave, is_symmetric, is_unimodal
from unicr.law._quadrature._table import TabulatedDensity, Tail
from unicr.law._quadrature._tails import moment
from unicr.values import Array

COLUMNS = ("base", "direction", "kind", "start", "length", "kappa", "mass")
NUMBERS = ("log_mass", "mean", "second_moment", "origin")
KEYS = {*NUMBERS, "panels", "support", "breakpoints", "corners", "tails"}
AGREE = 1e-9  # between a panel's mass and the integral of its series
SHAPE = 1e-6  # how far a log-density may miss the shape that is claimed for it
FINE = np.linspace(0.0, 1.0, 3 * N + 1)


def table_to_data(table: TabulatedDensity) -> dict[str, Any]:
    """Everything that the answers of a table depend on, in JSON's own types."""
    p = table._panels
    columns = [getattr(p, name).astype(np.float64) for name in COLUMNS]
    rows = np.column_stack([*columns, p.log_values])
    return {
        "panels": write_floats(rows),
        "log_mass": write_number(table.log_mass),
        "mean": write_number(table.mean),
        "second_moment": write_number(table.second_moment),
        "origin": write_number(table._origin),
        "support": [write_number(end) for end in table.support],
        "breakpoints": write_floats(np.array(table.breakpoints)),
        "corners": write_floats(table._corners),
        "tails": [[write_number(value) for value in tail] for tail in table._tails],
    }


def table_from_data(data: Any) -> TabulatedDensity:
    """The table that `table_to_data` wrote, bit for bit; NoiseError where it is not a density."""
    if not isinstance(data, Mapping) or set(data) != KEYS:
        raise NoiseError(f"the table of a density must have exactly {', '.join(sorted(KEYS))}")
    with np.errstate(all="ignore"):
        return _read(data)


def _read(data: Mapping[str, Any]) -> TabulatedDensity:
    rows = read_floats(data["panels"], MAX_PANELS * (len(COLUMNS) + N))
    if not rows.size or rows.size % (len(COLUMNS) + N):
        raise NoiseError(f"a panel has {len(COLUMNS) + N} numbers; {rows.size} is no multiple")
    rows = rows.reshape(-1, len(COLUMNS) + N)
    panels = _panels(rows)
    log_mass, mean, second_moment, origin = (read_number(data[name]) for name in NUMBERS)
    low, high = _several(data["support"], 2)
    tails = tuple(_tail(tail) for tail in _pair(data["tails"]))
    breakpoints = read_floats(data["breakpoints"], MAX_PANELS)
    corners = read_floats(data["corners"], MAX_PANELS)
    require(math.isfinite(log_mass) and math.isfinite(origin), "log_mass and origin are finite")
    require(low < high, "the support is a pair low < high")
    inside = np.isfinite(breakpoints) & (low <= breakpoints) & (breakpoints <= high)
    rise = breakpoints.size > 0 and np.all(np.diff(breakpoints) > 0)
    require(rise and np.all(inside), "the breakpoints rise within the support")
    require(corners.shape == breakpoints.shape, "there is one corner for each breakpoint")
    table = TabulatedDensity.__new__(TabulatedDensity)
    table.log_mass, table.mean, table.second_moment = log_mass, mean, second_moment
    table.support, table.breakpoints = (low, high), tuple(breakpoints.tolist())
    table._origin, table._corners = origin, np.full(corners.shape, np.nan)
    table._use(panels, (tails[0], tails[1]))
    _check_law(table, rows)
    table._corners = corners
    sides = np.stack([table.beside(-1.0), table.beside(1.0)])
    between = (corners >= sides.min(axis=0) - 1.0) & (corners <= sides.max(axis=0) + 1.0)
    require(between | ~np.isfinite(corners), "a corner is near the density beside it")
    return table


def _panels(rows: Array) -> Panels:
    base, direction, kind, start, length, kappa, mass = rows[:, : len(COLUMNS)].T
    log_values = rows[:, len(COLUMNS) :]
    power, log = kind == INNER_POWER, kind == LOG
    require(np.isin(kind, (LINEAR, LOG, INNER_POWER)), "a panel is of a known kind")
    require(np.abs(direction) == 1.0, "a panel points left or right")
    require(np.isfinite([base, start, length, mass]), "a panel's place and mass are finite")
    require((length > 0.0) & (mass >= 0.0), "a panel has a length and a mass")
    require(np.where(log, start + length <= 709.5, start == 0.0), "a panel has an end")
    require((kappa > 0.0) & (kappa < 1e6) | ~power, "a power is integrable")
    number = np.isfinite(log_values) | np.isneginf(log_values)
    require(number | power[:, None], "a log-density is a number")
    panels = Panels.new(base, direction, kind.astype(np.int64), start, length)
    panels.log_values, panels.kappa, panels.mass = log_values.copy(), kappa.copy(), mass.copy()
    return panels


def _check_law(table: TabulatedDensity, rows: Array) -> None:
    """The panels are one probability law, and its moments are the ones written down."""
    p, inside = table._panels, table._inside
    smooth = p.kind != INNER_POWER
    mass = np.exp(p.log_values - table.log_mass) * p.length[:, None] @ WEIGHTS
    wrong = np.abs(mass - p.mass) > AGREE * p.mass + 1e-18
    require(not bool(np.any(wrong & smooth)), "a panel's mass is the integral of its density")
    left, right = table._left, table._right
    slack = 64.0 * np.spacing(np.maximum(np.abs(left), np.abs(p.base)))
    require(left <= right + slack, "a panel's ends are in order")
    require(right[:-1] <= left[1:] + slack[1:], "panels do not overlap")
    low, high = table.support
    reach = 64.0 * np.spacing(max(abs(left[0]), abs(right[-1])))
    require(low <= left[0] + reach and right[-1] <= high + reach, "panels lie in the support")
    total = math.fsum([*p.mass, table._tails[0][0], table._tails[1][0]])
    require(abs(total - 1.0) <= AGREE, "the mass is one")
    for end, edge, (beyond, _, distance) in zip(
        table.support, (left[0], right[-1]), table._tails, strict=True
    ):
        require(beyond == 0.0 or math.isinf(end), "nothing lies beyond an end")
        start = abs(edge - table._origin)
        require(beyond == 0.0 or math.isclose(start, distance, rel_tol=1e-9), "a tail starts there")
    index = np.repeat(np.arange(p.size), FINE.size)
    risen = inside.near(index, np.tile(FINE, p.size)).reshape(p.size, -1)
    require(np.diff(risen, axis=1) >= -1e-12 * p.mass[:, None] - 1e-18, "cdf rises")
    for power, given in ((1, table.mean), (2, table.second_moment)):
        _check_moment(table, power, given)


def _check_moment(table: TabulatedDensity, power: int, given: float) -> None:
    """Equal where the tails are light; where they are heavy, no less than the panels' own."""
    none = (0.0, -math.inf, 0.0)
    shift, far = table.log_mass, [tail if tail[0] > 0.0 else none for tail in table._tails]
    light = all(mass == 0.0 or kappa < -3.0 for mass, kappa, _ in far)
    if light:
        computed = moment(table._panels, shift, 1.0, far, power)
        size = math.sqrt(abs(table.second_moment)) ** power
        require(abs(computed - given) <= 1e-6 * size, f"moment {power} is that of the table")
    elif power == 2:
        computed = moment(table._panels, shift, 1.0, [none, none], 2)
        require(given >= computed * (1 - 1e-6), "the second moment is that of the table")


def shape_of(table: TabulatedDensity) -> dict[str, bool]:
    """What a stored table shows of its shape, on three points for each of its nodes, to 1e-6.

    Looked at are panels of more mass than 1e-18, and what lies between two of them: a hole that
    would have more mass than 1e-15, were it filled, is a hole.
    """
    heavy = table._panels.mass > 1e-18
    p, left, right = table._panels.take(heavy), table._left[heavy], table._right[heavy]
    even = np.tile(FINE, (p.size, 1))
    with np.errstate(all="ignore"):  # a power may have all its mass at one end
        steep = np.where((p.kind == INNER_POWER)[:, None], FINE ** (1.0 / p.kappa[:, None]), even)
        z = np.concatenate([even[:, 1:-1], steep[:, 1:-1]], axis=1)
        # beyond rounding of their own edges panels show their neighbour: stay inside
        inside = p.base[:, None] + p.direction[:, None] * p.distance(z)
        ends = (float(left[0]), float(right[-1]))
        beside = np.exp(table.logpdf(np.stack([inside.min(axis=1), inside.max(axis=1)])))
        between = np.linspace(right[:-1], left[1:], 9)[1:-1]
        filled = (left[1:] - right[:-1]) * np.maximum(beside[1, :-1], beside[0, 1:])
        holes = between[:, filled > 1e-15].ravel()
        x = np.unique(np.clip(np.concatenate([inside.ravel(), holes]), *ends))
        value = table.logpdf(x)
        low, high = table.support
        offset = SHAPE / (32.0 * np.finfo(np.float64).eps)
        endless = math.isinf(low) and math.isinf(high) and all(t[0] > 0.0 for t in table._tails)
        return {
            "symmetric": math.isclose(low, -high, rel_tol=1e-12)
            and is_symmetric(table.logpdf, x, table.breakpoints, -1e300, SHAPE),
            "log_concave": is_log_concave(x, value, ends, offset, soft=False),
            "unimodal": is_unimodal(value, SHAPE),
            "bounded": math.isfinite(low) and math.isfinite(high),
            "finite_variance": math.isfinite(table.second_moment),
            "positive": endless and not np.isneginf(value).any(),
        }


def require(holds: Any, what: str) -> None:
    """An error naming what must hold of stored data: of each value, where there are several."""
    if not np.all(holds):
        raise NoiseError(f"the stored noise is not valid: {what}, and here it does not hold")


def write_number(value: float) -> float | str:
    """A float as JSON has it; inf and nan, which JSON has not, as words."""
    return float(value) if math.isfinite(value) else repr(float(value))


def read_number(value: Any) -> float:
    """The inverse of `write_number`."""
    words = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
    if isinstance(value, str) and value in words:
        return words[value]
    require(isinstance(value, int | float) and not isinstance(value, bool), "a number is a number")
    try:
        return float(value)
    except OverflowError:
        raise NoiseError(
            "the stored noise is not valid: a number is beyond floating point"
        ) from None


def write_floats(values: Array) -> str:
    """Little-endian doubles in base64."""
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f8").tobytes()).decode()


def read_floats(text: Any, most: int) -> Array:
    """The inverse of `write_floats`, for at most so many numbers."""
    require(
        isinstance(text, str) and len(text) <= 4 * (8 * most // 3 + 2), "a list is not too long"
    )
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise NoiseError("the stored noise is not valid: a list of numbers is base64") from None
    require(len(raw) % 8 == 0, "a double has eight bytes")
    return np.frombuffer(raw, dtype="<f8").astype(np.float64)


def _pair(value: Any) -> Sequence[Any]:
    require(isinstance(value, list | tuple) and len(value) == 2, "there are two ends")
    return list(value)


def _several(value: Any, count: int) -> list[float]:
    require(isinstance(value, list | tuple) and len(value) == count, f"there are {count} numbers")
    return [read_number(item) for item in value]


def _tail(value: Any) -> Tail:
    mass, kappa, reach = _several(value, 3)
    good = 0.0 <= mass <= 1e-9 and -1e12 < kappa < 0.0 and 0.0 < reach < math.inf
    require(good, "a tail is light and falls")
    return mass, kappa, reach
