"""The paper's engine against the numeric one, closed forms, brute force; confidence; errors."""

from __future__ import annotations

import json
import math
import resource
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import special, stats

from unicr import noise
from unicr.binomial import lower_bound, upper_bound
from unicr.cli import app
from unicr.errors import NoiseError, RadiusError
from unicr.montecarlo._boundary import (
    Boundary,
    quantile_corners,
    weigh_corners,
)
from unicr.montecarlo._confidence import compute_dkw_width, confirm_radius
from unicr.montecarlo._logratio import LogRatios
from unicr.montecarlo._settings import Method
from unicr.radius import Evidence, MonteCarlo, Question, certified_radius
from unicr.radius.internal import search_direction
from unicr.tradeoff.internal import compute_margin

METHODS: tuple[Method, ...] = ("clopper-pearson", "dkw", "hockey-stick")
FAMILIES = ("gennorm(beta=1.5, sigma=1)", "laplace(sigma=1)", "sech(sigma=1)",
            "lapgauss(beta=0.5, sigma=1)")  # fmt: skip


pytestmark = pytest.mark.usefixtures("one_thread")


def quick(**changes: Any) -> MonteCarlo:
    settings: dict[str, Any] = {"samples": 8_000, "particles": 8, "iterations": 6}
    return MonteCarlo(**{**settings, "confidence_method": "none", **changes})


def numeric(name: str, norm: float, dim: int, p_a: float) -> float:
    return search_direction(Question(noise.parse(name), norm, dim), Evidence(p_a))[0]


# Algorithm 1 ----------------------------------------------------------------------------------


def gaussian_ratios(shift: float, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    ratios = LogRatios(noise.gaussian(sigma=1), 1, n, seed=seed, stream=0)
    move = torch.full((1, 1), shift, dtype=torch.float64)
    return ratios.under_p(move)[0], ratios.under_q(move)[0]


def test_log_ratios_of_a_gaussian() -> None:
    under_p, under_q = gaussian_ratios(0.7, 40_000)
    z = noise.gaussian(sigma=1).sample(40_000, 1, input_index=0x4D43_0000, dtype=torch.float64)
    np.testing.assert_allclose(under_p, 0.7 * z[:, 0] - 0.245, atol=4e-9)
    np.testing.assert_allclose(under_q, 0.7 * z[:, 0] + 0.245, atol=4e-9)


def test_both_estimators_give_the_trade_off_function() -> None:
    under_p, under_q = gaussian_ratios(1.0, 40_000)
    for corners in (weigh_corners(under_q), quantile_corners(under_p, under_q)):
        for alpha in (0.02, 0.1, 0.4):
            truth = special.ndtr(-special.ndtri(alpha) - 1.0)
            assert corners.beta(alpha) == pytest.approx(truth, abs=0.02)
        assert corners.alpha(0.5) == pytest.approx(special.ndtr(-1.0), abs=0.02)
        # what lies beyond the largest of 40,000 ratios: more than 0.0084 once in 10⁶ times
        assert corners.beta(0.0) == pytest.approx(1.0, abs=1e-2)
        found = compute_margin(corners, special.ndtr(1.5), 0.05)
        expected = special.ndtr(1.5 - 1) + special.ndtr(-special.ndtri(0.05) - 1) - 1
        assert found == pytest.approx(expected, abs=0.03)


def test_atoms_are_interpolated() -> None:
    u, n = 0.4, 40_000
    ratios = LogRatios(noise.laplace(scale=1), 1, n, seed=1, stream=0)
    move = torch.full((1, 1), u, dtype=torch.float64)
    under_p, under_q = ratios.under_p(move)[0], ratios.under_q(move)[0]
    top = 0.5 * math.exp(-u)  # P-mass of the atom L = u, whose Q-mass is 1/2
    for corners in (weigh_corners(under_q), quantile_corners(under_p, under_q)):
        for share in (0.1, 0.5, 0.9):
            assert corners.beta(share * top) == pytest.approx(1 - 0.5 * share, abs=0.02)


def test_sparse_moves_need_only_their_coordinates() -> None:
    one = noise.laplace(sigma=1)
    move = torch.zeros((2, 100_000), dtype=torch.float64)
    move[0, 77], move[1, [3, 99_999]] = 0.5, -0.25
    ratios = LogRatios(one, 100_000, 20_000, seed=0, stream=0)
    assert ratios.under_q(move).shape == (2, 20_000)
    assert sorted(ratios._kept) == [1, 2]


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    one = noise.Joint(gaussian_density, gaussian_sampler, dim=3)
    move = torch.tensor([[0.1, 0.2, 0.3], [1.0, 0.0, 0.0]], dtype=torch.float64)
    whole = LogRatios(one, 3, 500, seed=2, stream=0).under_q(move)
    monkeypatch.setattr("unicr.montecarlo._logratio.CHUNK", 3 * 64)
    monkeypatch.setattr("unicr.montecarlo._logratio.KEPT", 0)
    np.testing.assert_allclose(LogRatios(one, 3, 500, seed=2, stream=0).under_q(move), whole)


# Algorithm 2 ----------------------------------------------------------------------------------


def boundary(one: noise.Noise, dim: int, n: int, p_a: float, **options: Any) -> Boundary:
    ratios = LogRatios(one, dim, n, seed=0, stream=0)
    settings: dict[str, Any] = {"estimator": "weighted", "monotone": True, **options}
    return Boundary(ratios, p_a, 1 - p_a, **settings)


@pytest.mark.parametrize("monotone", [True, False])
@pytest.mark.parametrize("estimator", ["weighted", "quantile"])
def test_the_boundary_is_met_from_the_certified_side(estimator: str, monotone: bool) -> None:
    one = boundary(noise.gaussian(sigma=1), 4, 8_000, 0.9, estimator=estimator, monotone=monotone)
    rows = torch.tensor([[1.0, 0, 0, 0], [0.5, 0.5, 0.5, 0.5]], dtype=torch.float64)
    for guess in (0.05, 10.0):
        radii = one.radii(rows, np.full(2, guess), tolerance=1e-3)
        np.testing.assert_allclose(radii, special.ndtri(0.9), rtol=0.06)
        assert np.all(one.margins(rows, radii) >= 0)
        assert np.all(one.margins(rows, radii * 1.01) < 0)


def test_limits_spare_the_work() -> None:
    one = boundary(noise.gaussian(sigma=1), 1, 20_000, 0.9)
    rows = torch.ones((2, 1), dtype=torch.float64)
    radii = one.radii(rows, np.ones(2), tolerance=1e-3, limits=np.array([1.0, 2.0]))
    assert math.isinf(radii[0])
    assert radii[1] == pytest.approx(special.ndtri(0.9), rel=0.03)


def test_the_first_root_is_found_where_k_is_not_monotone() -> None:
    """Three separated intervals: overlap 0 at shift 1/2, 2/3 at shift 1 (THEORY section 1)."""

    def logpdf(z: torch.Tensor) -> torch.Tensor:
        inside = (z[:, 0] >= 0) & (z[:, 0] <= 2.25) & (z[:, 0] % 1 <= 0.25)
        return torch.where(inside, 0.0, -math.inf)

    def sampler(n: int, generator: torch.Generator) -> torch.Tensor:
        part = torch.randint(0, 3, (n, 1), generator=generator)
        return part + 0.25 * torch.rand(n, 1, generator=generator, dtype=torch.float64)

    comb = noise.Joint(logpdf, sampler, dim=1, bounded=True)
    found = certified_radius(comb, 2, p_a=0.9, montecarlo=quick())
    # at u ≤ 1/4 the overlap is o = 1 − u/0.25, where L = 0, and T(0.1) = o − 0.1 = 1/2
    assert found.searched == pytest.approx(0.25 * (1 - 0.6), rel=0.06)


# the whole engine -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "norm", "p_a"),
    [
        ("gennorm(beta=1.5, sigma=1)", 2, 0.99),
        ("laplace(sigma=1)", 1, 0.6),
        ("laplace(sigma=1)", 2, 0.99),
        ("sech(sigma=1)", math.inf, 0.9),
        ("cauchy(scale=1)", 1, 0.9),
        ("uniform(sigma=1)", 1, 0.9),
    ],
)
def test_it_agrees_with_the_numeric_engine(name: str, norm: float, p_a: float) -> None:
    found = certified_radius(
        noise.parse(name), norm, 48, p_a=p_a, engine="montecarlo", montecarlo=quick()
    )
    assert found.engine == "montecarlo"
    assert found.proved == 0
    assert found.searched == pytest.approx(numeric(name, norm, 48, p_a), rel=0.04)


BUILT_IN = {
    "gaussian": "gaussian(sigma=1)",
    "laplace": "laplace(sigma=1)",
    "sech": "sech(sigma=1)",
    "gennorm": "gennorm(beta=0.75, sigma=1)",
    "cauchy": "cauchy(scale=1)",
    "pareto": "pareto(beta=3, scale=1)",
    "lapgauss": "lapgauss(beta=0.5, sigma=1)",
    "expmix": "expmix(beta=0.5, sigma=1)",
    "uniform": "uniform(sigma=1)",
    "splitting": "splitting(sigma=1)",
    "spherical_gg": "spherical_gg(k=2, sigma=1, dim=6)",
    "spherical_exp": "spherical_exp(k=1, sigma=1, dim=6)",
    "ball": "ball(sigma=1, dim=6)",
    "linf_exp": "linf_exp(k=1, j=0, sigma=1, dim=6)",
    "linf_pareto": "linf_pareto(a=16, sigma=1, dim=6)",
    "l1_exp": "l1_exp(k=1, j=0, sigma=1, dim=6)",
}


QUADRATURE = ("spherical_gg", "spherical_exp")  # whose truth takes seconds


@pytest.mark.parametrize(
    "family",
    [pytest.param(f, marks=[pytest.mark.slow] if f in QUADRATURE else []) for f in noise.FAMILIES],
)
def test_every_family_is_certified(family: str) -> None:
    one = noise.parse(BUILT_IN.get(family, noise.FAMILIES[family].example))
    settings = quick(confidence_method="hockey-stick")
    found = certified_radius(
        one, math.inf, 6, p_a=0.95, p_b=0.02, engine="montecarlo", montecarlo=settings
    )
    truth = certified_radius(one, math.inf, 6, p_a=0.95, p_b=0.02).searched
    assert found.searched == pytest.approx(truth, rel=0.04)
    assert found.radius_with_confidence is not None
    assert 0.8 * truth < found.radius_with_confidence < truth


def test_certainty_is_finite_for_bounded_noise() -> None:
    one = noise.uniform(scale=1)
    found = certified_radius(one, 1, 3, p_a=1.0, engine="montecarlo", montecarlo=quick())
    assert found.searched == pytest.approx(1.0, rel=0.03)  # overlap of (−1, 1) with its shift: 1/2
    endless = certified_radius(noise.laplace(sigma=1), 1, 3, p_a=1.0, engine="montecarlo")
    assert math.isinf(endless.radius)


@pytest.mark.slow
@pytest.mark.parametrize("p_a", [0.6, 0.9, 0.99])
@pytest.mark.parametrize("norm", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("name", FAMILIES)
def test_within_three_per_cent_of_the_numeric_engine(name: str, norm: float, p_a: float) -> None:
    settings = MonteCarlo(confidence_method="none")
    found = certified_radius(
        noise.parse(name), norm, 784, p_a=p_a, engine="montecarlo", montecarlo=settings
    )
    assert found.searched == pytest.approx(numeric(name, norm, 784, p_a), rel=0.03)


def test_two_classes_need_both_probabilities() -> None:
    one = noise.gaussian(sigma=1)
    settings = quick(confidence_method="clopper-pearson")
    found = certified_radius(one, 2, 5, p_a=0.8, p_b=0.05, engine="montecarlo", montecarlo=settings)
    truth = certified_radius(one, 2, 5, p_a=0.8, p_b=0.05).radius
    assert found.searched == pytest.approx(truth, rel=0.03)
    assert found.radius_with_confidence is not None
    assert 0.6 * truth < found.radius_with_confidence < truth


def gaussian_density(z: torch.Tensor) -> torch.Tensor:
    return -0.5 * z.square().sum(1)


def gaussian_sampler(n: int, generator: torch.Generator) -> torch.Tensor:
    return torch.randn(n, 3, generator=generator, dtype=torch.float64)


def test_the_weakest_eigenvector_is_found_in_fifty_dimensions() -> None:
    dim = 50
    generator = torch.Generator().manual_seed(1)
    basis, _ = torch.linalg.qr(torch.randn(dim, dim, generator=generator, dtype=torch.float64))
    values = torch.linspace(0.3, 3, dim, dtype=torch.float64)
    inverse = basis @ torch.diag(1 / values) @ basis.T
    correlated = noise.Joint(
        lambda z: -0.5 * ((z @ inverse) * z).sum(1),
        lambda n, g: (
            (torch.randn(n, dim, generator=g, dtype=torch.float64) * values.sqrt()) @ basis.T
        ),
        dim=dim,
        symmetric=True,
        log_concave=True,
        name="correlated",
    )
    found = certified_radius(correlated, 2, p_a=0.9, montecarlo=quick(confidence_method="dkw"))
    truth = float(special.ndtri(0.9)) * math.sqrt(0.3)
    assert found.engine == "montecarlo"
    assert found.searched == pytest.approx(truth, rel=0.03)
    assert found.vector is not None
    assert abs(float(basis[:, 0] @ torch.from_numpy(found.vector))) > 0.95
    assert found.radius_with_confidence is not None
    assert 0.7 * truth < found.radius_with_confidence <= truth


def radial_sampler(dim: int) -> Callable[[int, torch.Generator], torch.Tensor]:
    """exp(−‖z‖_∞): a Gamma(dim) radius times a uniform point of the surface of the cube."""

    def sampler(n: int, generator: torch.Generator) -> torch.Tensor:
        uniform = torch.rand(n, dim, generator=generator, dtype=torch.float64)
        face = torch.randint(0, dim, (n,), generator=generator)
        sign = torch.randint(0, 2, (n,), generator=generator).to(torch.float64) * 2 - 1
        point = 2 * torch.rand(n, dim, generator=generator, dtype=torch.float64) - 1
        point[torch.arange(n), face] = sign
        return -uniform.log().sum(1, keepdim=True) * point

    return sampler


@pytest.mark.parametrize("p_a", [0.6, 0.9, 0.99])
def test_linf_radial_noise(p_a: float) -> None:
    dim, scale = 20, 0.5
    one = noise.Joint(
        lambda z: -z.abs().amax(1), radial_sampler(dim), dim=dim, symmetric=True, log_concave=True
    )
    found = certified_radius(one * scale, "inf", p_a=p_a, montecarlo=quick())
    assert found.searched == pytest.approx(scale * math.log(1 / (2 * (1 - p_a))), rel=0.03)
    assert found.guarantee == "approximate"
    l1 = certified_radius(one * scale, 1, p_a=p_a, montecarlo=quick())
    assert l1.searched > found.searched


def test_linf_radial_noise_against_l1_is_the_worst_of_a_plane() -> None:
    """d = 2: rotated by 45°, ‖z‖_∞ is a sum of two halves, so l1 is the l∞ of Laplace noise."""
    one = noise.Joint(
        lambda z: -z.abs().amax(1), radial_sampler(2), dim=2, symmetric=True, log_concave=True
    )
    found = certified_radius(one, 1, p_a=0.9, montecarlo=quick())
    truth = 2 * certified_radius(noise.laplace(scale=1), "inf", 2, p_a=0.9).radius
    assert found.searched == pytest.approx(truth, rel=0.03)


def test_an_asymmetric_density_has_its_worst_sign() -> None:
    """Shifted exponentials, d = 3: T = p_A·e^(−‖δ‖_1) downwards, so R_1 = ln(2·p_A)."""
    one = noise.Joint(
        lambda z: torch.where((z >= -1).all(1), -z.sum(1), -math.inf),
        lambda n, g: -torch.rand(n, 3, generator=g, dtype=torch.float64).log() - 1,
        dim=3,
        log_concave=True,
    )
    found = certified_radius(one, 1, p_a=0.9, montecarlo=quick(samples=100_000))
    assert found.searched == pytest.approx(math.log(1.8), rel=0.03)
    assert found.vector is not None
    assert found.vector.sum() < -0.9


def test_a_shifted_exponential_mixture_in_one_dimension() -> None:
    def density(x: np.ndarray) -> np.ndarray:
        left = np.where(x >= -1, 0.7 * np.exp(-np.maximum(x + 1, 0)), 0)
        right = np.where(x >= 0.5, 0.3 * 2 * np.exp(-2 * np.maximum(x - 0.5, 0)), 0)
        with np.errstate(divide="ignore"):
            return np.log(left + right)

    def sampler(n: int, generator: torch.Generator) -> torch.Tensor:
        first = torch.rand(n, 1, generator=generator, dtype=torch.float64) < 0.7
        e = -torch.rand(n, 1, generator=generator, dtype=torch.float64).log()
        return torch.where(first, e - 1, 0.5 + e / 2)

    one = noise.Joint(lambda z: torch.from_numpy(density(z[:, 0].numpy())), sampler, dim=1)
    found = certified_radius(one, 2, p_a=0.9, montecarlo=quick(samples=20_000))
    grid = np.linspace(-1, 12, 26_001)
    p = np.exp(density(grid))
    radii = []
    for sign in (1, -1):
        for shift in np.arange(0.01, 2, 0.01):
            q = np.exp(density(grid - sign * shift))
            outside = 1 - min(float(q.sum()) * (grid[1] - grid[0]), 1.0)
            order = np.argsort(-(q / np.maximum(p, 1e-300)))
            mass = np.cumsum(p[order]) * (grid[1] - grid[0])
            power = outside + np.cumsum(q[order]) * (grid[1] - grid[0])
            if np.interp(0.1, mass, power) > 0.5:
                radii.append(float(shift))
                break
    assert found.searched == pytest.approx(min(radii), rel=0.04)


def test_the_uniform_ball() -> None:
    found = certified_radius(
        noise.ball(scale=1, dim=10), 2, p_a=0.9, engine="montecarlo", montecarlo=quick()
    )
    truth = 2 - 4 * special.betaincinv(5.5, 5.5, 0.75 - 0.45)
    assert found.searched == pytest.approx(truth, rel=0.03)


def test_auto_samples_only_where_nothing_else_applies() -> None:
    assert certified_radius(noise.laplace(sigma=1), 1, 5, p_a=0.9).engine == "closed form"
    joint = noise.Joint(gaussian_density, gaussian_sampler, dim=3, symmetric=True)
    found = certified_radius(joint, 2, p_a=0.9, montecarlo=quick(iterations=0))
    assert found.engine == "montecarlo"
    assert found.converged is False
    for engine in ("numeric", "exact"):
        with pytest.raises(RadiusError, match=r"no (numeric|exact)"):
            certified_radius(joint, 2, p_a=0.9, engine=engine)


def test_results_are_repeatable_and_plain() -> None:
    settings = quick(seed=3, samples=2_000, confidence_method="hockey-stick")
    one = noise.laplace(sigma=1)
    first, second = (
        certified_radius(one, 2, 30, p_a=0.9, engine="montecarlo", montecarlo=settings)
        for _ in range(2)
    )
    assert first == second
    values = json.loads(json.dumps(first.to_dict()))
    assert values["samples"] == 2_000
    assert values["confidence"] == 0.999
    assert values["radius_with_confidence"] <= values["searched"]
    assert len(values["vector"]) == 30
    assert "samples" not in certified_radius(one, 1, 30, p_a=0.9).to_dict()
    abstained = certified_radius(one, 2, 30, p_a=0.4, engine="montecarlo")
    assert abstained.guarantee == "abstain"


@pytest.mark.slow
def test_imagenet_size_stays_within_memory() -> None:
    settings = MonteCarlo(
        samples=10_000, particles=6, iterations=3, confidence_method="hockey-stick"
    )
    found = certified_radius(
        noise.laplace(sigma=1), 2, 150_528, p_a=0.99, engine="montecarlo", montecarlo=settings
    )
    assert found.searched == pytest.approx(1.6565, rel=0.03)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4e6  # kilobytes


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = "radius --noise laplace(sigma=1) --norm 2 --dim 20 --pa 0.9 --engine montecarlo"
    more = "--samples 2000 --particles 4 --iterations 2 --seed 1 --confidence-method dkw"
    app([*words.split(), *more.split()])
    shown = capsys.readouterr()
    assert "montecarlo" in shown.out
    assert "confident" in shown.out
    assert "probability 0.999" in shown.out
    assert shown.err == ""
    app([*words.split(), *more.split(), "--json"])
    values = json.loads(capsys.readouterr().out)
    assert values["engine"] == "montecarlo"
    assert values["seed"] == 1


# confidence -----------------------------------------------------------------------------------


def violations(name: str, method: Method, failure: float, runs: int) -> tuple[int, float]:
    """How often the confident radius exceeds the truth, and its mean share of it, at 600 samples.

    The estimate that caps the radius is set to 1.5 times the truth, so that it cannot help.
    """
    one = noise.parse(name)
    assert isinstance(one, noise.IID)
    p_a = 0.8
    truth = float(one.isf(1 - p_a))
    bad, total = 0, 0.0
    for seed in range(runs):
        old, new = (LogRatios(one, 1, 600, seed=seed, stream=stream) for stream in (1, 2))
        direction = torch.ones(1, dtype=torch.float64)
        found = confirm_radius(
            old,
            new,
            direction,
            1.5 * truth,
            p_a,
            1 - p_a,
            method=method,
            failure=failure,
            seed=seed,
        )
        bad += found > truth
        total += found / truth
    return bad, total / runs


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["gaussian(sigma=1)", "laplace(scale=1)"])
def test_confidence_holds_quick(name: str, method: Method) -> None:
    bad, share = violations(name, method, 0.1, 40)
    assert bad <= stats.binom.isf(1e-6, 40, 0.1)  # false alarm at most 1e-6
    assert share > 0.25


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["gaussian(sigma=1)", "laplace(scale=1)"])
def test_at_least_999_of_1000_hold(name: str, method: Method) -> None:
    """Two violations in 1,000 runs have probability 5e-7 at η = 1e-6 each.

    At the default η = 1e-3 the promise itself would allow one on average; that no more are seen is
    not guaranteed, but the seeds are fixed, and none is (nor any at η = 0.2).
    """
    bad, share = violations(name, method, 1e-6, 1_000)
    assert bad <= 1  # false alarm 5e-7
    bad, share = violations(name, method, 1e-3, 1_000)
    assert bad <= 1
    assert share > 0.2


def test_the_figures_of_the_theory_page() -> None:
    """n = 1e5, p_A = .999, Gaussian: DKW 2.43, Clopper–Pearson 2.99, truth 3.09."""
    found = {}
    one = noise.gaussian(sigma=1)
    for method in METHODS:
        old, new = (LogRatios(one, 1, 100_000, seed=0, stream=stream) for stream in (1, 2))
        found[method] = confirm_radius(
            old,
            new, torch.ones(1, dtype=torch.float64), 3.08, 0.999, 0.001,
            method=method, failure=1e-3, seed=0,
        )  # fmt: skip
    assert found["dkw"] == pytest.approx(2.43, abs=0.05)
    assert found["clopper-pearson"] == pytest.approx(2.95, abs=0.06)
    assert 3.03 < found["hockey-stick"] < 3.09


def test_binomial_bounds_are_scipys() -> None:
    for count in (0, 1, 37, 100):
        exact = stats.binomtest(count, 100, alternative="greater").proportion_ci(0.99)
        assert lower_bound(count, 100, 0.01) == pytest.approx(exact.low, abs=1e-12)
        exact = stats.binomtest(count, 100, alternative="less").proportion_ci(0.99)
        assert upper_bound(count, 100, 0.01) == pytest.approx(exact.high, abs=1e-12)
    assert compute_dkw_width(20_000, 1e-3) == pytest.approx(0.013785, abs=1e-6)


# errors ---------------------------------------------------------------------------------------

BAD_SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "zero samples": ({"samples": 0}, "samples=0 must be a whole number of at least 2"),
    "negative particles": ({"particles": -1}, "particles=-1"),
    "negative iterations": ({"iterations": -3}, "iterations=-3"),
    "fractional samples": ({"samples": 10.5}, r"samples=10\.5"),
    "zero search samples": ({"search_samples": 0}, "search_samples=0"),
    "seed": ({"seed": "a"}, "seed='a'"),
    "inertia": ({"inertia": math.nan}, "inertia=nan"),
    "tolerance": ({"tolerance": 0.0}, r"tolerance=0\.0"),
    "alpha": ({"alpha": 1.0}, r"alpha=1\.0 must lie between 0 and 1"),
    "method": ({"confidence_method": "magic"}, "must be one of clopper-pearson, dkw"),
    "estimator": ({"estimator": "magic"}, "must be one of weighted, quantile"),
}


@pytest.mark.parametrize("name", BAD_SETTINGS)
def test_bad_settings_are_named(name: str) -> None:
    settings, reason = BAD_SETTINGS[name]
    with pytest.raises(RadiusError, match=reason):
        MonteCarlo(**settings)


def test_a_density_that_turns_nan_away_from_its_samples() -> None:
    def logpdf(z: torch.Tensor) -> torch.Tensor:
        return torch.where(z.abs().amax(1) > 5.5, math.nan, gaussian_density(z))

    one = noise.Joint(logpdf, gaussian_sampler, dim=3)
    with pytest.raises(NoiseError, match="returned NaN"):
        certified_radius(one, 2, p_a=0.99, montecarlo=quick())


WRONG_SAMPLERS: dict[str, Callable[[int, torch.Generator], torch.Tensor]] = {
    "scale": lambda n, g: 1.2 * gaussian_sampler(n, g),
    "narrow": lambda n, g: 0.85 * gaussian_sampler(n, g),
    "shift": lambda n, g: 0.2 + gaussian_sampler(n, g),
    "shape": lambda n, g: (2 * torch.rand(n, 3, generator=g, dtype=torch.float64) - 1) * 3**0.5,
    "correlation": lambda n, g: (
        gaussian_sampler(n, g)
        @ torch.tensor([[1.0, 0.5, 0], [0, 0.75**0.5, 0], [0, 0, 1]], dtype=torch.float64)
    ),
}


@pytest.mark.parametrize("name", WRONG_SAMPLERS)
def test_a_sampler_that_disagrees_is_caught(name: str) -> None:
    one = noise.Joint(gaussian_density, WRONG_SAMPLERS[name], dim=3)
    with pytest.raises(NoiseError, match="do not follow its density"):
        certified_radius(one, 2, p_a=0.9)


def test_samplers_that_agree_pass() -> None:
    noise.Joint(gaussian_density, gaussian_sampler, dim=3).check_agreement()
    noise.Joint(lambda z: -z.abs().amax(1), radial_sampler(4), dim=4).check_agreement()
    noise.Joint(
        lambda z: -torch.log1p(z.square()).sum(1),
        lambda n, g: torch.empty(n, 2, dtype=torch.float64).cauchy_(generator=g),
        dim=2,
        finite_variance=False,
    ).check_agreement()
