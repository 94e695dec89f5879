"""Certify a whole dataset: every input once, results stored as they are made, resumable.

The votes of an input depend on (seed, input number) alone, so workers, batch size and order change
nothing. An input that fails (a model that raises, NaN scores, a value that is not finite) is
recorded with its reason, and the run goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

import unicr
from unicr.classifier import Classifier, check_shape, load_classifier
from unicr.data import Dataset
from unicr.errors import CertifyError, RunError, UnicrError
from unicr.noise import Noise, parse
from unicr.noise._spec import check_parses
from unicr.norms import Norm
from unicr.runs._store import Row, Store
from unicr.smoothing import Plan, Radii, SmoothedClassifier

WORTHWHILE = 0.51  # a p_A below this gives radii of no use
FREE = frozenset({"batch", "workers", "device", "unicr"})


@dataclass(frozen=True)
class Job:
    """Everything that decides the results of a run.

    `data_spec` is how the data was named, for the manifest. `model_arguments` are those of
    `load_classifier`: worker processes load the model with them; without, it is pickled.
    """

    classifier: Classifier
    data: Dataset
    noise: Noise
    norms: tuple[Norm, ...]
    plan: Plan
    seed: int = 0
    sound: bool = False
    skip: int = 1
    limit: int | None = None
    batch: int = 1000
    workers: int = 0
    data_spec: str | None = None
    model_arguments: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.skip < 1:
            raise CertifyError(f"skip={self.skip}: every how many-th input, at least 1")
        if self.limit is not None and self.limit < 1:
            raise CertifyError(f"max={self.limit}: at least one input")
        if self.workers < 0:
            raise CertifyError(f"workers={self.workers}: 0 for this process, or their number")
        if self.batch < 1:
            raise CertifyError(f"batch={self.batch}: at least one sample at a time")

    @property
    def indices(self) -> list[int]:
        """Which inputs are certified: every `skip`-th, at most `limit` of them."""
        every = range(0, len(self.data), self.skip)
        return list(every if self.limit is None else islice(every, self.limit))

    def manifest(self) -> dict[str, Any]:
        """What is written down of the run; resuming must agree in all that changes results."""
        return {
            "unicr": unicr.__version__,
            "model": self.classifier.name,
            "model_hash": self.classifier.digest,
            "data": self.data_spec or self.data.source,
            "shape": list(self.data.shape),
            "dim": _size(self.data.shape),
            "noise": check_parses(self.noise),
            "norms": [norm.text for norm in self.norms],
            "plan": self.plan.to_dict(),
            "seed": self.seed,
            "sound": self.sound,
            "skip": self.skip,
            "max": self.limit,
            "batch": self.batch,
            "workers": self.workers,
            "device": str(self.classifier.device),
        }


def _size(shape: Iterable[int]) -> int:
    total = 1
    for n in shape:
        total *= n
    return total


def certify_run(
    job: Job,
    folder: Path,
    *,
    resume: bool = False,
    on_result: Callable[[Row], None] | None = None,
) -> Store:
    """Run the job into `folder`; returns the open store. Refuses what can certify nothing."""
    radii = prepare(job)
    store = Store(folder, create=True)
    try:
        todo = _begin(job, store, folder, resume)
        for row in _results(job, radii, todo):
            _write(store, row)
            if on_result is not None:
                on_result(row)
    except BaseException:
        store.close()
        raise
    return store


def prepare(job: Job) -> Radii:
    """Check shapes and settings, and build the radius curves, before the first sample."""
    check_shape(job.classifier, job.data[0][0])
    radii = Radii(job.noise, job.norms, _size(job.data.shape), sound=job.sound)
    if job.plan.best_p_a() < WORTHWHILE:
        raise CertifyError(
            f"n={job.plan.n} samples at alpha={job.plan.alpha:g} can certify nothing, even if all "
            f"of them agree (p_A would be {job.plan.best_p_a():.4f}): take more samples"
        )
    return radii


def _begin(job: Job, store: Store, folder: Path, resume: bool) -> list[int]:
    """The inputs still to do, after the manifest of a new run, or its check for an old one."""
    manifest, old = job.manifest(), store.manifest()
    if not old:
        store.set_manifest(manifest)
        return job.indices
    if not resume:
        raise RunError(f"{folder} already holds a run: use --resume, or another folder")
    differing = sorted(k for k in manifest if k not in FREE and old.get(k) != manifest[k])
    if differing:
        changes = "; ".join(f"{k}: {old.get(k)!r} there, {manifest[k]!r} now" for k in differing)
        raise RunError(f"cannot resume {folder} with other settings ({changes})")
    done = store.done()
    return [i for i in job.indices if i not in done]


def _write(store: Store, row: Row) -> None:
    """Store a result; where that fails, try once more as a failed row before giving up."""
    try:
        store.add(row)
    except RunError as error:
        failed = Row(row.idx, row.label, row.input_hash, row.seconds, None, f"not stored: {error}")
        store.add(failed)


def _results(job: Job, radii: Radii, todo: list[int]) -> Iterator[Row]:
    if job.workers > 0:
        yield from _in_processes(job, todo)
        return
    smoothed = SmoothedClassifier(job.classifier, job.noise, batch=job.batch, seed=job.seed)
    for index in todo:
        yield certify_one(smoothed, job.plan, radii, _input(job.data, index))


@dataclass(frozen=True)
class Input:
    """One input with its number, label and hash; `x` is None where it could not be read."""

    index: int
    x: torch.Tensor | None
    label: int
    digest: str


def _input(data: Dataset, index: int) -> Input:
    try:
        x, label = data[index]
        return Input(index, x, label, data.digest_of(index))
    except (UnicrError, OSError) as error:
        return Input(index, None, -1, f"unreadable: {error}")


def certify_one(smoothed: SmoothedClassifier, plan: Plan, radii: Radii, one: Input) -> Row:
    """One input, whatever happens: a certificate or the reason why there is none."""
    start = time.perf_counter()
    certificate, reason = None, None
    if one.x is None:
        reason = one.digest
    else:
        try:
            certificate = smoothed.certify_with(one.x, plan, radii, one.index)
        except Exception as error:  # a stranger's model may raise anything
            reason = f"{type(error).__name__}: {error}".splitlines()[0][:500]
    seconds = time.perf_counter() - start
    return Row(one.index, one.label, one.digest, seconds, certificate, reason)


@dataclass(frozen=True)
class _Task:
    """What a worker process needs to know, in a form that can be sent to it."""

    classifier: Classifier | None
    arguments: dict[str, Any] | None
    noise: str
    norms: tuple[Norm, ...]
    dim: int
    plan: Plan
    seed: int
    sound: bool
    batch: int
    threads: int


def _in_processes(job: Job, todo: list[int]) -> Iterator[Row]:
    """The same over a pool of processes; a bounded number of inputs is under way at a time."""
    task = _Task(
        classifier=None if job.model_arguments is not None else job.classifier,
        arguments=job.model_arguments,
        noise=check_parses(job.noise),
        norms=job.norms,
        dim=_size(job.data.shape),
        plan=job.plan,
        seed=job.seed,
        sound=job.sound,
        batch=job.batch,
        threads=max(1, torch.get_num_threads() // job.workers),
    )
    context = get_context("spawn")
    with ProcessPoolExecutor(job.workers, context, _start_worker, (task,)) as pool:
        waiting = iter(todo)
        running: set[Future[Row]] = set()
        while True:
            for index in islice(waiting, 2 * job.workers - len(running)):
                running.add(pool.submit(_work, _input(job.data, index)))
            if not running:
                return
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                yield future.result()


_worker: tuple[SmoothedClassifier, Plan, Radii] | None = None


def _start_worker(task: _Task) -> None:
    global _worker
    torch.set_num_threads(task.threads)
    classifier = task.classifier
    if classifier is None:
        assert task.arguments is not None
        classifier = load_classifier(**task.arguments)
    noise = parse(task.noise)
    smoothed = SmoothedClassifier(classifier, noise, batch=task.batch, seed=task.seed)
    radii = Radii(noise, task.norms, task.dim, sound=task.sound)
    _worker = (smoothed, task.plan, radii)


def _work(one: Input) -> Row:
    assert _worker is not None
    smoothed, plan, radii = _worker
    return certify_one(smoothed, plan, radii, one)
