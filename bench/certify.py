"""Certification: radii on a lattice, time against ART, memory, early stopping."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from unicr import SmoothedClassifier, noise
from unicr.classifier import ModuleClassifier, load_classifier
from unicr.data import load_dataset
from unicr.norms import l1, l2
from unicr.runs import read_log
from unicr.smoothing import Curves, Plan, Radii, Votes, lower_bound
from unicr.smoothing.rules import Target

LOG = Path(__file__).parents[2] / "shared/data/logs/cifar10_resnet110_sigma_0.50.tsv"


def best_of(job: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return min(times)


def lattice_radii() -> None:
    """The largest radii that n = 100,000 gives, on the lattice of 8-bit images and real-valued."""
    plan, lattice = Plan(n=100_000), noise.Lattice.parse("1/255")
    for dim, bar in ((784, 1e-6), (3072, 1e-6), (150_528, 1e-4)):
        for law in (noise.gaussian(sigma=0.5), noise.laplace(sigma=0.5)):
            real, ours = (
                Radii(law, (l1,), dim, lattice=on).largest(plan) for on in (None, lattice)
            )
            less = 1 - ours["1"] / real["1"]
            print(f"  {law.text}, l1, {dim} values: {less:.1e} less, relative (bar: {bar:g})")


def against_art(n: int = 10_000) -> None:
    """The same torch model, n and α in adversarial-robustness-toolbox, same run."""
    try:
        import statsmodels  # noqa: F401  (ART imports it when it certifies)
        from art.estimators.certification.randomized_smoothing import PyTorchRandomizedSmoothing
    except ImportError:
        print("  skipped: pip install adversarial-robustness-toolbox statsmodels")
        return
    classifier = load_classifier("builtin:mnist-mlp-0.5")
    assert isinstance(classifier, ModuleClassifier)
    art = PyTorchRandomizedSmoothing(
        model=classifier.module,
        loss=torch.nn.CrossEntropyLoss(),
        input_shape=(1, 28, 28),
        nb_classes=10,
        sample_size=100,
        scale=0.5,
        alpha=0.001,
    )
    data = load_dataset("builtin:mnist")
    xs = torch.stack([data[i][0] for i in range(5)])
    law = noise.gaussian(sigma=0.5)
    smoothed = SmoothedClassifier(classifier, law, seed=0)
    curves = Curves((l2,), 784)
    plan = Plan(n0=100, n=n)

    def ours() -> list[float]:
        return [smoothed.certify_with(x, plan, curves, i).radius() for i, x in enumerate(xs)]

    def theirs() -> np.ndarray:
        return np.asarray(art.certify(xs.numpy(), n=n)[1])

    mine, other = ours(), theirs()
    ratio = best_of(theirs, 2) / best_of(ours, 3)
    print(f"  ART takes {ratio:.1f} x our time (bar: 4) for 5 digits, n = {n}")
    print("  radii ours  ", " ".join(f"{r:.3f}" for r in mine))
    print("  radii theirs", " ".join(f"{r:.3f}" for r in other.ravel()))


MEMORY = """
import resource
import torch
from unicr import noise
from unicr import SmoothedClassifier
from unicr.smoothing import Votes
from torch.nn import AdaptiveAvgPool2d, Flatten, Linear, Sequential
model = Sequential(AdaptiveAvgPool2d(4), Flatten(), Linear(48, 10))
smoothed = SmoothedClassifier(model, noise.gaussian(sigma=0.5), batch=400, seed=0)
smoothed.certify(torch.rand(3, 224, 224), 2, n={n})
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


def memory(n: int = 100_000) -> None:
    """Peak memory of one ImageNet-size input, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY.format(n=n)], capture_output=True, text=True, check=True
    )
    print(f"  one 3x224x224 input, n = {n}: peak {float(done.stdout):.2f} GB (bar: 1.5)")


def early_stopping(target: float = 0.5, n: int = 100_000) -> None:
    """Samples saved on the p_A's of a published CIFAR-10 log, decisions compared with n = 1e5."""
    if not LOG.is_file():
        print("  the published log is not beside the project: skipped")
        return
    law = noise.gaussian(sigma=0.5)
    radii = Radii(law, (l2,), 3072)
    rows = [row for row in read_log(LOG) if row.predict >= 0]
    rng = np.random.default_rng(0)
    probabilities = torch.special.ndtr(torch.tensor([r.radius for r in rows]) / 0.5).tolist()
    for plan in (Plan(n=n, rule=Target(target)),):
        used, same, ours, fixed_radius = 0, 0, 0.0, 0.0
        for p in probabilities:
            votes, needed = Votes(0, None, 0), radii.find_least_p_a(target)
            while step := plan.rule.next(votes, plan, radii):
                votes = Votes(votes.top + int(rng.binomial(step, p)), None, votes.n + step)
            used += votes.n
            p_a, _ = plan.rule.conclude(votes, plan, radii)
            fixed = lower_bound(int(rng.binomial(n, p)), n, plan.alpha)
            same += (p_a >= needed) == (fixed >= needed)
            ours += radii.first(p_a)
            fixed_radius += radii.first(fixed)
        saved = n * len(rows) / used
        if isinstance(plan.rule, Target):
            print(
                f"  --rule target(radius={target:g}): {saved:.1f} x fewer samples (bar: 10), "
                f"{same} of {len(rows)} decisions as at n = {n}"
            )
        else:
            print(
                f"  --rule {plan.rule.text}: {saved:.1f} x fewer samples, average radius "
                f"{ours / len(rows):.4f} against {fixed_radius / len(rows):.4f}"
            )


def main() -> None:
    """Print every comparison."""
    torch.manual_seed(0)
    print("\nradii on the lattice")
    lattice_radii()
    print("\nagainst adversarial-robustness-toolbox")
    against_art()
    print("\nmemory")
    memory()
    print(
        f"\nearly stopping (this process peaks at "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f} GB)"
    )
    early_stopping()
