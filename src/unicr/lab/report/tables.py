"""Tables for people, in several forms: the summary of one run, and the scores of several runs."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from unicr.metrics import Scores, robustness_score
from unicr.runs import Row, scores_of
from unicr.tables import to_csv, to_latex
from unicr.text import round_down

Form = Literal["table", "markdown", "latex", "csv", "json"]
NUMERIC = frozenset("0123456789-+.∞i")  # how the cells of a column of numbers begin

COUNTED = "wrong and abstained inputs count as radius 0; radii are in the units of the inputs"
AVERAGE = (
    "The average radius can mislead: a few inputs with large radii raise it while most have small "
    "ones, so compare the accuracies at radii."
)
NO_LABELS = "no labels: `certified` counts inputs with a radius, whatever their class"
P_A = "p_A is the lower bound of the top class's probability, here of the certified inputs"
PERCENTILES = ("p_A 10 %", "p_A 50 %", "p_A 90 %")
TERMS = (
    "certified_accuracy: inputs that are certified as their label, of all inputs; at R: certified "
    "with at least that radius; p_A: percentiles of the lower bound of the top class's probability "
    "over the certified inputs; average_radius: wrong and abstained inputs count as 0; "
    "accuracy_holds: the certified accuracy after allowing for certificates that are wrong by "
    "chance (99.9 % confidence); robustness score: area under the best of the runs' curves"
)


def format_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], form: Form = "table"
) -> str:
    """A table for people: Markdown, LaTeX, or aligned columns, of which nothing is cut off.

    One that is too wide for a terminal is turned, if it fits that way.
    """
    lines = [list(columns), *map(list, rows)]
    if form == "markdown":
        head, *body = (f"| {' | '.join(cells)} |" for cells in lines)
        return "\n".join([head, "|" + "---|" * len(columns), *body])
    if form == "latex":
        return to_latex([dict(zip(columns, row, strict=True)) for row in lines[1:]]).rstrip("\n")
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else math.inf
    across, down = _align(lines), _align([*zip(*lines, strict=True)])
    width = {text: max(map(len, text.splitlines())) for text in (across, down)}
    return down if width[down] <= room < width[across] else across


def _align(lines: Sequence[Sequence[str]]) -> str:
    sides = [
        (max(map(len, column)), all(cell[:1] in NUMERIC for cell in column[1:]))
        for column in zip(*lines, strict=True)
    ]
    texts = (
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, (width, number) in zip(cells, sides, strict=True)
        )
        for cells in lines
    )
    return "\n".join(text.rstrip() for text in texts)


def title(text: str, form: Form) -> str:
    """The line above a table."""
    return f"**{text}**" if form == "markdown" else text


def as_csv(records: Sequence[Mapping[str, Any]]) -> str:
    """One line for each record, under every key that any of them has; numbers in full."""
    return to_csv(records).rstrip("\n")


def as_json(value: Any) -> str:
    """For a program to read."""
    return json.dumps(value, indent=1)


def summary(
    rows: Sequence[Row], norms: Sequence[str], *, searched: bool = False, verbose: bool = False
) -> str:
    """Counts, a small table, and p_A of a run; `verbose` says what they mean."""
    status = {s: sum(row.status == s for row in rows) for s in ("certified", "abstained", "failed")}
    words = ", ".join(f"{count} {name}" for name, count in status.items())
    if (failed := next((row for row in rows if row.status == "failed"), None)) is not None:
        words += f"\ninput {failed.idx} failed: {failed.reason}"
    kind = "searched radius" if searched else "radius"
    lines = []
    scores = [scores_of(rows, norm, "run", None) for norm in norms]
    for norm, score in zip(norms, scores, strict=True):
        radii = (score.median_radius, score.average_radius)
        share = f"{score.certified_share(0):.1%}"
        lines.append([f"l{norm}", share, *(round_down(radius, 4) for radius in radii)])
    first = "certified accuracy" if scores[0].labelled else "certified"
    table = format_table(["norm", first, f"median {kind}", f"average {kind}"], lines)
    blocks = [f"{len(rows)} inputs: {words}", table, *changes_meant(scores)]
    if not scores[0].labelled:
        blocks.append(NO_LABELS)
    if (percentiles := scores[0].p_a_percentiles) is not None:
        texts = ", ".join(round_down(p_a, 4) for p_a in percentiles)
        blocks.append(f"p_A at the 10th, 50th and 90th percentile: {texts}")
    if verbose:
        blocks += [COUNTED, P_A, AVERAGE]
    return "\n".join(blocks)


def changes_meant(scores: Sequence[Scores]) -> list[str]:
    """Which changes the radii speak of, where that is not every change."""
    grids = sorted({score.grid for score in scores if score.grid is not None})
    return (
        [f"radii hold for changes between points of the grid {', '.join(grids)}"] if grids else []
    )


def default_radii(runs: Sequence[Scores]) -> list[float]:
    """0 and four even steps up to where one input in twenty is still certified."""
    tops = [float(np.quantile(run.radius, 0.95)) for run in runs]
    top = max(t for t in [*tops, 1e-9] if math.isfinite(t))
    step = 10 ** math.floor(math.log10(top / 4))
    step *= max(m for m in (1, 2, 2.5, 5) if m * step <= top / 4)
    return [round(step * i, 12) for i in range(5)]


def score_table(
    groups: dict[str, list[Scores]],
    radii: Sequence[float] | None,
    form: Form,
    *,
    verbose: bool = False,
) -> str:
    """Every run in every norm: one table for each norm, or one list of records.

    Certified accuracy at radii and p_A first, the average radius beside them; `verbose` adds the
    rest, with what each column means.
    """
    if form in ("csv", "json"):
        records = _all_records(groups, radii)
        return as_json(records) if form == "json" else as_csv(records)
    blocks = [_table(norm, runs, radii, form, verbose) for norm, runs in groups.items()]
    blocks += changes_meant([run for runs in groups.values() for run in runs])
    if not all(run.labelled for runs in groups.values() for run in runs):
        blocks.append(NO_LABELS)
    if form != "latex":
        blocks.append(f"{AVERAGE}\n{TERMS}" if verbose else AVERAGE)
    return "\n\n".join(blocks)


def _all_records(
    groups: dict[str, list[Scores]], radii: Sequence[float] | None
) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for norm, runs in groups.items():
        records += _records(runs, radii)
        if all(run.labelled for run in runs):
            total = robustness_score(runs)
            records.append({"run": "robustness score", "norm": norm, "robustness_score": total})
    return records


def _records(runs: Sequence[Scores], radii: Sequence[float] | None) -> list[dict[str, Any]]:
    at = radii or default_radii(runs)
    return [
        {
            "run": run.name,
            "norm": run.norm,
            "inputs": len(run.radius),
            "certified_accuracy" if run.labelled else "certified": run.certified_share(0),
            **{f"at {r:g}": run.certified_share(r) for r in at},
            **dict(zip(PERCENTILES, run.p_a_percentiles or (None,) * 3, strict=True)),
            "average_radius": run.average_radius,
            "abstention": run.abstention,
            **(
                {"accuracy_holds": run.accuracy_bound(0.0)}
                if run.alpha is not None and run.labelled
                else {}
            ),
            **({} if run.grid is None else {"grid": run.grid}),
        }
        for run in runs
    ]


def _table(
    norm: str, runs: Sequence[Scores], radii: Sequence[float] | None, form: Form, verbose: bool
) -> str:
    records = _records(runs, radii)
    left_out = {"norm", "grid"} if verbose else {"norm", "grid", "abstention", "accuracy_holds"}
    names = dict.fromkeys(name for record in records for name in record)
    keys = [name for name in names if name not in left_out]
    rows = [[_cell(key, record.get(key)) for key in keys] for record in records]
    blocks = [title(f"l{norm}", form), format_table(keys, rows, form)]
    if verbose and all(run.labelled for run in runs):
        total = round_down(robustness_score(runs), 5)
        blocks.append(f"robustness score over {len(runs)} run(s): {total}")
    return blocks[1] if form == "latex" else "\n\n".join(blocks)


def _cell(key: str, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        if key == "average_radius" or key in PERCENTILES:
            return round_down(value, 5)
        return f"{math.floor(value * 1e4) / 1e4:.4f}"
    return str(value)
