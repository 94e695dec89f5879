"""Certificates of stretched noise and of sums: what is drawn, what is claimed, who breaks it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
import torch

from unicr import noise
from unicr.classifier import load_classifier
from unicr.data import load_dataset
from unicr.errors import NoiseError
from unicr.noise import Lattice, Noise
from unicr.noise.internal import LatticeNoise, derive, lattice_for
from unicr.norms import l2, linf
from unicr.radius import certified_radius
from unicr.runs import Job, Run, certify_run, export, find_difference, prove_again, replay, verify
from unicr.sample import draw_integers, integer_law
from unicr.smoothing import NormRadius, Plan, Radii, VoteCounter, read_norms

COV = noise.gaussian.with_covariance([[0.5, 0.2, 0.0], [0.2, 0.3, 0.1], [0.0, 0.1, 0.2]])
SCALES = noise.Anisotropic(noise.gaussian(sigma=0.5), [0.5, 1.0, 2.0])
SUM = noise.parse("sum(gaussian(sigma=0.5), laplace(sigma=0.2))")
W = np.array([1.0, -2.0, 0.5])
KEY = derive("test of stretched noise")


def plane(batch: Any) -> Any:
    return ((batch.double() @ torch.from_numpy(W)) > 0).long()


@pytest.mark.parametrize("law", [COV, SCALES])
def test_a_stretched_noise_is_drawn_as_one_function_of_exact_integers(law: Noise) -> None:
    """B·h·(j + e) in exact fractions, j the point of B⁻¹x and e drawn by plain numpy."""
    lattice, frame = Lattice.parse("2^-12"), law.frame
    assert frame is not None
    drawn = LatticeNoise(law, lattice)
    x = np.array([0.7, -1.3, 0.25])
    base = drawn.integers(x)
    rows = np.diag(law.scales) if law.scales is not None else frame.matrix  # type: ignore[attr-defined]
    exact = np.linalg.solve(rows, x) * 2**12
    assert np.abs(base - exact).max() <= 0.5 + 1e-6
    out = drawn.add(base, torch.empty(50, 3), key=KEY, start=4).numpy()
    e = draw_integers(integer_law(law.core.iid, 2.0**-12), KEY, 12, 150).reshape(50, 3)
    for row, shown in zip(e + base, out, strict=True):
        for i in range(3):
            value = sum(Fraction(float(rows[i, k])) * int(row[k]) for k in range(3)) / 2**12
            assert shown[i] == np.float32(float(value))
    assert drawn.tau == LatticeNoise(law.core, lattice).tau
    alone = drawn.add(base, torch.empty(1, 3), key=KEY, start=30).numpy()
    assert np.array_equal(alone[0], out[26])


def test_the_parts_of_a_sum_are_added_as_whole_numbers() -> None:
    lattice, x = Lattice.parse("1/255"), np.array([0, 128, 255]) / 255
    drawn = LatticeNoise(SUM, lattice)
    base = drawn.integers(x)
    assert base.tolist() == [0, 128, 255]
    out = drawn.add(base, torch.empty(40, 3), key=KEY, start=2).numpy()
    total = np.tile(base, (40, 1))
    for i, part in enumerate(SUM.parts):
        law = integer_law(part, 1 / 255)
        total += draw_integers(law, derive(KEY, "part of a sum", i), 6, 120).reshape(40, 3)
    np.testing.assert_array_equal(out, (total * float(Fraction(1, 255))).astype(np.float32))
    taus = [LatticeNoise(part, lattice).tau for part in SUM.parts]
    assert drawn.tau == max(tau for tau in taus if tau is not None)


def deviation(law: Noise) -> float:
    """Of w·ε."""
    if law is COV:
        return math.sqrt(W @ COV.entries @ COV.entries.T @ W)
    raise AssertionError


def test_the_worst_change_of_mahalanobis_ball_is_kept_and_no_farther_one_claimed() -> None:
    """For a half-space the class changes exactly at Mahalanobis' distance Φ⁻¹(p), p the true one.

    The bound of p_A fails with probability 1e-6.
    """
    classifier = load_classifier(plane, num_classes=2)
    x = torch.tensor([0.8, -0.3, 0.2], dtype=torch.float64)
    counter = VoteCounter(classifier, COV, seed=5)
    certificate = counter.certify_one(x, [2, "inf"], Plan(n0=50, n=20_000, alpha=1e-6))
    assert certificate.predict == 1
    (ball, other) = certificate.radii
    far = float(W @ x.numpy()) / deviation(COV)  # Φ⁻¹(p_true)
    assert ball.reach is not None
    assert 0.9 * far < ball.reach < far
    sigma = COV.entries @ COV.entries.T
    worst = -sigma @ W / deviation(COV)
    assert certificate.contains(worst * ball.reach * (1 - 1e-9), 2)
    assert not certificate.contains(worst * ball.reach * (1 + 1e-9))
    assert W @ (x.numpy() + worst * far * (1 + 1e-9)) < 0
    # the inscribed ball, and the volume of the set in units of the unit ball
    least = math.sqrt(np.linalg.eigvalsh(sigma)[0])
    assert ball.radius == pytest.approx(least * ball.reach, rel=1e-3)
    assert ball.radius <= least * ball.reach * (1 + 1e-9)
    volume = 3 * math.log(ball.reach) + 0.5 * math.log(np.linalg.det(sigma))
    assert ball.log_volume == pytest.approx(volume, abs=1e-9)
    assert ball.log_volume is not None
    assert ball.log_volume <= volume
    # by the ball of ℓ∞ too, in its own corners
    assert certificate.contains(np.sign(worst) * other.radius * (1 - 1e-9))
    # p_A paid the sampler's error, and the reach the lattice
    assert certificate.charge is not None
    p_a = certificate.p_a
    assert ball.reach <= NormalDist().inv_cdf(p_a)
    assert "‖B⁻¹δ‖_2 <" in certificate.promise
    assert not replace(certificate, predict=-1).contains(np.zeros(3))


@pytest.mark.parametrize("law", [COV, SCALES])
def test_what_moving_an_input_costs_is_taken_off_ball_and_set(law: Noise) -> None:
    """Both ends of a change move to the grid of B⁻¹x: no pair of them loses more than is paid."""
    frame, step = law.frame, 2.0**-6
    assert frame is not None
    lattice = Lattice.parse("2^-6")
    drawn, rng = LatticeNoise(law, lattice), np.random.default_rng(1)
    for norm in read_norms([1, 2, 3, "inf"]):
        free = Radii(law, [norm], 3).at(0.99, 0.01)[0]
        paid = Radii(law, [norm], 3, lattice=lattice).at(0.99, 0.01)[0]
        assert free.reach is not None
        assert paid.reach is not None
        moved_most = set_most = 0.0
        for _ in range(300):
            x, y = rng.normal(size=(2, 3)) * 2
            j = (drawn.integers(y) - drawn.integers(x)) * step
            change = frame.place(torch.from_numpy(j[None].astype(float)), 1.0).numpy()[0]
            moved_most = max(moved_most, norm(change) - norm(y - x))
            set_most = max(set_most, norm(j) - frame.measure(y - x, norm.p))
        assert 0.3 * (free.radius - paid.radius) < moved_most < free.radius - paid.radius
        assert 0.3 * (free.reach - paid.reach) < set_most < free.reach - paid.reach


def test_an_automatic_grid_costs_a_ball_little() -> None:
    wide = noise.Anisotropic(noise.gaussian(sigma=0.5), np.geomspace(0.01, 1, 50))
    inputs = [torch.rand(50, dtype=torch.float64)]
    for law in (wide, COV):
        chosen = lattice_for([inputs[0][: law.dim]], law, [l2, linf])
        for norm in (l2, linf):
            free = Radii(law, [norm], law.dim or 0).at(0.9, 0.1)[0]
            paid = Radii(law, [norm], law.dim or 0, lattice=chosen).at(0.9, 0.1)[0]
            assert free.radius * 0.999 < paid.radius < free.radius
    with pytest.raises(NoiseError, match="too far"):
        LatticeNoise(COV, Lattice.parse("2^-30")).integers(np.full(3, 1e3))


def job(law: Noise) -> Job:
    x = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
    return Job(
        load_classifier(plane, num_classes=2),
        load_dataset((x, plane(torch.from_numpy(x)).numpy())),
        law,
        norms=read_norms([1] if law is SUM else [2, "inf"]),
        plan=Plan(n0=20, n=400),
    )


@pytest.mark.parametrize("law", [COV, SCALES, SUM], ids=["cov", "scales", "sum"])
def test_a_run_keeps_its_sets_and_an_auditor_finds_them_again(law: Noise, tmp_path: Path) -> None:
    work = job(law)
    certify_run(work, tmp_path / "run").close()
    with Run(tmp_path / "run") as run:
        assert list(verify(run)) == []
        assert all(wrong is None for _, wrong in prove_again(run, every=True))
        assert [w for _, w in replay(run, work.classifier, work.data, 3)] == [None] * 3
        rows = list(run.rows())
        export(run, tmp_path / "run.csv")
        export(run, tmp_path / "run.jsonl")
    certified = [row.certificate for row in rows if row.status == "certified"]
    assert certified
    head = (tmp_path / "run.csv").read_text().splitlines()[0].split(",")
    stretched = law is not SUM
    assert ("reach_l2" in head) == ("log_volume_linf" in head) == stretched
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    for c in certified:
        assert c is not None
        assert c.contains(np.array([c.radii[0].radius * 0.999, 0, 0]))
        if stretched:
            found = certified_radius(law.core, 2, 3, p_a=c.p_a).radius
            assert c.radii[0].frame == law.frame
            assert found * 0.99 < (c.radii[0].reach or 0) <= found
    assert any("reach" in one for line in lines for one in line["radii"]) == stretched


@pytest.mark.parametrize("lie", ["reach", "log_volume", "frame"])
def test_a_forged_set_is_found(lie: str, tmp_path: Path) -> None:
    counter = VoteCounter(load_classifier(plane, num_classes=2), SCALES, seed=1)
    honest = counter.certify_one(torch.tensor([1.0, -1.0, 0.5]), 1, Plan(n0=20, n=500))
    first = honest.radii[0]
    assert NormRadius.from_dict(first.to_dict(), [SCALES.frame]) == first
    assert first.reach is not None
    assert first.log_volume is not None
    changes: dict[str, Any] = {
        "reach": first.reach * 1.001,
        "log_volume": first.log_volume + 0.01,
        "frame": COV.frame,
    }
    forged = replace(honest, radii=(replace(first, **{lie: changes[lie]}),))
    assert find_difference(honest, honest) is None
    complaint = find_difference(forged, honest)
    assert complaint is not None
    assert lie in complaint
