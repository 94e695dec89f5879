"""Published radii against closed forms, quadrature, brute-force minimisation and each other."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize, special

from unicr import noise
from unicr.errors import RadiusError, SpecError
from unicr.noise import Noise
from unicr.norms import Norm, l1, l2, linf
from unicr.tightness import FORMULAS, Formula, formula, load_formula

NORMAL = NormalDist()
BINARY = [(p, 1 - p) for p in (0.5 + 1e-9, 0.5 + 1e-7, 0.5 + 1e-5, 0.501, 0.55, 0.6, 0.7)]
BINARY += [(p, 1 - p) for p in (0.8, 0.9, 0.95, 0.99, 0.999, 1 - 1e-6, 1 - 1e-12)]
MULTI = [(0.3, 0.3 - 1e-8), (0.3, 0.2), (0.45, 0.05), (0.5, 0.4), (0.5, 1e-9), (0.6, 0.1)]
MULTI += [(0.6, 0.01), (0.8, 0.15), (0.9, 0.05), (0.9, 1e-4), (0.99, 0.002), (0.999, 1e-6)]
GRID = BINARY + MULTI
GAUSSIAN = ["lecuyer", "li", *(n for n in FORMULAS if n.startswith("dvijotham"))]
LAPLACE = [n for n in GAUSSIAN if n != "li"] + ["teng"]


def radius(name: str, law: Noise, norm: Norm, p_a: float, p_b: float, dim: int = 3072) -> float:
    return FORMULAS[name].radius(law, norm, dim, p_a, p_b)


def exact_gaussian(sigma: float, p_a: float, p_b: float) -> float:
    return sigma * (NORMAL.inv_cdf(p_a) - NORMAL.inv_cdf(p_b)) / 2


def exact_laplace(scale: float, p_a: float, p_b: float) -> float:
    """(F⁻¹(p_A) − F⁻¹(p_B))/2 in 50 digits."""

    def quantile(p: Decimal) -> Decimal:
        return (2 * p).ln() if p < Decimal("0.5") else -(2 * (1 - p)).ln()

    with localcontext() as context:
        context.prec = 50
        return scale * float((quantile(Decimal(p_a)) - quantile(Decimal(p_b))) / 2)


def laplace_quantile(p: float) -> float:
    return exact_laplace(1, p, 1 - p)


def every_case() -> list[tuple[str, Noise, Norm]]:
    laws: dict[str, Noise] = {
        "gaussian": noise.gaussian(sigma=1),
        "laplace": noise.laplace(sigma=1),
        "gennorm": noise.gennorm(beta=0.75, sigma=1),
        "expmix": noise.expmix(beta=0.5, sigma=1),
        "pareto": noise.pareto(beta=1.0, scale=1),
        "uniform": noise.uniform(sigma=1),
        "linf_exp": noise.linf_exp(k=2, j=0, sigma=1, dim=3072),
        "linf_pareto": noise.linf_pareto(a=3172, sigma=1, dim=3072),
        "l1_exp": noise.l1_exp(k=1.5, j=0, sigma=1, dim=3072),
    }
    found = []
    for name in FORMULAS:
        for law in laws.values():
            for norm in (l1, l2, linf):
                try:
                    radius(name, law, norm, 0.8, 0.2)
                except RadiusError:
                    continue
                found.append((name, law, norm))
    return found


CASES = every_case()


def shown(value: object) -> str:
    return value if isinstance(value, str) else str(value)


# soundness -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GAUSSIAN)
def test_no_gaussian_l2_formula_exceeds_the_tight_radius(name: str) -> None:
    law = noise.gaussian(sigma=0.7)
    for p_a, p_b in GRID:
        value, exact = radius(name, law, l2, p_a, p_b), exact_gaussian(0.7, p_a, p_b)
        assert 0 <= value <= exact * (1 + 1e-12), (p_a, p_b)


@pytest.mark.parametrize("name", LAPLACE)
def test_no_laplace_l1_formula_exceeds_the_tight_radius(name: str) -> None:
    law = noise.laplace(scale=0.4)
    for p_a, p_b in GRID:
        value, exact = radius(name, law, l1, p_a, p_b), exact_laplace(0.4, p_a, p_b)
        assert 0 <= value <= exact * (1 + 1e-12), (p_a, p_b)


def test_differential_radii_stay_below_the_reference_searched_radii() -> None:
    law = noise.gennorm(beta=0.75, sigma=1)
    for p_a, searched in ((0.6, 0.11038), (0.9, 0.95317), (0.99, 2.63114), (0.999, 4.42648)):
        assert radius("yang_gennorm_l1", law, l1, p_a, 1 - p_a) < searched


def test_pareto_stays_below_the_one_hot_radius() -> None:
    """One-hot shift u: T_u(1 − p_A) > ½ by sorting fine cells by their likelihood ratio."""
    law = noise.pareto(beta=1.5, scale=1)
    for p_a in (0.6, 0.8, 0.9):
        u = radius("yang_pareto_l1", law, l1, p_a, 1 - p_a)
        x = np.concatenate([-np.geomspace(1e6, 1e-6, 200_000), np.geomspace(1e-6, 1e6, 200_000)])
        x = np.unique(np.concatenate([x, x + u]))
        p_mass, q_mass = np.diff(law.cdf(x)), np.diff(law.cdf(x - u))
        order = np.argsort(-(q_mass + 1e-300) / (p_mass + 1e-300))
        alpha, power = np.cumsum(p_mass[order]), np.cumsum(q_mass[order])
        assert 1 - np.interp(1 - p_a, alpha, power) > 0.5


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(e, d) for e in (0.01, 0.1, 0.5, 1.0) for d in (1e-10, 1e-4, 0.01, 0.1, 0.3, 0.49)],
)
def test_the_classical_gaussian_mechanism_holds_where_lecuyer_uses_it(
    epsilon: float, delta: float
) -> None:
    mu = epsilon / math.sqrt(2 * math.log(1.25 / delta))
    true_delta = NORMAL.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * NORMAL.cdf(
        -mu / 2 - epsilon / mu
    )
    assert true_delta <= delta


# the divergence certificates, from first principles --------------------------------------------

DIVERGENCES = {
    "dvijotham_kl": lambda q, p: np.sum(special.rel_entr(q, p), axis=-1),
    "dvijotham_chi2": lambda q, p: np.sum((q - p) ** 2 / p, axis=-1),
}


def shifted_divergence(name: str, law: Noise, u: float) -> float:
    """The divergence of one coordinate and its shift by u, by quadrature."""
    assert isinstance(law, noise.IID)

    def integrand(x: float) -> float:
        q, p = float(law.pdf(x - u)), float(law.pdf(x))
        return q * math.log(q / p) if name == "dvijotham_kl" else (q - p) ** 2 / p

    edges = [-14.0, 0.0, u, 14.0 + u]
    return sum(
        integrate.quad(integrand, a, b, epsabs=1e-11, limit=200)[0] for a, b in pairwise(edges)
    )


def least_divergence(name: str, p_a: float, p_b: float) -> float:
    """min D(q‖p) over q_A ≤ q_B by a general-purpose solver, several starts."""
    rest = 1 - p_a - p_b
    p = np.array([p_a, p_b, rest] if rest > 1e-9 else [p_a, p_b])

    def cost(q: np.ndarray) -> float:
        q = np.append(q, 1 - q.sum()) if len(p) == 3 else np.array([q[0], 1 - q[0]])
        return float(DIVERGENCES[name](np.maximum(q, 1e-12), p))

    if len(p) == 2:
        result = optimize.minimize_scalar(
            lambda a: cost(np.array([a])),
            bounds=(1e-6, 0.5),
            method="bounded",
            options={"xatol": 1e-12},
        )
        return float(result.fun)
    constraints: list[Any] = [
        {"type": "ineq", "fun": lambda q: q[1] - q[0]},
        {"type": "ineq", "fun": lambda q: 1 - q.sum()},
    ]
    results = [
        optimize.minimize(
            cost, np.array([s, s]), bounds=[(1e-9, 1)] * 2, constraints=constraints, tol=1e-13
        )
        for s in (0.1, 0.3, 0.45)
    ]
    return min(float(r.fun) for r in results if r.success)


@pytest.mark.parametrize("name", DIVERGENCES)
@pytest.mark.parametrize(("p_a", "p_b"), [(0.6, 0.4), (0.9, 0.1), (0.5, 0.2), (0.8, 0.05)])
def test_kl_and_chi2_stop_where_the_ball_first_allows_a_tie(
    name: str, p_a: float, p_b: float
) -> None:
    for law, norm in ((noise.gaussian(sigma=1), l2), (noise.laplace(scale=1), l1)):
        r = radius(name, law, norm, p_a, p_b)
        assert shifted_divergence(name, law, r) == pytest.approx(
            least_divergence(name, p_a, p_b), rel=2e-5
        )


@pytest.mark.parametrize(("p_a", "p_b"), [(0.51, 0.49), (0.7, 0.2), (0.9, 0.1), (0.99, 0.01)])
def test_kl_and_chi2_have_their_closed_forms(p_a: float, p_b: float) -> None:
    law = noise.gaussian(sigma=2)
    kl = -math.log(1 - (math.sqrt(p_a) - math.sqrt(p_b)) ** 2)
    assert radius("dvijotham_kl", law, l2, p_a, p_b) == pytest.approx(2 * math.sqrt(2 * kl))
    chi2 = 1 / (1 - (p_a - p_b) ** 2 / (p_a + p_b)) - 1
    assert radius("dvijotham_chi2", law, l2, p_a, p_b) == pytest.approx(
        2 * math.sqrt(math.log1p(chi2))
    )


@pytest.mark.parametrize(("p_a", "p_b"), [(0.55, 0.45), (0.8, 0.1), (0.95, 0.05), (0.4, 0.1)])
def test_li_is_the_published_supremum(p_a: float, p_b: float) -> None:
    orders = 1 + np.geomspace(1e-4, 50, 20_000)
    mean = (0.5 * (p_a ** (1 - orders) + p_b ** (1 - orders))) ** (1 / (1 - orders))
    best = np.sqrt(np.max(-2 / orders * np.log(1 - p_a - p_b + 2 * mean)))
    law = noise.gaussian(sigma=3)
    assert radius("li", law, l2, p_a, p_b) == pytest.approx(3 * best, rel=1e-6)
    assert radius("dvijotham_renyi", law, l2, p_a, p_b) >= radius("li", law, l2, p_a, p_b) * (
        1 - 1e-9
    )


def laplace_renyi(order: float, u: float) -> float:
    def integrand(x: float) -> float:
        return 0.5 * math.exp(-order * abs(x - u) - (1 - order) * abs(x))

    span = 45 / min(1.0, order)
    edges = [-span, 0.0, u, u + span]
    total = sum(
        integrate.quad(integrand, a, b, epsabs=1e-13, epsrel=1e-12)[0] for a, b in pairwise(edges)
    )
    return math.log(total) / (order - 1)


def test_laplace_renyi_radius_is_the_best_order_by_quadrature() -> None:
    law = noise.laplace(scale=1)
    for p_a, p_b in ((0.7, 0.1), (0.4, 0.001), (0.9, 0.01)):
        claimed = radius("dvijotham_renyi", law, l1, p_a, p_b)

        def margins(r: float, p_a: float = p_a, p_b: float = p_b) -> float:
            orders = [0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.1, 1.2, 1.5, 1.8, 2, 2.5, 3, 4, 8]
            gaps = []
            for a in orders:
                mean = (0.5 * (p_a ** (1 - a) + p_b ** (1 - a))) ** (1 / (1 - a))
                gaps.append(-math.log(1 - p_a - p_b + 2 * mean) - laplace_renyi(a, r))
            return max(gaps)

        assert margins(claimed * 0.99) > 0
        assert margins(claimed * 1.0001) < 0


@pytest.mark.parametrize("order", [0.3, 0.5, 0.9, 1.001, 1.5, 2.0, 6.0])
def test_one_hot_is_the_worst_l1_direction_for_laplace_renyi(order: float) -> None:
    """Divergences of independent coordinates add up; χ² is the order 2, KL the order 1."""
    for r in (0.3, 1.0, 3.0):
        whole = laplace_renyi(order, r)
        for share in (0.05, 0.25, 0.5):
            split = laplace_renyi(order, share * r) + laplace_renyi(order, (1 - share) * r)
            assert split <= whole + 1e-9


def gaussian_hockey(beta: float, r: float) -> float:
    t = math.log(beta)
    return NORMAL.cdf(r / 2 - t / r) - beta * NORMAL.cdf(-r / 2 - t / r)


def laplace_hockey(beta: float, u: float) -> float:
    return max(1 - math.sqrt(beta * math.exp(-u)), 0.0)


@pytest.mark.parametrize(("p_a", "p_b"), [(0.6, 0.4), (0.9, 0.1), (0.99, 0.01), (0.7, 0.1)])
def test_hockey_stick_radius_is_the_best_of_all_beta(p_a: float, p_b: float) -> None:
    betas = np.geomspace(1, 1 / (1 - p_a + p_b), 40_000)

    def certified(divergence: object, r: float) -> bool:
        assert callable(divergence)
        return any(divergence(b, r) < 0.5 * (1 - b * (1 - p_a + p_b)) for b in betas.tolist())

    gauss = radius("dvijotham_hockey_stick", noise.gaussian(sigma=1), l2, p_a, p_b)
    laplace = radius("dvijotham_hockey_stick", noise.laplace(scale=1), l1, p_a, p_b)
    assert certified(gaussian_hockey, gauss * 0.999)
    assert not certified(gaussian_hockey, gauss * 1.0001)
    assert certified(laplace_hockey, laplace * 0.999)
    assert not certified(laplace_hockey, laplace * 1.0001)


def test_least_hockey_stick_divergence_under_a_tie_by_linear_programming() -> None:
    for p_a, p_b in ((0.6, 0.4), (0.5, 0.2), (0.9, 0.02)):
        p = np.array([p_a, p_b, 1 - p_a - p_b])
        for beta in (1.0, 1.3, 2.0):
            # variables q (3), excess s (3): min Σs, s ≥ q − βp, q_A ≤ q_B, Σq = 1
            result = optimize.linprog(
                [0, 0, 0, 1, 1, 1],
                A_ub=np.vstack([np.hstack([np.eye(3), -np.eye(3)]), [1, -1, 0, 0, 0, 0]]),
                b_ub=[*(beta * p), 0],
                A_eq=[[1, 1, 1, 0, 0, 0]],
                b_eq=[1],
            )
            closed = max(0.5 * (1 - beta * (1 - p_a + p_b)), 0.0)
            assert result.fun == pytest.approx(closed, abs=1e-9)


# closed forms and published relations ----------------------------------------------------------


@pytest.mark.parametrize(("p_a", "p_b"), [(0.6, 0.4), (0.9, 0.1), (0.4, 0.3), (0.99, 0.001)])
def test_cohen_and_its_relatives_in_other_norms(p_a: float, p_b: float) -> None:
    law, exact = noise.gaussian(sigma=0.5), exact_gaussian(0.5, p_a, p_b)
    assert radius("cohen", law, l2, p_a, p_b) == pytest.approx(exact)
    assert radius("yang_gaussian_l1", law, l1, p_a, p_b) == pytest.approx(exact)
    linf_radius = radius("yang_gaussian_linf", law, linf, p_a, p_b, dim=144)
    assert linf_radius == pytest.approx(exact / 12)


@pytest.mark.parametrize("p_a", [0.51, 0.6, 0.9, 0.999])
def test_two_class_teng_is_the_laplace_quantile(p_a: float) -> None:
    law = noise.laplace(scale=2)
    assert radius("teng", law, l1, p_a, 1 - p_a) == pytest.approx(2 * laplace_quantile(p_a))


def test_teng_takes_the_larger_of_its_two_terms() -> None:
    law = noise.laplace(scale=1)
    assert radius("teng", law, l1, 0.4, 0.1) == pytest.approx(exact_laplace(1, 0.4, 0.1))
    assert radius("teng", law, l1, 0.4, 0.1) == pytest.approx(0.5 * math.log(4))
    assert radius("teng", law, l1, 0.9, 0.05) == pytest.approx(-math.log(0.15))
    assert radius("teng", law, l1, 0.9, 0.05) < exact_laplace(1, 0.9, 0.05)


@pytest.mark.parametrize("p_a", [0.6, 0.7, 0.8, 0.9, 0.99, 0.999])
def test_published_order_of_the_gaussian_certificates(p_a: float) -> None:
    """Li et al. improve on Lecuyer et al.; Cohen et al. improve on both; hockey-stick is tight."""
    law = noise.gaussian(sigma=1)
    lecuyer, li, cohen, hockey, kl, renyi = (
        radius(n, law, l2, p_a, 1 - p_a)
        for n in (
            "lecuyer",
            "li",
            "cohen",
            "dvijotham_hockey_stick",
            "dvijotham_kl",
            "dvijotham_renyi",
        )
    )
    assert 0 < lecuyer < li < cohen
    assert hockey == pytest.approx(cohen, rel=1e-9)
    assert kl < renyi
    assert li == pytest.approx(renyi, rel=1e-9)


@pytest.mark.parametrize("p_a", [0.6, 0.9, 0.999])
def test_lecuyer_is_the_best_epsilon_and_delta(p_a: float) -> None:
    p_b = 1 - p_a
    epsilon = np.linspace(1e-4, 1, 4001)[:, None]
    delta = np.geomspace(1e-6, 0.5, 4000)[None, :]
    allowed = p_a >= np.exp(2 * epsilon) * p_b + (1 + np.exp(epsilon)) * delta
    brute = np.max(np.where(allowed, epsilon / np.sqrt(2 * np.log(1.25 / delta)), 0))
    assert radius("lecuyer", noise.gaussian(sigma=1), l2, p_a, p_b) == pytest.approx(
        brute, rel=2e-3
    )
    laplace = radius("lecuyer", noise.laplace(scale=1), l1, p_a, p_b)
    assert laplace == pytest.approx(0.5 * math.log(p_a / p_b))


def test_laplace_renyi_at_infinite_order_is_teng_for_two_classes() -> None:
    law = noise.laplace(scale=1)
    for p_a in (0.6, 0.9, 0.99):
        value = radius("dvijotham_renyi", law, l1, p_a, 1 - p_a)
        assert value == pytest.approx(radius("teng", law, l1, p_a, 1 - p_a), rel=1e-12)


def test_general_normal_differential_anchors() -> None:
    law = noise.gennorm(beta=0.75, sigma=1)
    values = [radius("yang_gennorm_l1", law, l1, p, 1 - p) for p in (0.6, 0.9, 0.99)]
    assert values == pytest.approx([0.0977, 0.569, 1.047], abs=6e-4)


@pytest.mark.parametrize("beta", [0.3, 0.75, 0.95])
@pytest.mark.parametrize("p_a", [0.55, 0.9, 0.9999])
def test_general_normal_differential_by_quadrature(beta: float, p_a: float) -> None:
    law = noise.gennorm(beta=beta, scale=1.7)
    start = special.gammaincinv(1 / beta, 2 * (1 - p_a)) ** (1 / beta)
    span = start + 400.0 ** (1 / beta)
    knots = [start, *(x for x in np.geomspace(max(start, 1e-9), span, 40)[1:].tolist())]
    total = sum(
        integrate.quad(lambda c: 1 / math.expm1(c**beta), a, b, epsrel=1e-11)[0]
        for a, b in pairwise(knots)
    )
    assert radius("yang_gennorm_l1", law, l1, p_a, 1 - p_a) == pytest.approx(1.7 * total, rel=1e-8)


def test_general_normal_is_continuous_at_the_laplace_shape() -> None:
    near = noise.gennorm(beta=1 - 1e-9, scale=1)
    for p_a in (0.51, 0.8, 0.999, 1 - 1e-9):
        value = radius("yang_gennorm_l1", near, l1, p_a, 1 - p_a)
        assert value == pytest.approx(laplace_quantile(p_a), rel=1e-6)


@pytest.mark.parametrize("law", [noise.gennorm(beta=1.5, sigma=1), noise.gennorm(beta=3, scale=2)])
def test_log_concave_general_normal_is_the_quantile(law: noise.IID) -> None:
    for p_a in (0.55, 0.9, 0.999):
        assert law.cdf(radius("yang_gennorm_l1", law, l1, p_a, 1 - p_a)) == pytest.approx(p_a)


def test_exponential_mix_is_the_quantile() -> None:
    law = noise.expmix(beta=0.5, sigma=1)
    for p_a in (0.55, 0.9, 0.999):
        assert law.cdf(radius("yang_exponential_l1", law, l1, p_a, 1 - p_a)) == pytest.approx(p_a)


@pytest.mark.parametrize("beta", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("p_a", [0.501, 0.6, 0.8, 0.9])
def test_pareto_is_the_published_hypergeometric_function(beta: float, p_a: float) -> None:
    b, y = beta / (beta + 1), 2 * p_a - 1
    closed = y / beta * special.hyp2f1(1, b, b + 1, y ** (1 + 1 / beta))
    law = noise.pareto(beta=beta, scale=1)
    assert radius("yang_pareto_l1", law, l1, p_a, 1 - p_a) == pytest.approx(closed, rel=1e-11)


@pytest.mark.parametrize("beta", [0.5, 1.0, 3.0, 50.0])
@pytest.mark.parametrize("p_a", [0.501, 0.8, 0.99, 1 - 1e-9, 1 - 2e-16])
def test_pareto_by_quadrature(beta: float, p_a: float) -> None:
    first = math.log(math.expm1(-math.log1p(-2 * (1 - p_a)) / beta))

    def integrand(log_c: float) -> float:
        c = math.exp(log_c)
        return c / math.expm1((beta + 1) * math.log1p(c))

    last = min(first + 100 + 40 / beta, 600 / (beta + 1))
    knots = np.linspace(first, max(first, last), 400).tolist()
    total = sum(integrate.quad(integrand, a, b, epsrel=1e-12)[0] for a, b in pairwise(knots))
    law = noise.pareto(beta=beta, scale=0.3)
    assert radius("yang_pareto_l1", law, l1, p_a, 1 - p_a) == pytest.approx(0.3 * total, rel=1e-8)


def test_uniform_radii_keep_half_of_the_overlap() -> None:
    """The two cubes share a part 1 − c of their mass, and A survives while c ≤ p_A − 1/2."""
    law = noise.uniform(scale=1.5)
    for p_a in (0.6, 0.9, 1.0):
        side = radius("yang_uniform_l1", law, l1, p_a, 1 - p_a)
        assert side / 3 == pytest.approx(p_a - 0.5)
        for dim in (1, 10, 150_528):
            side = radius("yang_uniform_linf", law, linf, p_a, 1 - p_a, dim=dim)
            assert 1 - (1 - side / 3) ** dim == pytest.approx(p_a - 0.5, rel=1e-9)


# common behaviour ------------------------------------------------------------------------------


def test_every_formula_has_a_case_and_a_one_line_description() -> None:
    assert {name for name, _, _ in CASES} == set(FORMULAS)
    for name, entry in FORMULAS.items():
        assert entry.name == name
        assert entry.pairs
        assert entry.note
        assert "\n" not in entry.source


@pytest.mark.parametrize(("name", "law", "norm"), CASES, ids=shown)
def test_radius_grows_with_p_a_and_scales_with_the_noise(name: str, law: Noise, norm: Norm) -> None:
    values = [radius(name, law, norm, p, 1 - p) for p in np.linspace(0.5, 0.9999, 60).tolist()]
    assert values[0] == 0
    assert all(b >= a * (1 - 1e-9) for a, b in pairwise(values))
    multi = [radius(name, law, norm, p, 0.05) for p in np.linspace(0.06, 0.95, 40).tolist()]
    assert all(b >= a * (1 - 1e-9) for a, b in pairwise(multi))
    doubled = radius(name, law * 2, norm, 0.9, 0.1)
    assert doubled == pytest.approx(2 * radius(name, law, norm, 0.9, 0.1), rel=1e-9)


@pytest.mark.parametrize(("name", "law", "norm"), CASES, ids=shown)
def test_a_tie_or_worse_certifies_nothing(name: str, law: Noise, norm: Norm) -> None:
    for p_a, p_b in ((0.5, 0.5), (0.3, 0.4), (0.0, 0.0), (0.2, 1.0)):
        assert radius(name, law, norm, p_a, p_b) == 0


@pytest.mark.parametrize(("name", "law", "norm"), CASES, ids=shown)
def test_p_b_above_what_p_a_leaves_is_the_two_class_case(name: str, law: Noise, norm: Norm) -> None:
    assert radius(name, law, norm, 0.8, 0.7) == radius(name, law, norm, 0.8, 1 - 0.8)


@pytest.mark.parametrize(("name", "law", "norm"), CASES, ids=shown)
def test_certainty_gives_the_limit(name: str, law: Noise, norm: Norm) -> None:
    last = radius(name, law, norm, 1.0, 0.0)
    assert last >= radius(name, law, norm, 1 - 1e-12, 1e-12) * (1 - 1e-9)
    bounded = {"yang_uniform_l1", "yang_uniform_linf", "yang_gennorm_l1", "yang_levelset_l1"}
    finite = name in bounded or (name == "lecuyer" and norm == l2)
    assert math.isfinite(last) == finite


def test_differential_radius_of_a_cusped_density_is_bounded() -> None:
    """p_A → 1: λ·Γ(1 + 1/s)·ζ(1/s), the whole integral."""
    law = noise.gennorm(beta=0.5, scale=1)
    limit = special.gamma(3) * special.zeta(2)
    assert radius("yang_gennorm_l1", law, l1, 1.0, 0.0) == pytest.approx(limit)


def test_a_family_member_that_is_gaussian_or_laplace_counts_as_one() -> None:
    assert radius("cohen", noise.gennorm(beta=2, sigma=1), l2, 0.9, 0.1) == pytest.approx(
        NORMAL.inv_cdf(0.9)
    )
    assert radius("teng", noise.expmix(beta=1, scale=2), l1, 0.9, 0.1) == pytest.approx(
        2 * laplace_quantile(0.9)
    )


# errors ----------------------------------------------------------------------------------------


def test_the_wrong_noise_says_what_the_formula_is_for_and_what_fits() -> None:
    with pytest.raises(RadiusError, match=r"cohen works for gaussian noise against l2.*teng"):
        radius("cohen", noise.laplace(sigma=1), l1, 0.9, 0.1)
    with pytest.raises(RadiusError, match=r"gaussian noise against l2 or laplace noise against l1"):
        radius("lecuyer", noise.gaussian(sigma=1), linf, 0.9, 0.1)
    with pytest.raises(RadiusError, match="no built-in formula"):
        radius("teng", noise.cauchy(scale=1), l2, 0.9, 0.1)
    with pytest.raises(RadiusError, match="no built-in formula"):
        radius("cohen", noise.gaussian(sigma=1).truncated(3), l2, 0.9, 0.1)


@pytest.mark.parametrize(("p_a", "p_b"), [(1.2, 0.1), (0.9, -0.1), (math.nan, 0.1)])
def test_impossible_probabilities_are_refused(p_a: float, p_b: float) -> None:
    with pytest.raises(RadiusError, match="must be a number from 0 to 1"):
        radius("cohen", noise.gaussian(sigma=1), l2, p_a, p_b)


def test_an_impossible_dimension_is_refused() -> None:
    with pytest.raises(RadiusError, match="dim=0"):
        radius("yang_gaussian_linf", noise.gaussian(sigma=1), linf, 0.9, 0.1, dim=0)


def test_an_unknown_name_suggests_the_nearest() -> None:
    assert formula("cohen") is FORMULAS["cohen"]
    with pytest.raises(RadiusError, match="did you mean cohen"):
        formula("cohn")
    with pytest.raises(RadiusError, match=r"file\.py:func"):
        formula("???")


# a user's own formula ----------------------------------------------------------------------------

USER_FILE = """
def one(p_a, factor=2.0):
    return factor * p_a

def two(p_a, p_b):
    return p_a - p_b

def five(noise, norm, dim, p_a, p_b):
    return noise.sigma * dim * norm.p * (p_a - p_b)

def three(a, b, c):
    return 0

def spread(*args):
    return 0

def negative(p_a):
    return -1.0

def broken(p_a):
    return 1 / 0

constant = 3
"""


@pytest.fixture
def load(tmp_path: Path) -> object:
    path = tmp_path / "mine.py"
    path.write_text(USER_FILE)
    return lambda name: load_formula(f"{path}:{name}")


def call(entry: Formula, p_a: float = 0.8, p_b: float = 0.1) -> float:
    return entry.radius(noise.gaussian(sigma=0.5), l2, 4, p_a, p_b)


def test_user_formulas_take_one_two_or_five_arguments(load: object) -> None:
    assert callable(load)
    assert load_formula("cohen") is FORMULAS["cohen"]
    assert call(load("one")) == pytest.approx(1.6)
    assert call(load("two")) == pytest.approx(0.7)
    assert call(load("two"), 0.8, 0.5) == pytest.approx(0.6)
    assert call(load("five")) == pytest.approx(0.5 * 4 * 2 * 0.7)
    assert call(load("one"), 0.3, 0.4) == 0


@pytest.mark.parametrize("name", ["three", "spread", "constant"])
def test_user_formulas_with_another_signature_are_refused(load: object, name: str) -> None:
    assert callable(load)
    with pytest.raises(RadiusError, match="must take"):
        load(name)


def test_user_formulas_that_fail_say_where(load: object) -> None:
    assert callable(load)
    with pytest.raises(RadiusError, match="not a radius"):
        call(load("negative"))
    with pytest.raises(RadiusError, match=r"p_a=0\.8.*ZeroDivisionError"):
        call(load("broken"))
    with pytest.raises(SpecError, match="no file"):
        load_formula("absent.py:func")


# Yang et al. 2020 (tonyduan/rs4a), exp(−‖z‖_∞), σ = 1, d = 3072, at p_A .6, .9, .99
CUBE = {
    ("yang_levelset_l1", 1.0): (0.346241, 1.384964, 1.696581),
    ("yang_differential", math.inf): (0.000126, 0.000907, 0.002205),
}


@pytest.mark.parametrize(("name", "p"), CUBE)
def test_the_published_radii_of_a_cube(name: str, p: float) -> None:
    law = noise.linf_exp(k=1, j=0, sigma=1, dim=3072)
    for p_a, printed in zip((0.6, 0.9, 0.99), CUBE[name, p], strict=True):
        found = radius(name, law, Norm(p), p_a, 1 - p_a, dim=3072)
        assert found == pytest.approx(printed, abs=6e-7)


@pytest.mark.parametrize("k", [0.5, 1.0, 2.0])
def test_the_differential_method_of_a_cross_is_the_integral_it_is_called(k: float) -> None:
    """Φ(p) by sorting the lengths of 400,000 quantiles, in place of incomplete gamma functions."""
    dim, p_a = 30, 0.9
    law = noise.l1_exp(k=k, j=0, scale=1, dim=dim)
    count = 400_000
    r = law.length.ppf((np.arange(count) + 0.5) / count)
    score = np.sort(k * r ** (k - 1))[::-1]
    growth = np.cumsum(score) / count / 2  # over the share 2p of the largest, halved
    p = (np.arange(count) + 1) / count / 2
    inside = p >= 1 - p_a
    expected = float(np.sum(1 / growth[inside])) / count / 2
    found = radius("yang_differential", law, Norm(1), p_a, 1 - p_a, dim=dim)
    assert found == pytest.approx(expected, rel=1e-3)


def test_laplace_noise_is_the_cross_of_power_one() -> None:
    law = noise.l1_exp(k=1, j=0, scale=0.7, dim=50)
    for p_a in (0.6, 0.99):
        found = radius("yang_differential", law, Norm(1), p_a, 1 - p_a, dim=50)
        assert found == pytest.approx(-0.7 * math.log(2 * (1 - p_a)), rel=1e-9)


def test_yang_et_al_have_no_radius_for_a_power_in_front_of_a_cube() -> None:
    with pytest.raises(RadiusError, match="no linf radius for j > 0"):
        radius("yang_differential", noise.linf_exp(k=1, j=3, scale=1, dim=9), linf, 0.9, 0.1, dim=9)
