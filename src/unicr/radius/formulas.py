"""Published certified radii, to hold against a bracket: is a formula tight, loose or wrong?

Each entry of `FORMULAS` restates one result of the literature for one or two pairs of noise and
norm. With the paper's "tightness validation" in mind nothing here calls the engines of this
package: a formula below `proved` is loose, one above `searched` is wrong.
"""

from __future__ import annotations

import difflib
import inspect
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from unicr.errors import RadiusError, foreign
from unicr.files import load_object
from unicr.noise import ExponentialMix, Family, GeneralNormal, Noise, Pareto
from unicr.noise.internal import plainest
from unicr.norms import Norm

# (noise, dim, p_A, p_B) → radius, where p_B < p_A and p_B ≤ 1 − p_A are already granted
_Case = Callable[[Any, int, float, float], float]
_ROUNDING = 64 * sys.float_info.epsilon


@dataclass(frozen=True)
class Formula:
    """A published radius. `radius(noise, norm, dim, p_a, p_b)` certifies every ‖δ‖ below it.

    p_a bounds the top class's probability from below, p_b every other's from above; p_b counts as
    min(p_b, 1 − p_a), and the radius is 0 where p_a does not exceed that. `noise` names the
    families and `norms` the p it is for (a user's own formula: "any" and no restriction).
    """

    name: str
    source: str
    noise: str
    norms: tuple[float, ...]
    radius: Callable[[Noise, Norm, int, float, float], float]
    note: str


# shared pieces ---------------------------------------------------------------------------------


def _probabilities(p_a: float, p_b: float) -> tuple[float, float]:
    for name, p in (("p_a", p_a), ("p_b", p_b)):
        if not 0 <= p <= 1:
            raise RadiusError(f"{name}={p!r} is not a probability: give a number from 0 to 1")
    return float(p_a), min(float(p_b), 1.0 - float(p_a))


def _best(value: Callable[[float], float], low: float, high: float) -> float:
    """The largest value met on a grid that is refined around its best point.

    Every point gives a valid certificate, so a missed optimum costs radius, not soundness.
    """
    best, count = 0.0, 49
    for _ in range(7):
        grid = np.linspace(low, high, count)
        values = [value(float(x)) for x in grid]
        top = int(np.argmax(values))
        best = max(best, values[top])
        low, high = float(grid[max(top - 1, 0)]), float(grid[min(top + 1, count - 1)])
        count = 17
    return best


def _largest(accepts: Callable[[float], bool], start: float) -> float:
    """The inner end of the boundary of a set [0, r], by doubling and bisection."""
    low, high = 0.0, start
    while accepts(high):
        low, high = high, 2 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if accepts(middle) else (low, middle)
    return low


def _quantile(noise: Family, p: float) -> float:
    return float(noise.isf(1.0 - p))


def _binary(radius: Callable[[Any, int, float], float]) -> _Case:
    """A two-class formula: it asks that class A keeps half the mass, so p_B plays no part."""
    return lambda noise, dim, p_a, p_b: radius(noise, dim, p_a) if p_a > 0.5 else 0.0


# Cohen et al., Teng et al. ---------------------------------------------------------------------


def _cohen(noise: Family, dim: int, p_a: float, p_b: float) -> float:
    upper = -special.ndtri(1.0 - p_a) if p_a > 0.5 else special.ndtri(p_a)
    return noise.sigma * 0.5 * float(upper - special.ndtri(p_b))


def _teng(noise: Family, dim: int, p_a: float, p_b: float) -> float:
    return noise.scale * max(0.5 * _log_ratio(p_a, p_b), _minus_log_rest(p_a, p_b))


def _log_ratio(p_a: float, p_b: float) -> float:
    """log(p_A/p_B), digits kept where the two are close."""
    if p_b == 0:
        return math.inf
    return math.log1p((p_a - p_b) / p_b) if p_a < 2 * p_b else math.log(p_a) - math.log(p_b)


def _minus_log_rest(p_a: float, p_b: float) -> float:
    """−log(1 − p_A + p_B), digits kept at both ends."""
    gap = p_a - p_b
    return -math.log1p(-gap) if gap < 0.5 else _minus_log((1.0 - p_a) + p_b)


def _minus_log(x: float) -> float:
    return -math.log(x) if x > 0 else math.inf


# Yang et al. -----------------------------------------------------------------------------------


def _yang_gaussian_linf(noise: Family, dim: int, p_a: float, p_b: float) -> float:
    return _cohen(noise, dim, p_a, p_b) / math.sqrt(dim)


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


def _yang_gennorm_l1(noise: GeneralNormal, dim: int, p_a: float) -> float:
    """Shape s < 1: λ∫_{c0}^∞ dc/(e^{c^s} − 1), P(|ε| ≤ λc0) = 2(1 − p_A), with t = c^s."""
    if noise.beta >= 1:
        return _quantile(noise, p_a)
    a = 1.0 / noise.beta
    start = float(special.gammaincinv(a, 2 * (1.0 - p_a)))
    return noise.scale * a * _tail_integral(a, 1.0, start)


def _yang_exponential_l1(noise: ExponentialMix, dim: int, p_a: float) -> float:
    return _quantile(noise, p_a)


def _yang_pareto_l1(noise: Pareto, dim: int, p_a: float) -> float:
    """λ∫_{c0}^∞ dc/((1 + c)^{a+1} − 1) = λ(2p_A − 1)/a · ₂F₁(1, b; b + 1; (2p_A − 1)^{1+1/a}).

    b = a/(a + 1). Integrated with t = (a + 1)·log(1 + c): library versions of ₂F₁ are unreliable
    where its argument nears 1.
    """
    if p_a == 1:
        return math.inf
    a = noise.beta
    start = -(1 + 1 / a) * math.log1p(-2 * (1.0 - p_a))
    return noise.scale / (a + 1) * _tail_integral(1.0, a / (a + 1), start)


def _yang_uniform_l1(noise: Family, dim: int, p_a: float) -> float:
    return 2 * noise.scale * (p_a - 0.5)


def _yang_uniform_linf(noise: Family, dim: int, p_a: float) -> float:
    return -2 * noise.scale * math.expm1(math.log(1.5 - p_a) / dim)


# Lecuyer et al. --------------------------------------------------------------------------------


def _lecuyer_gaussian(noise: Family, dim: int, p_a: float, p_b: float) -> float:
    """sup over ε ≤ 1 of σε/√(2 ln(1.25/δ)), δ the largest with p_A ≥ e^{2ε}p_B + (1 + e^ε)δ."""

    def radius(epsilon: float) -> float:
        delta = (p_a - math.exp(2 * epsilon) * p_b) / (1 + math.exp(epsilon))
        return epsilon / math.sqrt(2 * math.log(1.25 / delta)) if delta > 0 else 0.0

    return noise.sigma * _best(radius, 0.0, min(1.0, 0.5 * _log_ratio(p_a, p_b)))


def _lecuyer_laplace(noise: Family, dim: int, p_a: float, p_b: float) -> float:
    return noise.scale * 0.5 * _log_ratio(p_a, p_b)


# Li et al., Dvijotham et al. -------------------------------------------------------------------


def _separation(p_a: float, p_b: float, order: float) -> float:
    """min D_α(q‖p) over all q with q_A ≤ q_B: −log(1 − p_A − p_B + 2m), rounded down.

    m is the power mean of p_A, p_B with exponent 1 − α. At the minimum q_A = q_B and the rest of
    the mass keeps its shape, so A and B act as one event of weight 2m. α = 1 is KL with
    2m = 2√(p_A p_B); α = 2 is log(1 + χ²).
    """
    rest = max((1.0 - p_a) - p_b, 0.0)
    if p_b > 0:
        gap = 0.5 * _log_ratio(p_a, p_b)
        k = abs(order - 1)
        shrink = _log_cosh(k * gap) / k if k > 0 else 0.0
        mean = math.sqrt(p_a * p_b) * math.exp(-shrink if order > 1 else shrink)
    else:
        mean = p_a * 0.5 ** (1 / (1 - order)) if order < 1 else 0.0
    return max(_minus_log((rest + 2 * mean) * (1 + _ROUNDING)), 0.0)


def _log_cosh(x: float) -> float:
    if x < 1:
        return math.log1p(2 * math.sinh(x / 2) ** 2)
    return x + math.log1p(math.exp(-2 * x)) - math.log(2)


def _gaussian_renyi(noise: Family, p_a: float, p_b: float, order: float) -> float:
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


def _laplace_renyi(noise: Family, p_a: float, p_b: float, order: float) -> float:
    limit = _separation(p_a, p_b, order)
    if limit in (0.0, math.inf):
        return limit
    return noise.scale * _largest(lambda u: _laplace_divergence(order, u) <= limit, limit + 1)


def _over_orders(radius: Callable[[Family, float, float, float], float], *, least: float) -> _Case:
    """The best order α > least, searched on the axis α/(1 + α)."""

    def case(noise: Family, dim: int, p_a: float, p_b: float) -> float:
        if p_a == 1:
            return math.inf
        low = max(least / (1 + least), 0.02)
        return _best(lambda v: radius(noise, p_a, p_b, v / (1 - v)), low, 0.999)

    return case


def _at_order(radius: Callable[[Family, float, float, float], float], order: float) -> _Case:
    return lambda noise, dim, p_a, p_b: radius(noise, p_a, p_b, order)


def _gaussian_hockey_stick(noise: Family, dim: int, p_a: float, p_b: float) -> float:
    """The best β ≥ 1 for: min H_β(q‖p) over q_A ≤ q_B is ½(1 − β(1 − p_A + p_B)) > H_β(r).

    As T(α) = sup_β [1 − H_β − βα], some β does exactly when T((1 − p_A + p_B)/2) ≥ ½. Along δ the
    noise is one log-concave coordinate, T_u(α) = F(F⁻¹(1−α) − u), so r = F⁻¹((1 + p_A − p_B)/2).
    """
    return -noise.sigma * float(special.ndtri(0.5 * ((1.0 - p_a) + p_b)))


def _laplace_hockey_stick(noise: Family, dim: int, p_a: float, p_b: float) -> float:
    """The same with the Laplace quantile: one-hot is the worst ℓ1 direction at every β.

    Chained over coordinates, the trade-off functions of symmetric log-concave shifts compose to
    that of one shift by ‖δ‖₁, which therefore bounds every T_δ from below.
    """
    return noise.scale * _minus_log_rest(p_a, p_b)


def _laplace_over_orders(noise: Family, dim: int, p_a: float, p_b: float) -> float:
    """Every order, and α = ∞ where D is u/λ itself and 2m = 2p_B."""
    """Every order, and α = ∞ where D is u/λ itself and 2m = 2p_B."""
    finite = _over_orders(_laplace_renyi, least=0.0)(noise, dim, p_a, p_b)
    infinite = noise.scale * _minus_log_rest(p_a, p_b)
    return max(finite, infinite)


# the table -------------------------------------------------------------------------------------

_CASES: dict[str, Mapping[tuple[str, float], _Case]] = {
    "cohen": {("gaussian", 2.0): _cohen},
    "teng": {("laplace", 1.0): _teng},
    "yang_gaussian_l1": {("gaussian", 1.0): _cohen},
    "yang_gaussian_linf": {("gaussian", math.inf): _yang_gaussian_linf},
    "yang_gennorm_l1": {("gennorm", 1.0): _binary(_yang_gennorm_l1)},
    "yang_exponential_l1": {("expmix", 1.0): _binary(_yang_exponential_l1)},
    "yang_pareto_l1": {("pareto", 1.0): _binary(_yang_pareto_l1)},
    "yang_uniform_l1": {("uniform", 1.0): _binary(_yang_uniform_l1)},
    "yang_uniform_linf": {("uniform", math.inf): _binary(_yang_uniform_linf)},
    "lecuyer": {("gaussian", 2.0): _lecuyer_gaussian, ("laplace", 1.0): _lecuyer_laplace},
    "li": {("gaussian", 2.0): _over_orders(_gaussian_renyi, least=1.0)},
    "dvijotham_kl": {
        ("gaussian", 2.0): _at_order(_gaussian_renyi, 1.0),
        ("laplace", 1.0): _at_order(_laplace_renyi, 1.0),
    },
    "dvijotham_renyi": {
        ("gaussian", 2.0): _over_orders(_gaussian_renyi, least=0.0),
        ("laplace", 1.0): _laplace_over_orders,
    },
    "dvijotham_chi2": {
        ("gaussian", 2.0): _at_order(_gaussian_renyi, 2.0),
        ("laplace", 1.0): _at_order(_laplace_renyi, 2.0),
    },
    "dvijotham_hockey_stick": {
        ("gaussian", 2.0): _gaussian_hockey_stick,
        ("laplace", 1.0): _laplace_hockey_stick,
    },
}

_COHEN = "Cohen, Rosenfeld, Kolter, Certified Adversarial Robustness via Randomized Smoothing, 2019"
_TENG = (
    "Teng, Lee, Yuan, ℓ1 Adversarial Robustness Certificates: a Randomized Smoothing Approach, 2020"
)
_YANG = (
    "Yang, Duan, Hu, Salman, Razenshteyn, Li, Randomized Smoothing of All Shapes and Sizes, 2020"
)
_LECUYER = (
    "Lecuyer, Atlidakis, Geambasu, Hsu, Jana, "
    "Certified Robustness to Adversarial Examples with Differential Privacy, 2019"
)
_LI = "Li, Chen, Wang, Carin, Certified Adversarial Robustness with Additive Noise, 2019"
_DVIJOTHAM = (
    "Dvijotham et al., A Framework for Robustness Certification of Smoothed Classifiers "
    "using f-Divergences, 2020"
)
_TWO_CLASS = "two-class formula: p_b is not used, and p_a ≤ 1/2 gives 0"
_LIMITED = "information-limited certificate"

_TEXTS: dict[str, tuple[str, str]] = {
    "cohen": (_COHEN, "exact"),
    "teng": (_TENG, "exact for two classes and for p_a ≤ 1/2, a lower bound otherwise"),
    "yang_gaussian_l1": (_YANG, "exact: the ℓ2 radius, reached by one-hot perturbations"),
    "yang_gaussian_linf": (_YANG, "exact: the ℓ2 radius divided by √dim"),
    "yang_gennorm_l1": (
        _YANG,
        f"{_TWO_CLASS}; exact for beta ≥ 1, loose (differential method) for beta < 1",
    ),
    "yang_exponential_l1": (_YANG, f"{_TWO_CLASS}; exact for two classes"),
    "yang_pareto_l1": (_YANG, f"{_TWO_CLASS}; loose (differential method)"),
    "yang_uniform_l1": (_YANG, f"{_TWO_CLASS}; exact for two classes"),
    "yang_uniform_linf": (_YANG, f"{_TWO_CLASS}; exact for two classes"),
    "lecuyer": (
        _LECUYER,
        "loose; Gaussian: optimised over ε ≤ 1 and δ with the classical Gaussian mechanism",
    ),
    "li": (_LI, "loose; optimised over the Rényi order α > 1"),
    "dvijotham_kl": (_DVIJOTHAM, f"{_LIMITED} from the KL divergence; loose"),
    "dvijotham_renyi": (
        _DVIJOTHAM,
        f"{_LIMITED}, optimised over the Rényi order α > 0 (Laplace: and ∞, exact for two "
        "classes); loose for Gaussian noise",
    ),
    "dvijotham_chi2": (_DVIJOTHAM, f"{_LIMITED} from the χ² divergence; loose"),
    "dvijotham_hockey_stick": (
        _DVIJOTHAM,
        f"{_LIMITED}, optimised over β in closed form; exact for two classes, loose otherwise",
    ),
}


def _laws(noise: Noise) -> list[str]:
    """The families this noise belongs to: gennorm(beta=2) is also gaussian."""
    if not isinstance(noise, Family):
        return []
    plain = plainest(noise)
    return [noise.name, plain.name] if isinstance(plain, Family) else [noise.name]


def _built_in(name: str) -> Formula:
    cases = _CASES[name]
    source, note = _TEXTS[name]

    def radius(noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
        p_a, p_b = _probabilities(p_a, p_b)
        if dim < 1 or dim != int(dim):
            raise RadiusError(f"dim={dim!r} must be a whole number of at least 1")
        laws = _laws(noise)
        case = next((cases[law, norm.p] for law in laws if (law, norm.p) in cases), None)
        if case is None:
            pairs = " or ".join(f"{law} noise against {Norm(p)}" for law, p in cases)
            fits = [n for n, c in _CASES.items() if any((law, norm.p) in c for law in laws)]
            advice = f"try {', '.join(fits)}" if fits else "no built-in formula covers that"
            raise RadiusError(f"{name} is for {pairs}, not {noise.text} against {norm}: {advice}")
        return max(0.0, case(noise, dim, p_a, p_b)) if p_a > p_b else 0.0

    families = ", ".join(dict.fromkeys(law for law, _ in cases))
    return Formula(name, source, families, tuple(sorted({p for _, p in cases})), radius, note)


FORMULAS: dict[str, Formula] = {name: _built_in(name) for name in _CASES}


def formula(name: str) -> Formula:
    """The built-in formula of that name."""
    if name in FORMULAS:
        return FORMULAS[name]
    near = difflib.get_close_matches(name, FORMULAS, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise RadiusError(
        f"no formula {name!r}: {hint}Built in: {', '.join(FORMULAS)}; "
        "or give your own as path/to/file.py:func"
    )


def load_formula(ref: str) -> Formula:
    """A built-in name, or `path/to/file.py:func`. Runs that file: only load what you trust.

    `func` takes (p_a), (p_a, p_b) or (noise, norm, dim, p_a, p_b), counted without the parameters
    that have defaults, and returns the radius.
    """
    if ":" not in ref:
        return formula(ref)
    function = load_object(ref)
    needed = _parameters(ref, function)

    def radius(noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
        p_a, p_b = _probabilities(p_a, p_b)
        if p_a <= p_b:
            return 0.0
        everything = (noise, norm, dim, p_a, p_b)
        chosen = {1: (p_a,), 2: (p_a, p_b), 5: everything}[needed]
        with foreign(RadiusError, f"{ref} failed at p_a={p_a!r}, p_b={p_b!r}"):
            value = float(function(*chosen))
        if not value >= 0:
            raise RadiusError(f"{ref} gave {value!r} at p_a={p_a!r}, p_b={p_b!r}: not a radius")
        return value

    return Formula(ref, f"user formula {ref}", "any", (), radius, "taken as given")


def _parameters(ref: str, function: Any) -> int:
    accepted = "it must take (p_a), (p_a, p_b) or (noise, norm, dim, p_a, p_b)"
    if not callable(function):
        raise RadiusError(f"{ref} is a {type(function).__name__}, not a function: {accepted}")
    try:
        signature = inspect.signature(function)
    except ValueError:
        raise RadiusError(f"{ref} has no readable signature: {accepted}") from None
    needed = [p for p in signature.parameters.values() if p.default is p.empty]
    plain = all(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in needed)
    if not plain or len(needed) not in (1, 2, 5):
        raise RadiusError(f"{ref} takes {signature}: {accepted}")
    return len(needed)
