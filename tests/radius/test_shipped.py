"""Curves that come with the package: small, and what the theorem gives today."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from unicr import noise
from unicr.norms import l2
from unicr.radius import RadiusCurve, _cache, certified_radius
from unicr.radius.bellman._radius import list_scales, make_sheets


def test_the_file_is_small_and_well_formed() -> None:
    path = Path(_cache.__file__).parent / "shipped.npz"
    assert path.stat().st_size <= 2_000_000
    for name, numbers in _cache.load_shipped_curves().items():
        alpha, radius = _cache.unpack_steps(numbers)
        assert np.all(np.diff(alpha) <= 0), name
        assert np.all(np.diff(radius) >= 0), name


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(1e-4, 3.0), st.floats(1e-12, 0.4999)), min_size=2, max_size=60),
    st.floats(1.01, 8.0),
)
def test_what_is_packed_never_claims_more(steps: list[tuple[float, float]], wide: float) -> None:
    """Every packed radius is reached by a step of the same 1 − p or a smaller one; hardly less."""
    start = steps[0][0]
    steps = [*steps, (start * wide, 1e-13)]
    radius, alpha = np.array(steps).T
    got_alpha, got_radius = _cache.unpack_steps(_cache.pack_steps(alpha, radius))
    for a, r in zip(got_alpha, got_radius, strict=True):
        best = np.max(alpha[radius >= r])  # what holds for a larger radius holds for this one
        assert a <= best
        assert special.ndtri(a) >= special.ndtri(best) * (1 + 1e-4) - 1e-12


@pytest.mark.parametrize(("spec", "dim"), [("laplace(scale=1)", 3072)])
def test_a_sample_is_made_again(spec: str, dim: int) -> None:
    """One scale of one curve: no shipped step claims more than its own sheet, or much less."""
    law = noise.parse(spec)
    assert isinstance(law, noise.IID)
    key = RadiusCurve(law, l2, dim).unit.key
    rows = np.stack(
        _cache.unpack_steps(_cache.load_shipped_curves()[_cache.name_curve("curve-proved", key)])
    )
    shift = list_scales(2.0)[-4]
    (sheet,) = make_sheets(law.unit, l2, dim, special.ndtr(shift), special.ndtr(-shift))
    alpha, radius = sheet.copy().prove_steps(0.9 * sheet.r)
    inside = (rows[1] >= radius[0]) & (rows[1] <= radius[-1])
    assert np.sum(inside) > 50
    for a, r in zip(rows[0][inside], rows[1][inside], strict=True):
        i = int(np.searchsorted(radius, float(r) * (1 - 1e-6)))  # the same radius or the next
        assert 0.98 * float(alpha[i]) <= float(a) <= 1.02 * float(alpha[max(i - 1, 0)])


@pytest.mark.parametrize("dim", [784, 150_528])
def test_a_packaged_curve_pays_what_it_may_lack(dim: int) -> None:
    """2·d·1.3e-14 of probability: docs/theory.md#packaged-curves."""
    unit = RadiusCurve(noise.laplace(scale=1), l2, dim).unit
    name = _cache.name_curve(_cache.PROVED, unit.key)
    alpha, radius = _cache.unpack_steps(_cache.load_shipped_curves()[name])
    kept = alpha > 2.6e-14 * dim
    assert np.allclose(unit.proved[0], alpha[kept] - 2.6e-14 * dim, rtol=1e-12, atol=0)
    assert np.array_equal(unit.proved[1], radius[kept])


def test_packaged_curves_belong_to_one_number_of_the_numerics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert _cache.load_shipped_curves(), "raise SHIPPED_FOR only with curves that hold today"
    monkeypatch.setattr(_cache, "NUMERICS", _cache.NUMERICS + 1)
    _cache.load_shipped_curves.cache_clear()
    try:
        assert _cache.load_shipped_curves() == {}
    finally:
        monkeypatch.undo()
        _cache.load_shipped_curves.cache_clear()


def test_a_larger_dimension_lends_its_curve() -> None:
    """What is proved for more coordinates holds for fewer, at once and hardly below a radius."""
    law = noise.parse("gennorm(beta=1.25, sigma=1)")
    curve = RadiusCurve(law, l2, 3072)
    assert not curve.unit.on_disk
    p = np.array([0.6, 0.9, 0.99, 0.999])
    assert np.array_equal(curve(p), RadiusCurve(law, l2, 150_528)(p))
    # one coordinate is at least as bad as the worst direction (docs/theory.md#theorem-b)
    one = certified_radius(law, 1, 3072, p_a=p).radius
    assert np.all(curve(p) <= one)
    assert np.all(curve(p) > 0.6 * one)
