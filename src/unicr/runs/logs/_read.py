"""Published logs as rows: what each printed number can mean, never more.

Read are Cohen's tables (`idx label predict radius correct time`, separated by tabs) and those made
of them: with counts (`raw_count`, `count`) or bounds of p_A (`p_A_bar`, `q_A_bar`), and predictions
without a radius; files of DSRS's sampler; folders of `.npy` arrays as rs4a writes them.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unicr.errors import RunError, SpecError, foreign, listed
from unicr.norms import Norm, l2, parse_norm

CORRECT = {"1": True, "true": True, "0": False, "false": False}
COLUMNS = ("idx", "label", "predict", "correct")
RADIUS, BOUND, SECOND, COUNTS = "radius", "p_A_bar", "q_A_bar", ("raw_count", "count")
MOST = {RADIUS: math.inf, BOUND: 1.0, SECOND: 1.0}
LONGEST = 100_000_000  # bytes of a log; the longest public one has 1 MB
ARRAYS = ("labels.npy", "preds.npy", "prob_lb.npy")  # of rs4a


@dataclass(frozen=True)
class LogRow:
    """One line of a log; `radius` and `p_a` are lower ends of what the printed digits can mean.

    `radius_most` and `p_a_most` are the upper ends. `q_a` is the class's probability under a second
    law, `count` the number of votes for the class, `norm` the norm of the radius. They are None if
    the log has no such column.
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
    radius_most: float | None = None
    p_a_most: float | None = None
    norm: str | None = None


def read_log(path: Path, norm: Norm = l2) -> list[LogRow]:
    """The rows of a log in any of the forms above; `norm` says which radii of a folder's.

    A log without rows is an error.
    """
    if path.is_dir():
        return _read_arrays(path, norm)
    _check_file(path)
    return read_intervals(path) if is_intervals(path) else _read_table(path)


def find_log_norm(rows: Sequence[LogRow], asked: Norm | None = None) -> Norm:
    """The norm of a log's radii: of its column `norm`, else the norm asked for, else l2.

    A log that says another norm than the one asked for is refused.
    """
    said = {row.norm for row in rows} - {None}
    if len(said) > 1:
        raise RunError(f"the log has radii in several norms ({', '.join(sorted(map(str, said)))})")
    norm = parse_norm(str(said.pop())) if said else asked or l2
    if asked is not None and norm.text != asked.text:
        raise RunError(f"the radii of the log are in the norm {norm.text}, not {asked.text}")
    return norm


def is_log(path: Path) -> bool:
    """Whether a file or folder looks like one of these forms."""
    if path.is_dir():
        return all((path / name).is_file() for name in ARRAYS)
    if not path.is_file():
        return False
    try:
        with path.open(encoding="utf-8") as file:
            head = file.readline(10_000).split("\t")
    except (OSError, UnicodeDecodeError):
        return False
    return set(COLUMNS) <= {word.strip() for word in head} or is_intervals(path)


def _check_file(path: Path) -> None:
    if not path.exists():
        raise RunError(f"cannot read {path}: the file does not exist")
    if not path.is_file():
        raise RunError(f"cannot read {path}: it is not an ordinary file")
    if path.stat().st_size > LONGEST:
        raise RunError(f"cannot read {path}: it has more than {LONGEST} bytes, which no log has")


def _read_table(path: Path) -> list[LogRow]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            table = csv.DictReader(file, delimiter="\t")
            names = [name.strip() for name in table.fieldnames or ()]
            table.fieldnames = names
            if missing := [c for c in COLUMNS if c not in names]:
                raise RunError(
                    f"{path} has no column {missing[0]!r}: a log has the columns {listed(COLUMNS)} "
                    "and usually radius, separated by tabs"
                )
            if len(set(names)) != len(names):
                raise RunError(f"{path} has two columns with the same name")
            lines = list(table)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RunError(f"cannot read {path}: {error}") from None
    if not lines:
        raise RunError(f"{path} has a header but no rows")
    rows = [_read_line(line, path, number) for number, line in enumerate(lines, start=2)]
    ends = {name: _ends([line[name] or "" for line in lines]) for name in MOST if name in names}
    nothing: list[tuple[float, float | None]] = [(0.0, None)] * len(rows)
    radii, bounds = ends.get(RADIUS, nothing), ends.get(BOUND, nothing)
    second = ends.get(SECOND, nothing)
    return [
        replace(
            row,
            radius=r[0],
            radius_most=r[1],
            p_a=p[0] if BOUND in ends else None,
            p_a_most=p[1],
            q_a=q[0] if SECOND in ends else None,
        )
        for row, r, p, q in zip(rows, radii, bounds, second, strict=True)
    ]


def _read_line(line: dict[str, str | None], path: Path, number: int) -> LogRow:
    try:
        for name, most in MOST.items():
            printed = Decimal((line.get(name) if name in line else "0") or "")
            if not math.isfinite(float(printed)) or not 0 <= printed <= most:
                raise RunError(
                    f"{path}, line {number}: {name}={printed} is no "
                    f"{'radius' if name == RADIUS else 'probability'}"
                )
        if None in line or None in (line["correct"], line["predict"], line["label"]):
            raise ValueError("a row must have as many fields as the header")
        counts = [int(Decimal(line[name] or "")) for name in COUNTS if name in line]
        return LogRow(
            idx=int(line["idx"] or ""),
            label=int(line["label"] or ""),
            predict=int(line["predict"] or ""),
            radius=0.0,
            correct=CORRECT[str(line["correct"]).strip().lower()],
            time=(line.get("time") or "").strip(),
            count=counts[0] if counts else None,
            norm=parse_norm(line["norm"] or "").text if "norm" in line else None,
        )
    except RunError:
        raise
    except (ValueError, InvalidOperation, TypeError, KeyError, OverflowError, SpecError):
        shown = str(dict(line))
        raise RunError(f"{path}, line {number}: cannot read {shown[:300]}") from None


def _ends(column: Sequence[str]) -> list[tuple[float, float | None]]:
    """The least and the most that each number of a column can stand for.

    A column is printed with some number of decimals or of significant digits, and trailing zeros
    may be left out ("1.0" for 1.00). Both numbers are at least the largest seen, so the coarser of
    the two readings holds whichever was meant; what a number itself shows is never finer than true.
    """
    numbers = [Decimal(text) for text in column]
    shown = [-int(value.as_tuple().exponent) for value in numbers]
    decimals = max(shown, default=0)
    digits = max((len(v.as_tuple().digits) for v in numbers if v), default=1)
    found: list[tuple[float, float | None]] = []
    for value, own in zip(numbers, shown, strict=True):
        last = max(-decimals, value.adjusted() - digits + 1) if value else -decimals
        half = Decimal((0, (5,), min(-own, last) - 1))
        found.append((max(0.0, float(value - half)), float(value + half)))
    return found


def _read_arrays(folder: Path, norm: Norm) -> list[LogRow]:
    """A folder of rs4a (Yang et al. 2020): votes, labels, bounds of p_A and radii as arrays.

    Bounds and radii went through float32, which may have rounded them up by a unit of its last
    place. An input whose p_A is not above 1/2 is an abstention.
    """
    if missing := [name for name in ARRAYS if not (folder / name).is_file()]:
        raise RunError(f"{folder} does not contain results of rs4a: {missing[0]} is missing")
    labels, preds, bounds = (_array(folder / name) for name in ARRAYS)
    if labels.ndim != 1 or preds.ndim != 2 or not len(labels) or preds.shape[1] < 2:
        raise RunError(
            f"{folder}: the labels have shape {labels.shape}, which does not fit the votes of "
            f"shape {preds.shape}"
        )
    file = folder / f"radius_l{norm.text}.npy"
    radii = _array(file) if file.is_file() else None
    sizes = {len(one) for one in (labels, preds, bounds, radii) if one is not None}
    if len(sizes) != 1 or bounds.ndim != 1 or (radii is not None and radii.ndim != 1):
        raise RunError(f"{folder}: its arrays have different lengths")
    if np.any(labels != np.floor(labels)) or not np.all((bounds >= 0) & (bounds <= 1)):
        raise RunError(f"{folder}: labels must be whole numbers, and prob_lb must be probabilities")
    low, high = _float32_ends(bounds)
    shortest, longest = (low, high) if radii is None else _float32_ends(radii)
    rows = []
    for i, best in enumerate(preds.argmax(1).tolist()):
        sure, label = bool(low[i] > 0.5), int(labels[i])
        rows.append(
            LogRow(
                idx=i,
                label=label,
                predict=best if sure else -1,
                radius=float(shortest[i]) if sure and radii is not None else 0.0,
                correct=sure and best == label,
                time="",
                p_a=float(low[i]),
                p_a_most=float(high[i]),
                radius_most=float(longest[i]) if radii is not None else None,
            )
        )
    return rows


def _array(path: Path) -> NDArray[Any]:
    with foreign(RunError, f"cannot read {path}"):
        found = np.load(path, allow_pickle=False, mmap_mode="r")
        if not isinstance(found, np.ndarray) or found.dtype.kind not in "biuf":
            raise RunError(f"{path} is not an array of numbers")
        if found.nbytes > LONGEST:
            raise RunError(f"{path} has more than {LONGEST} bytes, which no log has")
        values = np.asarray(found, dtype=np.float64)
    if not np.isfinite(values).all() or np.any(values < 0):
        raise RunError(f"{path} contains values that are not finite numbers of at least 0")
    return values


def _float32_ends(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    single = values.astype(np.float32)
    down, up = np.nextafter(single, np.float32(0)), np.nextafter(single, np.float32(np.inf))
    return down.astype(np.float64), up.astype(np.float64)


def is_intervals(path: Path) -> bool:
    """Whether a file has the lines of DSRS's sampler, `o index low high`."""
    try:
        with path.open(encoding="utf-8") as file:
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
    _check_file(path)
    head = _head(path)
    if first is not None and (other := _head(first)) != head:
        raise RunError(
            f"{path} is for the noise {head}, but {first} is for {other}: the second law is the "
            "first one restricted to a ball, so both files must be for the same noise"
        )
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.startswith("o "):
            continue
        try:
            _, idx, low, high = line.split()
            if not 0 <= float(low) <= float(high) <= 1:
                raise ValueError(line)
            sure = float(low) > 0.5
            one = LogRow(int(idx), 0, 0 if sure else -1, 0.0, sure, "", p_a=float(low))
        except ValueError:
            raise RunError(f"{path}, line {number}: cannot read {line[:300]!r}") from None
        rows[one.idx] = min(one, rows.get(one.idx, one), key=lambda row: row.p_a or 0.0)
    if not rows:
        raise RunError(f"{path} has no line `o index low high`")
    return list(rows.values())


def _head(path: Path) -> dict[str, str]:
    """The noise of a sampler's file, told once or more; samples and alpha may differ."""
    if not is_intervals(path):
        raise RunError(
            f"{path} has no lines `o index low high`, as the sampler of DSRS writes them"
        )
    lines = (line.split(maxsplit=2) for line in path.read_text(encoding="utf-8").splitlines())
    told = {(o[1], o[2]) for o in lines if len(o) == 3 and o[1] in ("disttype", "k", "std")}
    if len(head := dict(sorted(told))) != len(told):
        raise RunError(f"{path} names two noises in its header: {sorted(told)}")
    return head


def paired(rows: Iterable[LogRow], second: Iterable[LogRow]) -> list[LogRow]:
    """The rows with q_A from a log of the second law; 0 if it does not have the input."""
    of = {row.idx: row.p_a or 0.0 for row in second}
    return [replace(row, q_a=of.get(row.idx, 0.0)) for row in rows]
