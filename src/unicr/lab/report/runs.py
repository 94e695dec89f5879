"""Runs for people: progress, summaries, scores, and the picture of certified accuracy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from unicr.errors import UnicrError
from unicr.lab.report.colours import PALETTE, assign_colours
from unicr.lab.report.plots import figures
from unicr.lab.report.tables import Form, as_csv, as_json, format_table, title
from unicr.metrics import Scores, accuracy_curve, envelope, robustness_score
from unicr.progress import Bar
from unicr.runs import Job, Row, certify_run, scores_of
from unicr.values import round_down

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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


class RunBar(Bar):
    """Inputs with the estimated end, by samples also inside an input, and the first failure.

    `before` inputs were done when an earlier run was interrupted.
    """

    def __init__(self, job: Job, console: Console | None = None, before: int = 0) -> None:
        super().__init__("certifying", len(job.indices), console)
        self._before = before
        self._samples = job.plan.n0 + job.plan.n
        self._correct = self._seen = self._failed = self._labelled = self._certified = 0
        self._under_way = 0.0

    def count(self, samples: int) -> None:
        """Hear how many samples were counted just now."""
        self._under_way += samples / self._samples
        self._show()

    def add(self, row: Row) -> None:
        """Count one finished input."""
        self._seen += 1
        self._correct += row.correct
        self._labelled += row.label >= 0
        self._certified += row.status == "certified"
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
        if self._labelled:
            words = f"certified accuracy so far {self._correct / self._seen:.1%}"
        elif self._seen:
            words = f"certified so far {self._certified / self._seen:.1%}"
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


def summary(
    rows: Sequence[Row], norms: Sequence[str], *, searched: bool = False, verbose: bool = False
) -> str:
    """Counts, a small table, and p_A of a run; `verbose` says what they mean."""
    status = {s: sum(row.status == s for row in rows) for s in ("certified", "abstained", "failed")}
    words = ", ".join(f"{count} {name}" for name, count in status.items())
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


def write_scores(
    groups: dict[str, list[Scores]], radii: Sequence[float] | None, path: Path
) -> None:
    """Certified accuracy as a picture, or the scores as a table, by the ending of the file."""
    forms: dict[str, Form] = {".csv": "csv", ".tex": "latex"}
    ending = path.suffix.lower()
    if ending not in forms:
        draw_accuracy(groups, path)
        return
    if not path.absolute().parent.is_dir():
        raise UnicrError(f"cannot write {path}: the folder {path.parent} does not exist")
    path.write_text(score_table(groups, radii, forms[ending], verbose=True) + "\n")


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


def draw_accuracy(groups: dict[str, list[Scores]], path: Path) -> None:
    """Certified accuracy against the radius, a panel for each norm."""
    with figures(path, 1, len(groups), width=0.4 + 6 * len(groups)) as axes:
        for panel, runs in zip(axes, groups.values(), strict=True):
            draw_steps(panel, runs)


def draw_steps(axes: Axes, runs: Sequence[Scores], *, best: bool = True) -> None:
    """The steps of every run, and (`best`) the envelope that the robustness score integrates."""
    top = max(float(run.steps()[-1]) if run.steps().size else 0.0 for run in runs) or 1.0
    radii = np.linspace(0, 1.02 * top if math.isfinite(top) else 1.0, 800)
    names = [run.name for run in runs]
    for run, colour in zip(runs, assign_colours(names), strict=True):
        axes.step(radii, accuracy_curve(run, radii), label=run.name, color=PALETTE[colour])
    if best and len(runs) > 1:
        area = envelope(runs, radii)
        axes.fill_between(radii, area, step="pre", color="0.5", alpha=0.15, label="best of them")
    share = "certified accuracy" if all(run.labelled for run in runs) else "share certified"
    axes.set(xlabel=f"l{runs[0].norm} radius", ylabel=share, ylim=(0, 1.02))
    axes.set_xlim(left=0)
    axes.legend()
