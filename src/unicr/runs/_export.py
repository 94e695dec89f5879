"""A run as a table: the field's TSV, CSV, LaTeX, JSON lines or Parquet. Radii are rounded down.

`COLUMNS` is the one list of what a table says of an input: a new line in it is a new column of CSV,
LaTeX, frames, JSON lines, Parquet and, with a title, of the report's page.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from decimal import ROUND_FLOOR, Context, Decimal
from pathlib import Path
from typing import Any

from unicr.errors import RunError, one_line
from unicr.extras import require
from unicr.folder import replace_file
from unicr.runs._run import Row, Run
from unicr.runs._spec import Spec
from unicr.smoothing import Certificate, ClosedNoise, NormRadius
from unicr.tables import to_csv, to_latex

DIGITS = 6
OF_A_NORM = tuple(one.name for one in fields(NormRadius) if one.name != "norm")
OF_A_SET = {"reach", "log_volume", "frame"}  # columns of stretched noise alone


@dataclass(frozen=True)
class Source:
    """What a cell is made from: one row, and the run that it belongs to."""

    row: Row
    spec: Spec
    version: str | None  # of unicr that began the run, as the run says

    def name_of(self, label: int) -> str | None:
        """What model or data call a class, None if they have no name for it."""
        names = self.spec.classes or ()
        return str(names[label]) if 0 <= label < len(names) else None

    @property
    def commitment(self) -> str | None:
        """What fixed the run before its noise; None if the noise is closed code, whose numbers
        are not known here.
        """
        return None if isinstance(self.spec.noise, ClosedNoise) else self.spec.commitment

    @property
    def noise(self) -> str:
        """The noise that the certificate speaks of: the input's own, or the run's."""
        c = self.row.certificate
        return (c.noise if c is not None else None) or self.spec.noise.text


@dataclass(frozen=True)
class Column:
    """One column: its name and the value of a cell, plain JSON.

    `to_check` columns hold what is needed to check a row again; they are for programs, in JSON
    lines and Parquet. One with a `title` stands in the report's page under it.
    """

    name: str
    value: Callable[[Source], Any]
    to_check: bool = False
    title: str | None = None


def _claimed(value: Callable[[Certificate], Any]) -> Callable[[Source], Any]:
    """A value of the certificate, None if an input has none."""
    return lambda s: None if s.row.certificate is None else value(s.row.certificate)


COLUMNS = (
    Column("idx", lambda s: s.row.idx),
    Column("label", lambda s: s.row.label),
    Column("predict", lambda s: s.row.predict),
    Column("label_name", lambda s: s.name_of(s.row.label)),
    Column("class", lambda s: s.name_of(s.row.predict)),
    Column("status", lambda s: s.row.status),
    Column("correct", lambda s: None if s.row.label < 0 else s.row.correct),
    Column("radii", _claimed(lambda c: [one.to_dict() for one in c.radii])),
    Column("p_a", _claimed(lambda c: c.p_a)),
    Column("p_b", _claimed(lambda c: c.p_b)),
    Column("n0", _claimed(lambda c: c.n0)),
    Column("n", _claimed(lambda c: c.n)),
    Column("alpha", _claimed(lambda c: c.alpha)),
    Column("lattice", lambda s: None if s.spec.lattice is None else s.spec.lattice.text),
    Column("noise", lambda s: s.noise),
    Column("seconds", lambda s: s.row.seconds, title="Seconds"),
    Column("reason", lambda s: s.row.reason),
    Column("promise", _claimed(lambda c: c.promise), to_check=True, title="Promise"),
    Column("between_points", _claimed(lambda c: c.between_points), to_check=True),
    Column("charge", _claimed(lambda c: c.charge), to_check=True),
    Column("input_hash", lambda s: s.row.input_hash, to_check=True, title="Input hash"),
    Column("model_hash", lambda s: s.spec.model_hash, to_check=True),
    Column("scope", lambda s: s.spec.scope, to_check=True),
    Column("rule", lambda s: s.spec.plan.rule.text, to_check=True),
    Column("dim", lambda s: s.spec.dim, to_check=True),
    Column("seed", lambda s: s.spec.seed, to_check=True),
    Column("nonce", lambda s: s.spec.nonce, to_check=True),
    Column("nonce_origin", lambda s: s.spec.nonce_origin, to_check=True),
    Column("commitment", lambda s: s.commitment, to_check=True),
    Column("version", lambda s: s.version, to_check=True),
    Column("selection", _claimed(lambda c: list(c.selection)), to_check=True),
    Column("counts", _claimed(lambda c: list(c.counts)), to_check=True),
    Column("transcript", _claimed(lambda c: c.transcript.to_list()), to_check=True),
)


def sources(run: Run) -> Iterator[Source]:
    """Every row of a run, as columns read it."""
    version = run.execution.unicr if run.settings("execution") else None
    return (Source(row, run.spec, version) for row in run.rows())


def table(run: Run, *, to_check: bool = True) -> list[dict[str, Any]]:
    """A dict of plain values for each row, with what is needed to check it again."""
    named = bool(run.spec.classes)
    columns = [
        one
        for one in COLUMNS
        if (to_check or not one.to_check) and (named or one.name not in ("label_name", "class"))
    ]
    return [{one.name: one.value(source) for one in columns} for source in sources(run)]


def spread_norms(records: list[dict[str, Any]], norms: Iterable[str]) -> list[dict[str, Any]]:
    """The same rows with columns radius_l2, proved_l2, … for each norm in place of `radii`."""
    norms = list(norms)
    told = {key for record in records for one in record["radii"] or () for key in one}
    keys = [key for key in OF_A_NORM if key in told or key not in OF_A_SET]

    def spread(record: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        for name, value in record.items():
            if name != "radii":
                yield name, value
                continue
            known = {one["norm"]: one for one in value or ()}
            for norm in norms:
                for key in keys:
                    cell = known.get(norm, {}).get(key)
                    yield f"{key}_l{norm}", math.inf if cell == "inf" else cell

    return [dict(spread(record)) for record in records]


def flat(run: Run) -> list[dict[str, Any]]:
    """Rows of plain values for people and spreadsheets; class names where the model has them."""
    return spread_norms(table(run, to_check=False), run.spec.norm_texts)


def floor_decimal(value: float, digits: int = DIGITS) -> str:
    """The value with `digits` decimals, or significant digits if these are more; never above it."""
    if not math.isfinite(value):
        return str(value)
    exact = Decimal(value)
    places = digits - min(exact.adjusted() + 1, 0) if value else digits
    # enough digits for the largest float with decimals
    lowered = exact.quantize(
        Decimal(1).scaleb(-places), rounding=ROUND_FLOOR, context=Context(prec=400)
    )
    return f"{lowered:f}"


def tsv_lines(rows: Iterable[Row], norm: str) -> Iterator[str]:
    """`idx label predict radius correct time`, abstain −1, as published logs have it, and at the
    end how much of the radius is proved, and in which norm.
    """
    yield "idx\tlabel\tpredict\tradius\tcorrect\ttime\tproved\tnorm"
    for row in rows:
        radius, proved = floor_decimal(row.radius(norm)), floor_decimal(row.proved(norm))
        time = f"{row.seconds:.3f}"
        values = (row.idx, row.label, row.predict, radius, int(row.correct), time, proved, norm)
        yield "\t".join(map(str, values))


def export(run: Run, path: Path, norm: str | None = None) -> None:
    """Write the run to `path`: .tsv (of one norm, the field's own columns), .csv, .tex, .jsonl, or
    .parquet (the extra unicr[table]). A file that is there is replaced as a whole.
    """
    match path.suffix.lower():
        case ".tsv":
            lines = tsv_lines(run.rows(), run.spec.one_norm(norm))
            text = "".join(line + "\n" for line in lines)
        case ".csv":
            text = to_csv(flat(run))
        case ".tex":
            text = to_latex(flat(run))
        case ".jsonl":
            text = "".join(json.dumps(one) + "\n" for one in table(run))
        case ".parquet":
            arrow, parquet = require("pyarrow", "table"), require("pyarrow.parquet", "table")
            records = spread_norms(table(run), run.spec.norm_texts)
            try:
                columns = arrow.Table.from_pylist(records)
            except (OverflowError, arrow.ArrowException) as error:
                raise RunError(
                    f"Parquet cannot store this run ({one_line(error)}): use .jsonl"
                ) from None
            with replace_file(path) as file:
                parquet.write_table(columns, file)
            return
        case _:
            raise RunError(
                f"cannot export to {path.name}: the ending must be .tsv, .csv, .tex, .jsonl "
                "or .parquet"
            )
    with replace_file(path) as file:
        file.write_text(text, encoding="utf-8")
