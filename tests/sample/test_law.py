"""The integers: their thresholds against mpmath's law, and draws in compiled code and in numpy."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

from unicr import noise
from unicr.errors import NoiseError
from unicr.noise import Lattice
from unicr.sample import Fill, _fill, choose_step, derive, draw_integers, integer_law

KEY = derive("a test")


def bimodal(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(-((x + 2) ** 2), -3 * np.abs(x - 2))


CASES: dict[str, Callable[[Any], Any]] = {
    "gaussian(sigma=0.5)": lambda x: mpmath.erfc(-x / mpmath.mpf("0.5") / mpmath.sqrt(2)) / 2,
    "laplace(scale=0.25)": lambda x: mpmath.exp(4 * x) / 2 if x < 0 else 1 - mpmath.exp(-4 * x) / 2,
    "cauchy(scale=0.25)": lambda x: mpmath.mpf(1) / 2 + mpmath.atan(4 * x) / mpmath.pi,
    "uniform(scale=0.25)": lambda x: min(max(2 * x + mpmath.mpf(1) / 2, mpmath.mpf(0)), 1),
    "uniform(scale=0.5)": lambda x: min(max(x + mpmath.mpf(1) / 2, mpmath.mpf(0)), 1),  # at an edge
    "gennorm(beta=0.25, scale=0.01)": lambda x: (
        (1 + mpmath.sign(x) * mpmath.gammainc(4, 0, abs(100 * x) ** 0.25, regularized=True)) / 2
    ),
}


def parts_of(law: Any) -> dict[tuple[int, int], list[mpmath.mpf]]:
    """By (start, size) of an interval: the probabilities of its four parts, from the thresholds."""
    ends = [0, *map(int, law.ends), 1 << 64]
    found: dict[tuple[int, int], list[mpmath.mpf]] = {}
    for k, (start, width, kind) in enumerate(zip(law.starts, law.widths, law.kinds, strict=True)):
        parts = found.setdefault((int(start), 1 << int(width)), [mpmath.mpf(0)] * 4)
        parts[kind] += mpmath.mpf(ends[k + 1] - ends[k]) / 2**64
    return found


def exact(spec: str, low: Any, high: Any) -> Any:
    low, high = (low, high) if low < 0 else (-high, -low)  # all laws here are even
    return CASES[spec](high) - CASES[spec](low)


@pytest.mark.parametrize("spec", CASES)
@pytest.mark.parametrize("step", ["1/255", "2^-14"])
def test_thresholds_have_the_law_that_mpmath_has(spec: str, step: str) -> None:
    """½ Σ |P(outcome) − its probability in 40 digits| ≤ τ; τ stays tiny."""
    with mpmath.workdps(40):
        h = mpmath.mpf(1) / Lattice.parse(step).step.denominator
        law = integer_law(noise.parse(spec), float(Lattice.parse(step).step))
        found, apart = parts_of(law), mpmath.mpf(0)
        for start, size in sorted(found)[:: max(1, len(found) // 1500)]:
            low, high = (start - mpmath.mpf("0.5")) * h, (start + size - 0.5) * h
            apart += abs(sum(found[start, size]) - exact(spec, low, high))
    assert apart / 2 <= law.tau
    assert law.tau < 1e-13


@pytest.mark.parametrize("spec", [spec for spec in CASES if "uniform" not in spec])
def test_the_parts_of_a_wide_outcome_add_up_to_the_law_of_its_integers(spec: str) -> None:
    """Even, linear and rest, with the rest as rejection draws it: each P(e = j) to 1e-11 of it.

    The rest's own probabilities are right to 1e-11 of the whole, since doubles hold the density.
    """
    step = Lattice.parse("2^-14")
    law = integer_law(noise.parse(spec), float(step.step))
    with mpmath.workdps(40):
        found = {k: v for k, v in parts_of(law).items() if 8 <= k[1] <= 64}
        chosen = sorted(found, key=lambda k: sum(found[k]))[:: max(1, len(found) // 12)]
        assert len(chosen) >= 12
        for start, size in chosen:
            even, rising, falling, rest = found[start, size]
            assert rest < 1e-2 * (even + rising + falling)
            k = int(
                np.flatnonzero((law.starts == start) & (law.widths == size.bit_length() - 1))[0]
            )
            true = [
                exact(spec, (start + i - mpmath.mpf("0.5")) / 2**14, (start + i + 0.5) / 2**14)
                for i in range(size)
            ]
            excess = [t - law.least[k] - law.tilt[k] * i for i, t in enumerate(true)]
            assert all(-1e-12 * true[i] < e < law.most[k] for i, e in enumerate(excess))
            for i, t in enumerate(true):
                up, down = mpmath.mpf(2 * i + 1) / size**2, mpmath.mpf(2 * (size - i) - 1) / size**2
                p = even / size + rising * up + falling * down + rest * excess[i] / sum(excess)
                assert abs(p - t) <= 1e-11 * t + 2.0**-62, (start, size, i)


def fill(law: Any, n: int, dim: int, *, start: int = 0, threads: int = 1, **row: Any) -> Any:
    base = row.get("row", np.zeros(dim))
    whole = row.get("integers", True)
    out = np.empty(n * dim, row.get("dtype", np.float64))
    write = Fill(law, base, key=KEY, step=law.step, integers=whole, threads=threads)
    write(out, start)
    return out


LAWS = [
    (noise.gaussian(sigma=0.5), 1 / 255),
    (noise.gaussian(sigma=0.5), 2.0**-24),
    (noise.cauchy(scale=0.3), 1 / 255),
    (noise.cauchy(scale=0.3), 2.0**-26),
    (noise.gennorm(beta=0.25, sigma=1), 2.0**-16),
    (noise.pareto(beta=0.5, scale=1), 2.0**-20),
    (noise.uniform(sigma=1), 2.0**-10),
    (noise.from_scipy(stats.gumbel_r(0, 0.5)), 1 / 255),
    (noise.from_density(bimodal), 2.0**-12),
]


@pytest.mark.parametrize(("one", "step"), LAWS, ids=lambda x: getattr(x, "text", str(x)))
def test_kernel_and_numpy_draw_the_same_integers(one: noise.IID, step: float) -> None:
    law = integer_law(one, step)
    for dim, n, start in ((784, 100, 0), (1, 100, 5), (3001, 5, 123456789), (5000, 4, 1 << 40)):
        e = draw_integers(law, KEY, start * dim, n * dim)
        assert np.array_equal(fill(law, n, dim, start=start), e.astype(np.float64) * step)


@pytest.mark.parametrize("integers", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_threads_and_starts_give_the_same(
    integers: bool, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    law = integer_law(noise.cauchy(scale=0.3), 2.0**-24)
    options: dict[str, Any] = {"row": np.arange(77) % 256 - 30.0, "integers": integers}
    options["dtype"] = dtype
    whole = fill(law, 500, 77, start=3, threads=2, **options)
    part = fill(law, 40, 77, start=13, **options)
    assert np.array_equal(part, whole[770 : 770 + 40 * 77])
    monkeypatch.setattr(_fill, "kernel", lambda name: None)
    assert np.array_equal(fill(law, 40, 77, start=13, **options), part)


def test_integers_add_without_rounding() -> None:
    """2^51 and a half odd noise: the sum is exact where a sum of rounded products is not."""
    law = integer_law(noise.gaussian(sigma=0.5), 2.0**-24)
    row = np.array([2.0**51 + 1, -(2.0**51) + 3, 5.0])
    e = draw_integers(law, KEY, 0, 3000).reshape(1000, 3)
    out = fill(law, 1000, 3, row=row).reshape(1000, 3)
    assert np.array_equal(out * 2.0**24, (row.astype(np.int64) + e).astype(np.float64))
    with pytest.raises(NoiseError, match="below 2\\^52"):
        fill(law, 1, 1, row=np.array([2.0**52]))


def test_too_many_draws_and_too_few_threads_are_named() -> None:
    law = integer_law(noise.gaussian(sigma=0.5), 1 / 255)
    with pytest.raises(NoiseError, match="one stream cannot hold so many draws"):
        fill(law, 1, 4, start=1 << 60)
    with pytest.raises(NoiseError, match="start=-1"):
        fill(law, 1, 4, start=-1)
    with pytest.raises(NoiseError, match="must be at least 1, or None"):
        fill(law, 1, 4, threads=0)


def two_needles(x: np.ndarray) -> np.ndarray:
    """Two modes ten thousand times narrower than they are apart."""
    return np.logaddexp(-0.5 * ((x + 1) / 1e-4) ** 2, -0.5 * ((x - 1) / 1e-4) ** 2)


def test_a_feature_narrower_than_an_outcome_is_cut_out() -> None:
    """Rejection stays rare, and draws follow the cdf; Kolmogorov–Smirnov, false alarm 1e-7."""
    one = noise.from_density(two_needles, points=(-1.0, 1.0))
    law = integer_law(one, 2.0**-24)
    mass = np.diff(np.concatenate([[0.0], law.ends.astype(np.float64), [2.0**64]])) / 2**64
    assert mass[law.kinds == 3].sum() < 1e-3
    assert law.tau < 1e-11
    values = np.sort(fill(law, 400, 1000))
    points = np.unique(values)
    below = np.searchsorted(values, points, side="right") / values.size
    exact = one.cdf(points + law.step / 2)
    assert np.max(np.abs(below - exact)) <= math.sqrt(math.log(2 / 1e-7) / (2 * values.size))


@pytest.mark.parametrize("scale", [1e-20, 1.0, 3e20])
def test_the_chosen_step_is_a_power_of_two_at_the_resolution_of_float32(scale: float) -> None:
    step = choose_step(noise.gaussian(sigma=scale))
    assert math.frexp(step)[0] == 0.5
    assert 2.0**-24 <= step / scale < 2.0**-22.9
    # 2^-10 of gennorm's mass lies within 1/30,000 of its span: the peak decides
    peaked = noise.gennorm(beta=0.1, scale=scale)
    assert choose_step(peaked) * float(peaked.pdf(0.0)) <= 2.0**-16


GOLDEN = [
    ("gaussian(sigma=0.5)", "1/255", "054710f56ecd6881"),
    ("gaussian(sigma=0.5)", "2^-22", "d013c7a614b4440f"),
    ("laplace(sigma=0.5)", "2^-22", "e8add9ff4897efe8"),
    ("cauchy(scale=0.3)", "1/255", "423dde16873fc623"),
    ("gennorm(beta=0.25, sigma=1)", "2^-22", "183f2b350f64962a"),
    ("uniform(scale=0.5)", "1/255", "2e7577937f020520"),
    ("pareto(beta=0.5, scale=1)", "2^-30", "119f28f8f051acbd"),
    ("bimodal", "2^-12", "f8516691d4f55da1"),
]


@pytest.mark.parametrize(("name", "step", "known"), GOLDEN)
def test_draws_are_those_that_stored_runs_replay(name: str, step: str, known: str) -> None:
    """16 digits for many places of the stream, odd starts and wrapping rows among them."""
    one = noise.from_density(bimodal) if name == "bimodal" else noise.parse(name)
    assert isinstance(one, noise.IID)
    digest, law = hashlib.sha256(), integer_law(one, float(Lattice.parse(step).step))
    for dim, n, start in ((784, 40, 0), (1, 100, 5), (3001, 5, 123456789), (5000, 4, 1 << 40)):
        row = np.arange(dim) % 256 * 3.0 - 100
        digest.update(fill(law, n, dim, start=start, row=row, dtype=np.float32).tobytes())
    assert digest.hexdigest()[:16] == known
