"""The best theorem that applies: a radius that holds for every direction in R^d.

Letters are those of the theory page: (b) ℓp, p ≤ 1, symmetric log-concave; (c) ℓ∞, symmetric
unimodal; (d) Gaussian; (e)–(e3) comparison with Gaussians; (f) ℓ∞ by envelopes; (g) the
differential method; (h) inclusions between norms; (i) spherical noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from unicr.noise import IID, Anisotropic, Gaussian, Noise, Spherical, SphericalNoise
from unicr.norms import Norm
from unicr.radius._boundary import first_root, margin, start_margin
from unicr.radius._differential import differential_l1
from unicr.radius._gaussian_bound import proved_l2, proved_lp
from unicr.radius._spectrum import Spectrum, equal
from unicr.tradeoff import compose, ratio_law, shifted
from unicr.tradeoff.internal import envelope, spherical_tradeoff

GROUPS = 48  # scales that are composed one by one


CHECKED = ", ranges of the log-ratio checked numerically"


@dataclass(frozen=True)
class Proof:
    """A radius and the theorem that gives it."""

    radius: float
    theorem: str


@dataclass(frozen=True)
class Exact(Proof):
    """A proof that also names the worst direction, so that nothing is left to search.

    `direction` is None where the worst direction is not a spectrum (unequal scales).
    """

    engine: str
    direction: Spectrum | None


def half_gap(quantile: Callable[[float], float], p_a: float, p_b: float) -> float:
    """(Q(p_A) − Q(p_B))/2 for the quantile function Q of a symmetric law, exact in the tail."""
    upper = -quantile(1.0 - p_a)
    return upper if p_b >= 1.0 - p_a else 0.5 * (upper - quantile(p_b))


def gaussian_radius(noise: Gaussian, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
    """(d): R_p = R_2 for p ≤ 2 and d^(1/p − 1/2)·R_2 beyond, exact for every p > 0."""
    gap = half_gap(lambda u: float(special.ndtri(u)), p_a, p_b)
    return noise.sigma * gap * from_l2(norm, dim)


def from_l2(norm: Norm, dim: int) -> float:
    """The factor from R_2 to R_p where only ‖δ‖₂ matters: the worst δ is one-hot or all-equal."""
    return 1.0 if norm.p <= 2 else float(dim) ** (1 / norm.p - 0.5)


def one_hot_log_concave(noise: IID, p_a: float, p_b: float) -> float:
    """(b): the exact ℓp radius for p ≤ 1, symmetric log-concave noise, any dimension."""
    return half_gap(lambda u: float(noise.ppf(u)), p_a, p_b)


def all_equal_linf(noise: IID, dim: int, p_a: float, p_b: float) -> float:
    """(c): the exact ℓ∞ radius of symmetric unimodal i.i.d. noise, by d-fold composition.

    H_γ between p and its shift by u grows with u: for γ ≥ 1 its derivative is γ·Σ(p(a) − p(b)) ≥ 0
    over the intervals (a, b), all beyond u/2, where p(z − u) > γ·p(z). So every T_u falls with |u|,
    products keep the order, and (a, …, a) is worst. Log-concavity is not needed.
    """
    spectrum = equal(dim)

    def value(r: float) -> float:
        return margin(shifted(noise, spectrum.shifts(r)), p_a, p_b)

    guess = noise.scale * start_guess(p_a, p_b) / math.sqrt(dim)
    return first_root(value, start_margin(p_a, p_b), guess, monotone=True)


def start_guess(p_a: float, p_b: float) -> float:
    """Half the Gaussian gap: the size of a radius at unit scale, to start searches from."""
    gap = float(special.ndtri(min(p_a, 1 - 1e-16)) - special.ndtri(max(p_b, 1e-300)))
    return max(0.5 * gap, 1e-12)


def envelope_linf(noise: IID, dim: int, p_a: float, p_b: float) -> float:
    """(f) for log-concave noise that is not symmetric: both signs of every coordinate at once.

    T_u falls with u on either side of zero, so the larger of the two hockey-stick divergences at
    every γ bounds each |v| ≤ u; that envelope is convex, hence a trade-off function to compose.
    """

    def value(r: float) -> float:
        laws = [ratio_law(noise.unit, sign * r / noise.scale) for sign in (1.0, -1.0)]
        return margin(compose([(envelope(laws), dim)]), p_a, p_b)

    guess = noise.scale * start_guess(p_a, p_b) / math.sqrt(dim)
    return first_root(value, start_margin(p_a, p_b), guess, monotone=True)


def spherical_radius(noise: SphericalNoise, p_a: float, p_b: float) -> float:
    """(i): the ℓ2 radius of spherical noise, by quadrature; the first root along any direction."""

    def value(r: float) -> float:
        return margin(spherical_tradeoff(noise, r), p_a, p_b)

    guess = noise.sigma * start_guess(p_a, p_b)
    if not math.isfinite(guess):
        guess = noise.scale * start_guess(p_a, p_b)
    return first_root(value, start_margin(p_a, p_b), guess, monotone=False)


def quadrature_is_sound(noise: SphericalNoise) -> bool:
    """Whether the 2-D quadrature errs on the safe side: the built-in families, not a user's φ."""
    return not isinstance(noise, Spherical)


def exact_proof(noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> Exact | None:
    """The exact radius where a theorem names the worst direction: (b), (c), (d), (i); else None."""
    toward = equal(1) if norm.p <= 2 else equal(dim)
    if isinstance(noise, SphericalNoise):
        if not quadrature_is_sound(noise):
            return None
        radius = spherical_radius(noise, p_a, p_b) * from_l2(norm, dim)
        return Exact(radius, "(i) spherical, to quadrature", "spherical", toward)
    if isinstance(noise, Gaussian):
        radius = gaussian_radius(noise, norm, dim, p_a, p_b)
        return Exact(radius, "(d) Gaussian", "closed form", toward)
    if isinstance(noise, Anisotropic):
        return anisotropic_exact(noise, norm, p_a, p_b)
    if not isinstance(noise, IID) or not noise.facts.symmetric:
        return None
    if noise.facts.log_concave and (norm.p <= 1 or dim == 1):
        radius = one_hot_log_concave(noise, p_a, p_b)
        return Exact(radius, "(b) one-hot, log-concave" + trust(noise), "closed form", equal(1))
    if noise.facts.unimodal and (math.isinf(norm.p) or dim == 1):
        radius = all_equal_linf(noise, dim, p_a, p_b)
        return Exact(radius, "(c) all-equal, unimodal" + trust(noise), "composition", equal(dim))
    return None


def anisotropic_exact(noise: Anisotropic, norm: Norm, p_a: float, p_b: float) -> Exact | None:
    """(b), (c), (d) with a scale per coordinate: T_δ = ⊗ T_{δ_i/s_i}, T of the base.

    (b) The chain gives T_δ ≥ T_u, u = Σ|δ_i|/s_i ≤ ‖δ‖_1/min s. (c) T falls with every |δ_i|/s_i.
    (d) max ‖δ/s‖_2 over the ℓp ball is 1/min s for p ≤ 2, else by Hölder (Σ s_i^(−2q))^(1/2q) with
    q = p/(p − 2). All with equality at some δ.
    """
    base, scales = noise.base, noise.scales
    least = float(scales.min())
    if isinstance(base, Gaussian):
        gap = gaussian_radius(base, Norm(2.0), noise.dim, p_a, p_b)
        if norm.p <= 2:
            return Exact(least * gap, "(d) Gaussian, smallest scale", "closed form", equal(1))
        q = 1.0 if math.isinf(norm.p) else norm.p / (norm.p - 2)
        reach = float(np.sum((least / scales) ** (2 * q)) ** (0.5 / q))
        whole = equal(noise.dim) if math.isinf(norm.p) else None
        return Exact(least * gap / reach, "(d) Gaussian, Hölder", "closed form", whole)
    if not base.facts.symmetric:
        return None
    if base.facts.log_concave and norm.p <= 1:
        radius = least * one_hot_log_concave(base, p_a, p_b)
        return Exact(radius, "(b) one-hot on the smallest scale", "closed form", equal(1))
    few = len(np.unique(scales)) <= GROUPS
    if base.facts.unimodal and math.isinf(norm.p) and few:
        radius = unequal_linf(noise, p_a, p_b)
        theorem = "(c) all-equal, unimodal, by scale"
        return Exact(radius, theorem, "composition", equal(noise.dim))
    return None


def scale_groups(noise: Anisotropic) -> list[tuple[float, int]]:
    """(scale, how many coordinates), at most GROUPS of them: others are rounded down to a grid.

    A smaller scale makes a shift easier to see (symmetric unimodal base), so rounding down is safe.
    """
    values, counts = np.unique(noise.scales, return_counts=True)
    if len(values) > GROUPS:
        grid = np.geomspace(values[0], values[-1], GROUPS)
        grid[0], grid[-1] = values[0], values[-1]
        at = np.maximum(np.searchsorted(grid, values, side="right") - 1, 0)
        counts = np.bincount(at, weights=counts, minlength=GROUPS).astype(np.int64)
        values = grid
    return [(float(s), int(n)) for s, n in zip(values, counts, strict=True) if n]


def unequal_linf(noise: Anisotropic, p_a: float, p_b: float) -> float:
    """(c) with a scale per coordinate: (r, …, r) is worst; compose by groups of equal scales."""
    groups = scale_groups(noise)

    def value(r: float) -> float:
        return margin(shifted(noise.base, [(r / s, n) for s, n in groups]), p_a, p_b)

    total = math.sqrt(sum(n / s**2 for s, n in groups))
    guess = noise.base.scale * start_guess(p_a, p_b) / total
    return first_root(value, start_margin(p_a, p_b), guess, monotone=True)


def anisotropic_proof(noise: Anisotropic, norm: Norm, p_a: float, p_b: float) -> Proof:
    """The largest radius that a theorem gives with a scale per coordinate.

    ‖δ/s‖_p ≤ ‖δ‖_p/min s for every p, so R_p ≥ min s·R_p(base); and R_p ≥ R_∞ by inclusion.
    """
    exact = anisotropic_exact(noise, norm, p_a, p_b)
    if exact is not None:
        return Proof(exact.radius, exact.theorem)
    base = best_proof(noise.base, norm, noise.dim, p_a, p_b)
    least = float(noise.scales.min())
    found = [Proof(least * base.radius, base.theorem + ", smallest scale")]
    if noise.base.facts.symmetric and noise.base.facts.unimodal:
        most = unequal_linf(noise, p_a, p_b)
        theorem = "(c) all-equal, unimodal, by scale" + included(norm, math.inf)
        found.append(Proof(most, theorem))
    return max(found, key=lambda proof: proof.radius)


def best_proof(noise: IID, norm: Norm, dim: int, p_a: float, p_b: float) -> Proof:
    """The largest radius that a theorem gives, exact or not."""
    exact = exact_proof(noise, norm, dim, p_a, p_b)
    if exact is not None:
        return Proof(exact.radius, exact.theorem)
    found = [_l1_proof(noise, norm, dim, p_a, p_b)]
    if noise.facts.symmetric and noise.facts.unimodal:
        found.append(Proof(proved_lp(noise, norm.p, dim, p_a, p_b), "(e) Gaussian comparison"))
        two = proved_l2(noise, p_a, p_b) * from_l2(norm, dim)
        found.append(Proof(two, "(e3) Gaussian comparison with slack" + included(norm, 2.0)))
        most = all_equal_linf(noise, dim, p_a, p_b)
        found.append(Proof(most, "(c) all-equal, unimodal" + included(norm, math.inf)))
    elif noise.facts.log_concave:
        most = envelope_linf(noise, dim, p_a, p_b)
        found.append(Proof(most, "(f) envelope" + included(norm, math.inf)))
    best = max(found, key=lambda proof: proof.radius)
    return Proof(best.radius, best.theorem + trust(noise))


def trust(noise: IID) -> str:
    """What a theorem's name must add: nothing where every fact it needs is known by formula."""
    if noise.facts.source != "analytic":
        return f", facts {noise.facts.source}"
    return "" if noise.facts.log_concave else CHECKED


def included(norm: Norm, other: float) -> str:
    """How a theorem's name says that it was carried over from another norm."""
    return "" if norm.p == other else " + (h) inclusion"


def _l1_proof(noise: IID, norm: Norm, dim: int, p_a: float, p_b: float) -> Proof:
    """(b) or (g) in ℓ1, carried to ℓp: R_p ≥ R_1 below p = 1, R_p ≥ d^(1/p − 1)·R_1 above."""
    factor = 1.0 if norm.p <= 1 else float(dim) ** (1 / norm.p - 1)
    if noise.facts.symmetric and noise.facts.log_concave:
        radius, name = one_hot_log_concave(noise, p_a, p_b), "(b) one-hot, log-concave"
    else:
        radius, name = differential_l1(noise, p_a, p_b), "(g) differential method"
    return Proof(radius * factor, name + included(norm, 1.0))
