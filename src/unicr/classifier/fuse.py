"""Fold batch normalisation into the convolution before it: the same function, fewer passes.

Only pairs whose order is certain are folded: `convK`/`bnK` of our residual networks, and neighbours
in an `nn.Sequential`.
"""

from __future__ import annotations

import copy
from itertools import pairwise

import torch
from torch import nn

from unicr.classifier.resnet import Block, ResNet

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
LAYERS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


def fuse_batchnorm(module: nn.Module) -> nn.Module:
    """A copy in eval mode whose foldable batch norms are gone; scores agree up to rounding."""
    fused = copy.deepcopy(module).eval()
    for part in list(fused.modules()):
        for layer, norm in _pairs(part):
            one, other = getattr(part, layer), getattr(part, norm)
            if type(one) in LAYERS and type(other) in NORMS and other.track_running_stats:
                setattr(part, layer, _folded(one, other))
                setattr(part, norm, nn.Identity())
    return fused


def _pairs(part: nn.Module) -> list[tuple[str, str]]:
    if isinstance(part, Block | ResNet):
        return [(f"conv{i}", f"bn{i}") for i in (1, 2) if hasattr(part, f"conv{i}")]
    if isinstance(part, nn.Sequential):
        names = [name for name, _ in part.named_children()]
        return list(pairwise(names))
    return []


@torch.no_grad()
def _folded(layer: nn.Module, norm: nn.Module) -> nn.Module:
    """A layer that computes norm(layer(x)) with the norm's running statistics."""
    assert isinstance(layer, LAYERS)
    assert isinstance(norm, NORMS)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = torch.rsqrt(norm.running_var.double() + norm.eps)
    shift = -norm.running_mean.double() * scale
    if norm.affine:
        scale, shift = scale * norm.weight.double(), shift * norm.weight.double() + norm.bias
    weight = layer.weight.double() * scale.view(-1, *[1] * (layer.weight.ndim - 1))
    bias = shift if layer.bias is None else shift + layer.bias.double() * scale
    folded = copy.deepcopy(layer)
    folded.weight = nn.Parameter(weight.to(layer.weight.dtype))
    folded.bias = nn.Parameter(bias.to(layer.weight.dtype))
    return folded
