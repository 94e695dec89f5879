"""The demo: three built-in MNIST models, three norms, a table, a score and pictures."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from unicr.classifier import load_classifier
from unicr.data import Dataset, load_dataset
from unicr.errors import RunError
from unicr.metrics import Scores, robustness_score
from unicr.noise import Gaussian
from unicr.norms import l1, l2, linf
from unicr.radius import RadiusCurve, round_down
from unicr.report.curves import write_curves
from unicr.report.plots import figure
from unicr.report.runs import (
    Progress,
    default_radii,
    draw_accuracy,
    score_table,
)
from unicr.runs import NOTHING, Job, Row, Run, certify_run, load_scores
from unicr.smoothing import Plan

SIGMAS = (0.25, 0.5, 1.0)
NORMS = (l1, l2, linf)
SHOWN = 8


def run_demo(out: Path, *, inputs: int = 100, n: int = 10_000, fresh: bool = False) -> None:
    """Certify, score and draw into `out`; an interrupted demo goes on where it stopped."""
    console = Console()
    start = time.monotonic()
    if fresh and out.is_dir():
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)
    data = load_dataset("builtin:mnist")
    runs = []
    for sigma in SIGMAS:
        folder = out / f"sigma-{sigma:g}"
        runs.append(folder)
        _certify(data, sigma, folder, inputs, n, console)
    groups = load_scores(runs, None)
    table = score_table(groups, None, "markdown")
    console.print(
        f"{inputs} MNIST test digits, {n} noisy copies of each, certified at 99.9 % confidence\n",
        highlight=False,
    )
    for norm, group in groups.items():
        console.print(_table(norm, group))
    (out / "scores.md").write_text(table + "\n", encoding="utf-8")
    for norm, group in groups.items():
        draw_accuracy({norm: group}, out / f"certified-accuracy-l{norm}.png")
    for p in NORMS:
        curves = [RadiusCurve(Gaussian(sigma=s), p, 784) for s in SIGMAS]
        write_curves(curves, out / f"radius-against-p-{p}.png")
    _draw_digits(data, runs[1], out / "digits.png")
    seconds = time.monotonic() - start
    console.print(f"\n{seconds:.0f} s; plots and runs are in {out}/", highlight=False)
    console.print(f"check one: unicr verify {runs[1]} --replay 5", highlight=False)


def _table(norm: str, group: Sequence[Scores]) -> Table:
    """The scores of the three runs in one norm, for the terminal."""
    radii = default_radii(group)
    score = round_down(robustness_score(group), 4)
    table = Table(title=f"l{norm}: robustness score {score}", box=None, title_justify="left")
    columns = ("noise", "accuracy", "mean radius", *(f"at {r:g}" for r in radii[1:]))
    for column in columns:
        table.add_column(column, justify="left" if column == "noise" else "right")
    for sigma, run in zip(SIGMAS, group, strict=True):
        shares = [f"{run.certified_accuracy(r):.0%}" for r in radii[1:]]
        mean = round_down(run.average_radius, 4)
        table.add_row(f"gaussian(sigma={sigma:g})", f"{run.clean_accuracy:.0%}", mean, *shares)
    return table


def _certify(
    data: Dataset, sigma: float, folder: Path, inputs: int, n: int, console: Console
) -> None:
    spec = f"builtin:mnist-mlp-{sigma if sigma != 1 else '1.0'}"
    job = Job(
        classifier=load_classifier(spec),
        data=data,
        noise=Gaussian(sigma=sigma),
        norms=NORMS,
        plan=Plan(n=n),
        limit=inputs,
        data_spec="builtin:mnist",
    )
    try:
        with Progress(inputs, "2", console) as progress:
            certify_run(job, folder, resume=True, on_result=progress.add).close()
    except RunError as error:
        raise RunError(f"{error}; `unicr demo --fresh` starts again") from None


def _draw_digits(data: Dataset, run: Path, path: Path) -> None:
    """A few digits with one noisy copy and what is certified about them."""
    with Run(run) as opened:
        noise, rows = NOTHING.noise(opened.manifest), list(opened.rows())
    chosen = pick(rows)
    with figure(path, width=1.3 * len(chosen), height=3.4) as axes:
        axes.set_axis_off()
        for i, row in enumerate(chosen):
            x, _ = data[row.idx]
            noisy = noise.sample(1, seed=0, input_index=row.idx, base=x)[0]
            for level, picture in ((1, x), (0, noisy)):
                extent = (i, i + 0.95, level, level + 0.95)
                image = np.clip(picture[0].numpy(), 0, 1)
                axes.imshow(image, cmap="gray", extent=extent, vmin=0, vmax=1)
            radius = round_down(row.radius("2"), 3)
            words = "abstains" if row.predict < 0 else f"{row.predict}\nl2 {radius}"
            axes.text(i + 0.47, -0.08, words, ha="center", va="top", fontsize=8)
        axes.set_xlim(0, len(chosen))
        axes.set_ylim(-0.55, 2)
        axes.set_title(f"inputs, one noisy copy ({noise.text}), certified class and radius")


def pick(rows: Sequence[Row]) -> list[Row]:
    """From the least to the most certain input, evenly, abstentions included."""
    ordered = sorted(rows, key=lambda row: row.radius("2"))
    places = np.unique(np.linspace(0, len(ordered) - 1, min(SHOWN, len(ordered))).astype(int))
    return [ordered[i] for i in places]
