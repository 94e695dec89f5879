"""Lattice noise: its samples, and the lattice itself."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy import stats

from unicr import noise
from unicr.errors import NoiseError
from unicr.noise import Lattice
from unicr.noise._sum import part_key
from unicr.noise.internal import LatticeNoise, choose_lattice, derive, find_own_grid
from unicr.sample import _fill, integer_law

KEY = derive("a test")
BYTES = Lattice.parse("1/255")


def bimodal(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(-((x + 2) ** 2), -3 * np.abs(x - 2))


def drawn(law: noise.Noise, lattice: Lattice, n: int, dim: int, start: int = 0) -> torch.Tensor:
    out = torch.empty(n, dim)
    return LatticeNoise(law, lattice).add(np.zeros(dim, np.int64), out, key=KEY, start=start)


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
    monkeypatch.setattr(_fill, "kernel", lambda name: None)
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


def test_the_grid_is_so_fine_that_radii_lose_next_to_nothing() -> None:
    """Less than 1e-4 sigma for p >= 1 at every dimension, and inputs as float32 are exact on it."""
    image = np.arange(256, dtype=np.float32) / np.float32(255)
    for dim in (1, 784, 3072, 150_528):
        for p in (1.0, 1.5, 2.0, 3.0, math.inf):
            for sigma in (0.12, 0.5, 2.0):
                lattice = choose_lattice([image], sigma, dim, [p])
                assert 0 < 1 - lattice.reduce(1.0, p, dim) < 1e-4 * sigma
                assert float(lattice.step) >= 2.0**-36 * sigma
    fine = choose_lattice([image], 0.25, 150_528, [1.0])
    assert fine.holds(image)
    assert np.array_equal(fine.integers(image) * float(fine.step), image.astype(np.float64))
    floats = np.random.default_rng(0).normal(size=784).astype(np.float32)
    wide = choose_lattice([floats * 1e12], 0.5, 784, [2])
    assert np.abs(wide.integers(floats * 1e12)).max() < 1 << 45


def test_what_moving_costs_is_the_triangle_inequality() -> None:
    """Two points each move by h/2 in each coordinate; for p < 1 the p-th powers add."""
    h, dim = 1 / 16, 9
    own = 1 + 2.0**-7  # the quotient that is rounded is itself off by 2^-8 of a step
    lattice = Lattice.parse("1/16")
    for p in (1.0, 1.5, 2.0):
        assert lattice.reduce(3.0, p, dim) == pytest.approx(3 - h * dim ** (1 / p), rel=1e-2)
        assert lattice.reduce(3.0, p, dim) <= 3 - h * own * dim ** (1 / p)
    assert lattice.reduce(3.0, math.inf, dim) <= 3 - h * own
    left = (3**0.5 - 2 * h**0.5) ** 2
    assert 0.9 * left <= lattice.reduce(3.0, 0.5, 2) <= left
    assert lattice.reduce(0.01, 2, dim) == lattice.reduce(3.0, 0.5, 100) == 0.0
    assert lattice.reduce(math.inf, 1, dim) == math.inf


def test_images_have_a_grid_of_their_own() -> None:
    image = np.arange(256, dtype=np.float32) / np.float32(255)
    words = np.arange(0, 65_536, 257, dtype=np.float32) / np.float32(65_535)
    deep = np.array([1, 2], dtype=np.float32) / np.float32(65_535)
    assert find_own_grid([image, words]) == Lattice.parse("1/255")
    assert find_own_grid([image, deep]) == Lattice.parse("1/65535")
    assert find_own_grid([image / 3]) is None


def test_an_input_too_large_for_the_lattice_is_refused() -> None:
    with pytest.raises(NoiseError, match="coarser"):
        Lattice.parse("2^-40").integers(np.array([50.0]))


@pytest.mark.parametrize(("sigma", "step"), [(0.5, "2^10"), (0.5, "2^100"), (1e-29, "2^-22")])
def test_a_noise_too_narrow_for_its_lattice_is_named_as_that(sigma: float, step: str) -> None:
    with pytest.raises(NoiseError, match="too narrow for a lattice"):
        drawn(noise.gaussian(sigma=sigma), Lattice.parse(step), 1, 3)


@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, math.inf])
def test_what_is_taken_off_covers_every_move(p: float) -> None:
    """No x + δ with ‖δ‖ below what is left lies, after both moves, beyond the radius."""
    rng = np.random.default_rng(1)
    lattice, dim, radius = Lattice.parse("1/8"), 5, 20.0
    left = lattice.reduce(radius, p, dim)
    assert 0 < left < radius

    def norm(v: np.ndarray) -> float:
        size = np.abs(v).max() if math.isinf(p) else (np.abs(v) ** p).sum() ** (1 / p)
        return float(size)

    for _ in range(300):
        x, delta = rng.normal(size=dim), rng.normal(size=dim)
        delta *= left * (1 - 1e-9) / norm(delta)
        move = (lattice.integers(x + delta) - lattice.integers(x)) / 8
        assert norm(move) < radius


def test_parts_of_a_sum_are_added_as_whole_numbers_however_large_they_are() -> None:
    """Doubles from 2^53 on round odd numbers: then x + ε_1 would not be seen as one number."""
    far, near = noise.cauchy(scale=1), noise.gaussian(sigma=1)
    law = LatticeNoise(noise.Sum(far, near), Lattice(Fraction(2) ** -40))
    key, dim, n = KEY, 64, 4096
    parts = [integer_law(part, 2.0**-40) for part in (far, near)]
    keys = [part_key(key, i) for i in range(2)]
    drawn = [
        one.evaluate(k, np.arange(n * dim, dtype=np.uint64))
        for one, k in zip(parts, keys, strict=True)
    ]
    assert np.sum((np.abs(drawn[0]) > 1 << 53) & (drawn[0] % 2 == 1)) > 5
    base = np.arange(dim) + (1 << 44)
    doubles = torch.from_numpy(drawn[0].astype(np.float64)).view(n, dim)
    whole = law._read_whole(far, keys[0], doubles, 0).numpy()
    assert np.array_equal(whole, drawn[0].reshape(n, dim))
    out = law.add(base, torch.empty(n, dim), key=key, start=0)
    exact = (base + whole + drawn[1].reshape(n, dim)).astype(np.float64) * 2.0**-40
    assert np.array_equal(out.numpy(), exact.astype(np.float32))
