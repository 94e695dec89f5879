"""At the ends of every stated range: all functions of a family against mpmath, and beyond: refused.

The oracle is the density alone, integrated or in closed form with 40 digits. Nothing is taken from
the package but the formula of the density, which the module's docstring states.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import torch
from scipy import special

from unicr import noise
from unicr.errors import NoiseError
from unicr.noise import IID
from unicr.radius import certified_radius

mp.mp.dps = 40
Law = tuple[Callable[[Any], Any], Callable[[Any], Any]]  # density and P(ε > z), z ≥ 0, unit scale


def gaussian() -> Law:
    return (lambda z: mp.exp(-z * z) / mp.sqrt(mp.pi), lambda z: mp.erfc(z) / 2)


def laplace() -> Law:
    return (lambda z: mp.exp(-z) / 2, lambda z: mp.exp(-z) / 2)


def sech() -> Law:
    return (lambda z: mp.sech(z) / mp.pi, lambda z: 2 / mp.pi * mp.atan(mp.exp(-z)))


def cauchy() -> Law:
    return (lambda z: 1 / mp.pi / (1 + z * z), lambda z: mp.atan2(1, z) / mp.pi)


def uniform() -> Law:
    return (lambda z: mp.mpf(1) / 2, lambda z: (1 - z) / 2)


def gennorm(beta: float) -> Law:
    b = mp.mpf(beta)
    mass = 2 * mp.gamma(1 + 1 / b)
    return (
        lambda z: mp.exp(-(z**b)) / mass,
        lambda z: mp.gammainc(1 / b, z**b, regularized=True) / 2,
    )


def pareto(beta: float) -> Law:
    b = mp.mpf(beta)
    return (lambda z: b / 2 * (1 + z) ** (-b - 1), lambda z: (1 + z) ** -b / 2)


def lapgauss(beta: float) -> Law:
    b = mp.mpf(beta)
    mass = 2 * b + (1 - b) * mp.sqrt(mp.pi)
    return (
        lambda z: (b * mp.exp(-z) + (1 - b) * mp.exp(-z * z)) / mass,
        lambda z: (b * mp.exp(-z) + (1 - b) * mp.sqrt(mp.pi) / 2 * mp.erfc(z)) / mass,
    )


def expmix(beta: float) -> Law:
    a, b = mp.mpf(beta), 1 - mp.mpf(beta)
    if b == 0:
        return laplace()
    root = mp.sqrt(b)

    def raw(z: Any) -> Any:
        """∫_z^∞ exp(−a·t − b·t²) dt, by completing the square."""
        shift = a / (2 * root)
        return mp.exp(shift**2) * mp.sqrt(mp.pi) / (2 * root) * mp.erfc(root * z + shift)

    half = raw(mp.mpf(0))
    return (lambda z: mp.exp(-z * (a + b * z)) / (2 * half), lambda z: raw(z) / (2 * half))


ORACLES: dict[str, Callable[..., Law]] = {
    f.__name__: f
    for f in (gaussian, laplace, sech, cauchy, uniform, gennorm, pareto, lapgauss, expmix)
}
ORACLES["splitting"] = uniform  # the same law, seen through the box


NODES, WEIGHTS = np.polynomial.legendre.leggauss(20)


def integrated(name: str, numbers: dict[str, float]) -> Law:
    """The oracle of a family that this file does not know: its own density, integrated."""
    law = made(name, numbers, scale=1)
    end = law.support[1]

    def pdf(z: Any) -> Any:
        return mp.exp(mp.mpf(float(law.logpdf(float(z)))))

    def integrate(low: float, high: float) -> float:
        """∫ p in short panels; without an end these grow: x = low + (1 + low)(e^s − 1), so that a
        power of x, however slowly it falls, is an exponential of s.
        """
        size = 1.0 + low
        reach = math.log1p((high - low) / size) if math.isfinite(high) else 690.0 - math.log(size)
        edges = np.linspace(0.0, reach, 3000)
        # finer towards `low`: at 0 a density may have a cusp
        edges = np.union1d(edges, np.geomspace(1e-60, edges[1], 600))
        half = 0.5 * np.diff(edges)[:, None]
        s = edges[:-1, None] + half * (1 + NODES)
        density = np.exp(law.logpdf(low + size * np.expm1(s)))
        return math.fsum((half * WEIGHTS * density * size * np.exp(s)).ravel())

    assert integrate(0.0, end) == pytest.approx(0.5, rel=1e-12)
    middle = float(law.isf(0.25))

    def tail(z: Any) -> Any:
        at = float(z)
        return mp.mpf("0.5") - integrate(0.0, at) if at < middle else mp.mpf(integrate(at, end))

    return pdf, tail


@pytest.mark.parametrize(
    ("name", "numbers"),
    [("cauchy", {}), ("pareto", {"beta": 0.5}), ("gennorm", {"beta": 0.25}), ("uniform", {})],
)
def test_the_oracle_of_an_unknown_family(name: str, numbers: dict[str, float]) -> None:
    """Integrated, a family that is known has the tail of its formula, however heavy."""
    known, found = ORACLES[name](**numbers)[1], integrated(name, numbers)[1]
    law = made(name, numbers, scale=1)
    for z in (1e-7, 1e-3, 0.3, 0.9, 40.0, 1e5, 1e9, 1e15):
        if z < float(law.isf(1e-12)):
            at = mp.mpf(z)
            assert float(found(at)) == pytest.approx(float(known(at)), rel=1e-11)
            near = float(mp.mpf("0.5") - found(at)), float(mp.mpf("0.5") - known(at))
            assert near[0] == pytest.approx(near[1], rel=1e-9)


def oracle(name: str, numbers: dict[str, float]) -> Law:
    return ORACLES[name](**numbers) if name in ORACLES else integrated(name, numbers)


def at_ends(name: str) -> list[dict[str, float]]:
    """Every end of the range of every number, and points just inside; the others as they start."""
    known = noise.FAMILIES[name].parameters
    start = {parameter.name: parameter.slider[2] for parameter in known}
    cases = [start]
    for parameter in known:
        low, high = parameter.low, parameter.high
        inner = 1e-9 * (high - low)
        ends = (low, high, low + inner, high - inner)
        cases += [{**start, parameter.name: value} for value in ends]
    return cases


IID_FAMILIES = [name for name, kind in noise.FAMILIES.items() if not kind.joint]
CASES = [(name, numbers) for name in IID_FAMILIES for numbers in at_ends(name)]
IDS = [f"{name}-{'-'.join(map(str, numbers.values()))}" for name, numbers in CASES]


def made(name: str, numbers: dict[str, float], **size: float) -> IID:
    make: Callable[..., IID] = noise.FAMILIES[name]  # type: ignore[assignment]
    return make(**numbers, **size)


@pytest.mark.parametrize(("name", "numbers"), CASES, ids=IDS)
def test_probabilities_quantiles_and_density(name: str, numbers: dict[str, float]) -> None:
    one = made(name, numbers, scale=1)
    pdf, tail = oracle(name, numbers)
    accuracy = 1e-11 if name in ORACLES else 1e-9  # an integral of doubles is not so exact
    for v in (2.0**-55, 1e-12, 1e-6, 0.003, 0.1, 0.2499, 0.2501, 0.4, 0.49, 0.5 - 1e-7):
        z = float(one.isf(v))
        assert z > 0
        assert float(one.ppf(v)) == -z
        # the contract of the sampler: relative in the tail and towards the median, but for the
        # rounding of z itself, felt where a bounded support ends
        rounding = float(pdf(mp.mpf(z))) * 4 * math.ulp(z)
        truth = tail(mp.mpf(z))
        assert abs(float(truth - mp.mpf(v))) <= 1e-9 * v + rounding
        centre = mp.mpf("0.5") - mp.mpf(v)
        assert abs(float((mp.mpf("0.5") - truth) / centre - 1)) <= 1e-8
        assert float(one.sf(z)) == pytest.approx(float(truth), rel=accuracy, abs=rounding)
        assert float(one.cdf(-z)) == pytest.approx(float(truth), rel=accuracy, abs=rounding)
        assert float(one.cdf(z)) == pytest.approx(float(1 - truth), rel=accuracy / 1000)
        expected = float(mp.log(pdf(mp.mpf(z))))
        assert float(one.logpdf(z)) == pytest.approx(expected, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize(("name", "numbers"), CASES, ids=IDS)
def test_the_standard_deviation(name: str, numbers: dict[str, float]) -> None:
    one = made(name, numbers, scale=1)
    _, tail = oracle(name, numbers)
    if not math.isfinite(one.sigma):
        # E ε² = 4 ∫ z·P(ε > z) dz is infinite where z²·P(ε > z) does not fall
        assert tail(mp.mpf(10) ** 9) * 10**6 >= 0.99 * tail(mp.mpf(10) ** 6)
        return
    if name == "gennorm":
        b = mp.mpf(numbers["beta"])
        second = mp.gamma(3 / b) / mp.gamma(1 / b)
    elif name in ("uniform", "splitting"):
        second = mp.mpf(1) / 3
    else:  # E ε² = 4 ∫ z·P(ε > z) dz
        second = 4 * mp.quad(lambda z: z * tail(z), [0, 0.01, 0.1, 1, 3, 10, 30, 100, mp.inf])
    assert one.sigma == pytest.approx(float(mp.sqrt(second)), rel=1e-9)


@pytest.mark.parametrize(("name", "numbers"), CASES, ids=IDS)
def test_samples_follow_the_oracle_and_have_no_atoms(name: str, numbers: dict[str, float]) -> None:
    """Counts between oracle quantiles; five sigmas and more, false alarm below 1e-6 in all."""
    one = made(name, numbers, scale=1)
    n = 200_000
    draws = one.sample(n, 1, seed=17, dtype=torch.float64).numpy().ravel()
    assert np.isfinite(draws).all()
    # no value has more than 2^-16 of the mass: a Poisson count of mean 3 above 25 has 1e-15
    assert np.unique(draws, return_counts=True)[1].max() <= 25
    _, tail = oracle(name, numbers)
    for v in (1e-3, 0.05, 0.3, 0.45, 0.5):
        z = float(one.isf(v))
        p = float(tail(mp.mpf(z)))
        for count in ((draws > z).sum(), (draws < -z).sum()):
            assert abs(count - n * p) < 6.5 * math.sqrt(n * p * (1 - p))


@pytest.mark.parametrize(("name", "numbers"), CASES, ids=IDS)
def test_the_sampler_says_how_wrong_it_is(name: str, numbers: dict[str, float]) -> None:
    """Power laws so heavy that 2^61 steps do not hold them pay for what lies beyond."""
    law = made(name, numbers, scale=1)
    heavy = law.isf(2.0**-55) > 1e5 * law.isf(0.16)
    assert law.evaluate_error().variation <= (1e-6 if heavy else 1e-13)


EXACT_ENDS = [(name, numbers) for name in IID_FAMILIES for numbers in at_ends(name)[1:3]]


@pytest.mark.parametrize(("name", "numbers"), EXACT_ENDS)
def test_one_dimensional_radii(name: str, numbers: dict[str, float]) -> None:
    """By brute force over the likelihood ratio in d = 1: never above, nor far below."""
    one = made(name, numbers, scale=1)
    truth = brute_force_radius(one, 0.9)
    found = certified_radius(one, norm=1, dim=1, p_a=0.9)
    assert found.proved <= truth * (1 + 1e-3)
    assert found.searched == pytest.approx(truth, rel=5e-3)


def brute_force_radius(one: IID, p_a: float) -> float:
    """The first shift at which the best test of level 1 − p_a reaches power 1/2, on a fine grid."""
    v = np.concatenate([np.geomspace(1e-14, 0.02, 3000), np.linspace(0.02, 0.5, 6000)[1:]])
    z = one.isf(v)
    grid = np.concatenate([-z, z[::-1][1:]])

    def power(shift: float) -> float:
        cuts = np.unique(np.concatenate([grid, grid + shift, np.linspace(-shift, 2 * shift, 4000)]))
        p, q = np.diff(one.cdf(cuts)), np.diff(one.cdf(cuts - shift))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(p > 0, q / p, np.inf)
        order = np.argsort(-np.nan_to_num(ratio, nan=0.0), kind="stable")
        size = np.cumsum(p[order])
        return float(np.interp(1 - p_a, size, np.cumsum(q[order])))

    low, high = 0.0, float(one.isf(1e-4))
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if power(middle) < 0.5 else (low, middle)
    return low


# ------------------------------------------------------------------------------ spherical families


@pytest.mark.parametrize("dim", [2, 3, 784])
@pytest.mark.parametrize("k", [0.1, 1.0, 100.0])
def test_the_radius_of_spherical_exp(k: float, dim: int) -> None:
    """‖z‖^k follows a Gamma law of shape d/k."""
    one = noise.spherical_exp(k=k, dim=dim, scale=1)
    for u in (1e-6, 0.1, 0.5, 0.9, 1 - 1e-6):
        r = mp.mpf(float(one.length.ppf(u)))
        assert float(mp.gammainc(mp.mpf(dim) / k, 0, r**k, regularized=True)) == pytest.approx(
            u, rel=1e-9
        )


@pytest.mark.parametrize(("k", "dim"), [(0, 2), (0.49, 2), (0, 10_000), (391.5, 784)])
def test_the_radius_of_spherical_gg(k: float, dim: int) -> None:
    """‖z‖²/2 follows a Gamma law of shape d/2 − k."""
    one = noise.spherical_gg(k=k, dim=dim, scale=1)
    for u in (1e-6, 0.1, 0.5, 0.9, 1 - 1e-6):
        r = mp.mpf(float(one.length.ppf(u)))
        shape = mp.mpf(dim) / 2 - mp.mpf(k)
        assert float(mp.gammainc(shape, 0, r * r / 2, regularized=True)) == pytest.approx(
            u, rel=1e-9
        )


@pytest.mark.parametrize("family", ["linf_exp", "l1_exp"])
@pytest.mark.parametrize(("k", "j", "dim"), [(0.1, 0, 2), (1, 783, 784), (100, 5, 784)])
def test_the_length_of_powers(family: str, k: float, j: float, dim: int) -> None:
    """‖z‖^k follows a Gamma law of shape (d − j)/k, whatever the norm."""
    make: Any = noise.FAMILIES[family]
    one = make(k=k, j=j, dim=dim, scale=1)
    for u in (1e-6, 0.5, 1 - 1e-6):
        r = mp.mpf(float(one.length.ppf(u)))
        shape = mp.mpf(dim - j) / k
        assert float(mp.gammainc(shape, 0, r**k, regularized=True)) == pytest.approx(u, rel=1e-9)


@pytest.mark.parametrize(("a", "dim"), [(2.5, 2), (800, 784), (1e7, 784)])
def test_the_length_of_linf_pareto(a: float, dim: int) -> None:
    """‖z‖/(1 + ‖z‖) follows Beta(d, a − d)."""
    one = noise.linf_pareto(a=a, dim=dim, scale=1)
    for u in (1e-6, 0.5, 1 - 1e-6):
        r = float(one.length.ppf(u))
        assert special.betainc(dim, a - dim, r / (1 + r)) == pytest.approx(u, rel=1e-6)


@pytest.mark.parametrize("dim", [2, 784, 1_000_000])
def test_the_radius_of_the_ball(dim: int) -> None:
    one = noise.ball(dim=dim, scale=1)
    u = np.array([1e-6, 0.1, 0.5, 0.999])
    np.testing.assert_allclose(one.length.ppf(u), u ** (1 / dim), rtol=1e-11)


# ------------------------------------------------------------------------------ outside


def outside() -> list[tuple[str, str, float]]:
    found = []
    for name, kind in noise.FAMILIES.items():
        for one in kind.parameters:
            low = math.nextafter(one.low, -math.inf)
            beyond = [low, math.nextafter(one.high, math.inf), 1e300, -1.0, math.nan, math.inf]
            found += [(name, one.name, value) for value in beyond]
    return found


@pytest.mark.parametrize(("name", "key", "value"), outside())
def test_outside_its_range_a_family_names_the_range(name: str, key: str, value: float) -> None:
    kind: Any = noise.FAMILIES[name]
    dim = {"dim": 12} if kind.joint else {}
    others = {one.name: one.low for one in kind.parameters if one.name != key}
    with pytest.raises(NoiseError, match=f"outside the range of {name}, which takes {key} from"):
        kind(**{key: value}, **others, scale=1, **dim)


@pytest.mark.parametrize("text", ["gennorm(beta=1000, sigma=1)", "gennorm(beta=0.05, sigma=1)",
                                  "pareto(beta=0.01, scale=1)", "gennorm(beta=1e300, sigma=1)",
                                  "gennorm(beta=1e6, sigma=1)"])  # fmt: skip
def test_what_once_gave_false_certificates_is_refused(text: str) -> None:
    with pytest.raises(NoiseError, match="outside the range"):
        noise.parse(text)


@pytest.mark.parametrize("name", noise.FAMILIES)
@pytest.mark.parametrize("size", [1e-300, 1e300, 1e-31, 1e31])
def test_absurd_sizes_are_refused(name: str, size: float) -> None:
    kind: Any = noise.FAMILIES[name]
    one = noise.parse(kind.example)
    numbers = {**one.numbers, **({"dim": one.dim} if kind.joint else {})}
    with pytest.raises(NoiseError, match=r"must lie between 1e-30 and 1e\+30"):
        kind(**numbers, scale=size)
    with pytest.raises(NoiseError, match="must lie between"):
        one.scaled(size)


def test_ends_of_the_sizes_are_sampled_without_atoms() -> None:
    for size in (1e-30, 1e30):
        draws = noise.gaussian(scale=size).sample(20_000, 1, seed=1).numpy().ravel()
        assert np.isfinite(draws).all()
        assert len(np.unique(draws)) > 19_900
        assert abs(np.std(draws / size) * math.sqrt(2) - 1) < 0.03
