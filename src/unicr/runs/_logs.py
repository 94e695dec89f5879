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
from itertools import islice
from pathlib import Path

import numpy as np

from unicr.binomial import lower_bound
from unicr.errors import RunError, listed
from unicr.noise import Noise
from unicr.norms import Norm, l2
from unicr.radius import Evidence, Question, RadiusCurve, SecondLaw
from unicr.radius.internal import check_two_laws, inclusion, prove
from unicr.values import Array

CORRECT = {"1": True, "true": True, "0": False, "false": False}
COLUMNS = ("idx", "label", "predict", "radius", "correct")
BOUND, SECOND, COUNT = "p_A_bar", "q_A_bar", "raw_count"


@dataclass(frozen=True)
class LogRow:
    """One line of a log; `radius` and `p_a` are lower ends of what the printed digits can mean.

    `q_a` is that of the class's probability under a second law, `count` the number of votes for
    the class. They are None where the log has no such column.
    """

    idx: int
    label: int
    predict: int
    radius: float
    correct: bool
    time: str
    p_a: float | None = None
    q_a: float | None = None
    count: int | None = None


def read_log(path: Path) -> list[LogRow]:
    """The rows of a TSV log; printed radii and p_A are lowered by what rounding may have added.

    A file of DSRS's sampler is read by `read_intervals`.
    """
    if is_intervals(path):
        return read_intervals(path)
    try:
        with path.open(newline="") as file:
            table = csv.DictReader(file, delimiter="\t")
            missing = [c for c in COLUMNS if c not in (table.fieldnames or ())]
            if missing:
                raise RunError(f"{path} has no column {missing[0]!r}: it needs {listed(COLUMNS)}")
            lines = list(table)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RunError(f"cannot read {path}: {error}") from None
    rows = [_log_row(line, path, number) for number, line in enumerate(lines, start=2)]
    radii = _lowered([line["radius"] or "" for line in lines])
    bounds: dict[str, Sequence[float | None]] = dict.fromkeys((BOUND, SECOND), [None] * len(rows))
    for name in bounds:
        if lines and name in lines[0]:
            bounds[name] = _lowered([line[name] or "" for line in lines])
    changed = zip(rows, radii, bounds[BOUND], bounds[SECOND], strict=True)
    return [replace(row, radius=r, p_a=p, q_a=q) for row, r, p, q in changed]


def is_intervals(path: Path) -> bool:
    """Whether a file has the lines of DSRS's sampler, `o index low high`."""
    try:
        with path.open() as file:
            return any(line.startswith(("x ", "o ")) for line in islice(file, 3))
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"cannot read {path}: {error}") from None


def read_intervals(path: Path, first: Path | None = None) -> list[LogRow]:
    """The intervals of the true class's probability that DSRS's sampler writes (Li et al. 2022).

    p_A is the lower end. Such a file names no class: the true one stands as 0, certified where p_A
    is above 1/2. Some files hold two samplings of an input, one appended to the other: the smaller
    p_A counts, which holds as often as either. Where it is of the second law, `first` is the file
    of the first: they must tell the same noise in their head.
    """
    rows: dict[int, LogRow] = {}
    head = _head(path)
    if first is not None and (other := _head(first)) != head:
        raise RunError(
            f"{path} is of the noise {head} and {first} of {other}: the second law is the first "
            "within a ball, so both files must be of one noise"
        )
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if not line.startswith("o "):
            continue
        try:
            _, idx, low, high = line.split()
            if not 0 <= float(low) <= float(high) <= 1:
                raise ValueError(line)
            sure = float(low) > 0.5
            one = LogRow(int(idx), 0, 0 if sure else -1, 0.0, sure, "", p_a=float(low))
        except ValueError:
            raise RunError(f"{path}, line {number}: cannot read {line!r}") from None
        rows[one.idx] = min(one, rows.get(one.idx, one), key=lambda row: row.p_a or 0.0)
    if not rows:
        raise RunError(f"{path} has no line o index low high")
    return list(rows.values())


def _head(path: Path) -> dict[str, str]:
    """The noise of a sampler's file, told once or more; samples and alpha may differ."""
    if not is_intervals(path):
        raise RunError(f"{path} has no lines o index low high, as DSRS's sampler writes them")
    lines = (line.split(maxsplit=2) for line in path.read_text().splitlines())
    told = {(o[1], o[2]) for o in lines if len(o) == 3 and o[1] in ("disttype", "k", "std")}
    if len(head := dict(sorted(told))) != len(told):
        raise RunError(f"{path} tells two noises in its head: {sorted(told)}")
    return head


def paired(rows: Iterable[LogRow], second: Iterable[LogRow]) -> list[LogRow]:
    """The rows with q_A from a log of the second law; 0 where it does not have the input."""
    of = {row.idx: row.p_a or 0.0 for row in second}
    return [replace(row, q_a=of.get(row.idx, 0.0)) for row in rows]


def _log_row(line: dict[str, str | None], path: Path, number: int) -> LogRow:
    try:
        for name, most in (("radius", math.inf), (BOUND, 1.0), (SECOND, 1.0)):
            printed = Decimal((line.get(name) if name in line else "0") or "")
            if not math.isfinite(float(printed)) or not 0 <= printed <= most:
                raise RunError(
                    f"{path}, line {number}: {name}={printed} is no "
                    f"{'radius' if math.isinf(most) else 'probability'}"
                )
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
    except RunError:
        raise
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
                f"two laws need the columns {BOUND} and {SECOND}, and the log has not both: leave "
                "--share away to use its radii or p_A alone, or give a file of DSRS's sampler for "
                "each law, the other one with --second"
            )
        kept = row.predict != -1 and row.p_a > 0.5
        radius = 0.0
        if kept:
            evidence = Evidence(row.p_a, second=SecondLaw(row.q_a, share))
            first = float(alone(row.p_a)) * inclusion(norm, home, question.dim)
            radius = max(first, prove(question, evidence, laws=2).radius)
        found.append(replace(row, radius=radius))
    return found


def _bounds(
    rows: list[LogRow], noise: Noise, origin: Norm, dim: int, n: int | None, alpha: float | None
) -> Array:
    if n is not None and alpha is not None:
        counts = [row.count for row in rows if row.count is not None and 0 <= row.count <= n]
        if len(counts) != len(rows):
            raise RunError(f"n={n}: the log has no column {COUNT} of counts from 0 to {n}")
        return np.array([lower_bound(k, n, alpha) for k in counts])
    own = np.array([row.p_a or 0.0 for row in rows])
    if all(row.p_a is not None and row.radius == 0 for row in rows):
        return own
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
    law = noise.iid
    if law is None or not law.facts.symmetric:
        raise RunError(
            f"a log's radii are carried over for symmetric noise with independent coordinates, not "
            f"{noise.text}"
        )
    if law.normal_sigma is not None:
        radius = radius * dim ** max(0.0, 0.5 - 1 / norm.p)
    return np.asarray(law.cdf(radius))
