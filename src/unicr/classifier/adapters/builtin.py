"""The networks that come with unicr: three for MNIST with weights, and architectures without."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from torch import nn

from unicr.classifier import mlp, resnet
from unicr.classifier._adapter import Adapter, Asked, with_prefix
from unicr.classifier._base import Classifier
from unicr.classifier._digest import combined_digest, file_digest
from unicr.classifier._weights import load_weights, read_weights
from unicr.classifier.adapters.module import ModuleClassifier
from unicr.errors import ModelError

MLP_SPEC = "builtin:mlp"
RESNETS = {f"builtin:resnet{depth}": depth for depth in (8, 20, 56, 110)}
MLPS = tuple(f"builtin:mnist-mlp-{sigma}" for sigma in ("0.25", "0.5", "1.0"))
KNOWN = ", ".join((*MLPS, MLP_SPEC, *RESNETS))


def load(asked: Asked) -> Classifier:
    """The network, with the weights of the package or those given."""
    spec, weights = asked.name, asked.weights
    if spec not in (*MLPS, MLP_SPEC, *RESNETS):
        raise ModelError(f"no {spec}: there are {KNOWN}")
    network: mlp.MLP | resnet.ResNet
    if spec in MLPS:
        if weights is not None:
            raise ModelError(f"{spec} brings its own weights: leave {weights} out")
        name = f"{spec.removeprefix('builtin:')}.safetensors"
        file = Path(str(files("unicr.classifier") / "weights" / name))
        network = mlp.MLP()
    elif weights is None:
        raise ModelError(f"{spec} is an architecture: it needs weights (--weights FILE)")
    else:
        file, tensors = weights, read_weights(weights)
        known = spec in RESNETS
        network = resnet.sized_as(RESNETS[spec], tensors) if known else mlp.sized_as(tensors)
    load_weights(network, file)
    own = network.linear[-1] if isinstance(network, mlp.MLP) else network.linear
    assert isinstance(own, nn.Linear)
    if asked.num_classes not in (None, own.out_features):
        raise ModelError(f"{file} is for {own.out_features} classes, not {asked.num_classes}")
    return ModuleClassifier(
        network,
        name=spec,
        digest=combined_digest(spec, file_digest(file)),
        device=asked.device,
        num_classes=own.out_features,
    )


ADAPTERS = (Adapter(KNOWN, with_prefix("builtin:"), load, takes_weights=True),)
