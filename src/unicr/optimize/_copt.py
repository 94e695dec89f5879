"""C-OPT: which noise of a family makes the most robust classifier when it also trains it?

Each point of the grid is one noise: a classifier is trained with it, certified with it, and the
robustness score joins the points that differ in scale only (the paper's section 4, grid search).
A point is one task that trains and certifies in one thread: points are independent, so as many run
side by side as there are workers, and no core waits for another.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import unicr
from unicr.classifier import load_classifier
from unicr.data import Dataset
from unicr.data.internal import from_arrays
from unicr.errors import DataError, RunError, UnicrError
from unicr.metrics import Scores, robustness_score
from unicr.noise import Noise, parse
from unicr.noise.internal import check_parses
from unicr.norms import Norm
from unicr.optimize._train import (
    WEIGHTS,
    DivergedError,
    Examples,
    Training,
    arrays_of,
    examples_of,
    read_record,
    refuse_changes,
    train_run,
    write_json,
)
from unicr.runs import Job, Row, Store, certify_run, execute
from unicr.smoothing import Plan, Radii
from unicr.values import number

SETTINGS = "c-opt.json"
Shape = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Point:
    """One noise of the search: the parameters of its shape, and its σ (or scale)."""

    family: str
    shape: Shape
    size: float
    given: Literal["sigma", "scale"] = "sigma"

    @property
    def noise(self) -> Noise:
        """The noise itself; NoiseError where the family refuses the parameters."""
        values = ", ".join(f"{k}={number(v)}" for k, v in (*self.shape, (self.given, self.size)))
        return parse(f"{self.family}({values})")

    @property
    def name(self) -> str:
        """The name of its folder."""
        values = (f"{k}-{number(v)}" for k, v in (*self.shape, (self.given, self.size)))
        return "-".join([self.family, *values])


@dataclass(frozen=True)
class Family:
    """A family of noises and the scales that one robustness score goes over."""

    name: str
    sizes: tuple[float, ...]
    given: Literal["sigma", "scale"] = "sigma"

    def points(self, shape: Shape) -> list[Point]:
        """The points of one shape, one for each scale."""
        return [Point(self.name, shape, size, self.given) for size in self.sizes]


def grid(parameters: Mapping[str, Sequence[float]]) -> list[Shape]:
    """Every combination of the parameters' values."""
    for name, values in parameters.items():
        if not values:
            raise UnicrError(f"the parameter {name} has no values")
        if len(set(values)) < len(values):
            raise UnicrError(f"{name} has a value twice: {', '.join(map(number, values))}")
    names = list(parameters)
    return [
        tuple(zip(names, map(float, values), strict=True))
        for values in product(*parameters.values())
    ]


@dataclass(frozen=True)
class Search:
    """Everything that decides the results of a C-OPT beside its points.

    `training.noise` is replaced by each point's noise. `train_spec` and `test_spec` are how the
    data was named; every `skip`-th test input is certified, at most `limit`.
    """

    train: Examples
    test: Dataset
    training: Training
    norms: tuple[Norm, ...]
    plan: Plan
    seed: int = 0
    sound: bool = False
    skip: int = 1
    limit: int | None = None
    train_spec: str | None = None
    test_spec: str | None = None

    def manifest(self) -> dict[str, Any]:
        """What is written down of the search; resuming must agree with it."""
        values: dict[str, Any] = {
            "unicr": unicr.__version__,
            "train": self.train_spec,
            "train_digest": self.train.digest,
            "test": self.test_spec or self.test.source,
            "training": asdict(replace(self.training, noise=None)),
            "norms": [norm.text for norm in self.norms],
            "plan": self.plan.to_dict(),
            "seed": self.seed,
            "sound": self.sound,
            "skip": self.skip,
            "max": self.limit,
        }
        return dict(json.loads(json.dumps(values)))


def search_of(train: Dataset, test: Dataset, *, most: int | None = None, **settings: Any) -> Search:
    """A search on two datasets, `most` of the training inputs; their shapes and labels must fit."""
    if train.shape != test.shape:
        raise DataError(
            f"training inputs have shape {train.shape}, test inputs {test.shape}: one is needed"
        )
    examples = examples_of(train, most)
    if examples.classes is not None:
        test = test.aligned(examples.classes)
    return Search(train=examples, test=test, **settings)


@dataclass(frozen=True)
class Result:
    """What became of a point: the training's best epoch, or why it failed."""

    point: Point
    folder: Path
    best: Mapping[str, Any] | None
    failed: str | None


@dataclass(frozen=True, eq=False)
class PointWork:
    """Trains and certifies points, wherever it is sent.

    With `folder` the points' files are written there, and what is there is gone on with. Without,
    for machines that share no disk, they are made in a temporary folder and sent back.
    """

    train: Examples
    inputs: NDArray[np.float32]
    labels: NDArray[np.int64]
    job: Mapping[str, Any]
    training: Training
    folder: Path | None

    def open(self) -> Callable[[Point], dict[str, bytes] | None]:
        """The function from a point to its files, or to None where they are in `folder`."""
        test = from_arrays(self.inputs, self.labels, name="test", source=self.job["data_spec"])

        def work(point: Point) -> dict[str, bytes] | None:
            if self.folder is not None:
                self._point(point, self.folder / point.name, test)
                return None
            with tempfile.TemporaryDirectory() as temporary:
                self._point(point, Path(temporary), test)
                return _files(Path(temporary))

        return work

    def _point(self, point: Point, folder: Path, test: Dataset) -> None:
        settings = replace(self.training, noise=point.noise.text)
        try:
            train_run(self.train, settings, folder, resume=True)
        except DivergedError:
            return  # train.json says so
        classifier = load_classifier(
            settings.spec,
            weights=folder / WEIGHTS,
            device=settings.device,
            mean=settings.mean,
            std=settings.std,
        )
        job = Job(classifier=classifier, data=test, noise=point.noise, **self.job)
        certify_run(job, folder / "run", resume=True).close()


class COpt:
    """A search in a folder: `points/<name>/` holds model, train.json and run of each point."""

    def __init__(
        self,
        search: Search,
        folder: Path,
        *,
        workers: int = 0,
        ray: str | None = None,
        gpus: float = 0,
        on_result: Callable[[Result], None] | None = None,
    ) -> None:
        self.search, self.folder = search, folder
        self.workers, self.ray, self.gpus, self.on_result = workers, ray, gpus, on_result

    def begin(self, what: Mapping[str, Any], *, resume: bool) -> None:
        """Write down the settings, `what` is searched included, or check those of an old search."""
        values = {**self.search.manifest(), **json.loads(json.dumps(what))}
        file = self.folder / SETTINGS
        if not file.is_file():
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise RunError(f"cannot make the folder {self.folder}: {error}") from None
            write_json(file, values)
            return
        if not resume:
            raise RunError(f"{self.folder} already holds a search: use --resume, or another folder")
        refuse_changes(self.folder, read_manifest(self.folder), values)

    def evaluate(self, points: Sequence[Point]) -> dict[Point, Result]:
        """Train and certify the points that are not done yet; the results of all of them."""
        texts = [check_parses(point.noise) for point in points]
        if not texts:
            raise UnicrError("a search needs at least one noise")
        dim = int(np.prod(self.search.test.shape))
        Radii(points[0].noise, self.search.norms, dim, sound=self.search.sound)
        results = {}
        todo = []
        for point in points:
            folder = self.point_folder(point)
            if is_done(folder, len(self._indices)):
                results[point] = result_of(point, folder)
            else:
                todo.append(point)
        for point, files in self._executed(todo):
            folder = self.point_folder(point)
            if files is not None:
                _put(files, folder)
            results[point] = result_of(point, folder)
            if self.on_result is not None:
                self.on_result(results[point])
        return {point: results[point] for point in points}

    def point_folder(self, point: Point) -> Path:
        """Where the files of a point are."""
        return self.folder / "points" / point.name

    @property
    def _indices(self) -> list[int]:
        every = range(0, len(self.search.test), self.search.skip)
        return list(every)[: self.search.limit]

    def _executed(self, todo: Sequence[Point]) -> Iterator[tuple[Point, dict[str, bytes] | None]]:
        if todo:
            work = self._work()
            yield from execute(work, todo, workers=self.workers, ray=self.ray, gpus=self.gpus)

    def _work(self) -> PointWork:
        search = self.search
        size = self._indices[-1] + 1
        inputs, labels = arrays_of(search.test, size)
        return PointWork(
            train=search.train,
            inputs=inputs,
            labels=labels,
            job={
                "norms": search.norms,
                "plan": search.plan,
                "seed": search.seed,
                "sound": search.sound,
                "skip": search.skip,
                "limit": search.limit,
                "data_spec": search.test_spec or search.test.source,
            },
            training=search.training,
            folder=None if self.ray is not None else (self.folder / "points").absolute(),
        )


def read_manifest(folder: Path) -> dict[str, Any]:
    """The settings of the search in a folder."""
    file = folder / SETTINGS
    try:
        return dict(json.loads(file.read_text()))
    except (OSError, ValueError) as error:
        raise RunError(f"{folder} is not a search: cannot read {file.name} ({error})") from None


def is_done(folder: Path, inputs: int) -> bool:
    """Whether a point has failed, or is trained and has a result for each of its inputs."""
    record = read_record(folder)
    if record is None:
        return False
    if record["failed"] is not None:
        return True
    if not record["done"] or not (folder / "run" / "run.sqlite").is_file():
        return False
    with Store(folder / "run") as store:
        return len(store.done()) == inputs


def result_of(point: Point, folder: Path) -> Result:
    """What the files of a point say."""
    record = read_record(folder)
    if record is None:
        raise RunError(f"{folder} holds no point of a search")
    return Result(point, folder, record["best"], record["failed"])


def scores_of(result: Result, norm: str) -> Scores:
    """The run of a point in one norm."""
    with Store(result.folder / "run") as store:
        rows: list[Row] = list(store.rows())
    return Scores(
        name=result.point.name,
        norm=norm,
        radius=np.array([row.radius(norm) for row in rows]),
        correct=np.array([row.correct for row in rows], dtype=np.float64),
        abstained=np.array([row.predict == -1 for row in rows], dtype=np.float64),
    )


def score(results: Iterable[Result], norm: str) -> float | None:
    """The robustness score over the scales of one shape; None where a training failed."""
    several = list(results)
    if any(result.failed is not None for result in several):
        return None
    return robustness_score([scores_of(result, norm) for result in several])


@dataclass(frozen=True)
class Line:
    """One shape of the family: its scores by norm (None: failed), and its failures."""

    shape: Shape
    scores: Mapping[str, float | None]
    failures: tuple[str, ...]


def lines_of(results: Mapping[Point, Result], norms: Sequence[str]) -> list[Line]:
    """The results by shape, with the robustness score of each norm."""
    groups: dict[Shape, list[Result]] = {}
    for point, result in results.items():
        groups.setdefault(point.shape, []).append(result)
    return [
        Line(
            shape,
            {norm: score(group, norm) for norm in norms},
            tuple(r.failed for r in group if r.failed is not None),
        )
        for shape, group in groups.items()
    ]


def best_of(lines: Iterable[Line], norm: str) -> Line | None:
    """The line with the largest score in a norm; None where all failed."""
    scored = [line for line in lines if line.scores[norm] is not None]
    return max(scored, key=lambda line: line.scores[norm] or 0.0) if scored else None


def c_opt(
    copt: COpt, family: Family, shapes: Sequence[Shape], *, resume: bool = False
) -> list[Line]:
    """Grid search: every shape at every scale. Resumable; see `COpt`."""
    what = {"family": asdict(family), "shapes": [dict(shape) for shape in shapes]}
    by_shape = [family.points(shape) for shape in shapes]
    points = [point for group in by_shape for point in group]
    for point in points:
        _ = point.noise
    copt.begin(what, resume=resume)
    in_order = [point for step in zip(*by_shape, strict=True) for point in step]
    results = copt.evaluate(in_order)
    norms = [norm.text for norm in copt.search.norms]
    return lines_of({point: results[point] for point in points}, norms)


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _put(files: Mapping[str, bytes], folder: Path) -> None:
    """A point's files in place of what was there; train.json, which makes it count, last."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in sorted(files.items(), key=lambda item: item[0] == "train.json"):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
