"""Runs for people: progress, summaries, scores, and the picture of certified accuracy."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from unicr.data import Dataset
from unicr.metrics import Scores, accuracy_curve, envelope, robustness_score
from unicr.noise import Noise
from unicr.report.plots import figure
from unicr.report.tables import Bar, Form, as_csv, as_json, markdown
from unicr.runs import Row, scores_of
from unicr.values import round_down


class Progress(Bar):
    """Inputs/s, ETA and the certified accuracy so far."""

    def __init__(self, total: int, norm: str, console: Console) -> None:
        super().__init__("certifying", total, console)
        self._correct = self._seen = 0
        self._start = time.monotonic()

    def add(self, row: Row) -> None:
        """Count one finished input."""
        self._seen += 1
        self._correct += row.correct
        rate = self._seen / max(time.monotonic() - self._start, 1e-9)
        self.update(f"{rate:.2g} inputs/s, certified {self._correct / self._seen:.1%}")


def warn_about_range(data: Dataset, noise: Noise) -> str | None:
    """A warning where inputs look normalised or in 0…255 while σ is meant for [0, 1]."""
    inputs = [x.numpy().ravel() for x in islice(data.readable(), 16)]
    if not inputs or not math.isfinite(noise.sigma):
        return None
    values = np.concatenate(inputs)
    low, high = float(values.min()), float(values.max())
    if high > 16 and noise.sigma < 0.05 * high:
        return f"inputs reach {high:g}, sigma is {noise.sigma:g}: is the noise meant for [0, 1]?"
    image_like = len(data.shape) == 3
    if image_like and low < -0.2:
        return (
            f"inputs range from {low:.2g} to {high:.2g}, as if they were normalised: noise and "
            "radius live in input space, give raw inputs and --mean/--std"
        )
    return None


def summary(rows: Sequence[Row], norms: Sequence[str], *, searched: bool = False) -> Table:
    """Counts and mean radii of a run, as a small table that says if its radii are not proved."""
    total = len(rows)
    status = {s: sum(row.status == s for row in rows) for s in ("certified", "abstained", "failed")}
    words = ", ".join(f"{count} {name}" for name, count in status.items())
    table = Table(title=f"{total} inputs: {words}", box=None, pad_edge=False)
    kind = "searched radius" if searched else "radius"
    for column in ("norm", "certified accuracy", f"average {kind}", f"median {kind}"):
        table.add_column(column, justify="right")
    for norm in norms:
        one = scores_of(rows, norm, "run", None)
        radii = [row.radius(norm) for row in rows if row.correct]
        median = round_down(float(np.median(radii)), 4) if radii else "-"
        average = round_down(one.average_radius, 4)
        table.add_row(f"l{norm}", f"{one.clean_accuracy:.1%}", average, median)
    return table


def default_radii(runs: Sequence[Scores]) -> list[float]:
    """0 and four even steps up to where one input in twenty is still certified."""
    tops = [float(np.quantile(run.radius, 0.95)) for run in runs]
    top = max(t for t in [*tops, 1e-9] if math.isfinite(t))
    step = 10 ** math.floor(math.log10(top / 4))
    step *= max(m for m in (1, 2, 2.5, 5) if m * step <= top / 4)
    return [round(step * i, 12) for i in range(5)]


def score_table(groups: dict[str, list[Scores]], radii: Sequence[float] | None, form: Form) -> str:
    """Every run in every norm: one table (or JSON list) with the robustness score at its end."""
    if form == "markdown":
        return "\n\n".join(_markdown(norm, runs, radii) for norm, runs in groups.items())
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
            "clean_accuracy": run.clean_accuracy,
            "average_radius": run.average_radius,
            "abstention": run.abstention,
            **({} if run.alpha is None else {"accuracy_holds": run.accuracy_bound(0.0)}),
            **{f"at {r:g}": run.certified_accuracy(r) for r in at},
        }
        for run in runs
    ]


def _markdown(norm: str, runs: Sequence[Scores], radii: Sequence[float] | None) -> str:
    records = _records(runs, radii)
    keys = [key for key in records[0] if key != "norm"]
    table = markdown(keys, [[_cell(key, record[key]) for key in keys] for record in records])
    total = round_down(robustness_score(runs), 5)
    return f"**l{norm}**\n\n{table}\n\nrobustness score over {len(runs)} run(s): {total}"


def _cell(key: str, value: Any) -> str:
    if isinstance(value, float):
        if key == "average_radius":
            return round_down(value, 5)
        return f"{math.floor(value * 1e4) / 1e4:.4f}"
    return str(value)


def draw_accuracy(groups: dict[str, list[Scores]], path: Path) -> None:
    """Certified accuracy against the radius; the envelope that the robustness score integrates."""
    norm, runs = next(iter(groups.items()))
    top = max(float(run.steps()[-1]) if run.steps().size else 0.0 for run in runs) or 1.0
    radii = np.linspace(0, 1.02 * top if math.isfinite(top) else 1.0, 800)
    with figure(path) as axes:
        for i, run in enumerate(runs):
            axes.step(radii, accuracy_curve(run, radii), color=f"C{i}", label=run.name)
        if len(runs) > 1:
            best = envelope(runs, radii)
            axes.fill_between(radii, best, step="pre", color="0.5", alpha=0.15, label="envelope")
        axes.set_xlabel(f"l{norm} radius")
        axes.set_ylabel("certified accuracy")
        axes.set_ylim(0, 1)
        axes.set_xlim(left=0)
        axes.legend()
