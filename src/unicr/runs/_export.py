"""A run as a table: the field's TSV, CSV, LaTeX, JSON lines or Parquet. Radii are rounded down."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from unicr.errors import RunError
from unicr.extras import require
from unicr.runs._run import Row, Run
from unicr.runs._spec import Spec

DIGITS = 6


def floor_decimal(value: float, digits: int = DIGITS) -> str:
    """The value with `digits` decimals, or significant digits if these are more; never above it."""
    if math.isinf(value):
        return "inf"
    if 0 < value < 1:
        digits -= math.floor(math.log10(value)) + 1
    text = f"{value:.{digits}f}"
    if float(text) > value:
        text = f"{math.floor(value * 10**digits) / 10**digits:.{digits}f}"
    if float(text) > value:
        text = f"{float(text) - 10.0**-digits:.{digits}f}"
    return text


def tsv_lines(rows: Iterable[Row], norm: str) -> Iterator[str]:
    """`idx label predict radius correct time`, abstain −1, as published logs have it, and at the
    end how much of the radius is proved.
    """
    yield "idx\tlabel\tpredict\tradius\tcorrect\ttime\tproved"
    for row in rows:
        radius, proved = floor_decimal(row.radius(norm)), floor_decimal(row.proved(norm))
        time = f"{row.seconds:.3f}"
        values = (row.idx, row.label, row.predict, radius, int(row.correct), time, proved)
        yield "\t".join(map(str, values))


def flat(row: Row, spec: Spec) -> dict[str, Any]:
    """One row of plain values for people and spreadsheets; class names where the model has them."""
    found = _named(row, spec) | {"status": row.status, "correct": row.correct}
    if row.certificate is not None:
        found |= row.certificate.to_dict()
        found["noise"] = row.certificate.noise or spec.noise.text
    return found | {"seconds": row.seconds, "reason": row.reason}


def _named(row: Row, spec: Spec) -> dict[str, Any]:
    """The input's number, label and class, with their names where model or data has some."""
    names = spec.classes or ()
    found: dict[str, Any] = {"idx": row.idx, "label": row.label, "predict": row.predict}
    for column, place in (("label_name", row.label), ("class", row.predict)) if names else ():
        found[column] = str(names[place]) if 0 <= place < len(names) else None
    return found


def table(run: Run) -> list[dict[str, Any]]:
    """Every result with what is needed to check it again, as plain values."""
    version = run.execution.unicr
    return [_record(row, run.spec, version) for row in run.rows()]


def _record(row: Row, spec: Spec, version: str) -> dict[str, Any]:
    c = row.certificate
    values = _named(row, spec) | {
        "correct": row.correct,
        "status": row.status,
        "reason": row.reason,
        "input_hash": row.input_hash,
        "model_hash": spec.model_hash,
        "noise": (c.noise if c is not None else None) or spec.noise.text,
        "scope": spec.scope,
        "rule": spec.plan.rule.text,
        "dim": spec.dim,
        "seed": spec.seed,
        "nonce": spec.nonce,
        "lattice": None if spec.lattice is None else spec.lattice.text,
        "version": version,
        "seconds": row.seconds,
    }
    if c is not None:
        values.update(p_a=c.p_a, p_b=c.p_b, n0=c.n0, n=c.n, alpha=c.alpha)
        values.update(selection=list(c.selection), counts=list(c.counts))
        values["transcript"] = c.transcript.to_list()
        values["radii"] = [one.to_dict() for one in c.radii]
        values.update(between_points=c.between_points, charge=c.charge, promise=c.promise)
    return values


def export(run: Run, path: Path, norm: str | None = None) -> None:
    """Write the run to `path`: .tsv (of one norm, the field's own columns), .csv, .tex, .jsonl, or
    .parquet (the extra unicr[table]).
    """
    try:
        match path.suffix.lower():
            case ".tsv":
                lines = tsv_lines(run.rows(), run.spec.one_norm(norm))
                path.write_text("".join(line + "\n" for line in lines))
            case ".csv":
                path.write_text(run.to_csv())
            case ".tex":
                path.write_text(run.to_latex())
            case ".jsonl":
                path.write_text("".join(json.dumps(one) + "\n" for one in table(run)))
            case ".parquet":
                _parquet(table(run), path)
            case _:
                raise RunError(
                    f"cannot export to {path.name}: the ending must be .tsv, .csv, .tex, .jsonl "
                    "or .parquet"
                )
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}") from None


def _parquet(records: list[dict[str, Any]], path: Path) -> None:
    arrow, parquet = require("pyarrow", "table"), require("pyarrow.parquet", "table")
    for values in records:
        for one in values.pop("radii", []):
            for key in ("radius", "proved", "searched", "guarantee", "grade"):
                number = math.inf if one[key] == "inf" else one[key]
                values[f"{key}_l{one['norm']}"] = number
    parquet.write_table(arrow.Table.from_pylist(records), path)
