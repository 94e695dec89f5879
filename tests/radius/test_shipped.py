"""Curves that come with the package: small, and what the theorem gives today."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from unicr import noise
from unicr.norms import l2
from unicr.radius import RadiusCurve, _cache
from unicr.radius.bellman._radius import COARSER, sheets
from unicr.radius.internal import shape_of


def test_the_file_is_small_and_well_formed() -> None:
    path = Path(_cache.__file__).parent / "shipped.npz"
    assert path.stat().st_size <= 1_000_000
    for name, rows in _cache.shipped().items():
        assert rows.shape[0] == 2, name
        assert np.all(np.diff(rows[0]) <= 0), name
        assert np.all(np.diff(rows[1]) >= 0), name


@pytest.mark.parametrize(("spec", "dim"), [("laplace(scale=1)", 784)])
def test_a_sample_is_made_again(spec: str, dim: int) -> None:
    """One scale of one curve: no shipped step claims more than its own sheet does now."""
    law = noise.parse(spec)
    assert isinstance(law, noise.IID)
    key = shape_of(RadiusCurve(law, l2, dim)).key
    rows = _cache.shipped()[_cache.name_of("curve-proved", key)]
    (sheet,) = sheets(law.unit, l2, dim, 3 * COARSER)
    alpha, radius = sheet.steps(0.9 * sheet.r)
    inside = (rows[1] >= radius[0]) & (rows[1] <= radius[-1])
    assert np.sum(inside) > 50
    for a, r in zip(rows[0][inside], rows[1][inside], strict=True):
        i = int(np.searchsorted(radius, float(r) * (1 - 1e-6)))  # the same radius or the next
        assert 0.98 * float(alpha[i]) <= float(a) <= 1.02 * float(alpha[max(i - 1, 0)])
