"""EfficientNet-lite0 for ImageNet as `--model .../efficientnet.py:lite0` takes it.

The network is that of the distribution efficientnet-lite-pytorch (Apache-2.0), which asks for no
other than torch: `pip install --no-deps efficientnet-lite-pytorch==0.1.0`. Inputs from 0 to 1 are
normalised by MEAN and STD; certification does so outside of the network.
"""

from __future__ import annotations

from pathlib import Path

from torch import nn

MEAN, STD = (127 / 255,) * 3, (128 / 255,) * 3
SPEC = f"{Path(__file__)}:lite0"
INSTALL = "pip install --no-deps efficientnet-lite-pytorch==0.1.0"


def lite0() -> nn.Module:
    """The untrained network, without dropout: 1,000 classes, images of 224×224."""
    from efficientnet_lite_pytorch import EfficientNet

    network: nn.Module = EfficientNet.from_name(
        "efficientnet-lite0", drop_connect_rate=0.0, dropout_rate=0.0
    )
    return network
