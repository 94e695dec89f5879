"""The passes of noisy copies: measured before the first vote, and the same ever after."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch

from unicr import SmoothedClassifier
from unicr.classifier import load_classifier
from unicr.data.internal import from_arrays
from unicr.errors import ModelError
from unicr.noise import gaussian
from unicr.norms import l2
from unicr.runs import Job, Run, certify_run, replay
from unicr.smoothing import Passes, Plan, Request
from unicr.smoothing import _batch as batches
from unicr.smoothing._batch import choose_passes, list_sizes

CPU = torch.device("cpu")
SHAPE = (3, 8, 8)
FITS = 4  # inputs that the model below has memory for


class Greedy(torch.nn.Module):
    """Asks the real allocator for more than there is where a pass is large."""

    def __init__(self) -> None:
        super().__init__()
        self.passes: list[int] = []

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        if len(batch) > FITS:
            torch.empty(1 << 50)
        self.passes.append(len(batch))
        return torch.stack([batch.mean((1, 2, 3)), torch.full((len(batch),), 0.3)], 1)


def test_sizes_worth_a_try_hold_as_many_values_as_a_cache() -> None:
    shapes = ((784,), (3, 32, 32), (3, 64, 64), (3, 224, 224))
    sizes = [list_sizes(shape, CPU) for shape in shapes]
    assert sizes == [[100, 200, 500, 1000], [20, 50, 100, 200], [10, 20, 50], [1, 2, 4]]
    assert list_sizes((2,), CPU) == [1000]
    assert list_sizes((3, 1024, 1024), CPU) == [1]


def test_memory_that_is_short_leaves_large_ones_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "measure_free_memory", lambda device: 2.0**28)
    threads = torch.get_num_threads()
    fitting = 2**28 // (2 * 64 * 4 * 3072 * threads)
    assert list_sizes((3, 32, 32), CPU) == [s for s in (20, 50, 100, 200) if s <= fitting]
    assert list_sizes((3, 32, 32), CPU, sharing=64) == [2]


def test_the_quickest_pass_is_taken_and_a_smaller_one_if_it_hardly_differs() -> None:
    seconds = {20: 1.2, 50: 1.01, 100: 1.0, 200: 1.1}

    def choose(slower: float) -> Passes:
        def measure(passes: Passes) -> float:
            return seconds[passes.size] * (slower if passes.channels_last else 1.0)

        return choose_passes((3, 32, 32), CPU, measure, layouts=True)

    assert choose(slower=1.1) == Passes(50)
    assert choose(slower=0.99) == Passes(50)
    assert choose(slower=0.8) == Passes(50, channels_last=True)


def test_a_question_smaller_than_a_pass_gets_a_smaller_pass() -> None:
    """Passes of 1000 are the quickest for an input, but 100 votes would fill up 900 of them."""
    seconds = {100: 1.2, 200: 1.1, 500: 1.05, 1000: 1.0}

    def choose(*asks: int) -> Passes:
        return choose_passes((784,), CPU, lambda p: seconds[p.size], layouts=False, asks=asks)

    assert choose(100) == Passes(100)
    assert choose(100, 100_000) == Passes(1000)
    assert choose(300, 1000) == Passes(100)


def test_measuring_ends_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that takes 0.8 seconds a pass is tried twice, and the clock is the real one."""
    tried = []

    def measure(passes: Passes) -> float:
        tried.append(passes)
        time.sleep(0.8)
        return 1.0

    assert choose_passes((3, 32, 32), CPU, measure, layouts=True) == Passes(20)
    assert tried == [Passes(20), Passes(20, channels_last=True)]


def test_what_has_no_memory_gets_smaller_passes_before_a_vote() -> None:
    smoothed = SmoothedClassifier(Greedy(), gaussian(sigma=0.1), seed=1)
    certificate = smoothed.certify(torch.full(SHAPE, 0.6), n0=20, n=500)
    assert certificate.predict == 0
    assert certificate.counts == (500, 0)
    assert smoothed.batch == FITS


def test_a_run_writes_its_passes_down_and_replays_with_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    inputs = rng.random((3, *SHAPE), dtype=np.float32)
    data = from_arrays(inputs, np.zeros(3, np.int64), name="d", source="d")
    classifier = load_classifier(Greedy())
    job = Job(classifier, data, gaussian(sigma=0.1), norms=(l2,), plan=Plan(n0=20, n=300))
    with certify_run(job, tmp_path / "run") as run:
        assert [row.status for row in run.rows()] == ["certified"] * 3
        assert run.spec.batch == FITS
    with Run(tmp_path / "run") as run:
        assert {found for _, found in replay(run, classifier, data, 3)} == {None}


class Layouts(torch.nn.Module):
    """Remembers the layout of what it was given; its labels do not depend on it."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 2, 3)
        self.last: list[bool] = []

    def __deepcopy__(self, _: object) -> Layouts:
        raise RuntimeError("one only")

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        self.last.append(batch.is_contiguous(memory_format=torch.channels_last))
        return self.convolution(batch).mean((2, 3))


def test_a_run_keeps_its_layout_when_it_goes_on(tmp_path: Path) -> None:
    inputs = np.random.default_rng(5).random((3, *SHAPE), dtype=np.float32)
    data = from_arrays(inputs, np.zeros(3, np.int64), name="d", source="d")
    model = Layouts()
    job = Job(
        load_classifier(model),
        data,
        gaussian(sigma=0.1),
        norms=(l2,),
        plan=Plan(n0=20, n=300),
        batch=10,
        channels_last=True,
        seed=0,
        limit=1,
    )
    certify_run(job, tmp_path / "run").close()
    model.last.clear()
    more = replace(job, batch=None, channels_last=None, limit=3)
    with certify_run(more, tmp_path / "run", resume=True) as run:
        assert (run.spec.batch, run.spec.channels_last) == (10, True)
    assert model.last[-64:] == [True] * 64


class Stretched(torch.nn.Module):
    """Refuses channels last, as a network with `view` does."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 2, 3)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.convolution(batch.view(-1, 3 * 32 * 32).view(-1, 3, 32, 32)).mean((2, 3))


def test_a_model_that_cannot_have_channels_last_does_not_get_them() -> None:
    smoothed = SmoothedClassifier(Stretched(), gaussian(sigma=0.1), seed=1)
    smoothed.predict(torch.full((3, 32, 32), 0.6), n=100)
    assert smoothed.channels_last is False


def test_questions_that_are_answered_together_have_the_answers_they_have_alone() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 3))
    xs = torch.rand(7, *SHAPE)
    smoothed = SmoothedClassifier(model, gaussian(sigma=0.5), seed=1, batch=8)
    asked = [(Request(n, start=3 * i), xs[i], i) for i, n in enumerate((1, 8, 9, 100, 30, 0, 17))]
    together = smoothed.answer_many(asked)
    alone = [smoothed.answer(*one) for one in asked]
    for a, b, (question, _, _) in zip(together, alone, asked, strict=True):
        assert not isinstance(a, Exception)
        assert a.tolist() == b.tolist()
        assert a.sum() == question.n


def test_one_question_that_fails_does_not_spoil_the_others() -> None:
    def model(batch: torch.Tensor) -> torch.Tensor:
        scores = torch.stack([batch.sum(1), -batch.sum(1)], 1)
        return torch.where(batch[:, :1] > 50, torch.nan, scores)

    xs = [torch.full((4,), value) for value in (1.0, 100.0, -1.0)]
    smoothed = SmoothedClassifier(model, gaussian(sigma=0.01), seed=1, batch=8, num_classes=2)
    good, bad, other = smoothed.answer_many([(Request(20, 0), x, 0) for x in xs])
    assert isinstance(bad, ModelError)
    assert "not finite" in str(bad)
    assert [np.asarray(one).tolist() for one in (good, other)] == [[20, 0], [0, 20]]


def test_a_batch_that_was_asked_for_is_kept() -> None:
    smoothed = SmoothedClassifier(Greedy(), gaussian(sigma=0.1), seed=1, batch=40)
    with pytest.raises(Exception, match="allocate memory"):
        smoothed.predict(torch.full(SHAPE, 0.6))


class Meeting(torch.nn.Module):
    """Every pass waits for another one beside it; also remembers torch's own threads in each."""

    together: ClassVar[threading.Barrier | None] = None
    threads: ClassVar[set[int]] = set()

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        if self.together is not None:
            self.together.wait(timeout=60)
            self.threads.add(torch.get_num_threads())
        return torch.stack([batch.mean((1, 2, 3)), torch.full((len(batch),), 0.3)], 1)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core")
@pytest.mark.parametrize("batch", [None, 20])
@pytest.mark.parametrize("inputs", [1, 4])
def test_two_passes_run_beside_each_other_with_one_thread_each(
    batch: int | None, inputs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one input with two passes, and of four inputs with one each."""
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        smoothed = SmoothedClassifier(Meeting(), gaussian(sigma=0.1), seed=1, batch=batch)
        x = torch.full((inputs, *SHAPE), 0.6)
        smoothed.predict(x, n=20)  # the first call measures and looks at the model
        assert smoothed.batch is not None
        monkeypatch.setattr(Meeting, "together", threading.Barrier(2))
        labels = smoothed.predict(x, n=2 * smoothed.batch if inputs == 1 else smoothed.batch)
    finally:
        torch.set_num_threads(threads)
    assert set(labels.tolist()) == {0}
    assert Meeting.threads == {1}
