"""Published logs (`idx label predict radius correct time`): read, and carried to other norms.

A printed radius may have been rounded up, so half of the column's last digit is taken off. Where a
log also prints its counts or its bound of p_A, these are used, since a radius loses digits of them.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np
from scipy import special

from unicr.errors import RunError
from unicr.noise import IID, Gaussian, Noise
from unicr.norms import Norm, l2
from unicr.radius import RadiusCurve
from unicr.values import Array

CORRECT = {"1": True, "true": True, "0": False, "false": False}
COLUMNS = ("idx", "label", "predict", "radius", "correct")
BOUND, COUNT = "p_A_bar", "raw_count"


@dataclass(frozen=True)
class LogRow:
    """One line of a log; `radius` and `p_a` are lower ends of what the printed digits can mean.

    `count` is the number of votes for the class. Both are None where the log has no such column.
    """

    idx: int
    label: int
    predict: int
    radius: float
    correct: bool
    time: str
    p_a: float | None = None
    count: int | None = None


def read_log(path: Path) -> list[LogRow]:
    """The rows of a TSV log; printed radii and p_A are lowered by what rounding may have added."""
    try:
        with path.open(newline="") as file:
            table = csv.DictReader(file, delimiter="\t")
            missing = [c for c in COLUMNS if c not in (table.fieldnames or ())]
            if missing:
                raise RunError(f"{path} has no column {missing[0]!r}: it needs {COLUMNS}")
            lines = list(table)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RunError(f"cannot read {path}: {error}") from None
    rows = [_log_row(line, path, number) for number, line in enumerate(lines, start=2)]
    radii = _lowered([line["radius"] or "" for line in lines])
    bounds: Sequence[float | None] = [None] * len(rows)
    if lines and BOUND in lines[0]:
        bounds = _lowered([line[BOUND] or "" for line in lines])
    changed = zip(rows, radii, bounds, strict=True)
    return [replace(row, radius=radius, p_a=p_a) for row, radius, p_a in changed]


def _log_row(line: dict[str, str | None], path: Path, number: int) -> LogRow:
    try:
        for name, most in (("radius", math.inf), (BOUND, 1.0)):
            printed = Decimal((line.get(name) if name in line else "0") or "")
            if not math.isfinite(float(printed)) or not 0 <= printed <= most:
                raise ValueError(f"{name} is a finite number, not negative")
        if None in line or None in (line["correct"], line["predict"], line["label"]):
            raise ValueError("a row has as many fields as the head")
        return LogRow(
            idx=int(line["idx"] or ""),
            label=int(line["label"] or ""),
            predict=int(line["predict"] or ""),
            radius=float(printed),
            correct=CORRECT[str(line["correct"]).strip().lower()],
            time=(line.get("time") or "").strip(),
            count=int(Decimal(line[COUNT] or "")) if COUNT in line else None,
        )
    except (ValueError, InvalidOperation, TypeError, KeyError, OverflowError):
        raise RunError(f"{path}, line {number}: cannot read {dict(line)!r}") from None


def _lowered(column: Sequence[str]) -> list[float]:
    """The least that each number of a column can stand for.

    A column is printed with some number of decimals or of significant digits, and trailing zeros
    may be left out ("1.0" for 1.00). Both numbers are at least the largest seen, so the coarser of
    the two readings holds whichever was meant; what a number itself shows is never finer than true.
    """
    numbers = [Decimal(text) for text in column]
    shown = [-int(value.as_tuple().exponent) for value in numbers]
    decimals = max(shown, default=0)
    digits = max((len(v.as_tuple().digits) for v in numbers if v), default=1)
    lowered = []
    for value, own in zip(numbers, shown, strict=True):
        last = max(-decimals, value.adjusted() - digits + 1) if value else -decimals
        half = Decimal((0, (5,), min(-own, last) - 1))
        lowered.append(max(0.0, float(value - half)))
    return lowered


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
    """Radii in another norm from a log of certificates in the norm `origin`, under the same noise.

    p_A comes from the votes where the log has them and `n` and `alpha` are given, and else from
    the log's own bound or from the radius (`least_p_a`): both hold, so the larger counts. The
    certificates keep their confidence: the same bound of p_A is used, only the norm changes.
    """
    rows = list(rows)
    p_a = _bounds(rows, noise, origin, dim, n, alpha)
    p_a = np.where([row.predict == -1 for row in rows], 0.0, p_a)
    radii = RadiusCurve(noise, norm, dim)(p_a, searched=searched)
    return [replace(r, radius=float(new)) for r, new in zip(rows, radii, strict=True)]


def _bounds(
    rows: list[LogRow], noise: Noise, origin: Norm, dim: int, n: int | None, alpha: float | None
) -> Array:
    counts = [row.count for row in rows]
    if n is not None and alpha is not None:
        if any(k is None or not 0 <= k <= n for k in counts):
            raise RunError(f"n={n}: the log has no column {COUNT} of counts from 0 to {n}")
        k = np.array(counts, dtype=np.float64)
        with np.errstate(invalid="ignore"):
            return np.where(k > 0, special.betaincinv(k, n - k + 1, alpha), 0.0)
    own = np.array([row.p_a or 0.0 for row in rows])
    return np.maximum(own, least_p_a(np.array([row.radius for row in rows]), noise, origin, dim))


def least_p_a(radius: Array, noise: Noise, norm: Norm, dim: int) -> Array:
    """The least p_A at which any sound method can certify these radii: P(ε_1 ≤ radius).

    The classifier that asks whether the first coordinate is at most t has p_A = P(ε_1 ≤ t), and
    loses half of it when that coordinate moves by t less the median. So p_A was larger than that,
    in every norm. Gaussian noise knows its worst direction: there the answer is exact in any norm.
    In l1 it is exact for every symmetric log-concave noise (Laplace, uniform, General Normal).
    The radii must be those of p_A alone (p_B = 1 − p_A), as this format of logs has them; for
    Gaussian noise the new radii hold in any case, since they only compare balls.
    """
    if not isinstance(noise, IID) or not noise.facts.symmetric:
        raise RunError(
            f"a log's radii are carried over for symmetric noise with independent coordinates, not "
            f"{noise.text}"
        )
    if isinstance(noise, Gaussian):
        radius = radius * dim ** max(0.0, 0.5 - 1 / norm.p)
    return np.asarray(noise.cdf(radius))
