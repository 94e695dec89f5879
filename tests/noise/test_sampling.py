"""Inverse-CDF tables: accuracy against scipy, reproducible noise, and the random bits themselves.

Statistical tests have fixed seeds; were the seed drawn afresh, each would fail by chance with a
probability of at most 1e-6.
"""

from __future__ import annotations

import functools
import pickle
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import special, stats

from unicr.errors import NoiseError
from unicr.noise import _sampling
from unicr.noise._inverse import InverseTable
from unicr.noise._sampling import fill, fill_torch
from unicr.noise._streams import ALMOST_ONE, ONE, draw_bits, stream_keys

Function = Callable[[Any], Any]


class Law(NamedTuple):
    ppf: Function
    isf: Function
    cdf: Function
    sf: Function
    breaks: tuple[float, ...] = ()

    def table(self) -> InverseTable:
        return InverseTable.build(self.ppf, self.isf, self.cdf, self.sf, breaks=self.breaks)


def bits_from_uniform(u: Any, *, upper: bool = False) -> NDArray[np.uint64]:
    """The 64 bits whose draw lies nearest to u (to 1 - u if `upper`, precise for small u)."""
    u = np.asarray(u, dtype=np.float64)
    flip = u > 0.5
    w = np.where(flip, 1.0 - u, u)
    tail = w < 0.25
    d = np.where(tail, 4 * w, 2.0 - 4 * w)
    k = np.clip(np.floor(d * 2.0**52), 0, 2.0**52 - 1).astype(np.uint64)
    q = np.where(tail, 0, 1)
    q = np.where(flip != upper, 3 - q, q).astype(np.uint64)
    return k << np.uint64(12) | q


def uniform_from_bits(bits: NDArray[np.uint64]) -> tuple[Any, NDArray[np.bool_]]:
    """(w, upper): the exact u of a draw is w, or 1 - w where `upper`; w <= 1/2 up to rounding."""
    z = np.asarray(bits, dtype=np.uint64)
    d = (z >> np.uint64(12) | np.uint64(ONE)).view(np.float64) - ALMOST_ONE
    q = z & np.uint64(3)
    w = np.where((q == 0) | (q == 3), d / 4, 0.5 - d / 4)
    return w, q >= 2


def even(isf: Function, sf: Function) -> Law:
    """A symmetric law from its upper half."""
    return Law(lambda u: -isf(u), isf, lambda x: sf(-x), sf)


def gennorm(beta: float) -> Law:
    def sf(x: Any) -> Any:
        y = np.abs(x) ** beta
        upper = special.gammaincc(1 / beta, y) / 2
        return np.where(x > 0, upper, 0.5 + special.gammainc(1 / beta, y) / 2)

    return even(lambda v: special.gammainccinv(1 / beta, 2 * v) ** (1 / beta), sf)


def two_sided_power(tail: float) -> Law:
    """|x| + 1 has survival function x^-tail."""

    def sf(x: Any) -> Any:
        half = 0.5 * (1 + np.abs(x)) ** -tail
        return np.where(x > 0, half, 1 - half)

    return even(lambda v: np.expm1(-np.log(2 * v) / tail), sf)


def skewed(left: float, breaks: tuple[float, ...] = ()) -> Law:
    """Two exponentials of different rate and mass `left` below 0: the quantile has a kink there."""
    right = 1 - left

    def ppf(u: Any) -> Any:
        return np.where(u < left, np.log(u / left), -3 * np.log1p((left - u) / right))

    def isf(v: Any) -> Any:
        return np.where(v < right, -3 * np.log(v / right), np.log1p((right - v) / left))

    def cdf(x: Any) -> Any:
        return np.where(
            x < 0, left * np.exp(np.minimum(x, 0)), 1 - right * np.exp(-np.maximum(x, 0) / 3)
        )

    def sf(x: Any) -> Any:
        return np.where(
            x < 0, 1 - left * np.exp(np.minimum(x, 0)), right * np.exp(-np.maximum(x, 0) / 3)
        )

    return Law(ppf, isf, cdf, sf, breaks)


def two_intervals(left: float, breaks: tuple[float, ...]) -> Law:
    """Uniform on [-2, -1] with mass `left`, on [1, 3] with the rest: a gap in the support."""
    right = 1 - left

    def ppf(u: Any) -> Any:
        return np.where(u < left, -2 + u / left, 1 + 2 * (u - left) / right)

    def isf(v: Any) -> Any:
        return np.where(v < right, 3 - 2 * v / right, -1 - (v - right) / left)

    def cdf(x: Any) -> Any:
        return np.where(
            x < 0, left * (np.clip(x, -2, -1) + 2), left + right * (np.clip(x, 1, 3) - 1) / 2
        )

    def sf(x: Any) -> Any:
        return np.where(
            x < 0, right + left * (-1 - np.clip(x, -2, -1)), right * (3 - np.clip(x, 1, 3)) / 2
        )

    return Law(ppf, isf, cdf, sf, breaks)


GAUSSIAN = even(lambda v: -special.ndtri(v), lambda x: special.ndtr(-x))
LAWS = {
    "Gaussian": GAUSSIAN,
    "Laplace": Law(*(getattr(stats.laplace, n) for n in ("ppf", "isf", "cdf", "sf"))),
    "Cauchy": even(lambda v: 1 / np.tan(np.pi * v), lambda x: np.arctan2(1, x) / np.pi),
    "general normal 0.25": gennorm(0.25),
    "general normal 4": gennorm(4.0),
    "power tail 0.1": two_sided_power(0.1),
    "unlisted kink": skewed(0.3),
    "unlisted kink, upper half": skewed(0.61803),
    "listed kink": skewed(0.3, (0.3,)),
    "gap": two_intervals(0.3, (0.3,)),
    "gap, upper half": two_intervals(0.9, (0.9,)),
    "gap at the median": two_intervals(0.5, (0.5,)),
    "unlisted gap": two_intervals(0.3, ()),
}


@functools.cache
def table_of(name: str) -> InverseTable:
    return LAWS[name].table()


@pytest.fixture(scope="module")
def gaussian() -> InverseTable:
    return table_of("Gaussian")


@pytest.fixture(scope="module")
def kinked() -> InverseTable:
    return table_of("unlisted kink")


def probes(law: Law) -> np.ndarray:
    """Bits of draws spread over both tails to 1e-12, both sides of 1/2 and of special points."""
    tail = np.concatenate([np.geomspace(1e-12, 0.5, 40_001), np.linspace(1e-6, 0.5, 40_001)])
    near = 10.0 ** np.linspace(-15, -2, 2001)
    parts = [bits_from_uniform(tail), bits_from_uniform(tail, upper=True)]
    for centre in (0.5, 0.25, 0.75, 0.3, 0.61803, 0.9, *law.breaks):
        parts += [bits_from_uniform(centre - near), bits_from_uniform(centre + near)]
    return np.concatenate(parts)


@pytest.mark.parametrize("name", LAWS)
def test_table_inverts_the_cdf_to_1e_9_of_the_smaller_tail(name: str) -> None:
    law = LAWS[name]
    table = table_of(name)
    bits = probes(law)
    w, upper = uniform_from_bits(bits)
    x = table.evaluate(bits)
    assert np.all(np.isfinite(x))
    step = 4 * np.spacing(np.abs(x))
    reached = [np.where(upper, law.sf(x + s), law.cdf(x + s)) for s in (-step, 0 * step, step)]
    off = np.maximum(np.min(reached, axis=0) - w, w - np.max(reached, axis=0))
    assert np.max(off / w) <= 1e-9
    assert table.max_error <= 1e-9
    assert table.hard_mass < 0.01
    representable = w > (1e-6 if "gap" in name else 0.0)
    assert np.max((np.abs(reached[1] - w) / w)[representable]) <= 1e-9


@pytest.mark.parametrize("left", [0.3, 0.9, 0.5, 0.25, 1e-7])
def test_no_draw_falls_into_a_listed_gap(left: float) -> None:
    table = two_intervals(left, (left,)).table()
    near = np.concatenate([np.arange(2000) * 2.0**-54, 10.0 ** np.linspace(-15, -3, 20_001)])
    x = table.evaluate(bits_from_uniform(np.concatenate([left - near[near < left], left + near])))
    assert np.all((x <= -1 + 1e-15) | (x >= 1 - 1e-15))
    assert x.min() >= -2 - 1e-15
    assert x.max() <= 3 + 1e-15


def test_kink_is_confined_to_one_cell_with_few_pieces(kinked: InverseTable) -> None:
    assert np.isnan(kinked.cells[:, 0]).sum() == 1
    assert 2 < kinked.sub_lo.size < 100
    listed = skewed(0.3, (0.3,)).table()
    assert listed.sub_lo.size == 2


def test_extreme_draws_are_inverted_not_clamped(gaussian: InverseTable) -> None:
    ends = np.array([0, 3], dtype=np.uint64)
    x = gaussian.evaluate(ends)
    np.testing.assert_allclose(x, special.ndtri(2.0**-55) * np.array([1, -1]), rtol=1e-9)
    power = two_sided_power(0.1).table().evaluate(ends)
    assert np.all(np.isfinite(power))
    assert power[1] > 1e150


def test_cost_of_building_stays_small() -> None:
    calls = {"inverse": 0, "forward": 0}

    def counted(kind: str, function: Function) -> Function:
        def wrapper(x: np.ndarray) -> np.ndarray:
            calls[kind] += x.size
            return function(x)

        return wrapper

    for law in LAWS.values():
        calls.update(inverse=0, forward=0)
        kinds = ("inverse", "inverse", "forward", "forward")
        InverseTable.build(*map(counted, kinds, law[:4]), breaks=law.breaks)
        assert calls["inverse"] < 250_000
        assert calls["forward"] < 400_000


def test_histogram_with_many_breaks() -> None:
    edges = np.linspace(-1, 1, 61)
    weights = np.random.default_rng(1).random(60) + 0.1
    total = np.concatenate([[0], np.cumsum(weights)]) / weights.sum()
    total_up = np.concatenate([np.cumsum(weights[::-1])[::-1], [0]]) / weights.sum()
    law = Law(
        lambda u: np.interp(u, total, edges),
        lambda v: np.interp(v, total_up[::-1], edges[::-1]),
        lambda x: np.interp(x, edges, total),
        lambda x: np.interp(x, edges, total_up),
        tuple(total[1:-1]),
    )
    table = law.table()
    bits = draw_bits(*stream_keys(0, 0), 0, 200_000)
    w, upper = uniform_from_bits(bits)
    x = table.evaluate(bits)
    assert np.max(np.abs(np.where(upper, law.sf(x), law.cdf(x)) - w) / w) < 1e-9
    out = np.empty((100, 2000))
    fill(table, out, scale=1.0, seed=0, input_index=0, start_sample=0, dim=2000)
    np.testing.assert_array_equal(out.ravel(), x)


def test_table_survives_pickling(kinked: InverseTable) -> None:
    bits = draw_bits(*stream_keys(0, 0), 0, 1000)
    copy = pickle.loads(pickle.dumps(kinked))
    np.testing.assert_array_equal(copy.evaluate(bits), kinked.evaluate(bits))


def noise(table: InverseTable, n: int, dim: int, **options: Any) -> np.ndarray:
    out = np.full((n, dim), np.nan, dtype=options.pop("dtype", np.float64))
    defaults = {"scale": 1.0, "seed": 7, "input_index": 3, "start_sample": 0, "dim": dim}
    fill(table, out, **{**defaults, **options})
    return out


@pytest.mark.parametrize("dim", [1, 5, 784, 3000])
@pytest.mark.parametrize("batch", [1, 7, 256])
def test_noise_does_not_depend_on_the_batch(kinked: InverseTable, dim: int, batch: int) -> None:
    n = 300
    base = np.linspace(-1, 1, dim)
    whole = noise(kinked, n, dim, base=base)
    parts = [
        noise(kinked, min(batch, n - s), dim, base=base, start_sample=s) for s in range(0, n, batch)
    ]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_noise_does_not_depend_on_threads_or_on_numba(
    kinked: InverseTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = np.linspace(0, 1, 50)
    one = noise(kinked, 3000, 50, threads=1, base=base)
    for threads in (2, 3, 5, None):
        np.testing.assert_array_equal(noise(kinked, 3000, 50, threads=threads, base=base), one)
    _sampling._after_fork()
    np.testing.assert_array_equal(noise(kinked, 3000, 50, threads=2, base=base), one)
    monkeypatch.setattr(_sampling, "compiled", lambda *_: None)
    np.testing.assert_array_equal(noise(kinked, 3000, 50, threads=2, base=base), one)


def test_element_is_the_draw_with_its_own_counter(gaussian: InverseTable) -> None:
    start, gamma = stream_keys(11, 2, 1)
    out = noise(gaussian, 4, 6, seed=11, input_index=2, substream=1, start_sample=10)
    for sample, j in ((0, 0), (1, 5), (3, 2)):
        bits = draw_bits(start, gamma, (10 + sample) * 6 + j, 1)
        assert out[sample, j] == gaussian.evaluate(bits)[0]


def test_mix64_is_splitmix64() -> None:
    golden = 0x9E3779B97F4A7C15
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert draw_bits(1234567, golden, 1, 3).tolist() == published


def test_base_scale_and_single_rounding(gaussian: InverseTable) -> None:
    base = np.random.default_rng(0).random(17)
    x = noise(gaussian, 40, 17)
    np.testing.assert_array_equal(noise(gaussian, 40, 17, scale=0.3), 0.3 * x)
    np.testing.assert_array_equal(noise(gaussian, 40, 17, scale=0.3, base=base), base + 0.3 * x)
    single = noise(gaussian, 40, 17, scale=0.3, base=torch.tensor(base), dtype=np.float32)
    np.testing.assert_array_equal(single, (base + 0.3 * x).astype(np.float32))


def test_torch_tensors_are_filled_in_place(gaussian: InverseTable) -> None:
    out = torch.empty(30, 4)
    fill(gaussian, out, scale=1.0, seed=7, input_index=3, start_sample=0, dim=4)
    np.testing.assert_array_equal(out.numpy(), noise(gaussian, 30, 4, dtype=np.float32))


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_torch_operations_agree_with_the_kernel(name: str, dtype: torch.dtype) -> None:
    table = table_of(name)
    first, second = torch.empty(3000, 101, dtype=dtype), torch.empty(3000, 101, dtype=dtype)
    for base in (None, torch.linspace(0, 1, 101)):
        options: dict[str, Any] = {
            "scale": 0.7,
            "seed": -5,
            "input_index": 1,
            "start_sample": 9,
            "dim": 101,
        }
        fill(table, first, **options, base=base)
        fill_torch(table, second, **options, base=base)
        rtol = 1e-12 if dtype == torch.float64 else 1e-7
        torch.testing.assert_close(first, second, rtol=rtol, atol=1e-14)


def test_two_python_threads_get_the_serial_result(kinked: InverseTable) -> None:
    serial = [noise(kinked, 2000, 300, input_index=i, threads=2) for i in range(2)]
    found: list[np.ndarray] = [np.empty(0)] * 2

    def work(i: int) -> None:
        for _ in range(5):
            found[i] = noise(kinked, 2000, 300, input_index=i, threads=2)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for i in range(2):
        np.testing.assert_array_equal(found[i], serial[i])


@pytest.mark.parametrize("name", ["Gaussian", "unlisted kink"])
def test_ten_million_draws_follow_the_law(name: str) -> None:
    """Kolmogorov, Anderson-Darling and tail counts; false alarm below 1e-6 altogether."""
    law = LAWS[name]
    n = 10**7
    x = np.sort(noise(table_of(name), 10_000, 1000, seed=2024).ravel())
    u, v = law.cdf(x), law.sf(x)
    i = np.arange(1, n + 1)
    distance = max(np.max(i / n - u), np.max(u - (i - 1) / n))
    assert np.sqrt(n) * distance < 2.8, "Kolmogorov: P = 2 exp(-2 * 2.8^2) = 3e-7"
    anderson = -n - np.mean((2 * i - 1) * (np.log(u) + np.log(v[::-1])))
    assert anderson < 15, "P is about sqrt(3) P(chi2_1 > 30) = 8e-8"
    for k in range(1, 22):
        p = 2.0**-k
        for count in ((u < p).sum(), (v < p).sum()):
            two_sided = 2 * min(stats.binom.cdf(count, n, p), stats.binom.sf(count - 1, n, p))
            assert two_sided > 1e-8


def test_bits_are_balanced_and_independent_along_a_stream() -> None:
    """Every bit, every lagged pair of bits, and a 64 x 64 serial test; 6.5 sigma is 8e-11 each."""
    n = 1 << 18
    bits = draw_bits(*stream_keys(0, 0), 0, n)
    planes = (bits[None, :] >> np.arange(64, dtype=np.uint64)[:, None]) & np.uint64(1)
    signs = 2.0 * planes - 1
    assert np.max(np.abs(signs.sum(axis=1))) < 6.5 * np.sqrt(n)
    for lag in (1, 2, 784):
        cross = signs[:, lag:] @ signs[:, :-lag].T
        assert np.max(np.abs(cross)) < 6.5 * np.sqrt(n - lag)
    inner = signs @ signs.T
    np.fill_diagonal(inner, 0)
    assert np.max(np.abs(inner)) < 6.5 * np.sqrt(n)
    pairs = (bits[:-1:2] >> np.uint64(58)) * np.uint64(64) + (bits[1::2] >> np.uint64(58))
    chi2 = stats.chisquare(np.bincount(pairs.astype(np.int64), minlength=4096))
    assert 1e-7 < chi2.pvalue < 1 - 1e-7


@pytest.mark.parametrize("vary", ["seed", "input_index", "substream"])
def test_neighbouring_streams_are_uncorrelated(vary: str) -> None:
    """300 streams, all pairs: 45,000 correlations, each beyond 7.5 sigma with 6e-14."""
    streams, n = 300, 4096
    u = np.empty((streams, n))
    for i in range(streams):
        keys = {"seed": 5, "input_index": 5, "substream": 5, vary: i}
        bits = draw_bits(*stream_keys(**keys), 0, n)
        u[i] = (bits >> np.uint64(11)) * 2.0**-53 - 0.5
    for lag in (0, 1):
        cross = 12 * u[:, lag:] @ u[:, : n - lag].T / np.sqrt(n)
        if lag == 0:
            np.fill_diagonal(cross, 0)
        assert np.max(np.abs(cross)) < 7.5


def test_stream_keys_are_distinct_and_odd() -> None:
    seeds = [0, 1, -1, 2**64, 2**64 + 1, -(2**64), 2**200, 2**200 + 2**100]
    keys = [stream_keys(s, i, k) for s in seeds for i in range(20) for k in range(3)]
    assert len({start for start, _ in keys}) == len(keys) == len({gamma for _, gamma in keys})
    for start, gamma in keys:
        assert 0 <= start < 2**64
        assert 0 < gamma < 2**64
        assert gamma % 2 == 1
        assert (gamma ^ (gamma >> 1)).bit_count() >= 24
    assert stream_keys(np.int64(3), 0, 0) == stream_keys(3, 0, 0)  # type: ignore[arg-type]


def good_call(table: InverseTable) -> dict[str, Any]:
    return {
        "table": table, "out": np.empty((3, 4), np.float32), "scale": 1.0, "seed": 0,
        "input_index": 0, "start_sample": 0, "dim": 4,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"out": np.empty((3, 4), np.float16)}, "float32 or float64, got float16"),
        ({"out": np.empty((3, 4), np.int64)}, "float32 or float64, got int64"),
        ({"out": np.empty((3, 5), np.float32)}, "dim = 4"),
        ({"out": np.empty(12, np.float32)}, "shape"),
        ({"out": np.empty((4, 3), np.float32).T}, "contiguous"),
        ({"out": np.broadcast_to(np.float32(0), (1, 4)).copy()[:, ::-1]}, "contiguous"),
        ({"out": [[0.0] * 4]}, "numpy array or a torch tensor, got list"),
        ({"out": torch.empty(3, 4, dtype=torch.bfloat16)}, "bfloat16"),
        ({"out": torch.empty(3, 4, device="meta")}, "fill_torch"),
        ({"base": np.zeros(5)}, r"base must have shape \(4,\), got \(5,\)"),
        ({"scale": float("inf")}, "scale must be a finite number, got inf"),
        ({"start_sample": -1}, "start_sample = -1"),
        ({"start_sample": 1 << 62}, "below 2"),
        ({"seed": 0.5}, "must be integers, got 0.5"),
        ({"threads": 0}, "threads must be at least 1"),
    ],
)
def test_fill_names_the_bad_argument(
    gaussian: InverseTable, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(NoiseError, match=message):
        fill(**{**good_call(gaussian), **change})


def test_read_only_output_is_refused(gaussian: InverseTable) -> None:
    call = good_call(gaussian)
    call["out"].flags.writeable = False
    with pytest.raises(NoiseError, match="read-only"):
        fill(**call)


def test_fill_torch_checks_too(gaussian: InverseTable) -> None:
    call = good_call(gaussian)
    with pytest.raises(NoiseError, match="contiguous"):
        fill_torch(**{**call, "out": torch.empty(4, 3).T})
    with pytest.raises(NoiseError, match="float16"):
        fill_torch(**{**call, "out": torch.empty(3, 4, dtype=torch.float16)})


def test_build_refuses_what_cannot_work() -> None:
    with pytest.raises(NoiseError, match="strictly between 0 and 1"):
        GAUSSIAN._replace(breaks=(0.5, 1.0)).table()
    with pytest.raises(NoiseError, match="quantiles must be finite"):
        two_sided_power(0.03).table()
    with pytest.raises(NoiseError, match="disagree"):
        GAUSSIAN._replace(cdf=lambda x: special.ndtr(2 * x)).table()
    with pytest.raises(NoiseError, match="tolerance"):
        InverseTable.build(*GAUSSIAN[:4], tolerance=0.0)


def test_kernels_compile_without_a_cache_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    from unicr.noise import _kernels

    options: list[dict[str, bool]] = []

    def njit(**given: bool) -> Callable[[Any], Any]:
        options.append(given)
        if given.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(_kernels, "njit", njit)
    assert _kernels._compiled(len) is len
    assert options == [{"nogil": True, "cache": True}, {"nogil": True}]
