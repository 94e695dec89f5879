"""Votes under a second law in certificates: planted classifiers, runs, what is refused."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import special

from tests.cli.command import run
from tests.radius.test_two_laws import PAIRS
from unicr import SmoothedClassifier, noise
from unicr.binomial import lower_bound
from unicr.errors import NoiseError
from unicr.noise.internal import within
from unicr.norms import Norm
from unicr.radius import Evidence, Question, RadiusCurve, SecondLaw
from unicr.radius.internal import prove
from unicr.runs import Run, load_run
from unicr.smoothing import Plan, Radii
from unicr.smoothing.procedures import TwoLawCertificate, TwoLawVotes

LAW = noise.spherical_gg(k=4, sigma=1, dim=12)
SHARE = 0.5
FAR = float(LAW.length.ppf(0.93))
PLAN = Plan(n0=1000, n=4000, procedure=TwoLawVotes(SHARE))


def test_the_second_law_is_the_first_one_within_its_ball() -> None:
    law = noise.parse(f"{LAW.text}.within(0.5)")
    assert law == within(LAW, 0.5)
    assert law.text == f"{LAW.text}.within(0.5)"
    ball = float(LAW.length.ppf(0.5))
    lengths = law.sample(20_000, seed=3).double().norm(dim=1).numpy()
    assert lengths.max() <= ball * (1 + 1e-6)
    below = np.searchsorted(np.sort(lengths), LAW.length.ppf(np.linspace(0.02, 0.48, 24))) / 20_000
    # Kolmogorov–Smirnov: false alarm 1e-7
    assert np.max(np.abs(below - np.linspace(0.04, 0.96, 24))) < 2.9 / np.sqrt(20_000)
    double = noise.parse(f"({LAW.text} * 2).within(0.5)")
    assert double.unit == law.unit
    assert (law * 2).sample(2, seed=1).norm() == pytest.approx(
        2 * float(law.sample(2, seed=1).norm())
    )


def test_laplace_noise_within_its_l1_ball() -> None:
    """Uniform ranks of ‖z‖₁ below the ball's, beside the Gamma law of a sum of exponentials."""
    law = noise.parse("l1_exp(k=1, j=0, scale=2, dim=6).within(0.25)")
    lengths = law.sample(20_000, seed=4).double().abs().sum(1).numpy() / 2
    ranks = np.sort(special.gammainc(6, lengths)) / 0.25
    assert ranks.max() <= 1 + 1e-5
    apart = np.max(np.abs(ranks - (np.arange(20_000) + 0.5) / 20_000))
    assert apart < 2.9 / np.sqrt(20_000)  # Kolmogorov–Smirnov: false alarm 1e-7


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gaussian(sigma=1).within(0.5)", "only noise of a radial density"),
        (f"{LAW.text}.within(1.5)", "strictly between 0 and 1"),
    ],
)
def test_a_ball_needs_spherical_noise_and_a_share(text: str, words: str) -> None:
    with pytest.raises(NoiseError, match=words):
        noise.parse(text)


def outside(batch: torch.Tensor) -> torch.Tensor:
    """Class 0 in a ball that holds 93 % of the noise: q_A = 1 within the smaller ball."""
    return (batch.double().norm(dim=1) > FAR).long()


def true_p(shift: float) -> float:
    """P(‖shift·e + ε‖ ≤ FAR) by 400,000 samples; deviation below 8e-4."""
    rng = np.random.default_rng(1)
    r, cosine = LAW.length.ppf(rng.random(400_000)), 2 * rng.beta(5.5, 5.5, 400_000) - 1
    return float(np.mean(np.sqrt(r * r + shift * shift + 2 * r * shift * cosine) <= FAR))


def two_laws(f: object, seed: int, plan: Plan = PLAN) -> TwoLawCertificate:
    smooth = SmoothedClassifier(f, LAW, seed=seed, lattice=None)
    found = smooth.certify(torch.zeros(12), [2, "inf"], plan=plan)
    assert isinstance(found, TwoLawCertificate)
    return found


@pytest.mark.slow
def test_a_planted_classifier_gains_and_keeps_what_is_promised() -> None:
    """g = 0 up to where P falls to ½, measured; the second law pays, and both bounds are true."""
    alone = SmoothedClassifier(outside, LAW, seed=3, lattice=None).certify(
        torch.zeros(12), 2, plan=replace(PLAN, procedure=Plan().procedure)
    )
    found = two_laws(outside, 3)
    assert found.q_a is not None
    assert found.q_a == pytest.approx(lower_bound(2000, 2000, 0.0005))
    assert found.radius(2) > 1.05 * alone.radius(2)
    assert found.radius("inf") == pytest.approx(found.radius(2) / np.sqrt(12))
    assert true_p(found.radius(2)) > 0.5 + 0.005
    evidence = Evidence(found.p_a, second=SecondLaw(found.q_a, SHARE))
    assert found.radius(2) == prove(Question(LAW, 2), evidence, laws=2).radius
    assert found.n == PLAN.n


@pytest.mark.slow
def test_at_equal_budget_hardly_a_published_input_loses_by_the_second_law() -> None:
    """n votes under one law beside the choice of n0 votes, their first half the same; seeded."""
    law, rng, n0, n = (
        noise.spherical_gg(k=1530, sigma=0.5, dim=3072),
        np.random.default_rng(4),
        1000,
        100_000,
    )
    measure, half, gains = TwoLawVotes(0.5), n // 2, []
    plan, radii = Plan(n0=n0, n=n, procedure=measure), Radii(law, (Norm(2),), 3072)
    curve = RadiusCurve(law, 2)
    for _, p, q, *_ in (pair for pair in PAIRS if pair[0] == 0.5):
        for _ in range(3):
            hints = [rng.binomial(n0, chance) for chance in (p, q)]
            first, rest, other = (rng.binomial(half, chance) for chance in (p, p, q))
            alone = float(curve(lower_bound(first + rest, n, plan.alpha)))
            p_a, q_a = (lower_bound(votes, half, plan.alpha / 2) for votes in (first, other))
            selection, hint = (np.array([k, n0 - k]) for k in hints)
            pays = measure.pays(selection, hint, plan, radii)
            evidence = Evidence(p_a, second=SecondLaw(q_a, 0.5))
            both = max(float(curve(p_a)), prove(Question(law, 2), evidence, laws=2).radius)
            gains.append(both - alone if pays else 0.0)
    assert np.mean(np.array(gains) < 0) <= 0.05
    assert min(gains) >= -0.01
    assert np.mean(gains) >= 0.02


@pytest.mark.slow
def test_no_second_votes_where_they_promise_nothing() -> None:
    """A half-space: within the ball it is as probable as outside, so one law says it all."""
    edge = float(np.quantile(LAW.sample(100_000, seed=9)[:, 0].numpy(), 0.8))
    found = two_laws(lambda batch: (batch[:, 0] > edge).long(), 5)
    assert found.q_a is None
    assert found.second == ()
    assert sum(found.counts) == PLAN.n


@pytest.mark.slow
def test_a_run_under_two_laws_is_verified_replayed_and_cannot_be_embellished(
    tmp_path: Path,
) -> None:
    (tmp_path / "model.py").write_text(
        f"def f(batch):\n    return (batch.double().norm(dim=1) > {FAR!r}).long()\n"
    )
    np.savez(tmp_path / "x.npz", x=np.zeros((2, 12), np.float32), y=np.zeros(2, np.int64))
    done = run(
        "certify", "--model", f"{tmp_path / 'model.py'}:f", "--data", tmp_path / "x.npz",
        "--noise", LAW.text, "--norm", 2, "--n", 4000, "--n0", 1000,
        "--procedure", f"two_laws(share={SHARE})",
        "--out", tmp_path / "run",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "second law: used for 2 of 2 inputs" in done.out
    trust = ["--trust", tmp_path / "model.py"]
    done = run("verify", tmp_path / "run", "--replay", 1, *trust)
    assert done.code == 0, done.out
    with load_run(tmp_path / "run") as opened:
        rows = list(opened.rows())
        assert all(isinstance(row.certificate, TwoLawCertificate) for row in rows)
    with sqlite3.connect(tmp_path / "run" / Run.__init__.__globals__["FILE"]) as base:
        base.execute(
            "UPDATE results SET claims = json_set(claims, '$.q_a', 0.9999999) WHERE idx = 0"
        )
        base.execute(
            "UPDATE results SET transcript = "
            "json_set(transcript, '$[3].counts', json('[2100, -100]')) WHERE idx = 1"
        )
    done = run("verify", tmp_path / "run")
    assert done.code == 1
    assert "input 0: q_a 0.9999999 stored" in done.out
    assert "input 1" in done.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--noise", "laplace(sigma=1)", "--procedure", "two_laws(share=0.5)"],
            "two laws need spherical",
        ),
        (["--noise", LAW.text, "--procedure", "two_laws(share=1.5)"], "a share between 0 and 1"),
        (
            ["--noise", LAW.text, "--procedure", "two_laws", "--rule", "pilot"],
            "a rule without early stopping",
        ),
    ],
)
def test_what_two_laws_cannot_do_is_said_in_one_line(
    options: list[str], words: str, tmp_path: Path
) -> None:
    (tmp_path / "model.py").write_text("def f(batch):\n    return (batch[:, 0] > 0).long()\n")
    np.savez(tmp_path / "x.npz", x=np.zeros((1, 12), np.float32), y=np.zeros(1, np.int64))
    run(
        "certify", "--model", f"{tmp_path / 'model.py'}:f", "--data", tmp_path / "x.npz",
        "--norm", 2, *options, "--out", tmp_path / "run",
    ).check_refused(words)  # fmt: skip


def test_a_selector_has_no_second_law(tmp_path: Path) -> None:
    run(
        "certify", "--selector", tmp_path, "--data", "builtin:mnist", "--norm", 2,
        "--procedure", "two_laws", "--out", tmp_path / "run",
    ).check_refused("--procedure cannot be used with --selector")  # fmt: skip
