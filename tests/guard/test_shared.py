"""Threads and processes that share one memory, and what is left after kill −9."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

from tests.guard.planted import certificate
from tests.guard.test_memory import assert_disjoint, regions_of
from unicr.guard import Answer, Guard, Memory
from unicr.norms import l2
from unicr.smoothing import Certificate

ROOT = Path(__file__).parents[2]


def opened(file: Path) -> Memory:
    return Memory(file, norm=l2, shape=(3,), made_for={"model_hash": "m"})


def start(file: Path, seed: int, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.guard.work", str(file), str(seed), str(count)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def answers_in(lines: list[str]) -> list[tuple[int, int, list[float]]]:
    words = [line.split() for line in lines if line.endswith("\n")]
    return [(int(w[0]), int(w[1]), list(map(float, w[2:]))) for w in words]


def assert_kept(store: Memory, answers: list[tuple[int, int, list[float]]]) -> None:
    for _, label, x in answers:
        found = store.look_up(x)
        assert found is not None
        assert found.label == label


def test_many_threads_keep_regions_disjoint(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    points = rng.random((240, 3)).astype(np.float32)
    claims = [certificate(int(rng.integers(3)), rng.random() / 2) for _ in points]
    with opened(tmp_path / "m") as one, opened(tmp_path / "m") as two:
        begin = threading.Barrier(8)

        def work(thread: int) -> list[tuple[int, int, list[float]]]:
            store = (one, two)[thread % 2]
            begin.wait()
            given = []
            for i in range(thread, len(points), 8):
                stream = store.reserve(0.001)
                given.append((stream, store.settle(points[i], claims[i], stream).label, points[i]))
            return [(stream, label, x.tolist()) for stream, label, x in given]

        with ThreadPoolExecutor(8) as pool:
            answers = [answer for part in pool.map(work, range(8)) for answer in part]
        regions = regions_of(one)
        assert_disjoint("2", regions)
        assert len({stream for stream, _, _ in answers}) == len(points)
        assert len(regions) > 30
        assert any(r > 0 for _, r, _ in regions)
        assert_kept(two, answers)


def test_two_processes_and_a_kill(tmp_path: Path) -> None:
    """Two processes insert, one of them is killed in the middle: no answer is forgotten."""
    file = tmp_path / "m"
    short, long = start(file, 1, 60), start(file, 2, 1_000_000)
    assert long.stdout is not None
    try:
        first = [long.stdout.readline() for _ in range(40)]
        done, _ = short.communicate(timeout=120)
    finally:
        os.kill(long.pid, signal.SIGKILL)
    rest = long.stdout.readlines()
    long.stdout.close()
    assert long.wait() == -signal.SIGKILL
    answers = answers_in([*first, *rest, *done.splitlines(keepends=True)])
    assert len(answers) >= 100
    assert len({stream for stream, _, _ in answers}) == len(answers)
    with opened(file) as store:
        assert tuple(store._db.execute("PRAGMA integrity_check").fetchone()) == ("ok",)
        assert_kept(store, answers)
        assert_disjoint("2", regions_of(store))
        assert store.reserve(0.001) > max(stream for stream, _, _ in answers)
        assert store.spent >= 0.001 * len(answers)


def test_threads_that_ask_the_same_get_the_same_and_pay_once(tmp_path: Path) -> None:
    calls = []

    def certify(x: torch.Tensor, input_index: int) -> Certificate:
        calls.append(input_index)
        return certificate(len(calls), 0.1)

    with opened(tmp_path / "m") as store:
        guard = Guard(certify, store)
        begin = threading.Barrier(8)

        def ask(_: int) -> Answer:
            begin.wait()
            return guard(np.zeros(3))

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(ask, range(8)))
        assert {(a.label, a.region) for a in answers} == {(1, 1)}
        assert len(calls) == 1
        assert store.spent == 0.001


def test_a_region_that_came_between_certifying_and_storing_answers(tmp_path: Path) -> None:
    with opened(tmp_path / "m") as mine, opened(tmp_path / "m") as other:

        def certify(x: torch.Tensor, input_index: int) -> Certificate:
            other.settle(x.numpy() + 0.1, certificate(7, 0.5), other.reserve(0.001))
            return certificate(3, 0.5)

        answer = Guard(certify, mine)(np.zeros(3))
        assert (answer.label, answer.source, answer.region, len(mine)) == (7, "memory", 1, 1)
        assert mine.spent == 0.002
