"""EfficientNet-lite0 for ImageNet as `--model .../efficientnet.py:lite0` takes it.

The network is that of the distribution efficientnet-lite-pytorch (Apache-2.0), which asks for no
other than torch: `pip install --no-deps efficientnet-lite-pytorch==0.1.0`. Inputs from 0 to 1 are
normalised by MEAN and STD; certification does so outside of the network.

`half_lite0` sees the image at half its side. That is a part of the classifier, so a radius still
speaks of the image of 224×224; but the mean of four pixels has half the noise, and a pass costs a
quarter.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

MEAN, STD = (127 / 255,) * 3, (128 / 255,) * 3
SPEC, HALF = f"{Path(__file__)}:lite0", f"{Path(__file__)}:half_lite0"
NAMES = {SPEC: "EfficientNet-lite0", HALF: "EfficientNet-lite0 behind a 2×2 average pool"}
INSTALL = "pip install --no-deps efficientnet-lite-pytorch==0.1.0"
POOL = 2  # pixels along a side that `half_lite0` takes the mean of


def lite0() -> nn.Module:
    """The untrained network, without dropout: 1,000 classes, images of 224×224."""
    from efficientnet_lite_pytorch import EfficientNet

    network: nn.Module = EfficientNet.from_name(
        "efficientnet-lite0", drop_connect_rate=0.0, dropout_rate=0.0
    )
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def half_lite0() -> nn.Module:
    """The untrained network behind an average pool of 2×2."""
    return nn.Sequential(nn.AvgPool2d(POOL), lite0())
