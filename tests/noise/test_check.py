"""A sampler that is wrong about its law is an error, and `evaluate_error` says how wrong it is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from unicr import noise
from unicr.errors import NoiseError
from unicr.noise import IID
from unicr.noise._check import checked_table, evaluate_error
from unicr.noise._inverse import InverseTable

Array = NDArray[np.float64]


def _f(x: ArrayLike) -> Array:
    return np.asarray(x, dtype=np.float64)


@dataclass
class Law:
    """The exact normal law, to be spoilt."""

    breakpoints: tuple[float, ...] = ()

    def cdf(self, x: ArrayLike) -> Array:
        return np.asarray(special.ndtr(_f(x)))

    def sf(self, x: ArrayLike) -> Array:
        return np.asarray(special.ndtr(-_f(x)))

    def ppf(self, u: ArrayLike) -> Array:
        return np.asarray(special.ndtri(_f(u)))

    def isf(self, u: ArrayLike) -> Array:
        return -np.asarray(special.ndtri(_f(u)))


class Underflown(Law):
    """What General Normal noise of a large β once did: cdf and quantile flat around the median."""

    def cdf(self, x: ArrayLike) -> Array:
        a = np.abs(np.asarray(x, dtype=np.float64))
        tail = 0.5 * special.gammaincc(1 / 1000, a**1000)
        return np.where(np.asarray(x) < 0, tail, 1 - tail)

    def sf(self, x: ArrayLike) -> Array:
        return self.cdf(-np.asarray(x))

    def isf(self, u: ArrayLike) -> Array:
        far = special.gammainccinv(1 / 1000, 2 * _f(u))
        near = special.gammaincinv(1 / 1000, 1 - 2 * _f(u))
        return np.where(np.asarray(u) < 0.25, far, near) ** (1 / 1000)

    def ppf(self, u: ArrayLike) -> Array:
        return -self.isf(u)


class Atom(Law):
    """Quantiles that stop at ±0.001 around the median: an atom there, and a hole."""

    def ppf(self, u: ArrayLike) -> Array:
        return np.minimum(super().ppf(u), -1e-3)


class Rounded(Law):
    """Quantiles of few digits: many small atoms."""

    def ppf(self, u: ArrayLike) -> Array:
        return np.round(super().ppf(u), 4)


class Shifted(Law):
    """A cdf that is not that of the quantiles: off by two thousandths of a unit."""

    def cdf(self, x: ArrayLike) -> Array:
        return np.asarray(special.ndtr(_f(x) + 2e-3))


class Cut(Law):
    """Quantiles that never go beyond −6, where a mass of 1e-9 lies."""

    def ppf(self, u: ArrayLike) -> Array:
        return np.maximum(super().ppf(u), -6.0)


@pytest.mark.parametrize("law", [Underflown(), Atom(), Rounded(), Shifted(), Cut()], ids=repr)
def test_a_wrong_table_is_refused(law: Law) -> None:
    with pytest.raises(NoiseError, match="mine cannot be sampled: its table has"):
        checked_table(law, "mine")


def test_a_right_table_is_measured() -> None:
    table = checked_table(Law(), "normal")
    error = evaluate_error(table, Law())
    assert error.cdf <= 1e-9
    assert error.variation <= 1e-9
    assert error.atom <= 1e-12
    assert error.tail <= 1e-7


def test_variation_is_what_another_law_would_be_off_by() -> None:
    """The normal table held against the law at 1.001 times the scale: 2.4e-4 by arithmetic."""

    class Wider(Law):
        def cdf(self, x: ArrayLike) -> Array:
            return super().cdf(np.asarray(x) / 1.001)

        def sf(self, x: ArrayLike) -> Array:
            return super().sf(np.asarray(x) / 1.001)

    normal = Law()
    table = InverseTable.build(normal.ppf, normal.isf, normal.cdf, normal.sf)
    cross = math.sqrt(2 * math.log(1.001) / (1 - 1.001**-2))
    truth = 2 * abs(stats.norm.cdf(cross) - stats.norm.cdf(cross / 1.001))
    assert evaluate_error(table, Wider()).variation == pytest.approx(truth, rel=0.01)


def test_pieces_tile_every_quarter() -> None:
    for one in (noise.gaussian(sigma=1), noise.gennorm(beta=100, sigma=1)):
        quarter, lo, width, _ = one._table().pieces()
        for q in range(4):
            order = np.argsort(lo[quarter == q])
            start, wide = lo[quarter == q][order], width[quarter == q][order]
            np.testing.assert_allclose(start[1:], (start + wide)[:-1], rtol=1e-12)
            assert math.fsum(wide) == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("beta", [1e-9, 1e-6, 1e-3, 0.01])
def test_a_little_laplace_in_gaussian_noise(beta: float) -> None:
    """The inverse once stopped short where the Gaussian tail turns into the Laplace one."""
    one = noise.lapgauss(beta=beta, scale=1)
    v = np.geomspace(2.0**-55, 0.49, 5000)
    np.testing.assert_allclose(one.sf(one.isf(v)), v, rtol=1e-12)
    assert one.evaluate_error().cdf <= 1e-9


def test_every_noise_can_be_asked() -> None:
    assert noise.cauchy(scale=3).truncated(1).evaluate_error().variation < 1e-8
    assert noise.spherical_exp(k=1, dim=12, scale=2).evaluate_error().cdf <= 1e-9
    own = noise.from_density(lambda x: -(np.abs(x) ** 1.3))
    assert isinstance(own, IID)
    assert own.evaluate_error().atom < 1e-9
    draws = own.sample(100_000, 1, seed=2, dtype=torch.float64).numpy().ravel()
    assert len(np.unique(draws)) == len(draws)
