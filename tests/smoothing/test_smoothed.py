"""Smoothed classifiers with known probabilities: right answers, and false certificates counted."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

import unicr
from unicr import SmoothedClassifier, noise
from unicr.errors import CertifyError, ModelError
from unicr.smoothing import (
    ABSTAIN,
    Certificate,
    Curves,
    NormRadius,
    Plan,
    Radii,
    Votes,
    lower_bound,
    read_norms,
)
from unicr.smoothing.rules import Pilot, Target, ThreeTests


def half_space(direction: torch.Tensor, threshold: float = 0.0):  # type: ignore[no-untyped-def]
    """Class 1 where direction·x > threshold."""

    def classify(batch: torch.Tensor) -> torch.Tensor:
        return (batch.flatten(1).double() @ direction.double() > threshold).long()

    return classify


ONE_HOT = torch.tensor([1.0, 0, 0, 0])
EVEN = torch.full((4,), 0.5)


LAWS = pytest.mark.parametrize(
    ("spec", "norm", "direction"),
    [
        ("gaussian(sigma=1)", 2, ONE_HOT),
        ("gaussian(sigma=1)", math.inf, EVEN),
        ("gaussian(sigma=0.5)", 0.5, ONE_HOT),
        ("laplace(sigma=1)", 1, ONE_HOT),
        ("sech(sigma=1)", 1, ONE_HOT),
        ("gennorm(beta=1.5, sigma=1)", 1, ONE_HOT),
        ("uniform(sigma=1)", 1, ONE_HOT),
        ("laplace(sigma=1)", math.inf, EVEN),
        ("cauchy(scale=1)", math.inf, ONE_HOT),
    ],
)
NONCE = "5a" * 32


@LAWS
@pytest.mark.parametrize("mode", ["fixed", "pilot", "target"])
def test_rate_of_false_certificates(
    spec: str, norm: float, direction: torch.Tensor, mode: str
) -> None:
    """Real-valued noise of a seed, 2,000 certifications at α = 0.05, three rules."""
    check_rate(spec, norm, direction, mode, 2000, seed=0, lattice=None)


@LAWS
@pytest.mark.parametrize("coarse", [False, True])
def test_rate_of_false_certificates_by_default(
    spec: str, norm: float, direction: torch.Tensor, coarse: bool
) -> None:
    """Lattice and nonce, as users have them; x is moved to a fine lattice, or lies on a coarse one.

    On the coarse one the promise is about changes by whole steps; the boundary is at one of them.
    """
    size = "2" if "0.5" in spec else "1"
    lattice = f"1/{size}0" if coarse else "auto"
    check_rate(spec, norm, direction, "fixed", 500, nonce=NONCE, lattice=lattice)


@pytest.mark.parametrize("mode", ["pilot", "target"])
def test_rate_of_false_certificates_by_default_with_rules(mode: str) -> None:
    """The same with early stopping."""
    check_rate("laplace(sigma=1)", 1, ONE_HOT, mode, 500, nonce=NONCE)


def check_rate(
    spec: str, norm: float, direction: torch.Tensor, mode: str, repeats: int, **how: Any
) -> None:
    """Certifications of a half-space at α = 0.05. The true radius is known: how far the boundary
    is along the direction that flips it. False alarm rate 1e-6 (binomial quantile)."""
    law = noise.parse(spec)
    x = 0.9 * law.sigma * direction if math.isfinite(law.sigma) else 0.9 * direction
    reach = float(x.double() @ direction.double())
    truth = reach / float(direction.abs().sum() if math.isinf(norm) else direction.norm())
    smoothed = SmoothedClassifier(half_space(direction), law, num_classes=2, batch=512, **how)
    alpha = 0.05
    plan = {
        "fixed": Plan(n0=10, n=150, alpha=alpha),
        "pilot": Plan(n0=10, n=150, alpha=alpha, rule=Pilot(0.1)),
        "target": Plan(n0=10, n=150, alpha=alpha, rule=Target(1.001 * truth)),
    }[mode]
    curves = Curves(read_norms(norm), 4)
    wrong = 0
    for i in range(repeats):
        result = smoothed.certify_with(x, plan, curves, i)
        wrong += result.predict == 0 or (result.predict == 1 and result.radius() > truth)
    assert wrong <= stats.binom.isf(1e-6, repeats, alpha)


@pytest.mark.parametrize("how", [{"seed": 0, "lattice": None}, {"nonce": NONCE}], ids=str)
def test_rate_of_false_certificates_with_both_bounds(how: dict[str, Any]) -> None:
    """Three classes by two thresholds; (p_A, p_B) by three tests, Gaussian ℓ2, α = 0.05."""

    def classify(batch: torch.Tensor) -> torch.Tensor:
        first = batch.flatten(1)[:, 0]
        return (first > 0).long() + (first > 2.0).long()

    law = noise.gaussian(sigma=1)
    x = torch.tensor([1.2, 0.0])
    smoothed = SmoothedClassifier(classify, law, num_classes=3, **how)
    plan = Plan(n0=20, n=200, alpha=0.05, rule=ThreeTests())
    curves = Curves(read_norms(2), 2)
    wrong = 0
    for i in range(2000):
        result = smoothed.certify_with(x, plan, curves, i)
        if result.predict == ABSTAIN:
            continue
        for shift in (-1, 1):
            at = 1.2 + shift * 0.999 * result.radius()
            p = [stats.norm.cdf(-at), stats.norm.cdf(2 - at) - stats.norm.cdf(-at)]
            p.append(1 - sum(p))
            if int(np.argmax(p)) != result.predict:
                wrong += 1
                break
    assert wrong <= stats.binom.isf(1e-6, 2000, 0.05)


def test_constant_classifier_reaches_the_largest_radius() -> None:
    law = noise.gaussian(sigma=0.5)
    smoothed = SmoothedClassifier(lambda b: torch.full((len(b),), 3), law, num_classes=10, seed=0)
    result = smoothed.certify(torch.rand(1, 4, 4), [1, 2, "inf"], n=10_000)
    assert result.predict == 3
    best = 0.5 * stats.norm.ppf(0.001 ** (1 / 10_000))
    assert result.radius(2) == pytest.approx(best, rel=1e-3)
    assert result.radius(2) <= best
    assert result.radius("inf") == pytest.approx(best / 4, rel=1e-3)
    plan = Plan(n=10_000)
    largest = Radii(law, read_norms([1, 2, "inf"]), 16).largest(plan)
    assert largest["2"] == pytest.approx(result.radius(2), rel=1e-4)  # x was moved a little


def test_ball_classifier() -> None:
    """Class 1 inside a ball around x: p_A is a chi-square probability, estimated by the votes."""
    law = noise.gaussian(sigma=1)
    smoothed = SmoothedClassifier(
        lambda b: (b.flatten(1).norm(dim=1) < 3.0).long(),
        law,
        num_classes=2,
        seed=0,
    )
    result = smoothed.certify(torch.zeros(5), 2, n=20_000)
    truth = stats.chi2.cdf(9, 5)
    assert result.predict == 1
    assert result.p_a < truth
    assert result.p_a == pytest.approx(truth, abs=0.02)


def test_a_coin_abstains() -> None:
    """A randomised base classifier is allowed; a fair coin cannot be certified."""
    generator = torch.Generator().manual_seed(0)

    def coin(batch: torch.Tensor) -> torch.Tensor:
        return torch.randint(0, 2, (len(batch),), generator=generator)

    smoothed = SmoothedClassifier(coin, noise.gaussian(sigma=1), num_classes=2, seed=0)
    result = smoothed.certify(torch.zeros(3), 2, n=2000)
    assert result.predict == ABSTAIN
    assert result.radius() == 0
    assert smoothed.predict(torch.zeros(3), n=200) == ABSTAIN


def test_predict_finds_a_clear_class() -> None:
    smoothed = SmoothedClassifier(
        half_space(ONE_HOT), noise.gaussian(sigma=1), num_classes=2, seed=0
    )
    with pytest.raises(CertifyError, match="n=10 votes decide nothing"):
        smoothed.predict(2 * ONE_HOT, n=10)
    assert smoothed.predict(9 * ONE_HOT, n=11) == 1
    assert smoothed.predict(2 * ONE_HOT, n=200) == 1
    assert smoothed.predict(-2 * ONE_HOT, n=200) == 0


@pytest.mark.parametrize("batch", [1, 7, 256, 1000])
def test_votes_do_not_depend_on_the_batch(batch: int) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 5))
    x = torch.rand(16)
    law = noise.laplace(sigma=0.5)
    reference = SmoothedClassifier(model, law, num_classes=5, batch=300, seed=0).votes(
        x, 700, start=100
    )
    smoothed = SmoothedClassifier(model, law, num_classes=5, batch=batch, seed=0)
    np.testing.assert_array_equal(smoothed.votes(x, 700, start=100), reference)
    split = smoothed.votes(x, 333, start=100) + smoothed.votes(x, 367, start=433)
    np.testing.assert_array_equal(split, reference)


def test_votes_follow_a_model_that_changes_in_place() -> None:
    """Replicas for other threads share parameters and batch-norm statistics with the model."""
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2)).eval()
    law = noise.gaussian(sigma=1)
    smoothed = SmoothedClassifier(model, law, num_classes=2, seed=0)
    smoothed.votes(torch.ones(4), 1000, start=0)
    with torch.no_grad():
        model[0].running_mean.fill_(3.0)  # type: ignore[operator]
        model[1].bias.copy_(torch.tensor([0.0, 0.2]))  # type: ignore[operator]
    fresh = SmoothedClassifier(model, law, num_classes=2, seed=0).votes(
        torch.ones(4), 1000, start=0
    )
    np.testing.assert_array_equal(smoothed.votes(torch.ones(4), 1000, start=0), fresh)


def test_inputs_and_seeds_have_their_own_noise() -> None:
    smoothed = SmoothedClassifier(
        half_space(ONE_HOT), noise.gaussian(sigma=1), num_classes=2, seed=0
    )
    counts = {tuple(smoothed.votes(torch.zeros(4), 500, start=0, input_index=i)) for i in range(9)}
    assert len(counts) > 4
    other = SmoothedClassifier(half_space(ONE_HOT), noise.gaussian(sigma=1), num_classes=2, seed=9)
    mine = smoothed.votes(torch.zeros(4), 5000, start=0)
    assert tuple(mine) != tuple(other.votes(torch.zeros(4), 5000, start=0))


def test_selection_and_estimation_use_different_samples() -> None:
    """A classifier that answers by the order of its calls would be caught: starts differ."""
    starts: list[int] = []

    class Spy(SmoothedClassifier):
        def answer_many(self, asked):  # type: ignore[no-untyped-def]
            starts.extend(question.start for question, _, _ in asked)
            return super().answer_many(asked)

    Spy(half_space(ONE_HOT), noise.gaussian(sigma=1), num_classes=2).certify(
        ONE_HOT, 2, n0=100, n=1000
    )
    assert starts == [0, 100]


def test_target_radius_stops_early_with_the_same_decision() -> None:
    """p_A spread like a published CIFAR-10 log: ≥ 10 × fewer samples, the decisions of n = 1e5."""
    law = noise.gaussian(sigma=0.5)
    rng = np.random.default_rng(3)
    target, n = 0.5, 100_000
    p = np.concatenate([rng.beta(6, 0.6, 80), rng.beta(1.2, 1.2, 20)])
    plan = Plan(n=n, rule=Target(target))
    radii = Radii(law, read_norms(2), 3072)
    needed = radii.find_least_p_a(target)
    assert stats.norm.cdf(1.0) <= needed <= stats.norm.cdf(1.0) + 1e-4
    used, agree = 0, 0
    for one in p:
        votes = Votes(0, None, 0)
        while step := plan.rule.next(votes, plan, radii):
            votes = Votes(votes.top + int(rng.binomial(step, one)), None, votes.n + step)
        used += votes.n
        certified = plan.rule.conclude(votes, plan, radii)[0] == needed
        fixed = lower_bound(int(rng.binomial(n, one)), n, 0.001) >= needed
        agree += certified == fixed
    assert used <= n * len(p) / 10
    assert agree >= len(p) - 3


def test_pilot_stops_early_and_says_so() -> None:
    law = noise.gaussian(sigma=1)
    smoothed = SmoothedClassifier(half_space(ONE_HOT), law, num_classes=2, seed=0)
    plan = Plan(n=20_000, rule=Pilot(10.0))
    result = smoothed.certify(ONE_HOT, 2, plan=plan)
    assert result.n < 1000
    exact = smoothed.certify(ONE_HOT, 2, plan=Plan(n=20_000, rule=Pilot(0.0)))
    assert exact.n == 20_000


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_inputs_that_are_not_finite_are_refused(value: float) -> None:
    smoothed = SmoothedClassifier(
        half_space(ONE_HOT), noise.gaussian(sigma=1), num_classes=2, seed=0
    )
    with pytest.raises(CertifyError, match="not finite"):
        smoothed.certify(torch.tensor([value, 0, 0, 0]), 2)


def test_quantised_inputs_stay_exact() -> None:
    """k/255 in float32 plus noise is rounded once: the noise itself, not the pixel, moves it."""
    law = noise.gaussian(sigma=0.25)
    x = torch.arange(256, dtype=torch.float32) / 255
    together = law.sample(50, 256, seed=1, base=x)
    alone = law.sample(50, 256, seed=1, dtype=torch.float64)
    expected = (alone + x.double()).float()
    assert torch.equal(together, expected)


def test_models_that_fail_say_why() -> None:
    def broken(batch: torch.Tensor) -> torch.Tensor:
        return torch.full((len(batch), 2), math.nan)

    smoothed = SmoothedClassifier(broken, noise.gaussian(sigma=1), num_classes=2, seed=0)
    with pytest.raises(ModelError, match="not finite"):
        smoothed.certify(torch.zeros(3), 2, n=20)


@pytest.mark.parametrize(
    "settings",
    [
        {"n0": 0},
        {"n": 0},
        {"alpha": 0.0},
        {"alpha": 1.5},
        {"rule": Target(-1.0)},
        {"rule": Target(math.inf)},
        {"rule": Pilot(-0.1)},
        {"rule": Pilot(math.inf)},
    ],
)
def test_bad_plans(settings: dict[str, object]) -> None:
    with pytest.raises(CertifyError):
        Plan(**settings)  # type: ignore[arg-type]


def test_names_at_the_top_of_the_package() -> None:
    assert unicr.SmoothedClassifier is SmoothedClassifier
    assert unicr.Denoised is not None
    certificate = SmoothedClassifier(
        half_space(ONE_HOT),
        noise.gaussian(sigma=1),
        num_classes=2,
        seed=0,
    ).certify(ONE_HOT, [1, 2], n=1000)
    with pytest.raises(CertifyError, match="say which one: 1, 2"):
        certificate.radius()
    with pytest.raises(CertifyError, match="no radius"):
        certificate.radius("inf")


def test_a_certificate_says_in_one_line_what_it_promises() -> None:
    radii = (NormRadius("2", 0.5, 0.5, 0.6, "approximate"), NormRadius("inf", 0.2, 0.1, 0.2, "x"))
    one = Certificate(7, 0.9, 0.1, 10, 20, 0.001, radii)
    assert "class 7" in one.promise
    assert "‖δ‖_2 < 0.5 or ‖δ‖_inf < 0.2 (searched; proved only 0.1)" in one.promise
    assert "except with probability 0.001" in one.promise
    assert "abstains" in dataclasses.replace(one, predict=-1).promise


def test_what_a_notebook_shows_of_a_smoothed_classifier() -> None:
    """Before and after its first input, which settles what was left open."""
    law = noise.from_density(lambda x: -(abs(x) ** 3), name="cubic", sigma=0.5)
    g = SmoothedClassifier(half_space(ONE_HOT), law, nonce=NONCE)
    assert repr(g).endswith(", cubic.with_sigma(0.5))")
    assert "<th>lattice</th><td>auto</td>" in g._repr_html_()
    assert "<th>batch</th>" not in g._repr_html_()
    g.votes(torch.ones(4) / 255, 10, start=0)
    page = g._repr_html_()
    assert "<th>noise</th><td>cubic.with_sigma(0.5)</td>" in page
    assert "<th>lattice</th><td>2^-" in page
    assert "<th>batch</th><td>1000</td>" in page
    assert NONCE in page
