"""Published logs (`idx label predict radius correct time`): read, and carried to other norms."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np
from scipy import special

from unicr.errors import RunError
from unicr.noise import Gaussian, Noise
from unicr.norms import Norm
from unicr.radius import RadiusCurve

CORRECT = {"1": True, "true": True, "0": False, "false": False}
COLUMNS = ("idx", "label", "predict", "radius", "correct")


@dataclass(frozen=True)
class LogRow:
    """One line of a log; `radius` is a lower end of what the printed digits can mean."""

    idx: int
    label: int
    predict: int
    radius: float
    correct: bool
    time: str


def read_log(path: Path) -> list[LogRow]:
    """The rows of a TSV log. A radius may have been rounded up: half a digit is taken off."""
    try:
        with path.open(newline="") as file:
            table = csv.DictReader(file, delimiter="\t")
            missing = [c for c in COLUMNS if c not in (table.fieldnames or ())]
            if missing:
                raise RunError(f"{path} has no column {missing[0]!r}: it needs {COLUMNS}")
            return [_log_row(line, path, number) for number, line in enumerate(table, start=2)]
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"cannot read {path}: {error}") from None


def _log_row(line: dict[str, str | None], path: Path, number: int) -> LogRow:
    try:
        printed = Decimal(line["radius"] or "")
        exponent = printed.as_tuple().exponent
        half = Decimal((0, (5,), exponent - 1)) if isinstance(exponent, int) else Decimal(0)
        if not math.isfinite(float(printed)) or printed < 0:
            raise ValueError("a radius is a finite number, not negative")
        if None in line or None in (line["correct"], line["predict"], line["label"]):
            raise ValueError("a row has as many fields as the head")
        correct = CORRECT[str(line["correct"]).strip().lower()]
        return LogRow(
            idx=int(line["idx"] or ""),
            label=int(line["label"] or ""),
            predict=int(line["predict"] or ""),
            radius=max(0.0, float(printed - half)),
            correct=correct,
            time=(line.get("time") or "").strip(),
        )
    except (ValueError, InvalidOperation, TypeError, KeyError):
        raise RunError(f"{path}, line {number}: cannot read {dict(line)!r}") from None


def recertify(
    rows: Iterable[LogRow], noise: Gaussian, norm: Norm, dim: int, *, searched: bool = False
) -> list[LogRow]:
    """Radii in another norm from a Gaussian ℓ2 log: r inverted to p_A = Φ(r/σ), then the curve.

    The certificates keep their confidence: the same p_A bound is used, only the norm changes.
    """
    rows = list(rows)
    p_a = special.ndtr(np.array([row.radius for row in rows]) / noise.sigma)
    radii = RadiusCurve(noise, norm, dim)(p_a, searched=searched)
    return [
        LogRow(r.idx, r.label, r.predict, float(radius), r.correct, r.time)
        for r, radius in zip(rows, radii, strict=True)
    ]


def check_gaussian(noise: Noise) -> Gaussian:
    """The noise if it is Gaussian: logs of that format hold Gaussian ℓ2 radii."""
    if not isinstance(noise, Gaussian):
        raise RunError(f"a log of l2 radii can be inverted for Gaussian noise, not {noise.text}")
    return noise
