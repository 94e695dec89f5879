"""Where log-ratios of a density and its shift turn: sign changes on a grid, for every family."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from unicr import noise
from unicr.noise import IID
from unicr.values import Array

CAUCHY = noise.cauchy(scale=1).ratio_turns(0.5)


def families() -> list[tuple[str, IID]]:
    texts = [
        "gaussian(sigma=1)", "laplace(scale=0.7)", "sech(sigma=2)",
        "gennorm(beta=0.4, scale=1)", "gennorm(beta=1.5, scale=2)", "gennorm(beta=5, scale=1)",
        "cauchy(scale=0.3)", "cauchy(scale=2)", "pareto(beta=3, scale=0.5)",
        "pareto(beta=0.5, scale=1)", "expmix(beta=0.5, sigma=1)",
    ]  # fmt: skip
    found = []
    for text in texts:
        law = noise.parse(text)
        assert isinstance(law, IID)
        found.append((text, law))
    return found


@pytest.mark.parametrize(("text", "law"), families(), ids=lambda one: str(one)[:40])
@pytest.mark.parametrize("shift", [0.05, -0.6, 3.0])
def test_a_log_ratio_turns_only_where_it_says(text: str, law: IID, shift: float) -> None:
    """On a grid of 40,001 points: between two of its turns log p(z − u) − log p(z) is monotone."""
    turns = law.ratio_turns(shift)
    assert turns is not None
    reach = 6 * law.scale + 2 * abs(shift)
    z = np.linspace(-reach, reach, 40_001) + 1e-9
    with np.errstate(invalid="ignore"):
        ratio = law.logpdf(z - shift) - law.logpdf(z)
    z, ratio = z[np.isfinite(ratio)], ratio[np.isfinite(ratio)]
    edges = np.searchsorted(z, np.sort(np.array([-math.inf, *turns, math.inf])))
    seen = 0
    for a, b in pairwise(edges):
        steps = np.diff(ratio[a:b])
        large = steps[np.abs(steps) > 1e-12 * (1 + np.max(np.abs(ratio[a:b]), initial=0.0))]
        assert np.all(large >= 0) or np.all(large <= 0), (text, z[a], z[b - 1])
        seen += large.size
    assert seen > 0


def test_turns_are_claimed_by_formula_only() -> None:
    """Two bumps, symmetric: L turns several times, and nobody knows where."""

    def bumps(x: Array) -> Array:
        return np.asarray(np.logaddexp(-2 * (x - 2) ** 2, -2 * (x + 2) ** 2))

    assert noise.from_density(bumps, symmetric=True).ratio_turns(0.5) is None
    assert noise.cauchy(scale=1).truncated(3).ratio_turns(0.5) in (None, CAUCHY)
    assert noise.gaussian(sigma=1).ratio_turns(0.5) == ()
