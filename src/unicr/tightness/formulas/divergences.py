"""Li et al. 2019, Dvijotham et al. 2020: certificates from divergences between the two laws."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import special

from unicr.noise import Noise
from unicr.tightness._formula import list_published
from unicr.tightness._shared import (
    ROUNDING,
    Case,
    bisect_boundary,
    log_of_rest,
    log_ratio,
    maximise_on_grid,
    minus_log,
)

DVIJOTHAM = (
    "Dvijotham et al., A Framework for Robustness Certification of Smoothed Classifiers "
    "using f-Divergences, 2020"
)
LIMITED = "information-limited certificate"


def _separation(p_a: float, p_b: float, order: float) -> float:
    """min D_α(q‖p) over all q with q_A ≤ q_B: −log(1 − p_A − p_B + 2m), rounded down.

    m is the power mean of p_A, p_B with exponent 1 − α. At the minimum q_A = q_B and the rest of
    the mass keeps its shape, so A and B act as one event of weight 2m. α = 1 is KL with
    2m = 2√(p_A p_B); α = 2 is log(1 + χ²).
    """
    rest = max((1.0 - p_a) - p_b, 0.0)
    if p_b > 0:
        gap = 0.5 * log_ratio(p_a, p_b)
        k = abs(order - 1)
        shrink = _log_cosh(k * gap) / k if k > 0 else 0.0
        mean = math.sqrt(p_a * p_b) * math.exp(-shrink if order > 1 else shrink)
    else:
        mean = p_a * 0.5 ** (1 / (1 - order)) if order < 1 else 0.0
    return max(minus_log((rest + 2 * mean) * (1 + ROUNDING)), 0.0)


def _log_cosh(x: float) -> float:
    if x < 1:
        return math.log1p(2 * math.sinh(x / 2) ** 2)
    return x + math.log1p(math.exp(-2 * x)) - math.log(2)


def _gaussian_renyi(noise: Noise, p_a: float, p_b: float, order: float) -> float:
    """D_α = αr²/2σ², whatever the direction."""
    return noise.sigma * math.sqrt(2 * _separation(p_a, p_b, order) / order)


def _laplace_divergence(order: float, u: float) -> float:
    """D_α between a unit Laplace coordinate and its shift by u ≥ 0.

    ∫ q^α p^{1−α} = [α e^{(α−1)u} + (α−1) e^{−αu}]/(2α−1). D_α is convex in u and 0 at 0 (α > 1: a
    log-sum-exp; α = 1: u − 1 + e^{−u}; α < 1: minus the log of a convolution of log-concave
    functions) and adds up over coordinates, so over ‖δ‖₁ = r it is largest at one-hot δ.
    """
    k = order - 1
    if k == 0:
        return u + math.expm1(-u)
    if k * u > 1:
        return u + math.log((order + k * math.exp(-(2 * order - 1) * u)) / (2 * order - 1)) / k
    if order > 0.75:
        above = order * math.expm1(k * u) + k * math.expm1(-order * u)
        return math.log1p(above / (2 * order - 1)) / k
    slow = math.exp(-min(order, 1 - order) * u)
    x = abs(2 * order - 1) * u
    between = u * slow * float(special.exprel(-x))
    return math.log(0.5 * (math.exp(k * u) + math.exp(-order * u) + between)) / k


def _laplace_renyi(noise: Noise, p_a: float, p_b: float, order: float) -> float:
    limit = _separation(p_a, p_b, order)
    if limit in (0.0, math.inf):
        return limit
    return noise.scale * bisect_boundary(
        lambda u: _laplace_divergence(order, u) <= limit, limit + 1
    )


def _over_orders(radius: Callable[[Noise, float, float, float], float], *, least: float) -> Case:
    """The best order α > least, searched on the axis α/(1 + α)."""

    def case(noise: Noise, dim: int, p_a: float, p_b: float) -> float:
        if p_a == 1:
            return math.inf
        low = max(least / (1 + least), 0.02)
        return maximise_on_grid(lambda v: radius(noise, p_a, p_b, v / (1 - v)), low, 0.999)

    return case


def _at_order(radius: Callable[[Noise, float, float, float], float], order: float) -> Case:
    return lambda noise, dim, p_a, p_b: radius(noise, p_a, p_b, order)


def _gaussian_hockey_stick(noise: Noise, dim: int, p_a: float, p_b: float) -> float:
    """The best β ≥ 1 for: min H_β(q‖p) over q_A ≤ q_B is ½(1 − β(1 − p_A + p_B)) > H_β(r).

    As T(α) = sup_β [1 − H_β − βα], some β does exactly when T((1 − p_A + p_B)/2) ≥ ½. Along δ the
    noise is one log-concave coordinate, T_u(α) = F(F⁻¹(1−α) − u), so r = F⁻¹((1 + p_A − p_B)/2).
    """
    return -noise.sigma * float(special.ndtri(0.5 * ((1.0 - p_a) + p_b)))


def _laplace_hockey_stick(noise: Noise, dim: int, p_a: float, p_b: float) -> float:
    """The same with the Laplace quantile: one-hot is the worst ℓ1 direction at every β.

    Chained over coordinates, the trade-off functions of symmetric log-concave shifts compose to
    that of one shift by ‖δ‖₁, which therefore bounds every T_δ from below.
    """
    return noise.scale * log_of_rest(p_a, p_b)


def _laplace_over_orders(noise: Noise, dim: int, p_a: float, p_b: float) -> float:
    """Every order, and α = ∞ where D is u/λ itself and 2m = 2p_B."""
    finite = _over_orders(_laplace_renyi, least=0.0)(noise, dim, p_a, p_b)
    infinite = noise.scale * log_of_rest(p_a, p_b)
    return max(finite, infinite)


def _both(order: float) -> dict[tuple[str, float], Case]:
    """Gaussian noise in ℓ2 and Laplace noise in ℓ1, at one order."""
    laws = {("gaussian", 2.0): _gaussian_renyi, ("laplace", 1.0): _laplace_renyi}
    return {pair: _at_order(radius, order) for pair, radius in laws.items()}


FORMULAS = (
    *list_published(
        "Li, Chen, Wang, Carin, Certified Adversarial Robustness with Additive Noise, 2019",
        {
            "li": (
                "loose; optimised over the Rényi order α > 1",
                {("gaussian", 2.0): _over_orders(_gaussian_renyi, least=1.0)},
            )
        },
    ),
    *list_published(
        DVIJOTHAM,
        {
            "dvijotham_kl": (f"{LIMITED} from the KL divergence; loose", _both(1.0)),
            "dvijotham_renyi": (
                f"{LIMITED}, optimised over the Rényi order α > 0 (Laplace: and ∞, exact for two "
                "classes); loose for Gaussian noise",
                {
                    ("gaussian", 2.0): _over_orders(_gaussian_renyi, least=0.0),
                    ("laplace", 1.0): _laplace_over_orders,
                },
            ),
            "dvijotham_chi2": (f"{LIMITED} from the χ² divergence; loose", _both(2.0)),
            "dvijotham_hockey_stick": (
                f"{LIMITED}, optimised over β in closed form; exact for two classes, loose "
                "otherwise",
                {
                    ("gaussian", 2.0): _gaussian_hockey_stick,
                    ("laplace", 1.0): _laplace_hockey_stick,
                },
            ),
        },
    ),
)
