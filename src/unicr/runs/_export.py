"""A run as a table: the field's TSV, JSON lines or Parquet. Radii are rounded down, never up."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from unicr.errors import RunError
from unicr.extras import require
from unicr.runs._store import EVERY_INPUT, Row, Store
from unicr.runs._verify import noise_of

DIGITS = 6


def floor_decimal(value: float, digits: int = DIGITS) -> str:
    """The value with `digits` decimals, never above it."""
    if math.isinf(value):
        return "inf"
    text = f"{value:.{digits}f}"
    if float(text) > value:
        text = f"{math.floor(value * 10**digits) / 10**digits:.{digits}f}"
    if float(text) > value:
        text = f"{float(text) - 10.0**-digits:.{digits}f}"
    return text


def tsv_lines(rows: Iterable[Row], norm: str) -> Iterator[str]:
    """`idx label predict radius correct time`, abstain −1, as published logs have it."""
    yield "idx\tlabel\tpredict\tradius\tcorrect\ttime"
    for row in rows:
        radius = floor_decimal(row.radius(norm))
        values = (row.idx, row.label, row.predict, radius, int(row.correct), f"{row.seconds:.3f}")
        yield "\t".join(map(str, values))


def record(row: Row, manifest: dict[str, Any]) -> dict[str, Any]:
    """One result with everything that is needed to check it again."""
    values: dict[str, Any] = {
        "idx": row.idx,
        "label": row.label,
        "predict": row.predict,
        "correct": row.correct,
        "status": row.status,
        "reason": row.reason,
        "input_hash": row.input_hash,
        "model_hash": manifest["model_hash"],
        "noise": noise_of(row, manifest),
        "scope": manifest.get("scope", EVERY_INPUT),
        "dim": manifest["dim"],
        "seed": manifest["seed"],
        "version": manifest["unicr"],
        "seconds": row.seconds,
    }
    c = row.certificate
    if c is not None:
        values["promise"] = c.promise
        values.update(p_a=c.p_a, p_b=c.p_b, n0=c.n0, n=c.n, alpha=c.alpha)
        values.update(selection=list(c.selection), counts=list(c.counts))
        values["radii"] = [one.to_dict() for one in c.radii]
    return values


def export(store: Store, path: Path, norm: str | None = None) -> None:
    """Write the run to `path`: .tsv (of one norm), .jsonl or .parquet (the extra unicr[table])."""
    manifest = store.manifest()
    ending = path.suffix.lower()
    if ending == ".tsv":
        chosen = _one_norm(manifest, norm)
        path.write_text("\n".join(tsv_lines(store.rows(), chosen)) + "\n")
    elif ending == ".jsonl":
        lines = (json.dumps(record(row, manifest)) for row in store.rows())
        path.write_text("".join(line + "\n" for line in lines))
    elif ending == ".parquet":
        _parquet([record(row, manifest) for row in store.rows()], path)
    else:
        raise RunError(f"cannot export to {path.name}: the ending must be .tsv, .jsonl or .parquet")


def _one_norm(manifest: dict[str, Any], norm: str | None) -> str:
    from unicr.norms import parse_norm

    norms = manifest["norms"]
    chosen = norms[0] if norm is None and len(norms) == 1 else norm
    if chosen is None:
        raise RunError(f"the run has the norms {', '.join(norms)}: say which with --norm")
    text = parse_norm(chosen).text
    if text not in norms:
        raise RunError(f"the run has the norms {', '.join(norms)}, not {text}")
    return text


def _parquet(records: list[dict[str, Any]], path: Path) -> None:
    arrow, parquet = require("pyarrow", "table"), require("pyarrow.parquet", "table")
    for values in records:
        for one in values.pop("radii", []):
            for key in ("radius", "proved", "searched", "guarantee"):
                number = math.inf if one[key] == "inf" else one[key]
                values[f"{key}_l{one['norm']}"] = number
    parquet.write_table(arrow.Table.from_pylist(records), path)
