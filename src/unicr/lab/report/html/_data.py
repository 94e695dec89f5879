"""Everything that the page shows, as plain JSON values: scores, curves, brackets, inputs, spec.

Numbers that promise something (radii, p_A, accuracies, scores) are rounded down here, in texts and
in the values that are drawn, so that the page cannot show more than was certified.
"""

from __future__ import annotations

import hashlib
import math
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import unicr
from unicr.errors import RunError, UnicrError
from unicr.extras import require
from unicr.lab.report.attack import attack_records
from unicr.lab.report.colours import assign_colours
from unicr.lab.report.html._images import Pictures
from unicr.lab.report.tables import changes_meant, default_radii
from unicr.metrics import Scores, accuracy_curve, envelope, robustness_score
from unicr.norms import parse_norm
from unicr.radius import RadiusCurve, round_down
from unicr.runs import (
    COLUMNS,
    Row,
    Run,
    Source,
    Spec,
    Trusted,
    floor_decimal,
    refuse_broken_seal,
    scores_of,
    sources,
)
from unicr.values import Array

DIGITS = 4  # of numbers in tables
DRAWN = 7  # of numbers that are drawn: finer than a pixel
MOST_STEPS = 2000  # of a curve of accuracies: more than a screen has pixels
MOST_NOISES = 6  # curves that can be told apart in one picture
TOP_CLASSES = 5  # with the most votes that an input shows; the rest is summed up
REPLAY = 5  # inputs that the page proposes to sample again


def collect(
    runs: Sequence[Path], *, trusted: Trusted, max_images: int, force: bool = False
) -> dict[str, Any]:
    """The content of a report about these run folders."""
    if not runs:
        raise RunError("a report needs at least one run folder")
    pictures = Pictures(trusted, max_images)
    marked = [_load(path, force) for path in runs]
    loaded = [(spec, rows) for spec, rows, _ in marked]
    marks = [f" ({mark})" if mark else "" for *_, mark in marked]
    names = [name + mark for name, mark in zip(_names(runs), marks, strict=True)]
    shown: list[dict[str, Any]] = []
    groups: dict[str, list[int]] = {}
    scores: list[dict[str, Scores]] = []
    for path, name, (spec, entries) in zip(runs, names, loaded, strict=True):
        rows = [source.row for source in entries]
        groups.setdefault(_fingerprint(rows), []).append(len(shown))
        alpha = spec.plan.alpha
        scores.append({p: scores_of(rows, p, name, alpha) for p in spec.norm_texts})
        shown.append(_run(path, name, spec, entries, scores[-1], pictures, trusted))
    for members in groups.values():
        _label([shown[i] for i in members])
    return {
        "version": unicr.__version__,
        "plotly": require("plotly", "report").__version__,
        "runs": shown,
        "groups": [_group(key, members, shown, scores) for key, members in groups.items()],
        "pictures": pictures.inputs,
        "notes": pictures.notes,
    }


def _load(path: Path, force: bool) -> tuple[Spec, list[Source], str]:
    if path.is_file():
        raise RunError(f"{path} is a file, but a run folder is needed (unicr certify --out)")
    with Run(path) as run:
        spec, entries = run.spec, list(sources(run))
        mark = refuse_broken_seal(run, force=force)
    if not entries:
        raise RunError(f"{path} has no results yet")
    return spec, entries, mark


def _names(runs: Sequence[Path]) -> list[str]:
    """The folders' names, or their paths where two folders have the same name."""
    short = [path.absolute().name for path in runs]
    return [s if short.count(s) == 1 else str(p) for s, p in zip(short, runs, strict=True)]


def _fingerprint(rows: Sequence[Row]) -> str:
    """SHA-256 over the numbers and hashes of the inputs: equal where runs saw the same inputs."""
    lines = "".join(f"{row.idx} {row.label} {row.input_hash}\n" for row in rows)
    return hashlib.sha256(lines.encode()).hexdigest()


def _label(runs: list[dict[str, Any]]) -> None:
    """What a run is called in legends: its noise, with its name where that is not enough."""
    noises = [run["legend"] for run in runs]
    for run in runs:
        noise = run.pop("legend")
        run["label"] = noise if noises.count(noise) == 1 else f"{run['name']}: {noise}"
    for run, colour in zip(runs, assign_colours(noises), strict=True):
        run["colour"] = colour


def _run(
    path: Path,
    name: str,
    spec: Spec,
    entries: list[Source],
    scores: dict[str, Scores],
    pictures: Pictures,
    trusted: Trusted,
) -> dict[str, Any]:
    rows = [source.row for source in entries]
    status = [row.status for row in rows]
    correct = sum(row.correct for row in rows)
    first = next(iter(scores.values()))
    noises = _noises(rows, spec)
    more = [
        [column.title, [_cell(column.value(source)) for source in entries]]
        for column in COLUMNS
        if column.title is not None
    ]
    return {
        "name": name,
        "noise": spec.noise.text,
        "legend": spec.noise.label,
        "norms": list(spec.norm_texts),
        "model": spec.model,
        "data": spec.data,
        "classes": [str(label) for label in spec.classes or ()],
        "proved": not spec.searched,
        "kept": any(score.grid is not None for score in scores.values()),
        "said": [*changes_meant(list(scores.values())), *_doubts(rows)],
        "both": any(c.p_b < 1 - c.p_a for row in rows if (c := row.certificate) is not None),
        "alpha": spec.plan.alpha,
        "total": len(rows),
        "correct": correct,
        "status": {s: status.count(s) for s in ("certified", "abstained", "failed")},
        "labelled": first.labelled,
        "accuracy": percent(correct, len(rows)) if first.labelled else "no labels",
        "holds": percent(round(first.accuracy_bound(0.0) * len(rows)), len(rows))
        if first.labelled
        else "–",
        "p_a": [round_down(value, DIGITS) for value in first.p_a_percentiles or ()],
        "scores": {norm: _scores(score) for norm, score in scores.items()},
        "curves": {norm: _curves(noises, norm, spec, rows, trusted) for norm in spec.norm_texts},
        "noises": len(noises),
        "own": any(row.certificate is not None and row.certificate.noise for row in rows),
        "rows": _rows(rows, spec, pictures.noisy_of(rows, spec)) | {"more": more},
        "spec": [[key, _text(value)] for key, value in spec.to_dict().items()],
        "verify": _commands(path),
        "attacks": attack_records(path, pictures.notes),
    }


def _doubts(rows: Sequence[Row]) -> list[str]:
    """What certificates say against themselves."""
    made = [row.certificate for row in rows if row.certificate is not None]
    seeds = sorted({certificate.seed for certificate in made if certificate.seed is not None})
    said = [f"noise of seed {seed}, which a model may know: an experiment" for seed in seeds]
    if any(
        certificate.lattice is not None and certificate.charge is None and certificate.alpha
        for certificate in made
    ):
        said.append("the error of this noise's sampler has no bound")
    return said


def _cell(value: Any) -> str:
    """A value of a column; nothing is shown where there is none."""
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else _text(value)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k}={v}" for k, v in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


def _commands(path: Path) -> list[list[str]]:
    folder = shlex.quote(str(path))
    return [
        ["Recompute every radius from the stored vote counts", f"unicr verify {folder}"],
        [
            f"Also draw the samples of {REPLAY} inputs again",
            f"unicr verify {folder} --replay {REPLAY}",
        ],
    ]


def percent(count: int, total: int) -> str:
    """A share in percent with one decimal, never above it."""
    tenths = 1000 * count // total
    return f"{tenths // 10}.{tenths % 10} %"


def floor_value(value: float) -> float | str:
    """The value for drawing and sorting: not above it, short, and "inf" where it is infinite."""
    return "inf" if math.isinf(value) else float(round_down(value, DRAWN))


def _lows(values: Array) -> list[float | str]:
    return [floor_value(float(v)) for v in values]


def _scores(run: Scores) -> dict[str, Any]:
    radii = run.radius[run.counted.astype(bool)]
    steps = _steps(run)
    return {
        "average": round_down(run.average_radius, DIGITS),
        "median": round_down(run.median_radius, DIGITS),
        "largest": round_down(float(radii.max()), DIGITS) if radii.size else "–",
        "curve": _accuracy(steps, accuracy_curve(run, steps), len(run.radius)),
    }


def _steps(run: Scores) -> Array:
    """0 and the radii where the curve falls; of very many an even choice, which reads from below.

    The page draws up, then right: between two chosen radii it shows the accuracy at the larger.
    """
    steps = run.steps()
    steps = steps[np.isfinite(steps)]
    if len(steps) > MOST_STEPS:
        steps = steps[np.linspace(0, len(steps) - 1, MOST_STEPS).astype(int)]
    return np.concatenate([[0.0], steps])


def _accuracy(radii: Array, shares: Array, total: int) -> dict[str, Any]:
    counts = np.round(shares * total).astype(int)
    return {
        "r": _lows(radii),
        "share": [count / total for count in counts],
        "text": [percent(int(count), total) for count in counts],
        "at": [round_down(float(r), DIGITS) for r in radii],
    }


def _group(
    fingerprint: str,
    members: list[int],
    runs: list[dict[str, Any]],
    scores: list[dict[str, Scores]],
) -> dict[str, Any]:
    """Runs on the same inputs: what their envelope is worth in each norm."""
    norms = sorted({parse_norm(p) for i in members for p in scores[i]})
    total = runs[members[0]]["total"]
    by_norm = {}
    for norm in (n.text for n in norms):
        having = [i for i in members if norm in scores[i]]
        group = [scores[i][norm] for i in having]
        steps = np.unique(np.concatenate([_steps(score) for score in group]))
        radii = default_radii([_finite(score) for score in group])[1:]
        by_norm[norm] = {
            "runs": having,
            "score": round_down(robustness_score(group), DIGITS),
            "envelope": _accuracy(steps, envelope(group, steps), total),
            "radii": [f"{r:g}" for r in radii],
            "table": [
                [percent(round(score.certified_share(r) * total), total) for r in radii]
                for score in group
            ],
        }
    return {
        "data": runs[members[0]]["data"],
        "fingerprint": fingerprint,
        "total": total,
        "runs": members,
        "norms": [n.text for n in norms],
        "scores": by_norm,
    }


def _finite(run: Scores) -> Scores:
    return replace(run, radius=np.where(np.isfinite(run.radius), run.radius, 0.0))


def _noises(rows: Sequence[Row], spec: Spec) -> list[str]:
    """The noises of a run: one, or those chosen for single inputs."""
    chosen = [row.certificate.noise for row in rows if row.certificate is not None]
    return list(dict.fromkeys(text or spec.noise.text for text in chosen))


def _curves(
    noises: list[str], norm: str, spec: Spec, rows: Sequence[Row], trusted: Trusted
) -> list[dict[str, Any]]:
    """R against p_A with its bracket, for each noise; empty if there are too many."""
    if len(noises) > MOST_NOISES:
        return []
    top = max((row.certificate.p_a for row in rows if row.certificate is not None), default=0.0)
    p = _probabilities(top)
    curves: list[dict[str, Any]] = []
    for text in noises:
        try:
            curve = RadiusCurve(trusted.noise(spec, text), norm, spec.dim)
            proved, searched = curve(p), curve(p, searched=True)
        except (UnicrError, OSError) as error:
            curves.append({"noise": text, "error": str(error)})
            continue
        curves.append(
            {
                "noise": text,
                "p": p.tolist(),
                "proved": _lows(proved),
                "searched": _lows(searched),
                "bracket": [
                    f"{round_down(float(a), DIGITS)} to {round_down(float(b), DIGITS)}"
                    for a, b in zip(proved, searched, strict=True)
                ],
            }
        )
    return curves


def _probabilities(top: float) -> Array:
    """p_A from 1/2 to the largest of the run (0.999 at least), closer where curves are steep.

    Few decimals, so that what is drawn and read is the radius at just this p_A.
    """
    last = min(max(top, 0.999), 1 - 1e-8)
    p = np.concatenate([np.linspace(0.5, 0.98, 65), 1 - np.geomspace(0.02, 1 - last, 41)])
    return np.unique(np.round(p, 8))


def _rows(rows: Sequence[Row], spec: Spec, noisy: list[str | None]) -> dict[str, Any]:
    """The inputs by column; None if a failed input has no value."""
    certificates = [row.certificate for row in rows]
    return {
        "idx": [row.idx for row in rows],
        "noisy": noisy,
        "label": [row.label for row in rows],
        "predict": [row.predict for row in rows],
        "status": [row.status for row in rows],
        "correct": [row.correct for row in rows],
        "reason": [row.reason for row in rows],
        "hash": [row.input_hash for row in rows],
        "p_a": [None if c is None else float(floor_decimal(c.p_a)) for c in certificates],
        "p_b": [None if c is None else _ceil_text(c.p_b) for c in certificates],
        "n": [None if c is None else c.n for c in certificates],
        "noise": [None if c is None else c.noise for c in certificates],
        "votes": [None if c is None else _votes(c.counts) for c in certificates],
        "radii": {norm: _radii(rows, norm) for norm in spec.norm_texts},
    }


def _ceil_text(value: float) -> str:
    """An upper bound as text, never below the value."""
    text = f"{value:.4g}"
    if float(text) < value:
        text = f"{float(text) + 10.0 ** (math.floor(math.log10(value)) - 3):.4g}"
    return text


def _votes(counts: Sequence[int]) -> list[list[int]]:
    """The classes with the most votes, [class, votes] each, and [-1, votes] for all the others."""
    order = sorted((i for i, n in enumerate(counts) if n), key=lambda i: (-counts[i], i))
    top = [[i, counts[i]] for i in order[:TOP_CLASSES]]
    rest = sum(counts) - sum(n for _, n in top)
    return [*top, [-1, rest]] if rest else top


def _radii(rows: Sequence[Row], norm: str) -> dict[str, list[Any]]:
    names = ("value", "radius", "proved", "searched", "by", "grade")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for row in rows:
        entry = None if row.certificate is None else row.certificate.in_norm(norm)
        columns["value"].append(None if entry is None else floor_value(entry.radius))
        for key in ("radius", "proved", "searched"):
            value = None if entry is None else round_down(getattr(entry, key), DIGITS)
            columns[key].append(value)
        columns["by"].append(None if entry is None else entry.guarantee)
        columns["grade"].append(None if entry is None else entry.grade)
    return columns
