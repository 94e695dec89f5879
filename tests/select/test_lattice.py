"""Selectors on a real machine: sums without rounding, keyed noise, one function per member."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.select.test_select import CHOICES, folder, job_of  # noqa: F401
from tests.smoothing.test_adversaries import DIM, LAW, SHIFT, LowBits
from unicr import SelectiveClassifier, noise
from unicr.data import Dataset
from unicr.norms import l1, l2
from unicr.runs import NO_TRUST, certify_run, replay, verify
from unicr.select import Selector


def zeros(batch: torch.Tensor) -> torch.Tensor:
    return torch.zeros(len(batch), dtype=torch.int64)


def ones(batch: torch.Tensor) -> torch.Tensor:
    return torch.ones(len(batch), dtype=torch.int64)


def breaks(predictor: SelectiveClassifier) -> bool:
    """Whether a point inside the certified ball of 0 has, surely, another class."""
    found = predictor.certify(torch.zeros(DIM), 2, n=10_000)
    other = torch.full((DIM,), SHIFT)
    if found.abstained or found.radius() <= float(other.norm()):
        return False
    return predictor.predict(other, n=2000, alpha=1e-9, input_index=1) == 1 - found.predict


@pytest.mark.slow
def test_a_selector_that_reads_low_bits_breaks_real_valued_noise_and_not_the_lattice() -> None:
    """Voráček and Hein's adversary as the selector, between two classifiers that disagree."""
    laws = [noise.gaussian(sigma=1.25), noise.gaussian(sigma=1.5)]
    parts = (LowBits(), LAW, [zeros, ones], laws)
    assert breaks(SelectiveClassifier(*parts, seed=0, lattice=None))
    assert not breaks(SelectiveClassifier(*parts))


def test_every_member_is_passed_full_batches_and_answers_the_same_for_any_part() -> None:
    sizes = set()

    def member(batch: torch.Tensor) -> torch.Tensor:
        sizes.add(len(batch))
        return (batch[:, 0] > 0).long()

    law = noise.gaussian(sigma=0.5)
    predictor = SelectiveClassifier(member, law, member, [law, law], batch=100)
    predictor.certify(torch.zeros(3), 2, n=130, n0=7)
    predictor.predict(torch.zeros(3), n=33)
    assert sizes == {100}


def test_what_the_lattice_takes_is_taken_from_every_part() -> None:
    """One lattice, fine enough for the smallest noise, on every input."""
    laws = [noise.gaussian(sigma=s) for s in (0.01, 0.5)]
    parts = (zeros, noise.gaussian(sigma=1), zeros, laws)
    for x in (torch.full((784,), 51 / 255), torch.full((784,), 0.02001)):
        real = SelectiveClassifier(*parts, lattice=None).certify(x, [1, 2], n=1000)
        found = SelectiveClassifier(*parts).certify(x, [1, 2], n=1000)
        assert found.seed is None
        assert found.charge is not None
        assert 0 < found.charge < 1e-9
        for norm in (1, 2):
            assert 0 < real.radius(norm) - found.radius(norm) < 1e-4 * 0.01 + 1e-6
    labelled = SelectiveClassifier(*parts, seed=3).certify(x, 2, n=1000)
    assert "seed 3: an experiment" in labelled.promise


def brighter(digits: Dataset) -> Dataset:
    """A third of a grey level brighter: off the lattice of whole levels."""

    def read(index: int) -> tuple[np.ndarray, int]:
        values, label = digits.read(index)
        return values + np.float32(1 / 765), label

    return replace(digits, read=read)


@pytest.mark.parametrize("kind", ["nonce", "seed", "real", "off the lattice"])
def test_runs_are_verified_replayed_and_resumed_as_they_were_made(
    kind: str,
    folder: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    job = replace(job_of(folder), norms=(l1, l2), limit=2)
    if kind != "seed":
        job = replace(job, seed=None, nonce="ab" * 32)
    if kind == "real":
        job = replace(job, seed=0, nonce=None, lattice=None)
    if kind == "off the lattice":
        job = replace(job, data=brighter(job.data), lattice="1/2550")
    certify_run(job, tmp_path).close()
    # a run with a nonce committed to its inputs; one with a seed may grow
    limit = 3 if kind in ("seed", "real") else 2
    again = replace(job, seed=None, nonce=None, nonce_origin=None, lattice="auto", limit=limit)
    with certify_run(again, tmp_path, resume=True) as run:
        spec, rows = run.spec, list(run.rows())
        assert list(verify(run, data=job.data)) == []
        assert (spec.lattice is None) == (kind == "real")
        assert (spec.nonce is None) == (kind in ("seed", "real"))
        found = [row.certificate for row in rows if row.certificate is not None]
        assert len(found) == limit
        assert not any(one.between_points for one in found)
        if kind == "nonce":
            model = NO_TRUST.open_model(spec)
            done = list(replay(run, model, job.data, limit))
            assert [text for _, text in done] == [None] * limit
            lied = replace(rows[0], certificate=replace(found[0], between_points=True))
            run.add(lied)
            assert [one.idx for one in verify(run) if one.idx is not None] == [lied.idx]


def test_the_smallest_noise_sets_the_lattice_of_a_run(folder: Path, tmp_path: Path) -> None:  # noqa: F811
    small = Selector(noise.gaussian(sigma=1), (noise.gaussian(sigma=0.01), CHOICES[1]))
    job = replace(job_of(folder, small), limit=1)
    with certify_run(job, tmp_path) as run:
        assert run.spec.lattice is not None
        assert run.spec.lattice.reduce(1.0, 2, 784) > 1 - 1e-4 * 0.01
