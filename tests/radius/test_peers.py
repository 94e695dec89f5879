"""Noises that other systems certify, beside published numbers or what follows by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from unicr import noise
from unicr.errors import NoiseError, RadiusError
from unicr.norms import Norm
from unicr.radius import RadiusCurve, certified_radius
from unicr.tightness import formula
from unicr.values import Array

CIFAR = 3072
# Yang et al. 2020 (tonyduan/rs4a), exp(−‖z‖_∞), σ = 1, d = 3072
CUBE = {1.0: (0.346241, 1.384964, 1.696581), math.inf: (0.000126, 0.000907, 0.002205)}


@pytest.mark.parametrize("p", CUBE)
def test_the_cube_of_yang_et_al(p: float) -> None:
    law = noise.linf_exp(k=1, j=0, sigma=1, dim=CIFAR)
    for p_a, published in zip((0.6, 0.9, 0.99), CUBE[p], strict=True):
        found = certified_radius(law, p, p_a=p_a)
        assert found.guarantee == "exact"
        assert found.proved == pytest.approx(published, abs=6e-7, rel=2e-5)


@pytest.mark.parametrize(("k", "j"), [(2, 0), (10, 100)])
def test_other_cubes_have_the_mean_of_one_over_their_size(k: float, j: float) -> None:
    """One coordinate: R = 2·(p − ½)/E[1/b], b the size of the uniform cube in the mixture."""
    law = noise.linf_exp(k=k, j=j, scale=1, dim=CIFAR)
    u = (np.arange(200_000) + 0.5) / 200_000
    r = law.length.ppf(u)
    # b has the density −φ'(b)·b^d: r weighted by d log φ/d log r over its mean d
    weight = (j + k * r**k) / CIFAR
    rate = float(np.mean(weight / r) / np.mean(weight))
    for p_a in (0.6, 0.9):
        found = certified_radius(law, 1, p_a=p_a).proved
        assert found == pytest.approx(2 * (p_a - 0.5) / rate, rel=2e-4)


def test_the_heavy_cube() -> None:
    law = noise.linf_pareto(a=CIFAR + 100, scale=1, dim=CIFAR)
    rate = 100 / CIFAR  # E[1/b], b/(1 + b) ~ Beta(d + 1, a − d)
    assert certified_radius(law, 1, p_a=0.9).proved == pytest.approx(0.8 / rate, rel=2e-4)


def test_the_shapes_that_the_table_of_peers_names_are_exact_in_l1() -> None:
    """The heavy cube by hand; the cross is at least what Yang et al.'s own method gives."""
    heavy = noise.linf_pareto(a=794, sigma=1, dim=784)
    found = certified_radius(heavy, 1, p_a=0.9)
    assert found.guarantee == "exact"
    assert found.proved == pytest.approx(0.8 * heavy.scale * 784 / 10, rel=2e-4)
    cross = noise.l1_exp(k=2, j=0, sigma=1, dim=784)
    found = certified_radius(cross, 1, p_a=0.9)
    assert found.guarantee == "exact"
    theirs = formula("yang_differential").radius(cross, Norm(1), 784, 0.9, 0.1)
    assert theirs * (1 - 1e-3) <= found.proved <= 1.05 * theirs


def test_a_cube_has_a_bracket_between_the_norms() -> None:
    law = noise.linf_exp(k=2, j=0, sigma=1, dim=12)
    one, every = (certified_radius(law, p, p_a=0.9).proved for p in (1, math.inf))
    for p in (1.5, 3):
        found = certified_radius(law, p, p_a=0.9)
        assert 0.8 * found.searched <= found.proved <= found.searched
        assert every <= found.searched <= one * (1 + 1e-6)


def test_a_cube_far_larger_than_its_scale_has_a_radius_between_the_norms() -> None:
    """exp(−‖z‖_∞^0.1) in 12 dimensions has lengths near 10^20; T of one coordinate by hand."""
    law = noise.linf_exp(k=0.1, j=0, scale=1, dim=12)
    one = certified_radius(law, 1, p_a=0.6).proved
    size = special.gammaincinv(121, (np.arange(200_000) + 0.5) / 200_000) ** 10
    # b^k ~ Gamma(d/k + 1); at γ = 1, T(0.4) = E(1 − s/2b)₊ − 0.4
    left = float(np.mean(np.maximum(1 - one / (2 * size), 0))) - 0.4
    assert 0.5 <= left < 0.5 + 1e-3
    found = certified_radius(law, 1.02, p_a=0.6)
    assert 0.8 * one < found.proved <= found.searched <= one * (1 + 1e-6)


def test_the_cube_in_l2_as_the_table_of_peers_says() -> None:
    """Its bracket, which must hold √d times the exact ℓ∞ radius of the all-equal direction."""
    law = noise.linf_exp(k=1, j=0, sigma=1, dim=CIFAR)
    found = certified_radius(law, 2, p_a=0.9)
    assert 0.0445 < found.proved <= found.searched < 0.0455
    assert found.searched <= CUBE[math.inf][1] * math.sqrt(CIFAR) * (1 + 1e-3)


def test_the_cross_polytope_is_exact_in_l1_and_has_a_bracket_elsewhere() -> None:
    law = noise.l1_exp(k=1, j=0, sigma=1, dim=20)
    true = math.log(0.5 / 0.1) / math.sqrt(2)
    found = certified_radius(law, 1, p_a=0.9, engine="exact")
    assert true * (1 - 1e-4) <= found.proved <= true
    assert found.guarantee == "exact"
    half = certified_radius(law, 0.5, p_a=0.9, engine="exact")
    assert half.proved == pytest.approx(found.proved, rel=1e-6)
    with pytest.raises(RadiusError, match="no curve in l2"):
        RadiusCurve(noise.l1_exp(k=2, j=0, sigma=1, dim=20), 2)


def test_the_cross_polytope_of_laplace_noise_is_laplace_noise() -> None:
    """Under its plainest name: closed forms in l1, and a bracket where the cross has none."""
    law, plain = noise.l1_exp(k=1, j=0, sigma=0.5, dim=784), noise.laplace(sigma=0.5)
    for p in (1, 2):
        found = certified_radius(law, p, p_a=0.9)
        same = certified_radius(plain, p, 784, p_a=0.9)
        for one, other in ((found.proved, same.proved), (found.searched, same.searched)):
            assert one == pytest.approx(other, rel=2e-3)
    assert RadiusCurve(law, 1)(0.9) == pytest.approx(float(RadiusCurve(plain, 1, 784)(0.9)))


@pytest.mark.slow
def test_a_curve_of_a_cube_is_read_below_its_radii() -> None:
    law = noise.linf_exp(k=1, j=0, scale=1, dim=50)
    curve = RadiusCurve(law, math.inf)
    p = np.array([0.6, 0.9, 0.99, 0.9999])
    true = np.log(0.5 / (1 - p))
    assert np.all(curve(p) <= true)
    assert np.all(curve(p) >= true * (1 - 1e-2))


def pow2(r: Array) -> Array:
    return np.asarray(-(CIFAR / 2 + 50) * np.log1p(r * r))


def test_pow2_of_yang_et_al_is_proved() -> None:
    """(1 + ‖z‖²)^(−a) is a Gaussian of random size: in high dimension nearly a Gaussian."""
    law = noise.from_radial_density(pow2, dim=CIFAR, sigma=1)
    found = certified_radius(law, 2, p_a=0.9)
    assert found.guarantee == "exact"
    assert 0.97 * special.ndtri(0.9) <= found.proved <= special.ndtri(0.9)
    # rs4a's own level sets of (1 + ‖z‖)^(−3082), σ = 1: radius 1 at p_A = 0.88046007
    theirs = noise.from_radial_density(lambda r: -3082 * np.log1p(r), dim=CIFAR, sigma=1)
    found = certified_radius(theirs, 2, p_a=0.88046007)
    assert 1 - 2e-3 <= found.proved <= 1 + 1e-5
    built_in = certified_radius(
        noise.from_radial_density(lambda r: -r, dim=30, sigma=1), 2, p_a=0.9
    )
    same = certified_radius(noise.spherical_exp(k=1, sigma=1, dim=30), 2, p_a=0.9)
    assert same.proved * (1 - 1e-3) <= built_in.proved <= same.proved * (1 + 1e-5)


@pytest.mark.parametrize("dim", [784, 3072, 150_528])
def test_the_power_of_the_norm_up_to_d_minus_eight(dim: int) -> None:
    """φ = ‖z‖^(8−d)·exp(−‖z‖²/2): two engines, one with rounding, one measured."""
    k = (dim - 8) / 2
    built_in = noise.spherical_gg(k=k, scale=1, dim=dim)
    mine = noise.from_radial_density(
        lambda r: -2 * k * np.log(r) - r * r / 2, dim=dim, scale=1, points=[math.sqrt(7)]
    )
    a, b = (certified_radius(one, 2, p_a=0.9).proved for one in (built_in, mine))
    assert a * (1 - 2e-3) <= b <= a * (1 + 1e-5)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("linf_exp(k=1, j=12, scale=1, dim=12)", "j=12 .*dim=12.*infinite mass"),
        ("linf_pareto(a=12, scale=1, dim=12)", "a=12 must be above dim=12.*infinite mass"),
        ("l1_exp(k=1, j=3.99, scale=1, dim=4)", "j=3.99 .*dim=4.*infinite mass"),
    ],
)
def test_infinite_mass_is_refused_in_one_line(text: str, reason: str) -> None:
    with pytest.raises(NoiseError, match=reason) as caught:
        noise.parse(text)
    assert "\n" not in str(caught.value)
