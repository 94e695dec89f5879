"""Noise of (seed, input, sample) is one value, however it is drawn; and it has the law it claims.

Statistical tests have fixed seeds; were the seed drawn afresh, each would fail by chance with a
probability of at most 1e-6.
"""

from __future__ import annotations

import functools
import math
import multiprocessing
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from unicr import noise
from unicr.errors import NoiseError
from unicr.noise import IID, Noise

Array = NDArray[np.float64]


def bimodal(x: Array) -> Array:
    """Two modes, and a kink at zero."""
    return np.asarray(np.logaddexp(-((x + 2) ** 2), -3 * np.abs(x - 2)))


@functools.cache
def own() -> noise.IID:
    return noise.from_density(bimodal, name="own")


def skewed_gaussian() -> noise.Joint:
    def sampler(n: int, generator: torch.Generator) -> torch.Tensor:
        z = torch.randn(n, 12, generator=generator, dtype=torch.float64)
        return z + 0.5 * z.roll(1, 1)

    return noise.Joint(lambda z: -z.square().sum(1), sampler, dim=12)


KINDS: dict[str, Callable[[], Noise]] = {
    "gaussian": lambda: noise.gaussian(sigma=0.5),
    "gennorm": lambda: noise.gennorm(beta=0.5, sigma=1),
    "cauchy": lambda: noise.cauchy(scale=0.3),
    "uniform": lambda: noise.uniform(sigma=1),
    "truncated": lambda: noise.cauchy(scale=0.3).truncated(-1, 5),
    "own": own,
    "spherical_gg": lambda: noise.spherical_gg(k=3, sigma=1, dim=12),
    "spherical_exp": lambda: noise.spherical_exp(k=1, sigma=1, dim=12),
    "ball": lambda: noise.ball(sigma=1, dim=12),
    "joint": skewed_gaussian,
}


@functools.cache
def kind(name: str) -> Noise:
    return KINDS[name]()


def in_batches(one: Noise, n: int, size: int, dim: int, **options: Any) -> torch.Tensor:
    parts = [
        one.sample(min(size, n - start), dim, start=start, **options) for start in range(0, n, size)
    ]
    return torch.cat(parts)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", KINDS)
def test_noise_does_not_depend_on_the_batch_size(name: str, dtype: torch.dtype) -> None:
    one = kind(name)
    whole = one.sample(300, 12, seed=9, input_index=4, dtype=dtype)
    assert whole.dtype == dtype
    assert whole.shape == (300, 12)
    for size in (1, 7, 256):
        again = in_batches(one, 300, size, 12, seed=9, input_index=4, dtype=dtype)
        assert torch.equal(whole, again)
    backwards = [one.sample(1, 12, seed=9, input_index=4, start=s, dtype=dtype) for s in (9, 3)]
    assert torch.equal(torch.cat(backwards), whole[[9, 3]])
    assert bool(torch.isfinite(whole).all())


@pytest.mark.parametrize("dim", [784, 3072, 150_528])
def test_spherical_noise_does_not_depend_on_batch_or_threads(dim: int) -> None:
    one = noise.spherical_exp(k=1, sigma=1, dim=dim)
    whole = one.sample(8, seed=2, dtype=torch.float64)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        assert torch.equal(whole, in_batches(one, 8, 1, dim, seed=2, dtype=torch.float64))
        assert torch.equal(whole, in_batches(one, 8, 3, dim, seed=2, dtype=torch.float64))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(whole, in_batches(one, 8, 1, dim, seed=2, dtype=torch.float64))


@pytest.mark.parametrize("name", KINDS)
def test_streams_are_separate(name: str) -> None:
    one = kind(name)
    base = one.sample(70, 12, seed=1, input_index=2, dtype=torch.float64)
    others = [
        one.sample(70, 12, seed=2, input_index=2, dtype=torch.float64),
        one.sample(70, 12, seed=1, input_index=3, dtype=torch.float64),
        one.sample(70, 12, seed=2, input_index=1, dtype=torch.float64),
        one.sample(70, 12, seed=1, input_index=2, start=70, dtype=torch.float64),
    ]
    assert torch.equal(base, one.sample(70, 12, seed=1, input_index=2, dtype=torch.float64))
    for other in others:
        assert not bool((base == other).any())
    assert len(torch.unique(base)) == base.numel()


@pytest.mark.parametrize("name", KINDS)
def test_a_base_is_added(name: str) -> None:
    one = kind(name)
    base = torch.linspace(-1, 2, 12, dtype=torch.float64).reshape(3, 4)
    plain = one.sample(5, (3, 4), seed=3, dtype=torch.float64)
    assert torch.equal(one.sample(5, seed=3, dtype=torch.float64, base=base), plain + base)
    single = one.sample(5, seed=3, base=base.float())
    assert single.dtype == torch.float32
    torch.testing.assert_close(single, (plain + base).float(), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", KINDS)
def test_float32_is_float64_rounded(name: str) -> None:
    one = kind(name)
    double = one.sample(50, 12, dtype=torch.float64)
    torch.testing.assert_close(one.sample(50, 12), double.float(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", KINDS)
def test_out_is_filled(name: str) -> None:
    one = kind(name)
    out = torch.full((5, 3, 4), math.nan)
    assert one.sample(5, out=out, seed=8) is out
    assert torch.equal(out, one.sample(5, (3, 4), seed=8))
    assert one.sample(0, (3, 4)).shape == (0, 3, 4)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"n": -1, "shape": 3}, "n=-1"),
        ({"n": 2, "shape": 3, "start": -1}, "start=-1"),
        ({"n": 2, "shape": 3, "input_index": -5}, "input_index=-5"),
        ({"n": 2, "shape": 3, "seed": 0.5}, "must be integers, got 0.5"),
        ({"n": 2, "shape": 3, "start": 1 << 62}, "one stream cannot hold so many draws"),
        ({"n": 2}, r"gaussian\(sigma=0.5\) works in any dimension.*shape="),
        ({"n": 2, "shape": 3, "dtype": torch.float16}, r"has type torch\.float16, but float32"),
        ({"n": 2, "shape": 3, "dtype": torch.int64}, "has type torch.int64, but"),
        ({"n": 2, "shape": 3, "out": torch.empty(2, 4)}, r"out has shape \(2, 4\).*\(2, 3\)"),
        ({"n": 2, "out": torch.empty(3, 4)}, r"out has shape \(3, 4\).*\(2, 4\)"),
        ({"n": 2, "out": torch.empty(4, 2).T}, "contiguous"),
        ({"n": 2, "out": torch.empty(2, 4, dtype=torch.int32)}, "has type torch.int32"),
        (
            {"n": 2, "shape": 3, "base": torch.zeros(4)},
            r"base has shape \(4,\), but \(3,\) is needed",
        ),
    ],
)
def test_bad_requests_are_named(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(NoiseError, match=reason):
        kind("gaussian").sample(**options)


LAWS: dict[str, Callable[[], IID]] = {
    "gaussian": lambda: noise.gaussian(sigma=0.5),
    "laplace": lambda: noise.laplace(sigma=0.5),
    "sech": lambda: noise.sech(sigma=0.5),
    "gennorm 0.25": lambda: noise.gennorm(beta=0.25, sigma=1),
    "gennorm 0.75": lambda: noise.gennorm(beta=0.75, sigma=1),
    "gennorm 1.5": lambda: noise.gennorm(beta=1.5, sigma=1),
    "gennorm 3": lambda: noise.gennorm(beta=3, sigma=1),
    "cauchy": lambda: noise.cauchy(scale=0.3),
    "pareto": lambda: noise.pareto(beta=3, scale=0.5),
    "lapgauss": lambda: noise.lapgauss(beta=0.5, sigma=1),
    "expmix": lambda: noise.expmix(beta=0.5, sigma=1),
    "uniform": lambda: noise.uniform(sigma=1),
    "truncated": lambda: noise.cauchy(scale=0.3).truncated(-1, 5),
    "own": own,
}


def check_law(one: IID, n: int) -> None:
    """Kolmogorov–Smirnov, Anderson–Darling and the count in each far tail, at 1e-6 each."""
    draws = one.sample(n // 1000, 1000, seed=31, dtype=torch.float64).numpy().ravel()
    draws.sort()
    # a draw that was rounded to the end of a support, or half a step beyond it, has no tail left
    lower, upper = np.maximum(one.cdf(draws), 1e-12), np.maximum(one.sf(draws), 1e-12)
    steps = np.arange(n + 1) / n
    distance = max(np.max(steps[1:] - lower), np.max(lower - steps[:-1]))
    assert distance < math.sqrt(math.log(2e6) / (2 * n))
    weight = (2 * np.arange(n) + 1) / n
    # P(A² > a) → √3·P(χ²₁ > 2a), which is 9e-7 at a = 12.1
    assert -n - float(weight @ (np.log(lower) + np.log(upper[::-1]))) < 12.1
    for tail in (lower, upper):
        for expected in (100, 1000):
            count = int(np.sum(tail < expected / n))
            assert abs(count - expected) < 5.2 * math.sqrt(expected) + 5  # a Poisson count


@pytest.mark.parametrize("name", LAWS)
def test_a_million_draws_follow_the_law(name: str) -> None:
    check_law(LAWS[name](), 1_000_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_ten_million_draws_follow_the_law(name: str) -> None:
    check_law(LAWS[name](), 10_000_000)


def test_the_check_sees_a_small_error_in_the_tail() -> None:
    class Wrong(noise.IID):
        """A law whose samples shrink a little beyond 2.2."""

        def _fill(self, out: torch.Tensor, *options: Any) -> None:
            super()._fill(out, *options)
            out.copy_(torch.where(out.abs() > 2.2, 0.97 * out, out))

    gaussian = noise.gaussian(sigma=1)
    wrong = Wrong(gaussian.unit_law, gaussian._recipe, scale=gaussian.scale)
    with pytest.raises(AssertionError):
        check_law(wrong, 1_000_000)


def test_samples_are_whole_steps_and_the_sum_is_rounded_once() -> None:
    one = noise.laplace(scale=0.3)
    step = one.evaluate_error().step
    assert step == 0.3 * 2.0**-23
    draws = one.sample(100, 784, seed=5, dtype=torch.float64)
    e = torch.round(draws / step)
    assert torch.equal(e * step, draws)
    base = torch.rand(784)
    noisy = one.sample(100, seed=5, base=base)
    assert torch.equal(noisy, (base.double() + e * step).float())


def test_two_python_threads_get_the_serial_result() -> None:
    one = kind("own")
    serial = [one.sample(2000, 300, input_index=i) for i in range(2)]
    results = [torch.empty(0)] * 2

    def work(i: int) -> None:
        for _ in range(5):
            results[i] = one.sample(2000, 300, input_index=i)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for i in range(2):
        assert torch.equal(results[i], serial[i])


def test_a_forked_process_draws_the_same() -> None:
    """Threads do not survive a fork: a child starts its own."""
    one = kind("gaussian")
    expected = one.sample(200, 784, seed=3)
    context = multiprocessing.get_context("fork")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking a process with threads
        with context.Pool(1) as pool:
            drawn = pool.apply(_draw_in_a_child)
    assert np.array_equal(drawn, expected.numpy())


def _draw_in_a_child() -> NDArray[np.float32]:
    result: NDArray[np.float32] = kind("gaussian").sample(200, 784, seed=3).numpy()
    return result
