"""The networks that come with unicr: some for MNIST with weights, and architectures without.

Three perceptrons and three LeNets, trained with noise by `tools/train_builtin.py`, come with the
package; `unicr train --arch` makes others, with sizes to fit the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib.resources import files
from itertools import count, pairwise, takewhile
from pathlib import Path
from typing import cast

import torch
from torch import nn

from unicr.classifier import lenet, resnet
from unicr.classifier._base import Classifier
from unicr.classifier._load import Adapter, ModelAsked, put_weights, read_weights, with_prefix
from unicr.classifier.adapters.module import classifier_of
from unicr.errors import ModelError
from unicr.files import combine_digests, file_digest

MNIST_SIZES = (784, 512, 256, 10)


class MLP(nn.Module):
    """Linear layers of the given sizes with ReLU between them; inputs are flattened first."""

    def __init__(self, sizes: tuple[int, ...] = MNIST_SIZES) -> None:
        super().__init__()
        self.linear = nn.ModuleList(
            nn.Linear(fan_in, fan_out) for fan_in, fan_out in pairwise(sizes)
        )

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        hidden = batch.flatten(1)
        for layer in self.linear[:-1]:
            hidden = layer(hidden).relu_()
        scores: torch.Tensor = self.linear[-1](hidden)
        return scores


def make_mlp(weights: Mapping[str, torch.Tensor]) -> MLP:
    """A network with the layer sizes of a state dict: linear.0.weight, linear.1.weight, …"""
    names = takewhile(weights.__contains__, (f"linear.{i}.weight" for i in count()))
    layers = [weights[name] for name in names]
    if not layers or any(layer.ndim != 2 for layer in layers):
        raise ModelError(
            "the weights do not belong to an mlp: it has linear.0.weight, linear.1.weight, …, but "
            f"these are {', '.join(list(weights)[:5])}"
        )
    return MLP((layers[0].shape[1], *(len(layer) for layer in layers)))


RESNETS = {f"builtin:resnet{depth}": depth for depth in (8, 20, 56, 110)}
WEIGHTS = Path(str(files("unicr.classifier") / "weights"))
SHIPPED = tuple(f"builtin:{file.stem}" for file in sorted(WEIGHTS.glob("mnist-*.safetensors")))
SIZED: dict[str, Callable[[Mapping[str, torch.Tensor]], torch.nn.Module]] = {
    "builtin:mlp": make_mlp,
    "builtin:lenet": lenet.sized_as,
    "builtin:deep-lenet": lenet.sized_as,
    **{spec: partial(resnet.sized_as, depth) for spec, depth in RESNETS.items()},
}
KNOWN = ", ".join((*SHIPPED, *SIZED))


def load(asked: ModelAsked) -> Classifier:
    """The network, with the weights of the package or those given."""
    spec, weights = asked.name, asked.weights
    if spec not in (*SHIPPED, *SIZED):
        raise ModelError(f"there is no model {spec}; there are {KNOWN}")
    if spec in SHIPPED:
        if weights is not None:
            raise ModelError(f"{spec} contains its weights: leave {weights} out")
        file = WEIGHTS / f"{spec.removeprefix('builtin:')}.safetensors"
        make = SIZED[f"builtin:{spec.split('-')[1]}"]
    elif weights is None:
        raise ModelError(f"{spec} is an architecture without weights: give them by --weights FILE")
    else:
        file, make = weights, SIZED[spec]
    tensors = read_weights(file, asked.trust)
    network = make(tensors)
    put_weights(network, tensors, file)
    last = network.linear[-1] if isinstance(network, MLP) else network.linear
    own = cast("torch.nn.Linear", last)
    if asked.num_classes not in (None, own.out_features):
        raise ModelError(f"{file} has {own.out_features} classes, not {asked.num_classes}")
    digest = combine_digests(spec, file_digest(file))
    return classifier_of(asked, network, digest, own.out_features)


# Asked first: a text that begins so is nothing else, and the question needs no file.
ADAPTER = Adapter("builtin:NAME", with_prefix("builtin:"), load, takes_weights=True, rank=-2)
