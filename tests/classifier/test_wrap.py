"""Normalisation and denoising in front of a classifier, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from unicr.classifier import Denoised, load_classifier
from unicr.errors import ModelError


def linear(inputs: int = 12) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, 4))


def test_normalised_by_channel() -> None:
    module = linear()
    mean, std = [0.1, 0.2, 0.3], [0.5, 0.25, 2.0]
    inputs = torch.randn(50, 3, 2, 2)
    plain = np.stack(
        [[(x[c] - mean[c]) / std[c] for c in range(3)] for x in inputs.double().numpy()]
    )
    with torch.no_grad():
        expected = module.double()(torch.from_numpy(plain)).argmax(1)
    before = inputs.clone()
    classifier = load_classifier(module.float(), mean=mean, std=std)
    assert classifier.predict(inputs).tolist() == expected.tolist()
    assert torch.equal(inputs, before)
    assert classifier.num_classes == 4
    assert classifier.digest != load_classifier(module).digest
    assert classifier.digest != load_classifier(module, mean=mean, std=1.0).digest


def test_one_mean_for_all_channels_and_for_rows() -> None:
    module = linear()
    rows = torch.randn(20, 12)
    expected = module((rows - 0.5) / 0.25).argmax(1)
    assert torch.equal(load_classifier(module, mean=0.5, std=0.25).predict(rows), expected)
    each = torch.linspace(-1, 1, 12)
    expected = module(rows - each).argmax(1)
    labels = load_classifier(module, mean=each.tolist(), std=[1.0]).predict(rows)
    assert torch.equal(labels, expected)


@pytest.mark.parametrize(
    ("mean", "std", "message"),
    [
        (0.5, None, "belong together"),
        ([0.1, 0.2], [1.0, 1.0, 1.0], "mean has 2 values, but std has 3"),
        (0.5, 0.0, "above 0"),
        (0.5, -1.0, "above 0"),
        (float("nan"), 1.0, "finite"),
        ("x", 1.0, "not a number"),
    ],
)
def test_bad_normalisation(mean: Any, std: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load_classifier(linear(), mean=mean, std=std)


def test_a_mean_of_another_length_than_the_channels() -> None:
    classifier = load_classifier(linear(), mean=[0.0, 0.0], std=[1.0, 1.0])
    with pytest.raises(ModelError, match="have 3 channels"):
        classifier.predict(torch.zeros(2, 3, 2, 2))


def test_denoised_is_the_classifier_of_the_denoised_input() -> None:
    module = linear()
    inputs = torch.randn(40, 12)
    expected = module(inputs.clamp(0, 1)).argmax(1)

    def clip(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return x.clip(0, 1)

    for denoiser in (nn.Hardtanh(0, 1), lambda x: x.clamp(0, 1), clip):
        classifier = Denoised(denoiser, module)
        assert torch.equal(classifier.predict(inputs), expected)
        assert classifier.num_classes == 4
        assert len(classifier.digest) == 64
    assert Denoised(clip, module).name == "clip + Sequential"


def test_a_denoiser_runs_in_eval_mode() -> None:
    dropout = nn.Dropout(0.9).train()
    inputs = torch.randn(40, 12)
    module = linear()
    assert torch.equal(Denoised(dropout, module).predict(inputs), module(inputs).argmax(1))
    assert dropout.training


@pytest.mark.parametrize(
    ("denoiser", "message"),
    [
        (lambda x: x[:1], "one output per input"),
        (lambda x: x / 0 * 0, "not finite"),
        (lambda x: x.nothing, "failed: AttributeError"),
        (None, "is no denoiser"),
    ],
)
def test_bad_denoisers(denoiser: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Denoised(denoiser, linear()).predict(torch.ones(4, 12))
