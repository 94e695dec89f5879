"""A perturbation is never longer than its bound, as the float32 numbers really are."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from unicr.lab.attack import within
from unicr.norms import Norm

ORDERS = [0.5, 1.0, 1.5, 2.0, 3.0, math.inf]
SMALL = st.floats(-4, 4, width=32)


def length(away: np.ndarray, p: float) -> float:
    """‖·‖_p with exactly rounded sums."""
    values = [abs(float(v)) for v in away.ravel()]
    if p == math.inf:
        return max(values, default=0.0)
    return math.fsum(v**p for v in values) ** (1 / p)


@given(
    x=arrays.arrays(np.float32, 17, elements=SMALL),
    way=arrays.arrays(np.float64, 17, elements=st.floats(-1e3, 1e3)),
    p=st.sampled_from(ORDERS),
    bound=st.floats(1e-6, 1e3),
)
def test_the_float32_difference_is_strictly_shorter_than_the_bound(
    x: np.ndarray, way: np.ndarray, p: float, bound: float
) -> None:
    moved = within(torch.from_numpy(x), torch.from_numpy(way), Norm(p), bound)
    assert moved.dtype == torch.float32
    assert length(moved.numpy().astype(np.float64) - x.astype(np.float64), p) < bound


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("bound", [0.01, 0.3, 4.0])
def test_the_difference_uses_the_bound(p: float, bound: float) -> None:
    rng = np.random.default_rng(3)
    x = rng.random((1, 28, 28)).astype(np.float32)
    way = rng.normal(size=x.shape)
    moved = within(torch.from_numpy(x), torch.from_numpy(way), Norm(p), bound)
    away = moved.numpy().astype(np.float64) - x.astype(np.float64)
    rounding = 2.0**-24 * 784 ** (1 / min(p, 1e9)) * (784 if p < 1 else 1)
    assert bound - 4 * rounding - 1e-6 * bound < length(away, p) < bound
    assert float(np.corrcoef(away.ravel(), way.ravel())[0, 1]) > 0.9999 or p < 1


def test_no_direction_moves_nothing() -> None:
    x = torch.rand(5)
    for way in (torch.zeros(5), torch.full((5,), torch.inf), torch.full((5,), torch.nan)):
        assert torch.equal(within(x, way, Norm(2), 1.0), x)


def test_a_step_below_the_resolution_of_float32_moves_nothing() -> None:
    x = torch.full((4,), 1e6)
    assert torch.equal(within(x, torch.ones(4), Norm(math.inf), 0.01), x)
