"""Radii: time in units of dp-accounting's own composition.

u = one self-composition of a Gaussian at d = 150,528, interval 1e-4, by dp-accounting in this run.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import special

from unicr import noise
from unicr.norms import linf
from unicr.radius import Evidence, Question, RadiusCurve, _cache
from unicr.radius.internal import prove
from unicr.tradeoff import make_ratio_law

FAMILIES = (
    "gaussian(sigma=1)",
    "laplace(sigma=1)",
    "sech(sigma=1)",
    "gennorm(beta=0.75, sigma=1)",
    "gennorm(beta=1.5, sigma=1)",
    "gennorm(beta=3, sigma=1)",
    "cauchy(scale=1)",
    "pareto(beta=3, sigma=1)",
    "lapgauss(beta=0.5, sigma=1)",
    "expmix(beta=0.5, sigma=1)",
    "uniform(sigma=1)",
)
LARGE = 150_528


def seconds(job: Callable[[], object], repeat: int = 1) -> float:
    """The best wall time of `repeat` runs."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return min(times)


def unit() -> float:
    """u: dp-accounting composes a Gaussian 150,528 times."""
    sensitivity = 2.3263 / math.sqrt(LARGE)

    def job() -> None:
        one = pld.from_gaussian_mechanism(
            1 / sensitivity, value_discretization_interval=1e-4, use_connect_dots=True
        )
        one.self_compose(LARGE)

    return seconds(job, 3)


def cold_radius(spec: str) -> tuple[float, float]:
    """Seconds and value of one ℓ∞ radius at d = 150,528, composed with nothing cached."""
    one = noise.parse(spec)
    assert isinstance(one, noise.IID)
    make_ratio_law.cache_clear()
    value = 0.0

    def job() -> None:
        nonlocal value
        value = prove(Question(one, linf, LARGE), Evidence(0.99, 0.01)).radius

    return seconds(job), value


def plain_monte_carlo(dim: int, p_a: float, samples: int = 1000) -> tuple[float, float]:
    """The paper's setting in plain numpy: 1,000 samples, 10 one-hot particles, 10 iterations."""
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    z = rng.laplace(scale=math.sqrt(0.5), size=(samples, dim))
    scale = math.sqrt(0.5)

    def root(direction: np.ndarray) -> float:
        low, high = 0.0, 10.0
        for _ in range(20):
            middle = 0.5 * (low + high)
            delta = middle * direction
            under_p = (np.abs(z) - np.abs(z - delta)).sum(axis=1) / scale
            under_q = (np.abs(z + delta) - np.abs(z)).sum(axis=1) / scale
            threshold = np.quantile(under_p, p_a)
            low, high = (middle, high) if np.mean(under_q <= threshold) >= 0.5 else (low, middle)
        return low

    particles = np.zeros((10, dim))
    particles[np.arange(10), rng.integers(0, dim, 10)] = rng.uniform(0.5, 1, 10)
    velocity = np.zeros_like(particles)
    best = np.array([root(p / np.linalg.norm(p)) for p in particles])
    places = particles.copy()
    for _ in range(10):
        leader = places[np.argmin(best)]
        pull = rng.random((2, 10, 1))
        velocity = 0.7 * velocity + 1.5 * pull[0] * (places - particles)
        velocity += 1.5 * pull[1] * (leader - particles)
        particles = particles + velocity
        for i, p in enumerate(particles):
            value = root(p / np.linalg.norm(p))
            if value < best[i]:
                best[i], places[i] = value, p
    return time.perf_counter() - start, float(best.min())


def main() -> None:
    """Print every table."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[_cache.VARIABLE] = folder
        u = unit()
        print(f"\nu = {u:.3f} s (dp-accounting, Gaussian, d = {LARGE}, interval 1e-4)")
        print("\none cold radius, l-inf, d = 150528, p_A = 0.99 (bar: 3 u)")
        for spec in FAMILIES:
            spent, value = cold_radius(spec)
            print(f"  {spec:<30} {spent / u:6.2f} u   {value:.6f}")
        truth = special.ndtri(0.99) / math.sqrt(LARGE)
        _, value = cold_radius("gaussian(sigma=1)")
        print(f"  error of the Gaussian one: {value / truth - 1:.1e}")
        curves(u)
        against_monte_carlo()


def curves(u: float) -> None:
    """A cold curve, and how fast it is read."""
    print("\ncold curve, l-inf, d = 150528 (bar: 30 u)")
    for spec in ("laplace(sigma=1)", "gennorm(beta=1.5, sigma=1)", "expmix(beta=0.5, sigma=1)"):
        curve = RadiusCurve(noise.parse(spec), math.inf, LARGE)
        print(f"  {spec:<30} {seconds(lambda c=curve: c(0.9)) / u:6.2f} u")  # type: ignore[misc]
    p = np.random.default_rng(0).uniform(0.5, 1, 1_000_000)
    grid = np.linspace(0.5, 1, 16_384)
    read = seconds(lambda: curve(p), 7)
    plain = seconds(lambda: np.interp(p, grid, grid), 7)
    print(f"  reading: {1e6 / read:.2e} radii/s, {read / plain:.2f} x numpy.interp (bars: 1e7, 3)")


def against_monte_carlo() -> None:
    """The paper's own way on the same case: Laplace, ℓ2, d = 3072, p_A = 0.99."""
    from unicr.norms import l2
    from unicr.radius._direction import search_direction

    one = noise.laplace(sigma=1)
    make_ratio_law.cache_clear()
    numeric = 0.0

    def job() -> None:
        nonlocal numeric
        numeric, _ = search_direction(Question(one, l2, 3072), Evidence(0.99, 0.01))

    spent = seconds(job)
    reference = 1.65652
    slow, value = plain_monte_carlo(3072, 0.99)
    print("\nLaplace, l2, d = 3072, p_A = 0.99 (independent reference 1.65652)")
    print(f"  composition          {spent:8.2f} s   error {100 * (numeric / reference - 1):+.3f} %")
    print(f"  Monte Carlo + swarm  {slow:8.2f} s   error {100 * (value / reference - 1):+.1f} %")
    print(f"  ratio {slow / spent:.0f} x (bar: 50)")
