"""Lattice noise: the cipher, the law of the integers, and the lattice itself."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from scipy import stats

from unicr import noise
from unicr.errors import NoiseError
from unicr.noise import Lattice, _chacha, _keyed
from unicr.noise._integers import integer_law
from unicr.noise.internal import LatticeNoise, derive, lattice_for

KEY = derive("a test")
BYTES = Lattice.parse("1/255")


def bimodal(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(-((x + 2) ** 2), -3 * np.abs(x - 2))


def drawn(law: noise.Noise, lattice: Lattice, n: int, dim: int, start: int = 0) -> torch.Tensor:
    out = torch.empty(n, dim)
    return LatticeNoise(law, lattice).add(np.zeros(dim, np.int64), out, key=KEY, start=start)


def test_the_cipher_is_chacha() -> None:
    """RFC 8439, 2.3.2 and appendix A.1 (20 rounds), and ECRYPT's vector for 8 rounds."""
    nonce = np.frombuffer(bytes.fromhex("000000090000004a00000000"), "<u4")
    counter = np.array([1 | int(nonce[0]) << 32], np.uint64)
    found = _chacha.blocks(bytes(range(32)), counter, int(nonce[1]), int(nonce[2]), 20)
    assert found.astype("<u4").tobytes().hex() == (
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )
    zero = _chacha.blocks(bytes(32), np.zeros(1, np.uint64), 0, 0, 20)
    assert zero.astype("<u4").tobytes().hex().startswith("76b8e0ada0f13d90405d6ae55386bd28")
    eight = _chacha.blocks(bytes(32), np.zeros(1, np.uint64), 0, 0, 8)
    assert eight.astype("<u4").tobytes().hex().startswith("3e00ef2f895f40d67f5bb8e81f09a5a1")


def test_compiled_and_plain_cipher_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    counters = np.array([0, 1, 7, 8, 2**32 - 1, 2**32, 2**60 + 5, 3, 2, 9, 11], np.uint64)
    fast = _chacha.blocks(KEY, counters, 3, 4)
    monkeypatch.setattr(_chacha, "compiled", lambda *_: None)
    assert np.array_equal(fast, _chacha.blocks(KEY, counters, 3, 4))


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


@pytest.mark.parametrize(
    ("law", "step"),
    [
        (noise.gaussian(sigma=0.5), "1/255"),
        (noise.gaussian(sigma=0.5), "2^-22"),
        (noise.cauchy(scale=0.3), "1/255"),
        (noise.gennorm(beta=0.25, sigma=1), "2^-16"),
        (noise.uniform(sigma=1), "2^-10"),
        (noise.from_scipy(stats.gumbel_r(0, 0.5)), "1/255"),
        (noise.from_density(bimodal), "2^-12"),
    ],
    ids=lambda one: getattr(one, "text", one),
)
def test_kernel_numpy_threads_and_starts_give_the_same(
    law: noise.IID, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lattice, base = Lattice.parse(step), np.arange(77) % 256
    model = LatticeNoise(law, lattice)
    out = torch.empty(500, 77)
    model.add(base, out, key=KEY, start=3, threads=2)
    part = model.add(base, torch.empty(40, 77), key=KEY, start=13, threads=1)
    assert torch.equal(part, out[10:50])
    monkeypatch.setattr(_keyed, "compiled", lambda *_: None)
    assert torch.equal(model.add(base, torch.empty(40, 77), key=KEY, start=13), part)


@pytest.mark.parametrize(
    ("spec", "step"),
    [
        ("gaussian(sigma=0.5)", "1/255"),
        ("gaussian(sigma=0.5)", "2^-18"),
        ("laplace(sigma=0.1)", "1/255"),
        ("cauchy(scale=0.3)", "2^-4"),
        ("gennorm(beta=0.3, sigma=1)", "2^-18"),
    ],
)
def test_samples_follow_the_law(spec: str, step: str) -> None:
    """Kolmogorov–Smirnov against the real-valued cdf between lattice points; false alarm 1e-7."""
    law, lattice = noise.parse(spec), Lattice.parse(step)
    assert isinstance(law, noise.IID)
    values = np.sort(drawn(law, lattice, 400, 1000).double().numpy().ravel())
    points = np.unique(values)
    below = np.searchsorted(values, points, side="right") / values.size
    h = float(lattice.step)
    exact = law.cdf((np.round(points / h) + 0.5) * h)
    near = np.abs(points) < 1000  # beyond, float32 rounds to more than the lattice
    limit = math.sqrt(math.log(2 / 1e-7) / (2 * values.size))
    assert np.max(np.abs(below - exact)[near]) <= limit


def test_fine_offsets_are_even_and_independent_of_the_outcome() -> None:
    """The low bits of a fine lattice are uniform: χ² with 255 degrees, false alarm 1e-7."""
    values = drawn(noise.gaussian(sigma=0.5), Lattice.parse("2^-18"), 1000, 784)
    low = torch.round(values.double() * 2**18).long() & 255
    counts = torch.bincount(low.flatten(), minlength=256).double().numpy()
    assert stats.chisquare(counts).pvalue > 1e-7


def test_other_keys_give_other_noise() -> None:
    a = drawn(noise.gaussian(sigma=0.5), BYTES, 2, 500)
    model = LatticeNoise(noise.gaussian(sigma=0.5), BYTES)
    b = model.add(np.zeros(500, np.int64), torch.empty(2, 500), key=derive("b"))
    assert not torch.equal(a, b)
    assert derive("ab", "c") != derive("a", "bc")


def test_a_spherical_noise_says_that_its_law_has_no_bound() -> None:
    model = LatticeNoise(noise.spherical_gg(k=2, sigma=0.5, dim=12), BYTES)
    assert model.tau is None
    out = model.add(np.arange(12), torch.empty(4, 12), key=KEY)
    assert torch.equal(out, torch.from_numpy(BYTES.floats(BYTES.integers(out))))
    again = model.add(np.arange(12), torch.empty(2, 12), key=KEY, start=2)
    assert torch.equal(again, out[2:])


def test_bytes_are_on_their_lattice_and_floats_are_one_function() -> None:
    k = np.arange(-(2**17), 2**17)
    assert np.array_equal(BYTES.floats(k), (k / 255).astype(np.float32))
    images = np.arange(256, dtype=np.float32) / np.float32(255)
    assert BYTES.holds(images)
    assert np.array_equal(BYTES.integers(images), np.arange(256))
    assert not BYTES.holds(images + 1e-3)


def test_halves_go_up_so_that_shifts_commute_with_rounding() -> None:
    x = np.array([-1.5, -0.5, 0.5, 1.5, 2.5])
    one = Lattice(Fraction(1))
    assert one.integers(x).tolist() == [-1, 0, 1, 2, 3]
    assert np.array_equal(one.integers(x + 3), one.integers(x) + 3)


@pytest.mark.parametrize("text", ["1/255", "1/65280", "2^-20", "2^3", "3", "1/1020"])
def test_texts_read_back(text: str) -> None:
    assert Lattice.parse(Lattice.parse(text).text) == Lattice.parse(text)


@pytest.mark.parametrize("text", ["", "0", "-1", "1/0", "nan", "2^-999", "1e-3", "2^200", "x"])
def test_what_is_no_lattice_is_refused(text: str) -> None:
    with pytest.raises(NoiseError, match="lattice="):
        Lattice.parse(text)


def test_inputs_choose_their_lattice() -> None:
    image = np.arange(256, dtype=np.float32) / np.float32(255)
    assert lattice_for([image], 0.5, 256, [2]).text == "1/255"
    assert lattice_for([image], 0.01, 256, [2]).text == "1/2040"
    words = np.arange(0, 65_536, 257, dtype=np.float32) / np.float32(65_535)
    assert lattice_for([words, words / 3], 0.5, 256, [2]).text.startswith("2^-")
    for p in (0.5, 1.0, 2.0, math.inf):
        lattice = lattice_for([image], 0.5, 784, [p], fine=True)
        assert lattice.holds(image)
        if p >= 1:
            assert 1e-6 < 1 - lattice.off(1.0, p, 784, moved=False) <= 1e-4 * 0.5
    floats = np.random.default_rng(0).normal(size=784).astype(np.float32)
    for p in (1.0, 2.0, math.inf):
        lattice = lattice_for([floats], 0.5, 784, [p])
        lost = 1 - lattice.off(1.0, p, 784, moved=True)
        assert 1e-6 < lost < 1e-4 * 0.5
    wide = lattice_for([floats * 1e9], 0.5, 784, [2])
    assert np.abs(wide.integers(floats * 1e9)).max() < 1 << 30


def test_an_input_too_large_for_the_lattice_is_refused() -> None:
    with pytest.raises(NoiseError, match="coarser"):
        Lattice.parse("2^-30").integers(np.array([5.0]))


@pytest.mark.parametrize(("sigma", "step"), [(0.5, "2^10"), (0.5, "2^100"), (1e-29, "2^-22")])
def test_a_noise_too_narrow_for_its_lattice_is_named_as_that(sigma: float, step: str) -> None:
    with pytest.raises(NoiseError, match="too narrow for a lattice"):
        drawn(noise.gaussian(sigma=sigma), Lattice.parse(step), 1, 3)


GOLDEN = [
    ("gaussian(sigma=0.5)", "1/255", "f23daaadef87d362"),
    ("gaussian(sigma=0.5)", "2^-22", "1e8160778592c3b5"),
    ("laplace(sigma=0.5)", "2^-22", "3cbffaad79184066"),
    ("cauchy(scale=0.3)", "1/255", "90741bdef26dc079"),
    ("gennorm(beta=0.25, sigma=1)", "2^-22", "391a1270530ceb05"),
    ("uniform(scale=0.5)", "1/255", "ce19c8132a2eb808"),
    ("pareto(beta=0.5, scale=1)", "2^-30", "610a37b72e5c6df8"),
    ("bimodal", "2^-12", "a274eec79268627c"),
]


def digest(name: str, law: noise.IID, step: str) -> str:
    """16 digits for many places of the stream, odd starts and wrapping rows among them."""
    found, model = hashlib.sha256(), LatticeNoise(law, Lattice.parse(step))
    for dim, n, start in ((784, 40, 0), (1, 100, 5), (3001, 5, 123456789), (5000, 4, 1 << 40)):
        base = np.arange(dim) % 256 * 3 - 100
        out = model.add(base, torch.empty(n, dim), key=derive("golden", name), start=start)
        found.update(out.numpy().tobytes())
    return found.hexdigest()[:16]


@pytest.mark.parametrize(("name", "step", "known"), GOLDEN)
def test_streams_are_those_that_stored_runs_replay(name: str, step: str, known: str) -> None:
    law = noise.from_density(bimodal) if name == "bimodal" else noise.parse(name)
    assert isinstance(law, noise.IID)
    assert digest(name, law, step) == known


@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, math.inf])
def test_what_is_taken_off_covers_every_move(p: float) -> None:
    """No x + δ with ‖δ‖ below what is left lies, after both moves, beyond the radius."""
    rng = np.random.default_rng(1)
    lattice, dim, radius = Lattice.parse("1/8"), 5, 20.0
    left = lattice.off(radius, p, dim, moved=True)
    assert 0 < left < lattice.off(radius, p, dim, moved=False) < radius

    def norm(v: np.ndarray) -> float:
        size = np.abs(v).max() if math.isinf(p) else (np.abs(v) ** p).sum() ** (1 / p)
        return float(size)

    for _ in range(300):
        x, delta = rng.normal(size=dim), rng.normal(size=dim)
        delta *= left * (1 - 1e-9) / norm(delta)
        move = (lattice.integers(x + delta) - lattice.integers(x)) / 8
        assert norm(move) < radius
