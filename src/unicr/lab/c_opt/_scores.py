"""What became of the points of a search, and the robustness score of each shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unicr.errors import RunError
from unicr.lab.c_opt._points import Point, Shape
from unicr.lab.train.internal import open_training
from unicr.metrics import Scores, robustness_score
from unicr.runs import Run, scores_of


@dataclass(frozen=True)
class Trained:
    """What became of a point: the training's best epoch, or why it failed."""

    point: Point
    folder: Path
    best: Mapping[str, Any] | None
    failed: str | None


def is_done(folder: Path, inputs: int) -> bool:
    """Whether a point has failed, or is trained and has a result for each of its inputs."""
    record = open_training(folder).read()
    if record is None:
        return False
    if record["failed"] is not None:
        return True
    if not record["done"] or not (folder / "run" / "run.sqlite").is_file():
        return False
    with Run(folder / "run") as run:
        return len(run.done()) == inputs


def measure_progress(folder: Path, epochs: int, inputs: int) -> float:
    """Which part of a point is done, as its files say: training is one half of it."""
    try:
        record = open_training(folder).read()
        if record is None or not record["done"]:
            return 0.0 if record is None else 0.5 * len(record["history"]) / epochs
        with Run(folder / "run") as run:
            return 0.5 + 0.5 * len(run.done()) / inputs
    except RunError:  # not begun yet, or being written just now
        return 0.5


def read_result(point: Point, folder: Path) -> Trained:
    """What the files of a point say."""
    record = open_training(folder).read()
    if record is None:
        raise RunError(f"{folder} contains no result of a search")
    return Trained(point, folder, record["best"], record["failed"])


def score_shape(results: Iterable[Trained], norm: str) -> float | None:
    """The robustness score over the scales of one shape; None if a training failed."""
    several = list(results)
    if any(result.failed is not None for result in several):
        return None
    return robustness_score([_scores(result, norm) for result in several])


def _scores(result: Trained, norm: str) -> Scores:
    with Run(result.folder / "run") as run:
        return scores_of(list(run.rows()), norm, result.point.name, None)


@dataclass(frozen=True)
class ShapeScore:
    """One shape of the family: its scores by norm (None: failed), and its failures."""

    shape: Shape
    scores: Mapping[str, float | None]
    failures: tuple[str, ...]


def score_shapes(results: Mapping[Point, Trained], norms: Sequence[str]) -> list[ShapeScore]:
    """The results by shape, with the robustness score of each norm."""
    groups: dict[Shape, list[Trained]] = {}
    for point, result in results.items():
        groups.setdefault(point.shape, []).append(result)
    return [
        ShapeScore(
            shape,
            {norm: score_shape(group, norm) for norm in norms},
            tuple(r.failed for r in group if r.failed is not None),
        )
        for shape, group in groups.items()
    ]


def find_best_shape(lines: Iterable[ShapeScore], norm: str) -> ShapeScore | None:
    """The line with the largest score in a norm; None if all failed."""
    scored = [line for line in lines if line.scores[norm] is not None]
    return max(scored, key=lambda line: line.scores[norm] or 0.0) if scored else None
