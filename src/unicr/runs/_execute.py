"""Where work is done: in this process, in a pool of processes, or (`_ray.py`) on a cluster.

Work is a recipe that can be sent anywhere; opened there once, it turns tasks into results. Tasks
are stateless, so one that is lost with its worker is simply done again by another.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from typing import Any, Protocol, TypeVar

from unicr.errors import RunError
from unicr.extras import torch

Task = TypeVar("Task")
Result = TypeVar("Result")
Key = int
DEATHS = 3  # a task that took this many workers down with it is given up
KILLED = (
    "a worker process died as it started (out of memory?): results so far are kept, go on with "
    "--resume"
)


@dataclass(frozen=True)
class Lost:
    """In place of a result: the task took every worker that tried it down with it."""

    reason: str


@dataclass(eq=False)
class Attempt:
    """A task with what is known of it: whether it is suspected, and how many workers it cost."""

    key: Key
    payload: Any
    alone: bool = False
    deaths: int = 0


def blame(tasks: list[Attempt]) -> tuple[list[Attempt], list[tuple[Key, Any]]]:
    """(what is tried again, what is given up) of the tasks that a worker may have died of.

    Several are tried again one by one before one is blame; DEATHS workers are enough.
    """
    if len(tasks) != 1:
        for task in tasks:
            task.alone = True
        return tasks, []
    tasks[0].alone = True
    tasks[0].deaths += 1
    if tasks[0].deaths < DEATHS:
        return tasks, []
    return [], [(tasks[0].key, Lost(f"{DEATHS} workers died of this task"))]


class Work(Protocol):
    """What a worker does: picklable, and `open` is called once where the work is to be done."""

    def open(self) -> Callable[[Any], Any]:
        """Load what is needed (the model); the function from a task to its result."""
        ...


class Executor(ABC):
    """Takes tasks under keys and gives results back in any order. `width` tasks keep it busy."""

    width: int = 1

    def __init__(self) -> None:
        self._queue: deque[Attempt] = deque()

    def submit(self, key: Key, task: Any) -> None:
        """Take a task; returns at once. It is handed out when a result is waited for."""
        self._queue.append(Attempt(key, task))

    def withdraw(self, keys: set[Key]) -> set[Key]:
        """Take back tasks that are no longer wanted; gives those that will have no result."""
        withdrawn = {attempt.key for attempt in self._queue} & keys
        self._queue = deque(attempt for attempt in self._queue if attempt.key not in withdrawn)
        return withdrawn

    @abstractmethod
    def finished(self) -> list[tuple[Key, Any]]:
        """Wait for at least one result, or `Lost`. What a task raised is raised here."""

    def share(self, x: torch.Tensor) -> Any:
        """A form of a tensor that several tasks can carry without being copied for each."""
        return x

    def close(self) -> None:
        """Let the workers go; what was not handed out is forgotten."""
        self._queue.clear()


class Here(Executor):
    """In this process, one task after the other, when its result is asked for."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._do = work.open()

    def finished(self) -> list[tuple[Key, Any]]:
        attempt = self._queue.popleft()
        return [(attempt.key, self._do(attempt.payload))]


class Processes(Executor):
    """A pool of spawned processes; tensors go to them through shared memory.

    When a worker dies, its pool goes with it. A new one does what was under way again, one task at
    a time, so that the one that kills is found and given up.
    """

    def __init__(self, work: Work, workers: int, devices: Sequence[str] = ()) -> None:
        super().__init__()
        self._work, self._workers, self._devices = _pack(work), workers, devices
        self._pool = self._new_pool()
        self._running: dict[Future[Any], Attempt] = {}
        self.width = 2 * workers

    def _new_pool(self) -> ProcessPoolExecutor:
        threads = max(1, torch.get_num_threads() // self._workers)
        processes = get_context("spawn")
        free_devices = processes.SimpleQueue()  # each process takes a device from it
        for device in self._devices:
            free_devices.put(device)
        started = (self._work, threads, free_devices if self._devices else None)
        return ProcessPoolExecutor(self._workers, processes, _open_here, started)

    def withdraw(self, keys: set[Key]) -> set[Key]:
        withdrawn = super().withdraw(keys)
        wanted = [future for future, attempt in self._running.items() if attempt.key in keys]
        return withdrawn | {self._running.pop(future).key for future in wanted if future.cancel()}

    def _hand_out(self) -> None:
        """Everything goes to the pool, but a suspect waits until nothing else is under way."""
        while self._queue and not any(attempt.alone for attempt in self._running.values()):
            if self._queue[0].alone and self._running:
                return
            attempt = self._queue.popleft()
            self._running[self._pool.submit(_do_here, attempt.payload)] = attempt

    def finished(self) -> list[tuple[Key, Any]]:
        results: list[tuple[Key, Any]] = []
        while not results:
            try:
                self._hand_out()
                done, _ = wait(self._running, return_when=FIRST_COMPLETED)
                for future in done:
                    results.append((self._running[future].key, future.result()))
                    del self._running[future]
            except BrokenProcessPool:
                results += self._start_again()
        return results

    def _start_again(self) -> list[tuple[Key, Any]]:
        self._pool.shutdown(wait=True, cancel_futures=True)
        # Nobody knows whose task killed the pool; a result is a function of its task, so that all
        # of them may be done again without a change.
        suspects = list(self._running.values())
        self._running.clear()
        again, results = blame(suspects)
        self._queue.extendleft(reversed(again))
        self._pool = self._new_pool()
        try:
            self._pool.submit(_ping).result()
        except BrokenProcessPool:
            raise RunError(KILLED) from None
        return results

    def share(self, x: torch.Tensor) -> Any:
        return x.clone().share_memory_()  # type: ignore[no-untyped-call]

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


def _pack(work: Work) -> bytes:
    try:
        return pickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise RunError(
            f"the model or the data cannot be sent to other processes ({error}): name the model as "
            "file.py:name, or use workers=0"
        ) from None


_do: Callable[[Any], Any] | None = None
_error: Exception | None = None


def _open_here(work: bytes, threads: int, devices: SimpleQueue[str] | None) -> None:
    """Open the work in a new process; what goes wrong is told by the first task, not lost."""
    global _do, _error
    torch.set_num_threads(threads)
    try:
        opened = pickle.loads(work)
        _do = (opened if devices is None else opened.on(devices.get())).open()
    except Exception as error:
        _error = error


def _ping() -> None:
    """Answered by a worker that is alive."""


def _do_here(task: Any) -> Any:
    if _error is not None:
        gist = f"{type(_error).__name__}: {_error}"
        raise RunError(f"a worker process could not start: {gist}")
    assert _do is not None
    return _do(task)


def executor(
    work: Work,
    *,
    workers: int = 0,
    ray: str | None = None,
    gpus: float = 0,
    devices: Sequence[str] = (),
) -> Executor:
    """The executor that the settings ask for: a cluster, `workers` processes, or this process.

    With several `devices` there is one process on each, where `work.on(device)` is opened.
    """
    if workers < 0:
        raise RunError(f"workers={workers} must be 0, for this process, or the number of processes")
    if gpus and ray is None:
        raise RunError(f"gpus={gpus:g} needs a Ray cluster: give its address with --ray")
    if ray is not None:
        from unicr.runs._ray import OnRay

        return OnRay(work, address=ray, actors=workers or None, gpus=gpus)
    if len(devices) > 1:
        return Processes(work, len(devices), devices)
    return Processes(work, workers) if workers > 0 else Here(work)


def execute(
    work: Work, tasks: Iterable[Task], *, workers: int = 0, ray: str | None = None, gpus: float = 0
) -> Iterator[tuple[Task, Any]]:
    """(task, result) for every task, as they are ready."""
    waiting = enumerate(tasks)
    under_way: dict[Key, Task] = {}
    with closing(executor(work, workers=workers, ray=ray, gpus=gpus)) as where:
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
