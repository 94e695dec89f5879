"""Train the six MNIST networks that the package carries, and cut the images they are shown on.

Each 784-512-256-10 perceptron learns with Gaussian noise added to inputs in [0, 1] and is rounded
to float16 for storage; each LeNet learns by `smoothadv` with consistency, as `unicr train` does it.
All are measured as they will be used: by a majority vote under their own noise.

    python tools/train_builtin.py --train mnist_train.npz --test mnist_test.npz

reads any form of MNIST that `unicr.data.load_dataset` knows (npz, or the idx files that
`unicr data fetch mnist` brings: give the images file of each half). One thread and fixed seeds:
the same machine and torch version give the same files; about two minutes per network.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

from unicr.classifier.lenet import LeNet
from unicr.classifier.mlp import MLP
from unicr.data import Dataset, load_dataset
from unicr.train import Examples, Training, examples_of, train_run

OUT = Path(__file__).parents[1] / "src" / "unicr"
SIGMAS = (0.25, 0.5, 1.0)
# by σ: the weight of consistency, epochs with batches of 256, and then of 64
LENETS = {0.25: (10.0, 4, 0), 0.5: (5.0, 5, 0), 1.0: (5.0, 6, 4)}
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


def lenet(examples: Examples, sigma: float, folder: Path) -> nn.Module:
    """A LeNet trained in two stages, or one; an interrupted training goes on in its folder."""
    weight, first, further = LENETS[sigma]
    settings = Training(
        f"gaussian(sigma={sigma})",
        arch="lenet",
        method="smoothadv",
        samples=2,
        steps=1,
        radius=sigma,
        weight=weight,
        norm="2",
        epochs=first,
        batch=256,
    )
    fitted = train_run(examples, settings, folder / "first", resume=True)
    if further:
        begun = str(folder / "first" / "model.safetensors")
        settings = replace(settings, epochs=further, batch=64, start=begun)
        fitted = train_run(examples, settings, folder / "further", resume=True)
    model = LeNet()
    model.load_state_dict(fitted.state)
    return model.eval()


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
    for sigma in SIGMAS:
        model = train(images, labels, sigma, given.epochs, given.seed)
        about = f"784-512-256-10 with ReLU, {given.epochs} epochs, seed {given.seed}"
        keep(model.half(), weights / f"mnist-mlp-{sigma}.safetensors", about, sigma)
        show(f"mlp {sigma}", model.float(), test_images, test_labels, sigma)
        model = lenet(examples, sigma, given.work / f"lenet-{sigma}")
        about = f"unicr.classifier.lenet, {LENETS[sigma][1:]} epochs of smoothadv with consistency"
        keep(model, weights / f"mnist-lenet-{sigma}.safetensors", about, sigma)
        show(f"lenet {sigma}", model, test_images, test_labels, sigma)


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
