"""The grid of noises that I-OPT chooses from."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unicr.errors import UnicrError
from unicr.i_opt import Axis, Grid
from unicr.noise import parse

SIGMA = Axis("sigma", 0.25, 4, 2**0.25)
BETA = Axis("beta", 1, 3, 0.25)


def gennorm(init: str, *axes: Axis) -> Grid:
    return Grid.around(parse(init), "gennorm", axes)


def test_the_centre_is_the_initial_noise_under_the_familys_name() -> None:
    lattice = gennorm("gaussian(sigma=1)", SIGMA, BETA)
    assert lattice.noise(lattice.centre) == parse("gennorm(beta=2, sigma=1)")
    assert gennorm("laplace(sigma=1)", BETA).noise((1,)) == parse("gennorm(beta=1.25, sigma=1)")
    mixture = Grid.around(parse("gaussian(sigma=0.5)"), "lapgauss", (Axis("beta", 0, 1, 0.5),))
    assert mixture.noise((2,)) == parse("lapgauss(beta=1, sigma=0.5)")


def test_size_counts_every_place_and_places_outside_are_not_contained() -> None:
    lattice = gennorm("gaussian(sigma=1)", SIGMA, BETA)
    inside = [
        place for place in itertools.product(range(-20, 21), range(-20, 21)) if place in lattice
    ]
    assert len(inside) == lattice.size == 17 * 9
    for place in inside:
        noise = lattice.noise(place)
        assert 0.2499 < noise.sigma < 4.001
        assert parse(noise.text) == noise


@given(
    sigma=st.floats(0.05, 5),
    factor=st.floats(1.05, 3),
    low=st.floats(0.1, 1),
    high=st.floats(1, 8),
)
@settings(max_examples=60, deadline=None)
def test_sigma_steps_are_factors_and_stay_in_range(
    sigma: float, factor: float, low: float, high: float
) -> None:
    axis = Axis("sigma", low * sigma, high * sigma, factor)
    steps = axis.steps(sigma)
    ends = [axis.at(sigma, steps[0]), axis.at(sigma, steps[-1])]
    assert low * sigma * (1 - 1e-8) <= ends[0] <= ends[1] <= high * sigma * (1 + 1e-8)
    assert axis.at(sigma, steps[0] - 1) < low * sigma * (1 + 1e-6)
    assert axis.at(sigma, steps[-1] + 1) > high * sigma * (1 - 1e-6)


def test_a_manifest_gives_the_lattice_back() -> None:
    lattice = gennorm("gennorm(beta=1.5, sigma=0.3)", Axis("sigma", 0.1, 1, 1.2), BETA)
    again = Grid.from_dict(lattice.to_dict())
    assert again == lattice
    assert again.noise((2, -1)) == lattice.noise((2, -1))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Axis("sigma", 0, 1, 1.2), "above 0"),
        (lambda: Axis("sigma", 0.5, 1, 1.0), "factor above 1"),
        (lambda: Axis("beta", 3, 1, 0.5), "range beta=3:1: the first number must be below"),
        (lambda: Axis("beta", 1, 3, 0), "step"),
        (lambda: Axis("beta", 1, float("inf"), 0.5), "range beta=1:inf: the first number must"),
        (lambda: gennorm("uniform(sigma=1)", SIGMA), "not a gennorm"),
        (lambda: gennorm("cauchy(scale=1)", SIGMA), "standard deviation"),
        (lambda: gennorm("gaussian(sigma=1)", Axis("gamma", 1, 2, 0.5)), "has no parameter gamma"),
        (lambda: gennorm("gaussian(sigma=1)", SIGMA, SIGMA), "twice"),
        (lambda: Grid.around(parse("gaussian(sigma=1)"), "normal", (SIGMA,)), "known families: "),
        (lambda: gennorm("gaussian(sigma=9)", SIGMA).size, "outside the range"),
    ],
)
def test_mistakes_are_named(make, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UnicrError, match=words):
        make()
