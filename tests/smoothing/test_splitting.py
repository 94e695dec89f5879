"""Splitting noise: the published formula, every perturbation of a small lattice, bad input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from unicr.errors import CertifyError
from unicr.smoothing.splitting import SplittingClassifier

LEVELS = 4


def rough(batch: torch.Tensor) -> torch.Tensor:
    """A classifier with jumps, on two coordinates."""
    return ((2.3 * batch[:, 0] + 1.7 * batch[:, 1]).floor() % 3).long()


@pytest.mark.parametrize("scale", [0.25, 0.5, 1.0])
def test_no_lattice_perturbation_below_the_radius_changes_the_exact_answer(scale: float) -> None:
    """Every pair of points of the 5 × 5 lattice, for several seeds: 18,750 checks without α."""
    lattice = [torch.tensor(p) / LEVELS for p in itertools.product(range(LEVELS + 1), repeat=2)]
    positive = 0
    for seed in range(10):
        smooth = SplittingClassifier(rough, scale=scale, levels=LEVELS, seed=seed)
        found = [smooth.certify_exactly(x) for x in lattice]
        for (x, one), (y, other) in itertools.product(zip(lattice, found, strict=True), repeat=2):
            if one.predict >= 0 and float((x - y).abs().sum()) < one.radius - 1e-6:
                positive += bool((x != y).any())
                assert other.predict == one.predict
    assert positive > 0 or scale < 0.5


def test_each_pair_of_values_is_split_as_often_as_the_theorem_says() -> None:
    smooth = SplittingClassifier(rough, scale=0.3)
    places = np.linspace(0, 0.6, 60_001)[:-1] + 5e-6
    for a, b in ((0.1, 0.25), (0.0, 0.5), (0.2, 1.0)):
        apart = np.mean(smooth.split(np.array(a), places) != smooth.split(np.array(b), places))
        assert apart <= min(1.0, abs(a - b) / 0.6) + 1e-3
    middles = smooth.split(np.full(60_000, 0.4), places)
    assert middles.min() >= 0
    assert middles.max() <= 1


def test_the_sampled_radius_is_that_of_the_formula() -> None:
    """f looks at one coordinate: p_A = P(middle > 0.5) is known by counting places."""
    smooth = SplittingClassifier(lambda batch: (batch[:, 0] > 0.5).long(), scale=0.4, seed=1)
    x = torch.tensor([0.9, 0.1])
    places = np.linspace(5e-6, 0.8 - 5e-6, 80_000)
    true = float(np.mean(smooth.split(np.array(np.float32(0.9)), places) > 0.5))
    found = smooth.certify(x, n=20_000)
    assert found.predict == 1
    assert true - 0.03 <= found.p_a <= true  # six deviations are 0.021
    assert found.radius == pytest.approx(2 * 0.4 * (found.p_a - 0.5))
    assert found == smooth.certify(x, n=20_000)


@pytest.mark.parametrize("value", [-0.1, 1.2, float("nan")])
def test_inputs_outside_the_box_are_refused_in_one_line(value: float) -> None:
    smooth = SplittingClassifier(rough, scale=0.5)
    for certify in (smooth.certify, smooth.certify_exactly):
        with pytest.raises(CertifyError, match=r"needs inputs in the box \[0, 1\]"):
            certify(torch.tensor([0.5, value]))


def test_other_bad_input_is_named() -> None:
    with pytest.raises(CertifyError, match="scale=0"):
        SplittingClassifier(rough, scale=0)
    with pytest.raises(CertifyError, match="must be a whole number"):
        SplittingClassifier(rough, scale=0.111).certify_exactly(torch.zeros(2))
    with pytest.raises(CertifyError, match="multiple of 1/255"):
        SplittingClassifier(rough, scale=0.5).certify_exactly(torch.tensor([0.5, 0.1234]))
