"""The demo: one digit classifier, three noises of equal size, three norms, and where they differ.

Laplace noise certifies furthest in l1, Gaussian noise in l2 and linf, from the same model and the
same inputs; where no closed form is known the radius comes as a bracket, proved to searched.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from unicr.classifier import load_classifier
from unicr.data import Dataset, load_dataset
from unicr.errors import RunError
from unicr.lab.report.curves import draw_curves, probabilities
from unicr.lab.report.plots import figures
from unicr.lab.report.runs import draw_steps
from unicr.lab.report.tables import COUNTED, format_table, score_table
from unicr.metrics import Scores
from unicr.noise import parse
from unicr.norms import l1, l2, linf
from unicr.radius import RadiusCurve, round_down
from unicr.runs import Job, Row, certify_run, scores_of
from unicr.smoothing import Certificate, Plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MODEL, DATA = "builtin:mnist-lenet-0.5", "builtin:mnist"
NOISES = {
    "gaussian": "gaussian(sigma=0.5)",
    "gennorm": "gennorm(beta=1.5, sigma=0.5)",
    "laplace": "laplace(sigma=0.5)",
}
NORMS = (l1, l2, linf)
SHOWN = 5  # digits in the picture
KEY = "digit, one noisy copy,\nits certified class and radii"  # what stands above one another
EXACT = 0.998  # as "exact" is meant elsewhere: the two ends meet within 0.2 %
Found = Mapping[str, Sequence[Row]]


def run_demo(out: Path, *, inputs: int = 30, n: int = 5000, fresh: bool = False) -> None:
    """Certify, score and draw into `out`; an interrupted demo continues."""
    start = time.monotonic()
    if fresh and out.is_dir():
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)
    data = load_dataset(DATA)
    rows = {name: _certify_digits(data, name, out / name, inputs, n) for name in NOISES}
    groups = {
        norm.text: [
            scores_of(certificates, norm.text, NOISES[name], 0.001)
            for name, certificates in rows.items()
        ]
        for norm in NORMS
    }
    print(f"{inputs} MNIST digits, one classifier, {n} noisy copies of each, 99.9 % confidence\n")
    for norm, group in groups.items():
        print(f"{_table(norm, group, rows)}\n")
    print(COUNTED)
    (out / "scores.md").write_text(score_table(groups, None, "markdown") + "\n", encoding="utf-8")
    _draw(data, rows, groups, out / "demo.png")
    print(f"\n{time.monotonic() - start:.0f} s; the picture is {out / 'demo.png'}")
    print(f"next: unicr report {out / 'gaussian'} {out / 'laplace'} -o report.html")
    print(f"      unicr verify {out / 'laplace'} --replay 5")


def _certify_digits(data: Dataset, name: str, folder: Path, inputs: int, n: int) -> list[Row]:
    job = Job(
        classifier=load_classifier(MODEL),
        data=data,
        noise=parse(NOISES[name]),
        norms=NORMS,
        plan=Plan(n=n),
        limit=inputs,
        data_spec=DATA,
    )
    print(f"certifying {inputs} digits under {NOISES[name]}", file=sys.stderr)
    try:
        with certify_run(job, folder, resume=True) as run:
            return list(run.rows())
    except RunError as error:
        raise RunError(f"{error}; `unicr demo --fresh` starts from the beginning") from None


def _table(norm: str, group: Sequence[Scores], rows: Found) -> str:
    """The noises in one norm: the mean of what is proved, and of the searched ends."""
    lines = []
    for score, certificates in zip(group, rows.values(), strict=True):
        ends = [
            c.radii[[r.norm for r in c.radii].index(norm)].searched for c in _right(certificates)
        ]
        searched = sum(ends) / len(certificates)
        share = f"{score.certified_accuracy(0):.0%}"
        lines.append(
            (score.name, share, round_down(score.average_radius, 4), round_down(searched, 4))
        )
    head = ("noise", "certified accuracy", "average radius, proved", "searched")
    return f"l{norm}: {_best(group).name} certifies furthest\n{format_table(head, lines)}"


def _best(group: Sequence[Scores]) -> Scores:
    return max(group, key=lambda score: score.average_radius)


def _bracket(curve: RadiusCurve) -> float:
    """The least proved part of the searched radius, over the p_A that are drawn."""
    p = probabilities()[1:]
    return float(np.min(curve(p) / curve(p, searched=True)))


def _right(rows: Sequence[Row]) -> list[Certificate]:
    return [row.certificate for row in rows if row.correct and row.certificate is not None]


def _draw(data: Dataset, rows: Found, groups: Mapping[str, list[Scores]], path: Path) -> None:
    """Accuracy and the p_A–R bracket in each norm, and the same few digits under each noise."""
    ordered = sorted(next(iter(rows.values())), key=lambda row: row.radius("2"))
    least = {row.label: row.idx for row in reversed(ordered)}  # the least certain of each class
    digits = [row.idx for row in ordered if row.idx in least.values()]
    digits = digits[:: max(1, len(digits) // SHOWN)][:SHOWN]
    with figures(path, 3, 3, width=13, height=10.5) as axes:
        for column, norm in enumerate(NORMS):
            group = groups[norm.text]
            draw_steps(axes[column], group, best=False)
            axes[column].set_title(f"l{norm.text}: {_best(group).name} certifies furthest")
            curves = [RadiusCurve(parse(text), norm, 784) for text in NOISES.values()]
            draw_curves(axes[3 + column], curves)
            share = min(_bracket(curve) for curve in curves)
            words = "exact" if share > EXACT else f"at least {round_down(share, 3)} of the searched"
            axes[3 + column].set_title(f"proved radii: {words}")
            name = list(NOISES)[column]
            by_index = {row.idx: row for row in rows[name]}
            _digits(axes[6 + column], data, name, [by_index[idx] for idx in digits])


def _digits(axes: Axes, data: Dataset, name: str, rows: Sequence[Row]) -> None:
    """Each digit, one noisy copy of it and what is certified."""
    axes.set_axis_off()
    for i, row in enumerate(rows):
        x, _ = data[row.idx]
        noisy = parse(NOISES[name]).sample(1, seed=0, input_index=row.idx, base=x)[0]
        for level, picture in ((1, x), (0, noisy)):
            extent = (i, i + 0.95, level, level + 0.95)
            image = np.clip(picture[0].numpy(), 0, 1)
            axes.imshow(image, cmap="gray", extent=extent, vmin=0, vmax=1)
        radii = "\n".join(f"l{norm.text} {round_down(row.radius(norm.text), 3)}" for norm in NORMS)
        words = "abstains" if row.predict < 0 else f"class {row.predict}\n{radii}"
        axes.text(i + 0.47, -0.08, words, ha="center", va="top", fontsize=7)
    axes.set(xlim=(0, len(rows)), ylim=(-0.75, 2), title=f"{NOISES[name]}: {KEY}")
