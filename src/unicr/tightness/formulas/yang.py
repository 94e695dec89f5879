"""Yang et al. 2020: level sets and the differential method, for noises of many shapes."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
from scipy import special

from unicr.errors import RadiusError
from unicr.noise import IID, Noise
from unicr.tightness._formula import list_published
from unicr.tightness._shared import make_binary
from unicr.tightness.formulas.cohen import gaussian
from unicr.values import Array

TWO_CLASS = "two-class formula: p_b is not used, and p_a ≤ 1/2 gives 0"
EXACT = f"{TWO_CLASS}; exact for two classes"


def _gaussian_linf(noise: Noise, dim: int, p_a: float, p_b: float) -> float:
    return gaussian(noise, dim, p_a, p_b) / math.sqrt(dim)


def _tail_integral(power: float, rate: float, start: float) -> float:
    """∫ t^(power−1) e^(−rate·t) / (1 − e^(−t)) dt from `start` to ∞, its far tail left out.

    Gauss–Legendre in y = log t, on panels that are fine on either side of t = 1.
    """
    nodes, weights = np.polynomial.legendre.leggauss(16)
    bottom = math.log(max(start, sys.float_info.min))
    total = 0.0
    for low, high in ((bottom, 0.0), (max(bottom, 0.0), math.log(700.0 / rate))):
        if low < high:
            edges = np.linspace(low, high, 129)
            half = 0.5 * np.diff(edges)[:, None]
            y = 0.5 * (edges[:-1] + edges[1:])[:, None] + half * nodes
            t = np.exp(y)
            numerator = np.exp(np.minimum(power * y - rate * t, 700.0))
            total += float(np.sum(half * weights * numerator / -np.expm1(-t)))
    return total


def _gennorm_l1(noise: IID, dim: int, p_a: float) -> float:
    """Shape s < 1: λ∫_{c0}^∞ dc/(e^{c^s} − 1), P(|ε| ≤ λc0) = 2(1 − p_A), with t = c^s."""
    if noise.numbers["beta"] >= 1:
        return float(noise.isf(1.0 - p_a))
    a = 1.0 / noise.numbers["beta"]
    start = float(special.gammaincinv(a, 2 * (1.0 - p_a)))
    return noise.scale * a * _tail_integral(a, 1.0, start)


def _exponential_l1(noise: IID, dim: int, p_a: float) -> float:
    return float(noise.isf(1.0 - p_a))


def _pareto_l1(noise: Noise, dim: int, p_a: float) -> float:
    """λ∫_{c0}^∞ dc/((1 + c)^{a+1} − 1) = λ(2p_A − 1)/a · ₂F₁(1, b; b + 1; (2p_A − 1)^{1+1/a}).

    b = a/(a + 1). Integrated with t = (a + 1)·log(1 + c): library versions of ₂F₁ are unreliable
    where its argument nears 1.
    """
    if p_a == 1:
        return math.inf
    a = noise.numbers["beta"]
    start = -(1 + 1 / a) * math.log1p(-2 * (1.0 - p_a))
    return noise.scale / (a + 1) * _tail_integral(1.0, a / (a + 1), start)


def _uniform_l1(noise: Noise, dim: int, p_a: float) -> float:
    return 2 * noise.scale * (p_a - 0.5)


def _uniform_linf(noise: Noise, dim: int, p_a: float) -> float:
    return -2 * noise.scale * math.expm1(math.log(1.5 - p_a) / dim)


def _integral(rate: Callable[[Array], Array], p_a: float) -> float:
    """The differential method: ∫ dp/Φ(p) over p from 1 − p_A to ½, Φ the fastest growth of a set.

    Gauss–Legendre in log p: Φ falls about like p towards 0.
    """
    if p_a >= 1:
        return math.inf
    nodes, weights = np.polynomial.legendre.leggauss(16)
    edges = np.linspace(math.log(1 - p_a), math.log(0.5), 65)
    half = 0.5 * np.diff(edges)[:, None]
    p = np.exp(0.5 * (edges[:-1] + edges[1:])[:, None] + half * nodes)
    return float(np.sum(half * weights * p / rate(p)))


def _gamma_rate(noise: Noise, dim: int) -> Callable[[Array], Array]:
    """Φ of exp(−‖z‖^k): the mean of k·‖z‖^(k−1) over the share 2p of longest z, halved."""
    k = noise.numbers["k"]
    a, b = dim / k, (dim + k - 1) / k
    size = k / 2 * math.exp(math.lgamma(b) - math.lgamma(a))

    def rate(p: Array) -> Array:
        if k >= 1:
            beyond = special.gammaincc(b, special.gammainccinv(a, 2 * p))
        else:
            beyond = special.gammainc(b, special.gammaincinv(a, 2 * p))
        return np.asarray(size * beyond)

    return rate


def _cube_l1(noise: Noise, dim: int, p_a: float) -> float:
    """Level sets: 2(p_A − ½) over the mean of 1/b, b the half side of a cube of the mixture."""
    j, k = noise.numbers["j"], noise.numbers["k"]
    growth = dim / (dim - 1) * math.exp(math.lgamma((dim - j) / k) - math.lgamma((dim - j - 1) / k))
    return 2 * noise.scale * growth * (p_a - 0.5)


def _cube_linf(noise: Noise, dim: int, p_a: float) -> float:
    if noise.numbers["j"]:
        raise RadiusError(f"{noise.text}: Yang et al. give no linf radius for j > 0")
    if noise.numbers["k"] == 1:
        return noise.scale * -math.log(2 * (1 - p_a)) if p_a < 1 else math.inf
    return noise.scale * _integral(_gamma_rate(noise, dim), p_a)


def _power_cube_l1(noise: Noise, dim: int, p_a: float) -> float:
    return noise.scale * 2 * dim / (noise.numbers["a"] - dim) * (p_a - 0.5)


def _power_cube_linf(noise: Noise, dim: int, p_a: float) -> float:
    """Φ of (1 + ‖z‖)^(−a): the mean of a/(1 + ‖z‖) over the share 2p of shortest z, halved."""
    a = noise.numbers["a"]

    def rate(p: Array) -> Array:
        x = special.betaincinv(dim, a - dim, 2 * p)  # of ‖z‖/(1 + ‖z‖)
        return np.asarray((a - dim) / 2 * special.betainc(dim, a + 1 - dim, x))

    return noise.scale * _integral(rate, p_a)


def _cross_l1(noise: Noise, dim: int, p_a: float) -> float:
    if noise.numbers["j"]:
        raise RadiusError(f"{noise.text}: Yang et al. give no radius for j > 0")
    return noise.scale * _integral(_gamma_rate(noise, dim), p_a)


FORMULAS = list_published(
    "Yang, Duan, Hu, Salman, Razenshteyn, Li, Randomized Smoothing of All Shapes and Sizes, 2020",
    {
        "yang_gaussian_l1": (
            "exact: the ℓ2 radius, reached by one-hot perturbations",
            {("gaussian", 1.0): gaussian},
        ),
        "yang_gaussian_linf": (
            "exact: the ℓ2 radius divided by √dim",
            {("gaussian", math.inf): _gaussian_linf},
        ),
        "yang_gennorm_l1": (
            f"{TWO_CLASS}; exact for beta ≥ 1, loose (differential method) for beta < 1",
            {("gennorm", 1.0): make_binary(_gennorm_l1)},
        ),
        "yang_exponential_l1": (EXACT, {("expmix", 1.0): make_binary(_exponential_l1)}),
        "yang_pareto_l1": (
            f"{TWO_CLASS}; loose (differential method)",
            {("pareto", 1.0): make_binary(_pareto_l1)},
        ),
        "yang_uniform_l1": (EXACT, {("uniform", 1.0): make_binary(_uniform_l1)}),
        "yang_uniform_linf": (EXACT, {("uniform", math.inf): make_binary(_uniform_linf)}),
        "yang_levelset_l1": (
            f"{TWO_CLASS}; exact while p_a ≤ 1 − 1/dim",
            {
                ("linf_exp", 1.0): make_binary(_cube_l1),
                ("linf_pareto", 1.0): make_binary(_power_cube_l1),
                ("splitting", 1.0): make_binary(_uniform_l1),
            },
        ),
        "yang_differential": (
            f"{TWO_CLASS}; exact for linf_exp with k = 1, else a lower bound",
            {
                ("linf_exp", math.inf): make_binary(_cube_linf),
                ("linf_pareto", math.inf): make_binary(_power_cube_linf),
                ("l1_exp", 1.0): make_binary(_cross_l1),
            },
        ),
    },
)
