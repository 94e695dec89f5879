"""Where work is done: in this process, in a pool of processes, or (`_ray.py`) on a cluster.

Work is a recipe that can be sent anywhere; opened there once, it turns tasks into results. Tasks
are stateless, so one that is lost with its worker is simply done again by another.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import torch

from unicr.errors import RunError

Task = TypeVar("Task")
Result = TypeVar("Result")
Key = int
KILLED = (
    "a worker process was killed (out of memory?): results so far are kept, go on with --resume"
)


@dataclass(frozen=True)
class Lost:
    """In place of a result: the task took every worker that tried it down with it."""

    reason: str


class Work(Protocol):
    """What a worker does: picklable, and `open` is called once where the work is to be done."""

    def open(self) -> Callable[[Any], Any]:
        """Load what is needed (the model); the function from a task to its result."""
        ...


class Executor(ABC):
    """Takes tasks under keys and gives results back in any order. `width` tasks keep it busy."""

    width: int = 1

    @abstractmethod
    def submit(self, key: Key, task: Any) -> None:
        """Take a task; returns at once."""

    def withdraw(self, keys: set[Key]) -> set[Key]:
        """Take back tasks that are no longer wanted; gives those that will have no result."""
        return set()

    @abstractmethod
    def finished(self) -> list[tuple[Key, Any]]:
        """Wait for at least one result, or `Lost`. What a task raised is raised here."""

    def share(self, x: torch.Tensor) -> Any:
        """A form of a tensor that several tasks can carry without being copied for each."""
        return x

    @abstractmethod
    def close(self) -> None:
        """Let the workers go."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()


class Here(Executor):
    """In this process, one task after the other, when its result is asked for."""

    def __init__(self, work: Work) -> None:
        self._do = work.open()
        self._waiting: deque[tuple[Key, Any]] = deque()

    def submit(self, key: Key, task: Any) -> None:
        self._waiting.append((key, task))

    def withdraw(self, keys: set[Key]) -> set[Key]:
        gone = {key for key, _ in self._waiting} & keys
        self._waiting = deque(one for one in self._waiting if one[0] not in gone)
        return gone

    def finished(self) -> list[tuple[Key, Any]]:
        key, task = self._waiting.popleft()
        return [(key, self._do(task))]

    def close(self) -> None:
        self._waiting.clear()


class Processes(Executor):
    """A pool of spawned processes; tensors go to them through shared memory."""

    def __init__(self, work: Work, workers: int) -> None:
        threads = max(1, torch.get_num_threads() // workers)
        context = get_context("spawn")
        self._pool = ProcessPoolExecutor(workers, context, _open_here, (_packed(work), threads))
        self._running: dict[Future[Any], Key] = {}
        self.width = 2 * workers

    def submit(self, key: Key, task: Any) -> None:
        try:
            self._running[self._pool.submit(_do_here, task)] = key
        except BrokenProcessPool:
            raise RunError(KILLED) from None

    def withdraw(self, keys: set[Key]) -> set[Key]:
        wanted = [future for future, key in self._running.items() if key in keys]
        return {self._running.pop(future) for future in wanted if future.cancel()}

    def finished(self) -> list[tuple[Key, Any]]:
        done, _ = wait(self._running, return_when=FIRST_COMPLETED)
        try:
            return [(self._running.pop(future), future.result()) for future in done]
        except BrokenProcessPool:
            raise RunError(KILLED) from None

    def share(self, x: torch.Tensor) -> Any:
        return x.clone().share_memory_()  # type: ignore[no-untyped-call]

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


def _packed(work: Work) -> bytes:
    try:
        return pickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise RunError(
            f"the work cannot be sent to other processes ({error}): name the model as "
            "file.py:name, or use workers=0"
        ) from None


_do: Callable[[Any], Any] | None = None
_error: Exception | None = None


def _open_here(work: bytes, threads: int) -> None:
    """Open the work in a new process; what goes wrong is told by the first task, not lost."""
    global _do, _error
    torch.set_num_threads(threads)
    try:
        _do = pickle.loads(work).open()
    except Exception as error:
        _error = error


def _do_here(task: Any) -> Any:
    if _error is not None:
        gist = f"{type(_error).__name__}: {_error}"
        raise RunError(f"a worker process could not start: {gist}")
    assert _do is not None
    return _do(task)


def executor(work: Work, *, workers: int = 0, ray: str | None = None, gpus: float = 0) -> Executor:
    """The executor that the settings ask for: a cluster, `workers` processes, or this process."""
    if workers < 0:
        raise RunError(f"workers={workers}: 0 for this process, or their number")
    if gpus and ray is None:
        raise RunError(f"gpus={gpus:g}: GPUs are reserved on a Ray cluster, give its address")
    if ray is not None:
        from unicr.runs._ray import OnRay

        return OnRay(work, address=ray, actors=workers or None, gpus=gpus)
    return Processes(work, workers) if workers > 0 else Here(work)


def execute(
    work: Work,
    tasks: Iterable[Task],
    *,
    workers: int = 0,
    ray: str | None = None,
    gpus: float = 0,
) -> Iterator[tuple[Task, Any]]:
    """(task, result) for every task, as they are ready."""
    waiting = enumerate(tasks)
    under_way: dict[Key, Task] = {}
    with executor(work, workers=workers, ray=ray, gpus=gpus) as where:
        while True:
            for key, task in islice(waiting, max(0, where.width - len(under_way))):
                under_way[key] = task
                where.submit(key, task)
            if not under_way:
                return
            for key, result in where.finished():
                if isinstance(result, Lost):
                    raise RunError(f"{under_way[key]}: {result.reason}")
                yield under_way.pop(key), result
