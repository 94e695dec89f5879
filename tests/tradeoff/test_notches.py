"""A narrow notch of a user's density is seen wherever it falls within a cell of the other copy.

H(t) = ∫(q − e^t p)₊ of a density and its shifted copy must not be below the truth: a trade-off
would then be reported above it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from unicr import noise
from unicr.tradeoff import make_ratio_law
from unicr.values import Array

NOTCHES = [  # place, width, shift, t; the first is the one that was found
    (0.7123456, 3e-4, 2.15808, 3.75),
    (-0.31, 1e-3, 1.4142, 1.0),
    (1.2345, 5e-4, 0.9, 0.5),
    (0.05, 2e-4, 3.3, 6.0),
]


def true_gap(log_density: Callable[[Array], Array], place: float, shift: float, t: float) -> float:
    """∫(p(x − shift) − e^t p(x))₊ by the trapezoid rule, with a fine mesh at the notch of each."""
    fine = np.linspace(-0.01, 0.01, 400_001)
    x = np.concatenate([np.linspace(-14, 18, 2_000_001), place + fine, place + shift + fine])
    x = np.unique(x)
    total = np.trapezoid(np.exp(log_density(x)), x)
    moved, here = np.exp(log_density(x - shift)), np.exp(log_density(x))
    return float(np.trapezoid(np.maximum(moved - np.exp(t) * here, 0), x) / total)


@pytest.mark.parametrize(("place", "width", "shift", "t"), NOTCHES)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_notch_is_not_missed(
    place: float, width: float, shift: float, t: float, sign: int
) -> None:
    def log_density(x: Array) -> Array:
        return -0.5 * x**2 + np.log1p(-0.5 * np.exp(-0.5 * ((x - place) / width) ** 2))

    law = make_ratio_law(noise.from_density(log_density), sign * shift, 3e-4)
    found = np.sum(law.mass * np.maximum(1 - np.exp(t - law.loss), 0)) + law.infinite
    truth = true_gap(log_density, place, sign * shift, t)
    assert truth - 1e-9 <= found <= truth + 1e-3
