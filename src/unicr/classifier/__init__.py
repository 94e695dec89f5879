"""Classifiers of every kind behind one small interface: labels for a batch of noisy inputs.

`load_classifier` takes a torch module, a file, a function or a folder; `Normalised` and `Denoised`
put a step in front of a model that belongs to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unicr.classifier._base import Classifier, check_fit, check_shape, match_data
from unicr.classifier._load import (
    Adapter,
    ModelAsked,
    ModelOptions,
    load_classifier,
    with_ending,
    with_prefix,
)
from unicr.classifier._wrap import Denoised, Normalised
from unicr.classifier.adapters.function import CallableClassifier
from unicr.classifier.adapters.module import ModuleClassifier
from unicr.classifier.adapters.onnx import OnnxClassifier
from unicr.classifier.adapters.selective import Selective
from unicr.classifier.adapters.sklearn import SklearnClassifier
from unicr.extras import lazy_names

if TYPE_CHECKING:
    from unicr.classifier._convert import convert_model
    from unicr.classifier.adapters.builtin import MLP
    from unicr.classifier.diffusion import DiffusionDenoiser
    from unicr.classifier.resnet import ResNet
else:  # networks are subclasses of torch's: they load when they are asked for
    _HOMES = {"convert_model": "_convert", "DiffusionDenoiser": "diffusion"}
    __getattr__ = lazy_names(__name__, {**_HOMES, "MLP": "adapters.builtin", "ResNet": "resnet"})

__all__ = [
    "MLP",
    "Adapter",
    "CallableClassifier",
    "Classifier",
    "Denoised",
    "DiffusionDenoiser",
    "ModelAsked",
    "ModelOptions",
    "ModuleClassifier",
    "Normalised",
    "OnnxClassifier",
    "ResNet",
    "Selective",
    "SklearnClassifier",
    "check_fit",
    "check_shape",
    "convert_model",
    "load_classifier",
    "match_data",
    "with_ending",
    "with_prefix",
]
