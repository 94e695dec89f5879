"""How often does the label of a noisy input depend on what else is in its batch?

Labels in full passes as certification makes them, beside those at other places of the pass, among
other inputs, in batches of other sizes, and with all of torch's threads.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from unicr import noise
from unicr.classifier import Classifier, load_classifier
from unicr.data import load_dataset
from unicr.noise.internal import LatticeNoise, derive

SHARED = Path(__file__).parents[2] / "shared/data"
PASS = 250


def labels(model: Classifier, batch: torch.Tensor, size: int) -> torch.Tensor:
    return torch.cat([model.predict(part) for part in torch.split(batch, size)])


def compare(name: str, model: Classifier, xs: list[torch.Tensor], sigma: float, n: int) -> None:
    """One line: of how many labels how many change, by what was changed."""
    law = LatticeNoise(noise.gaussian(sigma=sigma), noise.Lattice.parse("1/255"))
    changed = dict.fromkeys(("place", "neighbours", "batch 1000", "batch 64", "threads"), 0)
    threads = torch.get_num_threads()
    for i, x in enumerate(xs):
        base = law.lattice.integers(x.numpy()).ravel()
        noisy = law.add(base, torch.empty(n, *x.shape), key=derive("bench", i))
        order = torch.from_numpy(np.random.default_rng(i).permutation(n))
        torch.set_num_threads(1)
        right = labels(model, noisy, PASS)
        rolled = noisy.view(-1, PASS, *x.shape).roll(7, 1).flatten(0, 1)
        found = labels(model, rolled, PASS).view(-1, PASS).roll(-7, 1).flatten()
        changed["place"] += int((found != right).sum())
        found = torch.empty_like(right)
        found[order] = labels(model, noisy[order], PASS)
        changed["neighbours"] += int((found != right).sum())
        for size in (1000, 64):
            changed[f"batch {size}"] += int((labels(model, noisy, size) != right).sum())
        torch.set_num_threads(threads)
        changed["threads"] += int((labels(model, noisy, PASS) != right).sum())
    print(f"  {name}: of {n * len(xs)} labels change with {changed}", flush=True)


def main() -> None:
    """The built-in models, and ResNet-20 on CIFAR-10 where its weights are."""
    digits = load_dataset("builtin:mnist")
    xs = [digits[i][0] for i in range(20)]
    for sigma in (0.25, 0.5, 1.0):
        model = load_classifier(f"builtin:mnist-mlp-{sigma}")
        compare(f"mnist-mlp-{sigma}", model, xs, sigma, 10_000)
    weights, images = SHARED / "resnet20-12fca82f.th", SHARED / "cifar10_test.npz"
    if not weights.is_file():
        print("  the weights of ResNet-20 are not beside the project: skipped")
        return
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    resnet = load_classifier("builtin:resnet20", weights=weights, trust=weights, mean=mean, std=std)
    data = load_dataset(str(images))
    compare("ResNet-20", resnet, [data[i][0] for i in range(4)], 0.25, 1000)


if __name__ == "__main__":
    main()
