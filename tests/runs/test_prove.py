"""Radii are proved again without the curves that this machine has stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unicr import noise
from unicr.classifier import load_classifier
from unicr.cli import app
from unicr.data import load_dataset
from unicr.radius import RadiusCurve
from unicr.radius import _cache as cache
from unicr.radius import _curve as curves
from unicr.runs import Job, Run, certify_run, prove_again, verify
from unicr.smoothing import Plan, read_norms

LAW = noise.parse("gennorm(beta=1.7, sigma=0.5)")
DIM = 3


def first_coordinate(batch: Any) -> Any:
    return (batch[:, 0] > 0).long()


def job() -> Job:
    x = np.random.default_rng(0).normal(size=(4, DIM)).astype(np.float32)
    return Job(
        load_classifier(first_coordinate, num_classes=2),
        load_dataset((x, (x[:, 0] > 0).astype(np.int64))),
        LAW,
        norms=read_norms("inf"),
        plan=Plan(n=400),
    )


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    curves.get_unit_curve.cache_clear()
    yield tmp_path / "cache"
    curves.get_unit_curve.cache_clear()


@pytest.mark.usefixtures("empty_cache")
def test_a_forged_curve_passes_certify_and_not_verify(tmp_path: Path, capsys: Any) -> None:
    """Whoever owns the machine can store radii ten times too large, with a right digest."""
    honest = tmp_path / "honest"
    certify_run(job(), honest).close()
    with Run(honest) as run:
        proofs = list(prove_again(run))
    assert {what for what, _ in proofs}
    assert all(wrong is None for _, wrong in proofs)
    unit = RadiusCurve(LAW, "inf", DIM).unit
    assert unit.on_disk
    (path,) = cache.choose_folder().glob("curve-proved-*.npz")
    alpha, radius = unit.proved
    cache._write(path, unit.key, {"alpha": alpha, "radius": 10 * radius})
    curves.get_unit_curve.cache_clear()
    forged = tmp_path / "forged"
    certify_run(job(), forged).close()
    with Run(honest) as one, Run(forged) as other:
        pairs = zip(one.rows(), other.rows(), strict=True)
        assert any(b.radius("inf") > 5 * a.radius("inf") > 0 for a, b in pairs)
    with Run(forged) as run:
        assert list(verify(run)) == []  # the same curve says the same
        assert any(wrong is not None for _, wrong in prove_again(run))
    capsys.readouterr()
    assert app(["verify", str(forged)], exit_on_error=False, print_error=False) == 1
    assert "a new proof gives" in capsys.readouterr().out


def test_a_formula_needs_no_proof_unless_all_are_asked_for(tmp_path: Path) -> None:
    certify_run(replace(job(), noise=noise.gaussian(sigma=0.5)), tmp_path).close()
    with Run(tmp_path) as run:
        assert list(prove_again(run)) == []
        every = list(prove_again(run, every=True))
        certified = [row for row in run.rows() if row.status == "certified"]
    assert len(every) == len(certified) > 0
    assert all(wrong is None for _, wrong in every)
