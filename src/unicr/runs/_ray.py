"""The same work over a Ray cluster: actors hold the model, tasks are stateless, the driver decides.

An actor is opened once and keeps the model; the driver gives each a few calls at a time, and puts
many short tasks into one call. When an actor dies with its worker or node, its tasks go back to
the queue and another actor is asked for: it joins when the cluster has room. Results are those of
the local run, in whatever order.
"""

from __future__ import annotations

import math
import os
import re
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from unicr.errors import RunError
from unicr.extras import require, torch
from unicr.runs._execute import DEATHS, Attempt, Executor, Key, Work, blame

DEPTH = 2  # calls at an actor: one under way, and one so that it need not wait for the driver
CALL = 0.05  # seconds; short tasks share a call until it takes about this long
MOST = 64  # tasks in one call
LARGE = 1 << 15  # bytes; larger inputs go to the object store once instead of with every call


@dataclass(eq=False)
class _Actor:
    handle: Any
    calls: dict[Any, list[Attempt]] = field(default_factory=dict)


class _Holder:
    """What runs on the cluster: opened work, and several tasks per call to save messages."""

    def __init__(self, work: Work) -> None:
        self._do = work.open()

    def ready(self) -> bool:
        return True

    def do(self, payloads: list[Any]) -> tuple[list[Any], float]:
        """(results, seconds)."""
        start = time.perf_counter()
        results = [self._do(payload) for payload in payloads]
        return results, time.perf_counter() - start


class OnRay(Executor):
    """A cluster at `address`: auto, HOST:PORT, ray://HOST:PORT, or local for one started here.

    `actors` is their number; by default one per GPU (or share of it) where `gpus` are reserved for
    each, otherwise one per CPU of the cluster.
    """

    def __init__(
        self, work: Work, *, address: str, actors: int | None = None, gpus: float = 0
    ) -> None:
        super().__init__()
        _check_gpus(gpus)
        self._ray = ray = require("ray")
        self._own = _connect(ray, address)
        self._levels: list[dict[_Actor, None]] = [{} for _ in range(DEPTH + 1)]
        self._coming: dict[Any, Any] = {}
        self._owner: dict[Any, _Actor] = {}
        self._unborn = 0
        self._size = 1
        self._seconds: float | None = None
        try:
            room = _room(ray.cluster_resources(), gpus)
            self._count = actors or room
            self._remote = ray.remote(_Holder).options(num_cpus=1, num_gpus=gpus, max_restarts=0)
            self._work = _put(ray, work)
            for _ in range(self._count):
                self._hire()
        except BaseException:
            self.close()
            raise
        self.width = DEPTH * self._count

    def _hire(self) -> None:
        handle = self._remote.remote(self._work)
        self._coming[handle.ready.remote()] = handle

    def share(self, x: torch.Tensor) -> Any:
        """A small input travels with its tasks, a large one is put into the object store once."""
        array = x.numpy()
        return _Stored(self._ray.put(array)) if array.nbytes > LARGE else array

    def finished(self) -> list[tuple[Key, Any]]:
        results: list[tuple[Key, Any]] = []
        while not results:
            self._hand_out()
            watched = [*self._coming, *self._owner]
            if not watched:
                raise RunError(
                    f"no Ray worker is left: {self._unborn} in a row died while they loaded the "
                    "model (out of memory?). Results so far are kept; continue with --resume"
                )
            ready, _ = self._ray.wait(watched, num_returns=len(watched), timeout=0)
            if not ready:
                ready, _ = self._ray.wait(watched, num_returns=1)
            for ref in ready:
                if ref in self._coming:
                    self._welcome(ref)
                elif ref in self._owner:
                    results.extend(self._collect(ref))
        return results

    def _hand_out(self) -> None:
        while self._queue and (free := next(filter(None, self._levels[:DEPTH]), None)):
            actor = next(iter(free))
            tasks = self._take()
            ref = actor.handle.do.remote([task.payload for task in tasks])
            actor.calls[ref] = tasks
            self._owner[ref] = actor
            self._place(actor)

    def _take(self) -> list[Attempt]:
        """The tasks of the next call: what takes about CALL seconds, but no more than a fair share.

        One under suspicion of killing its worker goes alone.
        """
        slots = DEPTH * sum(map(len, self._levels))
        most = min(self._size, math.ceil(len(self._queue) / slots))
        tasks = [self._queue.popleft()]
        while self._queue and len(tasks) < most and not (tasks[0].alone or self._queue[0].alone):
            tasks.append(self._queue.popleft())
        return tasks

    def _place(self, actor: _Actor) -> None:
        """Keep actors apart by how many calls they have, so that a free one is found at once."""
        self._remove(actor)
        self._levels[len(actor.calls)][actor] = None

    def _remove(self, actor: _Actor) -> None:
        for level in self._levels:
            level.pop(actor, None)

    def _welcome(self, ref: Any) -> None:
        """An actor is ready; one that could not be opened says why."""
        handle = self._coming.pop(ref)
        try:
            self._ray.get(ref)
        except self._ray.exceptions.RayError as error:
            if getattr(error, "actor_init_failed", False):
                raise RunError(
                    f"a Ray worker{_place_of(error)} could not start: {_gist(error)}"
                ) from None
            self._unborn += 1
            if self._unborn < DEATHS * self._count:
                self._hire()
            return
        self._unborn = 0
        self._place(_Actor(handle))

    def _collect(self, ref: Any) -> list[tuple[Key, Any]]:
        actor = self._owner[ref]
        try:
            results = self._results(ref, actor.calls[ref])
        except self._ray.exceptions.RayError:
            return self._replace(actor)
        del self._owner[ref], actor.calls[ref]
        self._place(actor)
        return results

    def _results(self, ref: Any, tasks: list[Attempt]) -> list[tuple[Key, Any]]:
        """The results of a call; what a task raised is raised as it was."""
        try:
            results, seconds = self._ray.get(ref)
        except self._ray.exceptions.RayTaskError as error:
            unsendable = type(error.cause) is self._ray.exceptions.RayError
            raise RunError(_gist(error)) if unsendable else error.cause from None
        self._learn(seconds / len(tasks))
        return [(task.key, result) for task, result in zip(tasks, results, strict=True)]

    def _learn(self, seconds: float) -> None:
        """How long a task takes decides how many share a call, and so how many are wanted here."""
        self._seconds = seconds if self._seconds is None else 0.8 * self._seconds + 0.2 * seconds
        self._size = max(1, min(MOST, int(CALL / max(self._seconds, CALL / MOST))))
        self.width = DEPTH * self._count * self._size

    def _replace(self, actor: _Actor) -> list[tuple[Key, Any]]:
        """A dead actor: what it finished counts, the rest goes back, and a new one is asked for.

        It did its calls in order, so the first without a result is the one that it died at. If
        that call had several tasks, they are tried again one by one before one is blame.
        """
        self._remove(actor)
        self._ray.kill(actor.handle)  # one that is only out of reach must not keep its place
        done: list[tuple[Key, Any]] = []
        lost: list[list[Attempt]] = []
        for ref, tasks in actor.calls.items():
            del self._owner[ref]
            try:
                done.extend(self._results(ref, tasks))
            except self._ray.exceptions.RayError:
                lost.append(tasks)
        self._hire()
        if lost:
            self._queue.extendleft(task for tasks in reversed(lost[1:]) for task in reversed(tasks))
            again, given_up = blame(lost[0])
            self._queue.extend(again)
            done.extend(given_up)
        return done

    def close(self) -> None:
        handles = [actor.handle for level in self._levels for actor in level]
        for handle in [*handles, *self._coming.values()]:
            with suppress(self._ray.exceptions.RayError):
                self._ray.kill(handle)
        if self._own:
            self._ray.shutdown()


class _Stored:
    """An array in the object store; numpy turns it into itself again where a task uses it."""

    def __init__(self, ref: Any) -> None:
        self.ref = ref

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        array = require("ray").get(self.ref)
        return array.copy() if copy else array


def _connect(ray: Any, address: str) -> bool:
    """Connect to the cluster, unless that was done already; whether it is ours to close."""
    if ray.is_initialized():
        return False
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    settings: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    try:
        _knock(address)
        if address == "local":
            ray.init(address="local", include_dashboard=False, **settings)
        else:
            ray.init(address=address, **settings)
    except Exception as error:  # Ray has no common class for what can go wrong here
        raise RunError(
            f"there is no Ray cluster at {address!r}: {_gist(error)}; --ray local starts one on "
            "this machine"
        ) from None
    return True


def _knock(address: str) -> None:
    """Ray tries for minutes where nobody listens; a plain connection says so at once."""
    host, _, port = address.rpartition(":")
    if host and "/" not in host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def _put(ray: Any, work: Work) -> Any:
    try:
        return ray.put(work)
    except TypeError as error:
        raise RunError(
            f"the model or the data cannot be sent to the cluster: {_gist(error)}"
        ) from None


def _check_gpus(gpus: float) -> None:
    """Ray reserves a share of one GPU, or several whole ones."""
    if not (0 <= gpus < math.inf) or (gpus > 1 and gpus != int(gpus)):
        raise RunError(
            f"gpus={gpus:g} must be 0, a share of one GPU such as 0.25, or a whole number"
        )


def _room(resources: dict[str, float], gpus: float) -> int:
    """How many actors the cluster has room for."""
    room = resources.get("CPU", 0.0)
    if gpus > 0:
        room = min(room, resources.get("GPU", 0.0) / gpus + 1e-9)
    if room < 1:
        wanted = f"1 CPU and {gpus:g} GPU" if gpus > 0 else "1 CPU"
        raise RunError(f"the cluster has no room for a worker with {wanted}")
    return int(room)


def _place_of(error: BaseException) -> str:
    found = re.search(r"ip=([\w.:]+)", str(error))
    return f" on {found[1]}" if found else ""


def _gist(error: BaseException) -> str:
    """The last line, where a traceback says what happened."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__
