"""Certify a whole dataset: every input once, results stored as they are made, resumable.

The votes of an input depend on (seed, input number) alone, so workers, batch size and order change
nothing. An input that fails (a model that raises, NaN scores, a value that is not finite) is
recorded with its reason, and the run goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import unicr
from unicr.classifier import Classifier, check_fit
from unicr.data import Dataset
from unicr.errors import CertifyError, RunError
from unicr.noise import Noise
from unicr.noise.internal import check_parses
from unicr.norms import Norm
from unicr.runs._execute import executor
from unicr.runs._store import Row, Store, changes
from unicr.runs._votes import CHUNK, Conversations, Failed, Input, VoteWork, read_input
from unicr.smoothing import Certificate, Plan, Procedure, Radii, certification

Result = TypeVar("Result")
WORTHWHILE = 0.51  # a p_A below this gives radii of no use
FREE = frozenset({"batch", "workers", "device", "unicr"})


@dataclass(frozen=True)
class Job:
    """Everything that decides the results of a run.

    `data_spec` is how the data was named, for the manifest. `model_arguments` are those of
    `load_classifier`: workers load the model with them; without, it is pickled. `ray` is the
    address of a cluster ("local" starts one here), `gpus` what each of its workers reserves.
    `chunk` is the most samples of one task.
    """

    classifier: Classifier
    data: Dataset
    noise: Noise
    norms: tuple[Norm, ...]
    plan: Plan
    seed: int = 0
    searched: bool = False
    skip: int = 1
    limit: int | None = None
    batch: int = 1000
    workers: int = 0
    ray: str | None = None
    gpus: float = 0
    chunk: int = CHUNK
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
        if self.chunk < 1:
            raise CertifyError(f"chunk={self.chunk}: at least one sample in a task")

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
            "searched": self.searched,
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
        todo = begin(store, job.manifest(), job.indices, resume)
        for row in _results(job, radii, todo):
            write(store, row)
            if on_result is not None:
                on_result(row)
    except BaseException:
        store.close()
        raise
    return store


def prepare(job: Job) -> Radii:
    """Check shapes and settings, and build the radius curves, before the first sample."""
    check_fit(job.classifier, job.data)
    radii = Radii(job.noise, job.norms, _size(job.data.shape), searched=job.searched)
    if job.plan.best_p_a() < WORTHWHILE:
        raise CertifyError(
            f"n={job.plan.n} samples at alpha={job.plan.alpha:g} can certify nothing, even if all "
            f"of them agree (p_A would be {job.plan.best_p_a():.4f}): take more samples"
        )
    return radii


def begin(store: Store, manifest: dict[str, Any], indices: list[int], resume: bool) -> list[int]:
    """The inputs still to do, after the manifest of a new run, or its check for an old one."""
    folder, old = store.path.parent, store.manifest()
    if not old:
        store.set_manifest(manifest)
        return indices
    if not resume:
        raise RunError(f"{folder} already holds a run: use --resume, or another folder")
    if differing := changes(old, manifest, FREE):
        raise RunError(f"cannot resume {folder} with other settings ({differing})")
    done = store.done()
    return [i for i in indices if i not in done]


def write(store: Store, row: Row) -> None:
    """Store a result; where that fails, try once more as a failed row before giving up."""
    try:
        store.add(row)
    except RunError as error:
        failed = Row(row.idx, row.label, row.input_hash, row.seconds, None, f"not stored: {error}")
        store.add(failed)


def _results(job: Job, radii: Radii, todo: list[int]) -> Iterator[Row]:
    for one, result, seconds in conversations(job, todo, lambda _: certification(job.plan, radii)):
        yield row_of(one, result, seconds)


def conversations(
    job: Job, todo: Iterable[int], start: Callable[[Input], Procedure[Result]]
) -> Iterator[tuple[Input, Result | Failed, float]]:
    """The procedure that `start` gives each input, carried out where the job says."""
    alone = job.workers == 0 and job.ray is None
    sent = not alone and job.model_arguments is not None
    work = VoteWork(
        classifier=None if sent else job.classifier,
        arguments=job.model_arguments if sent else None,
        noise=check_parses(job.noise),
        seed=job.seed,
        batch=job.batch,
        digest=job.classifier.digest if sent else None,
    )
    with executor(work, workers=job.workers, ray=job.ray, gpus=job.gpus) as where:
        talks = Conversations(where, start, chunk=None if alone else job.chunk)
        yield from talks.over(read_input(job.data, index) for index in todo)


def row_of(one: Input, result: Certificate | Failed, seconds: float) -> Row:
    """What is stored of an input: its certificate, or the reason why there is none."""
    if isinstance(result, Failed):
        return Row(one.index, one.label, one.digest, seconds, None, result.reason)
    return Row(one.index, one.label, one.digest, seconds, result, None)
