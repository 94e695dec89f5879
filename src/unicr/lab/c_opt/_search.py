"""C-OPT: which noise of a family makes the most robust classifier when it also trains it?

Each point of the grid is one noise: a classifier is trained with it, certified with it, and the
robustness score joins the points that differ in scale only (the paper's section 4, grid search).
A point is one task that trains and certifies in one thread: points are independent, so as many run
side by side as there are workers, and no core waits for another.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unicr.classifier import load_classifier
from unicr.data import Dataset
from unicr.data.internal import from_arrays
from unicr.errors import UnicrError
from unicr.folder import Folder, plain
from unicr.lab.c_opt._points import Point, Scales, Search, Shape
from unicr.lab.c_opt._scores import (
    ShapeScore,
    Trained,
    is_done,
    measure_progress,
    read_result,
    score_shapes,
)
from unicr.lab.train import DivergedError, Examples, Training, train_run
from unicr.lab.train.internal import WEIGHTS, arrays_of, open_training
from unicr.noise.internal import check_parses
from unicr.progress import silence
from unicr.runs import Job, Terms, certify_run, execute
from unicr.smoothing import Radii

SETTINGS = "c-opt.json"
FREE = frozenset({"unicr"})  # a newer version goes on with a search


@dataclass(frozen=True, eq=False)
class PointWork:
    """Trains and certifies points, wherever it is sent.

    With `folder` the points' files are written there, and what is there is gone on with. Without,
    for machines that share no disk, they are made in a temporary folder and sent back. `home` is
    where they are in the end: runs name their weights there, so that they can be replayed.
    """

    train: Examples
    inputs: NDArray[np.float32]
    labels: NDArray[np.int64]
    job: Mapping[str, Any]
    training: Training
    folder: Path | None
    home: Path

    def open(self) -> Callable[[Point], dict[str, bytes] | None]:
        """The function from a point to its files, or to None if they are in `folder`."""
        test = from_arrays(self.inputs, self.labels, name="test", source=self.job["data_spec"])

        def work(point: Point) -> dict[str, bytes] | None:
            if self.folder is not None:
                self._make_point(point, self.folder / point.name, test)
                return None
            with tempfile.TemporaryDirectory() as temporary:
                self._make_point(point, Path(temporary), test)
                return _read_files(Path(temporary))

        return work

    def _make_point(self, point: Point, folder: Path, test: Dataset) -> None:
        settings = replace(self.training, noise=point.noise.text)
        try:
            with silence():  # the search tells of all its points
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
        given = {"weights": self.home / point.name / WEIGHTS} | {
            name: list(value)
            for name, value in (("mean", settings.mean), ("std", settings.std))
            if value is not None
        }
        job = Job(
            classifier=classifier, data=test, noise=point.noise, model_arguments=given, **self.job
        )
        with silence():
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
        on_result: Callable[[Trained], None] | None = None,
    ) -> None:
        self.search, self.folder = search, folder
        self.workers, self.ray, self.gpus, self.on_result = workers, ray, gpus, on_result
        self._finished: set[Point] = set()
        self._under_way: list[Point] = []

    @contextmanager
    def begin(self, searched: Mapping[str, Any], *, resume: bool) -> Iterator[None]:
        """Write down the settings, `what` is searched included, or check those of an old search.

        For the length of the block nobody else writes to the folder.
        """
        home = Folder(self.folder, "a search", SETTINGS)
        with home.write():
            old = home.read()
            if self.search.seed is None and self.search.nonce is None:
                drawn: dict[str, Any] = (
                    plain({"nonce": secrets.token_hex(32)}) if old is None else old["settings"]
                )
                self.search = replace(self.search, seed=drawn.get("seed"), nonce=drawn.get("nonce"))
            values = {**self.search.manifest(), **plain(searched)}
            if home.begin(values, resume=resume, free=FREE) is None:
                home.note({"settings": values})
            yield

    def evaluate(self, points: Sequence[Point]) -> dict[Point, Trained]:
        """Train and certify the points that are not done yet; the results of all of them."""
        texts = [check_parses(point.noise) for point in points]
        if not texts:
            raise UnicrError("a search needs at least one noise")
        dim = int(np.prod(self.search.test.shape))
        Radii(points[0].noise, self.search.norms, dim, searched=self.search.searched)
        results = {}
        todo = []
        for point in points:
            folder = self.point_folder(point)
            if is_done(folder, len(self._indices)):
                results[point] = read_result(point, folder)
                self._finished.add(point)
            else:
                todo.append(point)
        self._under_way = todo
        for point, files in self._execute(todo):
            self._finished.add(point)
            folder = self.point_folder(point)
            if files is not None:
                _store_files(files, folder)
            results[point] = read_result(point, folder)
            if self.on_result is not None:
                self.on_result(results[point])
        return {point: results[point] for point in points}

    def done(self) -> float:
        """How many points are done, parts included: another thread may ask while they are made."""
        unfinished = [point for point in self._under_way if point not in self._finished]
        size, epochs = len(self._indices), self.search.training.epochs
        parts = (measure_progress(self.point_folder(point), epochs, size) for point in unfinished)
        return len(self._finished) + sum(parts)

    def point_folder(self, point: Point) -> Path:
        """Where the files of a point are."""
        return self.folder / "points" / point.name

    @property
    def _indices(self) -> list[int]:
        search = self.search
        return list(range(0, len(search.test), search.skip)[: search.limit])

    def _execute(self, todo: Sequence[Point]) -> Iterator[tuple[Point, dict[str, bytes] | None]]:
        if todo:
            work = self._pack_work()
            yield from execute(work, todo, workers=self.workers, ray=self.ray, gpus=self.gpus)

    def _pack_work(self) -> PointWork:
        search = self.search
        size = self._indices[-1] + 1
        inputs, labels = arrays_of(search.test, size)
        home = (self.folder / "points").absolute()
        return PointWork(
            train=search.train,
            inputs=inputs,
            labels=labels,
            job={term.name: getattr(search, term.name) for term in fields(Terms)}
            | {"data_spec": search.test_spec or search.test.source, "plan": search.plan},
            training=search.training,
            folder=None if self.ray is not None else home,
            home=home,
        )


def c_opt(
    copt: COpt, scales: Scales, shapes: Sequence[Shape], *, resume: bool = False
) -> list[ShapeScore]:
    """Grid search: every shape at every scale. Resumable; see `COpt`."""
    searched = {"family": asdict(scales), "shapes": [dict(shape) for shape in shapes]}
    by_shape = [scales.points(shape) for shape in shapes]
    points = [point for group in by_shape for point in group]
    for point in points:
        _ = point.noise
    in_order = [point for step in zip(*by_shape, strict=True) for point in step]
    with copt.begin(searched, resume=resume):
        results = copt.evaluate(in_order)
    norms = [norm.text for norm in copt.search.norms]
    return score_shapes({point: results[point] for point in points}, norms)


def _read_files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _store_files(files: Mapping[str, bytes], folder: Path) -> None:
    """A point's files in place of what was there; train.json, which makes it count, last."""
    home = open_training(folder)
    with home.write(), home.replace_files() as fresh:
        shutil.rmtree(folder / "run", ignore_errors=True)
        for name, content in files.items():
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            (fresh / name).write_bytes(content)
