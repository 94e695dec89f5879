"""Radial noise: families' formulas against their log-density, truncation, users' densities."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import torch
from scipy import special, stats

from unicr import noise
from unicr.errors import NoiseError
from unicr.noise import RadialFamily, RadialNoise
from unicr.radius import certified_radius

FAMILIES = [one for one in noise.FAMILIES.values() if isinstance(one, RadialFamily)]


def made(family: RadialFamily) -> RadialNoise:
    found = noise.parse(family.example).radial
    assert found is not None
    return found


@pytest.mark.parametrize("family", FAMILIES, ids=lambda one: one.name)
def test_how_a_density_falls_is_what_its_logarithm_says(family: RadialFamily) -> None:
    """`drop` with the digits that rounding outwards rests on; steepness and bend by differences."""
    law = made(family)
    density, power = law.density, law.ball.power
    assert density.by_formula
    r = law.unit_length.ppf(np.array([0.01, 0.3, 0.7, 0.99]))
    for share in (1e-6, 1e-3, 0.3):
        rho = np.minimum(r * (1 + share), density.end)
        gap = (rho - r) * (rho + r if power == 2 else 1.0)
        got = density.drop(r, gap, power)
        wanted = density.log_density(r) - density.log_density(rho)
        noise_of_logs = 1e-15 * np.abs(density.log_density(r)) + 1e-15
        assert np.all(np.abs(got - wanted) <= 1e-9 * np.abs(wanted) + 20 * noise_of_logs)
        assert np.all(got >= 0)
    if density.flat:
        return
    v = r**power
    step = 1e-5 * v

    def at(place: Any) -> Any:
        return density.log_density(place ** (1 / power))

    slope = (at(v - step) - at(v + step)) / (2 * step)
    bend = density.bend(float(r[0]), float(r[-1]), power)
    if bend > 0:
        np.testing.assert_allclose(density.steepness(r, power), slope, rtol=1e-4)
    assert bend * (slope[0] - slope[-1]) >= -1e-6 * slope[0]  # log φ is convex: its fall slows


def test_a_truncated_length_has_the_law_of_a_ratio() -> None:
    """‖z‖²/2s² ~ Gamma(d/2 − k), given that it is at most T²/2s²."""
    base = noise.spherical_gg(k=2, scale=0.5, dim=12)
    law = base.truncated(1.2)
    whole = stats.gamma(4)
    end = whole.cdf(0.5 * (1.2 / 0.5) ** 2)
    r = np.array([0.2, 0.6, 0.9, 1.15, 1.2])
    np.testing.assert_allclose(law.length.cdf(r), whole.cdf(0.5 * (r / 0.5) ** 2) / end, rtol=1e-9)
    assert law.facts.bounded
    assert law.conditioned
    assert law.text == f"{base.text}.truncated(1.2)"
    assert noise.parse(law.text) == law
    assert noise.from_data(noise.to_data(law)) == law
    assert noise.parse(f"({base.text} * 2).truncated(2.4)") == law * 2
    assert law.unit == (law * 2).unit
    lengths = law.sample(5000, seed=3, dtype=torch.float64).norm(dim=1).numpy()
    assert lengths.max() <= 1.2
    # Kolmogorov–Smirnov: false alarm 1e-6
    apart = stats.kstest(law.length.cdf(lengths), "uniform").statistic
    assert apart < math.sqrt(math.log(2e6) / 1e4)


def test_a_truncated_ball_is_a_smaller_ball() -> None:
    smaller = certified_radius(noise.ball(scale=1, dim=10), 2, p_a=0.9).proved
    cut = certified_radius(noise.ball(scale=3, dim=10).truncated(1), 2, p_a=0.9).proved
    assert smaller * (1 - 2e-3) <= cut <= smaller * (1 + 1e-9)


def test_noise_without_a_variance_has_one_when_it_is_cut() -> None:
    law = noise.linf_pareto(a=5, scale=1, dim=4)
    assert law.sigma == math.inf
    with pytest.raises(NoiseError, match=r"dim=4, scale=1\)\.truncated\(5\)"):
        noise.linf_pareto(a=5, sigma=1, dim=4)

    def moment(power: int) -> Any:
        return mp.quad(lambda r: r ** (3 + power) * (1 + r) ** -5, [0, 1, 5])

    # one coordinate of a direction is ±1, the others are uniform
    square = float(moment(2) / moment(0)) * (4 + 2) / (3 * 4)
    assert law.truncated(5).sigma == pytest.approx(math.sqrt(square), rel=1e-9)
    assert noise.parse("linf_pareto(a=5, scale=1, dim=4).truncated(5)") == law.truncated(5)


def test_a_share_and_a_length_cut_at_the_same_place() -> None:
    law = noise.l1_exp(k=1, j=0, scale=2, dim=6)
    share = float(special.gammainc(6, 2.5))
    assert float(law.within(share).length.support[1]) == pytest.approx(5.0, rel=1e-9)
    assert noise.from_data(noise.to_data(law.within(0.5))) == law.within(0.5)


def test_what_was_checked_stays_checked_in_a_ball() -> None:
    mine = noise.from_radial_density(lambda r: -r, dim=6)
    assert mine.facts.source == mine.within(0.5).facts.source == "checked"
    assert not mine.within(0.5).facts.unimodal
    assert noise.spherical_exp(k=1, scale=1, dim=6).within(0.5).facts.source == "analytic"


@pytest.mark.parametrize(("at", "upper"), [(0.0, None), (-1.0, None), (math.inf, None), (1.0, 2.0)])
def test_a_length_is_cut_at_one_place_above_zero(at: float, upper: float | None) -> None:
    with pytest.raises(NoiseError, match="one length above 0"):
        noise.ball(scale=1, dim=3).truncated(at, upper)


def test_too_little_mass_is_named() -> None:
    with pytest.raises(NoiseError, match="too little to truncate to"):
        noise.ball(scale=1, dim=784).truncated(0.5)


def test_joint_noise_has_no_law_to_cut() -> None:
    one = noise.Anisotropic(noise.gaussian(sigma=1), [1.0, 2.0])
    with pytest.raises(NoiseError, match="cannot be truncated"):
        one.truncated(1)
