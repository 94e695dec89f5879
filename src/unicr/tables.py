"""Rows of plain values as a table: a frame, CSV, LaTeX, or the HTML that a notebook shows."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Mapping, Sequence
from typing import Any

from unicr.errors import printable
from unicr.extras import require
from unicr.text import round_down

Record = Mapping[str, Any]
SHOWN = 20
LOWER = ("radius", "proved", "p_a")
SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
SPECIAL |= {sign: f"\\{sign}" for sign in "&%$#_{}"}


class Tabular:
    """What has rows can be shown and written in every form; `plain_rows` is all it has to give."""

    def plain_rows(self) -> list[dict[str, Any]]:
        """One dict of plain values for each row."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, list[Any]]:
        """A list of values for each column; None if a row has none."""
        rows = self.plain_rows()
        return {name: [row.get(name) for row in rows] for name in columns(rows)}

    def to_frame(self) -> Any:
        """A pandas DataFrame where pandas is installed, else an Arrow table (`unicr[table]`)."""
        try:
            import pandas
        except ModuleNotFoundError:
            return require("pyarrow", "table").table(self.to_dict())
        return pandas.DataFrame(self.to_dict())

    def to_csv(self) -> str:
        """The rows as CSV text, with a header."""
        return to_csv(self.plain_rows())

    def to_latex(self) -> str:
        """The rows as a LaTeX tabular."""
        return to_latex(self.plain_rows())

    def _repr_html_(self) -> str:
        return to_html(self.plain_rows())


def columns(rows: Sequence[Record]) -> list[str]:
    """The names of all columns, in the order in which they first come."""
    return list(dict.fromkeys(name for row in rows for name in row))


def to_csv(rows: Sequence[Record]) -> str:
    """CSV text; a text that a spreadsheet would run as a formula gets an apostrophe in front, and
    what would command a terminal is left out.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, columns(rows), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _harmless(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def to_latex(rows: Sequence[Record]) -> str:
    """A LaTeX tabular with every character escaped; numbers are right-aligned."""
    names = columns(rows)
    right = {n for n in names if all(isinstance(r.get(n), int | float | None) for r in rows)}
    head = " & ".join(map(_escape, names)) + r" \\"
    body = [
        " & ".join(_escape(cell(name, row.get(name))) for name in names) + r" \\" for row in rows
    ]
    form = "".join("r" if name in right else "l" for name in names)
    lines = [rf"\begin{{tabular}}{{{form}}}", r"\hline", head, r"\hline", *body, r"\hline"]
    return "\n".join([*lines, r"\end{tabular}", ""])


def to_html(rows: Sequence[Record], most: int = SHOWN) -> str:
    """An HTML table of the first rows, escaped."""
    names = columns(rows)
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell(n, r.get(n)))}</td>" for n in names) + "</tr>"
        for r in rows[:most]
    )
    rest = f"<p>… and {len(rows) - most} more</p>" if len(rows) > most else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def facts_to_html(facts: Record) -> str:
    """An HTML table of one thing: each fact beside its name, escaped; None is left out."""
    pairs = [(name, cell(name, value)) for name, value in facts.items() if value is not None]
    body = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>" for name, text in pairs
    )
    return f"<table><tbody>{body}</tbody></table>"


def cell(name: str, value: Any) -> str:
    """One value as a reader wants it: numbers with six digits; what is a lower bound is never
    rounded up.
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return round_down(value) if name.startswith(LOWER) else f"{value:.6g}"
    return str(value)


def _harmless(value: Any) -> Any:
    if not isinstance(value, str) or not value:
        return value
    quoted = f"'{value}" if value[0] in "=+@-\t\r" else value
    return "\n".join(map(printable, quoted.split("\n")))


def _escape(text: str) -> str:
    return "".join(SPECIAL.get(sign, sign) for sign in printable(text))
