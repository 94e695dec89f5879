"""A table as plain data: written exactly, and read back without trusting a number.

Reading runs no code and allocates no more than the text holds. Every fact is decided again from the
numbers; the moments must be theirs, or be said not to exist.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from unicr.errors import NoiseError
from unicr.law._pieces import Pieces
from unicr.law._table import Table, describe
from unicr.values import Array

KEYS = {"knots", "start", "end", "rates", "mean", "std"}
MOST_KNOTS = 1_000_000  # that a hostile file may ask for
AGREE = 1e-9  # between stored moments and those of the pieces, of the standard deviation
FARTHEST, HIGHEST = 1e300, 1e6  # of knots and of log-densities: their sums and products stay finite


def table_to_data(table: Table) -> dict[str, Any]:
    """Everything that the answers of a table depend on, in JSON's own types."""
    p = table.pieces
    return {
        **{name: write_floats(getattr(p, name)) for name in ("knots", "start", "end")},
        "rates": [write_number(rate) for rate in p.rates],
        "mean": write_number(table.mean),
        "std": write_number(table.std),
    }


def table_from_data(data: Any) -> Table:
    """The table that `table_to_data` wrote, bit for bit; NoiseError if it is not a density."""
    if not isinstance(data, Mapping) or set(data) != KEYS:
        raise NoiseError(
            f"the table of a density must have the fields {', '.join(sorted(KEYS))}, and no others"
        )
    knots, start, end = (read_floats(data[name], MOST_KNOTS) for name in ("knots", "start", "end"))
    require(isinstance(data["rates"], list) and len(data["rates"]) == 2, "there are two ends")
    low, high = (read_number(rate) for rate in data["rates"])
    mean, std = read_number(data["mean"]), read_number(data["std"])
    require(knots.size > 1 and np.all(np.isfinite(knots)), "knots are numbers")
    require(np.abs(knots) <= FARTHEST, "knots are not beyond floating point")
    require(np.diff(knots) > 0, "knots rise")
    require(start.size == end.size == knots.size - 1, "there is a piece between two knots")
    value = np.concatenate([start, end])
    require(np.isneginf(value) | (np.abs(value) <= HIGHEST), "a log-density is a number")
    require(np.isneginf(start) == np.isneginf(end), "a piece is a density or a hole")
    require(np.any(np.isfinite(value)), "a density has mass")
    require(low > 0 and high < 0, "tails fall")
    require(math.isinf(low) or math.isfinite(start[0]), "a tail goes on from a density")
    require(math.isinf(high) or math.isfinite(end[-1]), "a tail goes on from a density")
    with np.errstate(all="ignore"):
        table = describe(Pieces(knots, start, end, (low, high)))
        require(math.isfinite(table.pieces.log_total), "the mass is finite")
        require(math.isfinite(table.std), "the second moment is finite")
    if math.isinf(std):
        require(
            std > 0 and (math.isnan(mean) or mean == table.mean), "the mean is that of the table"
        )
        facts = replace(table.known, finite_variance=False)
        return Table(table.pieces, facts, mean, std)
    for stored, computed in ((mean, table.mean), (std, table.std)):
        require(abs(stored - computed) <= AGREE * table.std, "the moments are those of the table")
    return replace(table, mean=mean, std=std)


def require(holds: Any, fact: str) -> None:
    """An error naming what must hold of stored data: of each value, where there are several."""
    if not np.all(holds):
        raise NoiseError(f"the stored noise is not valid: {fact}, but this does not hold here")


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
            "the stored noise is not valid: floating point cannot hold one of its numbers"
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
        raise NoiseError(
            "the stored noise is not valid: a list of numbers must be base64"
        ) from None
    require(len(raw) % 8 == 0, "a double has eight bytes")
    return np.frombuffer(raw, dtype="<f8").astype(np.float64)
