"""What a memory has spent, exactly, and what its regions may claim."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.guard.planted import certificate, memory
from unicr.classifier import load_classifier
from unicr.data import load_dataset
from unicr.guard import Guard, Memory, check_memory, made_for, plant
from unicr.noise import Lattice, gaussian
from unicr.norms import l2
from unicr.runs import Job, Row
from unicr.smoothing import Certificate, Plan


def test_every_question_that_was_begun_is_counted_at_its_alpha() -> None:
    """Answers from memory cost nothing; abstentions, failures and planted ones cost their α."""

    def certify(x: torch.Tensor, index: int) -> Certificate:
        if float(x[0]) > 50:
            raise RuntimeError("no certificate")
        return certificate(-1 if float(x[0]) > 5 else 1, 0.0 if float(x[0]) > 5 else 0.5)

    with memory(1) as store:
        guard = Guard(certify, store, alpha=0.004)
        for x, spent in ((0.0, 0.004), (0.25, 0.004), (2.0, 0.008), (9.0, 0.012)):
            guard([x])
            assert store.spent == spent
        with pytest.raises(RuntimeError, match="no certificate"):
            guard([60.0])
        assert store.spent == 0.016
        data = load_dataset((np.array([[-3.0], [-30.0]], np.float32), np.zeros(2, np.int64)))
        rows = [Row(i, 0, data.digest_of(i), 0.0, certificate(0, 1.0, alpha=0.02)) for i in (0, 1)]
        plant(store, rows, data)
        assert store.spent == pytest.approx(0.056, abs=1e-15)
        plant(store, rows, data)
        assert store.spent == pytest.approx(0.056, abs=1e-15)


def test_questions_are_moved_to_the_lattice_first() -> None:
    """A region round 0.5 answers what is moved to 0.5, and its centre is a point of the lattice."""
    seen: list[float] = []

    def certify(x: torch.Tensor, index: int) -> Certificate:
        seen.append(float(x[0]))
        return certificate(1, 1e-3)

    with memory(1) as store:
        guard = Guard(certify, store, lattice=Lattice.parse("1/2"))
        assert guard([0.6]).source == "fresh"
        assert guard([0.4]).source == "memory"
        assert guard([0.9]).source == "fresh"
    assert seen == [0.5, 1.0]


def nothing(batch: torch.Tensor) -> torch.Tensor:
    return torch.zeros(len(batch), dtype=torch.int64)


@pytest.mark.parametrize(("reach", "holds"), [(1.0, True), (1.01, False), (0.5, False)])
def test_a_region_wider_than_its_certificate_is_told(reach: float, holds: bool) -> None:
    """Stored by hand as `settle` would: the reach follows from what was certified."""
    plan = Plan(n0=10, n=1000)
    data = load_dataset(np.zeros((1, 1), np.float32))
    job = Job(
        load_classifier(nothing, num_classes=2), data, gaussian(sigma=1), norms=(l2,), plan=plan,
        seed=0, lattice=None, batch=9,
    )  # fmt: skip
    spec = job.spec
    with Memory(None, norm=l2, shape=(1,), made_for=made_for(spec)) as store:
        stream = store.reserve(plan.alpha)
        store.settle(np.zeros(1, np.float32), certificate(0, 1.0), stream)
        with store.write():
            store._db.execute("UPDATE regions SET reach = ?", (reach,))
        found = list(check_memory(store, spec, {}))
    assert (not found) is holds, found
