"""Runs for people: progress, summaries, scores, and the picture of certified accuracy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from unicr.lab.report.plots import figures
from unicr.lab.report.tables import Form, as_csv, as_json, format_table, title
from unicr.metrics import Scores, accuracy_curve, envelope, robustness_score
from unicr.progress import Bar
from unicr.runs import Job, Row, certify_run, scores_of
from unicr.values import round_down

if TYPE_CHECKING:
    from matplotlib.axes import Axes


COUNTED = "wrong and abstained inputs count as radius 0; radii are in the units of the inputs"
TERMS = (
    "certified_accuracy: inputs that are certified as their label, of all inputs; average_radius: "
    "wrong and abstained inputs count as 0; accuracy_holds: the certified accuracy "
    "after allowing for certificates that are wrong by chance (99.9 % confidence); at R: certified "
    "with at least that radius; robustness score: area under the best of the runs' curves"
)


class RunBar(Bar):
    """Inputs with the estimated end, by samples also inside an input, and the first failure.

    `before` inputs were done when an earlier run was interrupted.
    """

    def __init__(self, job: Job, console: Console | None = None, before: int = 0) -> None:
        super().__init__("certifying", len(job.indices), console)
        self._before = before
        self._samples = job.plan.n0 + job.plan.n
        self._correct = self._seen = self._failed = 0
        self._under_way = 0.0

    def count(self, samples: int) -> None:
        """Hear how many samples were counted just now."""
        self._under_way += samples / self._samples
        self._show()

    def add(self, row: Row) -> None:
        """Count one finished input."""
        self._seen += 1
        self._correct += row.correct
        taken = 0 if row.certificate is None else row.certificate.n0 + row.certificate.n
        self._under_way = max(0.0, self._under_way - taken / self._samples)
        if row.status == "failed":
            if self._failed == 0:
                self.say(f"input {row.idx} failed: {row.reason}")
            self._failed += 1
        self._show()

    def _show(self) -> None:
        failed = f", {self._failed} failed" if self._failed else ""
        words = "certifying"
        if self._seen:
            words = f"certified accuracy so far {self._correct / self._seen:.1%}"
        done = self._before + self._seen + min(self._under_way, 0.99)
        self.update(f"{words}{failed}", now=done)


def run_shown(job: Job, folder: Path, first: str = "") -> list[Row]:
    """The rows of a job run into `folder`, or gone on with there, under a bar; `first` is said."""
    with RunBar(job) as shown:
        if first:
            shown.say(first)
        run = certify_run(job, folder, resume=True, on_result=shown.add, on_samples=shown.count)
        with run:
            return list(run.rows())


def summary(rows: Sequence[Row], norms: Sequence[str], *, searched: bool = False) -> str:
    """Counts and radii of a run, as a small table that says if its radii are not proved."""
    status = {s: sum(row.status == s for row in rows) for s in ("certified", "abstained", "failed")}
    words = ", ".join(f"{count} {name}" for name, count in status.items())
    kind = "searched radius" if searched else "radius"
    lines = []
    scores = [scores_of(rows, norm, "run", None) for norm in norms]
    for norm, one in zip(norms, scores, strict=True):
        radii = (one.average_radius, one.median_radius)
        share = f"{one.certified_accuracy(0):.1%}"
        lines.append([f"l{norm}", share, *(round_down(radius, 4) for radius in radii)])
    table = format_table(["norm", "certified accuracy", f"average {kind}", f"median {kind}"], lines)
    blocks = [f"{len(rows)} inputs: {words}", table, COUNTED, *changes_meant(scores)]
    p_a = [row.certificate.p_a for row in rows if row.certificate and row.predict >= 0]
    if p_a:
        low, middle, high = (round_down(float(v), 4) for v in np.quantile(p_a, (0.1, 0.5, 0.9)))
        blocks.append(
            "p_A, the lower bound of the top class's probability, at the 10th, 50th and 90th "
            f"percentile of the certified inputs: {low}, {middle}, {high}"
        )
    return "\n".join(blocks)


def changes_meant(scores: Sequence[Scores]) -> list[str]:
    """Which changes the radii speak of, where that is not every change."""
    grids = sorted({one.grid for one in scores if one.grid is not None})
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


def score_table(groups: dict[str, list[Scores]], radii: Sequence[float] | None, form: Form) -> str:
    """Every run in every norm: one table (or JSON list) with the robustness score at its end."""
    if form in ("table", "markdown"):
        tables = [_table(norm, runs, radii, form) for norm, runs in groups.items()]
        lines = changes_meant([run for runs in groups.values() for run in runs])
        return "\n\n".join([*tables, *lines, TERMS])
    records: list[dict[str, Any]] = []
    for norm, runs in groups.items():
        records += _records(runs, radii)
        total = robustness_score(runs)
        records.append({"run": "robustness score", "norm": norm, "robustness_score": total})
    return as_json(records) if form == "json" else as_csv(records)


def _records(runs: Sequence[Scores], radii: Sequence[float] | None) -> list[dict[str, Any]]:
    at = radii or default_radii(runs)
    return [
        {
            "run": run.name,
            "norm": run.norm,
            "inputs": len(run.radius),
            "certified_accuracy": run.certified_accuracy(0),
            "average_radius": run.average_radius,
            "abstention": run.abstention,
            **({} if run.alpha is None else {"accuracy_holds": run.accuracy_bound(0.0)}),
            **{f"at {r:g}": run.certified_accuracy(r) for r in at},
            **({} if run.grid is None else {"grid": run.grid}),
        }
        for run in runs
    ]


def _table(norm: str, runs: Sequence[Scores], radii: Sequence[float] | None, form: Form) -> str:
    records = _records(runs, radii)
    keys = [key for key in records[0] if key not in ("norm", "grid")]
    table = format_table(
        keys, [[_cell(key, record[key]) for key in keys] for record in records], form
    )
    total = round_down(robustness_score(runs), 5)
    above = title(f"l{norm}", form)
    return f"{above}\n\n{table}\n\nrobustness score over {len(runs)} run(s): {total}"


def _cell(key: str, value: Any) -> str:
    if isinstance(value, float):
        if key == "average_radius":
            return round_down(value, 5)
        return f"{math.floor(value * 1e4) / 1e4:.4f}"
    return str(value)


def draw_accuracy(groups: dict[str, list[Scores]], path: Path) -> None:
    """Certified accuracy against the radius, a panel for each norm."""
    with figures(path, 1, len(groups), width=0.4 + 6 * len(groups)) as axes:
        for one, runs in zip(axes, groups.values(), strict=True):
            draw_steps(one, runs)


def draw_steps(axes: Axes, runs: Sequence[Scores], *, best: bool = True) -> None:
    """The steps of every run, and (`best`) the envelope that the robustness score integrates."""
    top = max(float(run.steps()[-1]) if run.steps().size else 0.0 for run in runs) or 1.0
    radii = np.linspace(0, 1.02 * top if math.isfinite(top) else 1.0, 800)
    for run in runs:
        axes.step(radii, accuracy_curve(run, radii), label=run.name)
    if best and len(runs) > 1:
        area = envelope(runs, radii)
        axes.fill_between(radii, area, step="pre", color="0.5", alpha=0.15, label="best of them")
    axes.set(xlabel=f"l{runs[0].norm} radius", ylabel="certified accuracy", ylim=(0, 1.02))
    axes.set_xlim(left=0)
    axes.legend()
