"""Train the six MNIST networks that the package carries, and cut the images they are shown on.

Each 784-512-256-10 perceptron learns with Gaussian noise added to inputs in [0, 1]. The LeNets of
σ = 0.5 and 1 are teams; each member learns as `unicr train` does it, by `smoothadv` with
consistency, by `margin`, or by one after the other, that of σ = 0.25 by `consistency`. All are
measured as they will be used: by a majority vote under their own noise.

    python tools/train_builtin.py --train mnist_train.npz --test mnist_test.npz

reads any form of MNIST that `unicr.data.load_dataset` knows (npz, or the idx files that
`unicr data fetch mnist` brings: give the images file of each half). One thread and fixed seeds:
the same machine and torch version give the same files; about two minutes for each perceptron and
up to an hour for each LeNet.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

from unicr.classifier import MLP
from unicr.classifier.lenet import LeNet, Team, sized_as
from unicr.data import Dataset, load_dataset
from unicr.lab.train import Examples, Training, examples_of, train_run

OUT = Path(__file__).parents[1] / "src" / "unicr"
SIGMAS = (0.25, 0.5, 1.0)
Trainings = list[tuple[int, dict[str, Any]]]
# By σ the members of a team, each with its trainings, every one from the weights of the one before:
# how many copies of each digit, all but one moved, and settings. With 16 `bits` a network learns
# faster where the processor knows bfloat16; `held` leaves out every 20th digit, to compare by
SHARP: dict[str, Any] = {"method": "smoothadv", "samples": 2, "steps": 1, "weight": 5.0}
MARGIN: dict[str, Any] = {"method": "margin", "batch": 64, "lr": 3e-3, "val_share": 0.001}
MARGIN |= {"bits": 16, "held": 20}
DEEP: dict[str, Any] = {"arch": "deep-lenet", "batch": 128, "val_share": 0.001}
DEEP |= {"bits": 16, "held": 20}
TEAMS: dict[float, list[Trainings]] = {
    0.25: [[(8, DEEP | {"method": "consistency", "weight": 10.0, "epochs": 2})]],
    0.5: [
        [
            (1, SHARP | {"radius": 0.5, "epochs": 10, "batch": 256}),
            (4, SHARP | {"radius": 0.75, "epochs": 16, "batch": 256, "schedule": "cosine"}),
        ],
        [(6, MARGIN | {"epochs": 3})],
    ],
    1.0: [
        [(1, SHARP | {"radius": 1.0, "epochs": 20, "batch": 128})],
        [
            (8, SHARP | DEEP | {"radius": 1.0, "epochs": 4}),
            (8, MARGIN | DEEP | {"epochs": 1, "lr": 1.5e-3, "schedule": "cosine"}),
        ],
    ],
}
IMAGES = 1000
BATCH = 256


def stacked(dataset: Dataset) -> tuple[torch.Tensor, torch.Tensor]:
    """All inputs and labels of a dataset as two tensors."""
    inputs, labels = zip(*(dataset[i] for i in range(len(dataset))), strict=True)
    return torch.stack(inputs), torch.tensor(labels)


def train(
    images: torch.Tensor, labels: torch.Tensor, sigma: float, epochs: int, seed: int
) -> nn.Module:
    """A network trained on noisy images, with its weights rounded to float16."""
    torch.manual_seed(seed)
    model = MLP()
    steps = epochs * -(-len(images) // BATCH)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-3, total_steps=steps)
    for _ in range(epochs):
        order = torch.randperm(len(images))
        for start in range(0, len(images), BATCH):
            rows = order[start : start + BATCH]
            clean = images[rows]
            loss = nn.functional.cross_entropy(
                model(clean + sigma * torch.randn_like(clean)), labels[rows]
            )
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    return model.half().float().eval()


def moved(images: torch.Tensor) -> torch.Tensor:
    """Each image turned by up to 7°, scaled by up to 8 % and shifted by up to a pixel."""
    size = len(images)
    angle, scale = 0.12 * _random(size), 1 + 0.08 * _random(size)
    cosine, sine, shift = angle.cos() * scale, angle.sin() * scale, _random(size, 2) / 14
    rows = ([cosine, -sine, shift[:, 0]], [sine, cosine, shift[:, 1]])
    matrix = torch.stack([torch.stack(row, 1) for row in rows], 1)
    parts = (slice(i, i + 2000) for i in range(0, size, 2000))
    return torch.cat([_sampled(images[part], matrix[part]) for part in parts])


def _random(*shape: int) -> torch.Tensor:
    return torch.rand(*shape) * 2 - 1


def _sampled(images: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    where = nn.functional.affine_grid(matrix, list(images.shape), align_corners=False)
    return nn.functional.grid_sample(images, where, align_corners=False)


def team(examples: Examples, sigma: float, folder: Path) -> nn.Module:
    """Its LeNets, stored with 16 bits; an interrupted training goes on in its folder."""
    members = [lenet(examples, sigma, own, folder / str(i)) for i, own in enumerate(TEAMS[sigma])]
    model: nn.Module = Team(members) if len(members) > 1 else members[0]
    return model.half().eval()


def lenet(examples: Examples, sigma: float, trainings: Trainings, folder: Path) -> LeNet:
    """One LeNet after its trainings."""
    state: dict[str, torch.Tensor] = {}
    for number, (copies, own) in enumerate(trainings):
        given: dict[str, Any] = {"arch": "lenet", "norm": "2"} | own
        bits, held = given.pop("bits", 32), given.pop("held", None)
        kept = torch.ones(len(examples), dtype=torch.bool)
        kept[:: held or len(examples)] = held is None
        digits, labels = examples.inputs[kept], examples.labels[kept]
        torch.manual_seed(0)
        further = [moved(digits.float()).round().to(torch.uint8) for _ in range(copies - 1)]
        more = Examples(torch.cat([digits, *further]), labels.repeat(copies), 10)
        if number:
            given["start"] = str(folder / str(number - 1) / "model.safetensors")
        settings = Training(f"gaussian(sigma={sigma})", **given)
        with torch.autocast("cpu", torch.bfloat16, enabled=bits < 32, cache_enabled=False):
            state = train_run(more, settings, folder / str(number), resume=True).state
    model = sized_as(state)
    assert isinstance(model, LeNet)
    model.load_state_dict(state)
    return model


@torch.inference_mode()
def accuracy(
    model: nn.Module, images: torch.Tensor, labels: torch.Tensor, sigma: float, votes: int
) -> tuple[float, float]:
    """(share of correct labels under noise, share of correct majority votes)."""
    torch.manual_seed(1)
    counts = torch.zeros(len(images), 10)
    for _ in range(votes):
        predicted = model(images + sigma * torch.randn_like(images)).argmax(1)
        counts[torch.arange(len(images)), predicted] += 1
    single = float(counts[torch.arange(len(images)), labels].mean()) / votes
    return single, float((counts.argmax(1) == labels).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--train", required=True, help="MNIST training images and labels")
    parser.add_argument("--test", required=True, help="MNIST test images and labels")
    parser.add_argument("--out", type=Path, default=OUT, help="the package they go to")
    parser.add_argument("--work", type=Path, default=Path("build/builtin"), help="for checkpoints")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="one network, e.g. lenet-0.5")
    given = parser.parse_args()
    torch.set_num_threads(1)
    shown, weights = given.out / "data" / "builtin", given.out / "classifier" / "weights"
    for folder in (shown, weights):
        folder.mkdir(parents=True, exist_ok=True)

    images, labels = stacked(load_dataset(given.train))
    test_images, test_labels = stacked(load_dataset(given.test))
    np.savez_compressed(
        shown / "mnist_test_1000.npz",
        images=(test_images[:IMAGES, 0] * 255).round().to(torch.uint8).numpy(),
        labels=test_labels[:IMAGES].to(torch.uint8).numpy(),
    )
    examples = examples_of(load_dataset(given.train))
    for arch, sigma in itertools.product(("mlp", "lenet"), SIGMAS):
        name = f"{arch}-{sigma}"
        if given.only not in (None, name):
            continue
        if arch == "mlp":
            model = train(images, labels, sigma, given.epochs, given.seed).half()
            about = f"784-512-256-10 with ReLU, {given.epochs} epochs, seed {given.seed}"
        else:
            model = team(examples, sigma, given.work / name)
            about = "unicr.classifier.lenet, trained for radii as that script says"
        keep(model, weights / f"mnist-{name}.safetensors", about, sigma)
        show(name, model.float(), test_images, test_labels, sigma)


def keep(model: nn.Module, file: Path, about: str, sigma: float) -> None:
    """Write the weights, with a word on where they come from."""
    words = f"{about}; MNIST in [0, 1], Gaussian noise, sigma {sigma}; tools/train_builtin.py"
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    save_file(tensors, file, metadata={"about": words})
    file.chmod(0o644)


def show(
    name: str, model: nn.Module, images: torch.Tensor, labels: torch.Tensor, sigma: float
) -> None:
    """Print how a network does on test images."""
    single, voted = accuracy(model, images, labels, sigma, votes=50)
    print(f"{name}: {single:.2%} under noise, {voted:.2%} by 50 votes", flush=True)


if __name__ == "__main__":
    main()
