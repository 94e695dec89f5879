"""How many samples are worked on at once: settled before a vote, and the same ever after."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from unicr.classifier import load_classifier
from unicr.data.internal import from_arrays
from unicr.noise import gaussian
from unicr.norms import l2
from unicr.runs import Job, Run, certify_run, replay
from unicr.smoothing import Plan, SmoothedClassifier, guess_batch_size
from unicr.smoothing import _batch as batches

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


@pytest.fixture
def careful(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose memory is short enough for a rehearsal, whatever it has."""
    monkeypatch.setattr(batches, "SURE", float("inf"))


def test_large_inputs_have_small_batches() -> None:
    shapes = ((784,), (3, 32, 32), (3, 64, 64), (3, 224, 224))
    sizes = [guess_batch_size(shape, CPU) for shape in shapes]
    assert sizes[:2] == [1000, 1000]
    assert 1000 > sizes[2] > sizes[3] > 1


def test_memory_that_is_short_halves_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "_free", lambda device: 2.0**28)
    assert 1 < guess_batch_size((3, 32, 32), CPU) < 1000
    assert guess_batch_size((3, 32, 32), CPU, sharing=64) < guess_batch_size((3, 32, 32), CPU)


@pytest.mark.usefixtures("careful")
def test_what_has_no_memory_is_halved_before_a_vote() -> None:
    model = Greedy()
    smoothed = SmoothedClassifier(model, gaussian(sigma=0.1), seed=1)
    certificate = smoothed.certify(torch.full(SHAPE, 0.6), n0=20, n=500)
    assert certificate.predict == 0
    assert certificate.counts == (500, 0)
    assert batches.pass_size(smoothed.batch or 0, CPU) == FITS


@pytest.mark.usefixtures("careful")
def test_a_run_writes_its_batch_down_and_replays_with_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    inputs = rng.random((3, *SHAPE), dtype=np.float32)
    data = from_arrays(inputs, np.zeros(3, np.int64), name="d", source="d")
    classifier = load_classifier(Greedy())
    job = Job(classifier, data, gaussian(sigma=0.1), norms=(l2,), plan=Plan(n0=20, n=300))
    with certify_run(job, tmp_path / "run") as run:
        assert [row.status for row in run.rows()] == ["certified"] * 3
        assert batches.pass_size(run.spec.batch, CPU) == FITS
    with Run(tmp_path / "run") as run:
        assert {found for _, found in replay(run, classifier, data, 3)} == {None}


def test_a_batch_that_was_asked_for_is_kept() -> None:
    smoothed = SmoothedClassifier(Greedy(), gaussian(sigma=0.1), seed=1, batch=40)
    with pytest.raises(Exception, match="allocate memory"):
        smoothed.predict(torch.full(SHAPE, 0.6))
