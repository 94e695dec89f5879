"""Stacks and datasets: the same certificates as one by one, and no stack taken for one input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from unicr import SmoothedClassifier, noise
from unicr.classifier import load_classifier
from unicr.data import load_dataset
from unicr.errors import CertifyError, ModelError
from unicr.smoothing import Certificate, Certificates

LAW = noise.gaussian(sigma=0.5)


def flat_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 3))


def test_a_stack_is_its_inputs_one_by_one() -> None:
    g = SmoothedClassifier(flat_model(), LAW, seed=0)
    stack = torch.randn(5, 64, generator=torch.Generator().manual_seed(1))
    several = g.certify(stack, [1, 2], n0=50, n=400)
    assert isinstance(several, Certificates)
    for i, one in enumerate(several):
        alone = g.certify(stack[i], [1, 2], n0=50, n=400, input_index=i)
        assert isinstance(alone, Certificate)
        assert one == alone
    assert several.radius(2).tolist() == [one.radius(2) for one in several]
    assert np.array_equal(
        g.predict(stack, n=300), [g.predict(x, n=300, input_index=i) for i, x in enumerate(stack)]
    )
    assert several[1:3][0] == several[1]
    assert isinstance(g.certify(stack.numpy(), n0=50, n=400), Certificates)


def test_sixteen_inputs_are_never_one_of_1024_values() -> None:
    """A model that takes both shapes cannot tell: the user must."""
    model = lambda batch: batch.flatten(1).mean(1) > 0  # noqa: E731
    g = SmoothedClassifier(model, LAW, seed=0)
    with pytest.raises(CertifyError, match="one input or 16"):
        g.certify(torch.ones(16, 64), n0=10, n=100)
    told = SmoothedClassifier(model, LAW, input_shape=(64,), seed=0)
    assert len(told.certify(torch.ones(16, 64), n0=10, n=100)) == 16
    assert isinstance(told.certify(torch.ones(64), n0=10, n=100), Certificate)
    with pytest.raises(CertifyError, match="neither"):
        told.certify(torch.ones(16, 63))


def test_what_fits_neither_way_is_the_models_own_error() -> None:
    g = SmoothedClassifier(flat_model(), LAW, seed=0)
    with pytest.raises(ModelError, match="shape"):
        g.certify(torch.ones(7, 63))


def test_one_image_of_one_channel_is_one_input() -> None:
    g = SmoothedClassifier(load_classifier("builtin:mnist-mlp-0.5"), LAW, seed=0)
    data = load_dataset("builtin:mnist")
    one = g.certify(data[0][0], n0=20, n=200)
    assert isinstance(one, Certificate)
    part = g.certify(data[:2], n0=20, n=200)
    assert part[0] == one
    table = part.to_dict()
    assert table["predict"] == [c.predict for c in part]
    assert table["lattice"] == [c.lattice for c in part]


def test_names_of_classes_stand_in_the_table() -> None:
    classifier = load_classifier(flat_model())
    classifier.classes = ("cat", "dog", "owl")
    found = SmoothedClassifier(classifier, LAW, seed=0).certify(torch.zeros(2, 64), n0=50, n=400)
    names = found.to_dict()["class"]
    assert names == [("cat", "dog", "owl")[p] if p >= 0 else None for p in found.predict]


def test_a_part_of_a_dataset_is_a_dataset() -> None:
    data = load_dataset("builtin:mnist")
    part = data[10:20:3]
    assert len(part) == 4
    assert [part[i][1] for i in range(4)] == [data[i][1] for i in range(10, 20, 3)]
    assert torch.equal(part[1][0], data[13][0])
    with pytest.raises(IndexError):
        part[4]
