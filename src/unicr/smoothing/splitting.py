"""Splitting noise (Levine & Feizi 2021): certificates in ℓ1 from noise that is not added.

Every coordinate of x ∈ [0, 1]^d falls into an interval of length 2λ whose place is uniform, and f
sees the middle of that interval (cut to the box). x_i and y_i are told apart with probability
min(1, |x_i − y_i|/2λ), so x and y with at most ‖x − y‖₁/2λ: whatever f is, no class's probability
changes by more. The places may depend on each other, so on quantised inputs one offset for all
coordinates, taken through all its values, gives probabilities without sampling: no α.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unicr.classifier import Classifier, load_classifier
from unicr.errors import CertifyError
from unicr.radius.internal import lower_bound
from unicr.smoothing._certificate import ABSTAIN
from unicr.values import Array

FIRST, FRESH, PLACES = 0, 1, 2  # streams of random numbers


@dataclass(frozen=True)
class Split:
    """The class of the smoothed classifier, or −1, kept for every ‖δ‖₁ below `radius`.

    `p_a` is a lower bound at failure probability `alpha`; exact, with alpha = 0, if deterministic.
    """

    predict: int
    p_a: float
    radius: float
    alpha: float


class SplittingClassifier:
    """g(x) = the class that f most often gives to split copies of x; `scale` is λ.

    Inputs lie in [0, 1]. The deterministic g is defined on inputs that are multiples of 1/`levels`
    and certified against perturbations that stay there; 2·λ·`levels` must be a whole number.
    """

    def __init__(
        self,
        model: Classifier | torch.nn.Module | Any,
        *,
        scale: float,
        levels: int = 255,
        seed: int = 0,
        batch: int = 1000,
    ) -> None:
        if not 0 < scale < math.inf:
            raise CertifyError(f"scale={scale!r} must be a finite number above 0")
        self.classifier = model if isinstance(model, Classifier) else load_classifier(model)
        self.scale, self.levels, self.seed, self.batch = float(scale), levels, seed, batch

    def split(self, x: Array, place: Array) -> Array:
        """The middle of the interval, in units of x: its ends are `place` + 2λ·(whole numbers)."""
        width = 2 * self.scale
        high = np.ceil((x - place) / width) * width + place
        return 0.5 * (np.minimum(high, 1.0) + np.maximum(high - width, 0.0))

    def certify(
        self,
        x: torch.Tensor,
        *,
        n0: int = 100,
        n: int = 100_000,
        alpha: float = 0.001,
        index: int = 0,
    ) -> Split:
        """R = 2λ(p_A − ½) with probability ≥ 1 − α: n0 samples choose, n fresh ones bound p_A.

        `index` is the input's number: every input has random places of its own.
        """
        flat = self._checked(x)
        counts = []
        for stream, size in ((FIRST, n0), (FRESH, n)):
            rng = np.random.Generator(np.random.Philox(key=[self.seed, 4 * index + stream]))
            total = np.zeros(0, dtype=np.int64)
            for first in range(0, size, self.batch):
                rows = min(self.batch, size - first)
                total = self._add(total, x, flat, rng.random((rows, flat.size)) * 2 * self.scale)
            counts.append(total)
        chosen = int(np.argmax(counts[0]))
        top = int(counts[1][chosen]) if chosen < len(counts[1]) else 0
        p_a = lower_bound(top, n, alpha)
        radius = max(2 * self.scale * (p_a - 0.5), 0.0)
        return Split(chosen if p_a > 0.5 else ABSTAIN, p_a, radius, alpha)

    def certify_exactly(self, x: torch.Tensor) -> Split:
        """R = λ(p_A − p_B) with the probabilities themselves: all 2λ·levels offsets are counted.

        Coordinate i has the offset (base + place_i) mod 2λ, at half steps of the lattice: no input
        lies on an end. The places are fixed by the seed and the same for every input.
        """
        flat, steps = self._checked(x), 2 * self.scale * self.levels
        if abs(steps - round(steps)) > 1e-9 or round(steps) < 1:
            raise CertifyError(
                f"scale={self.scale!r}: 2 * scale * levels = {steps:.6g} must be a whole number, "
                f"for example scale={max(round(steps), 1)}/{2 * self.levels}"
            )
        whole = np.rint(flat * self.levels)
        if np.max(np.abs(flat * self.levels - whole), initial=0.0) > 1e-4:
            raise CertifyError(
                f"the input is not a multiple of 1/{self.levels}: quantise it, or sample (certify)"
            )
        count = round(steps)
        rng = np.random.Generator(np.random.Philox(key=[self.seed, PLACES]))
        own, base = rng.integers(0, count, flat.size), np.arange(count)
        total = np.zeros(0, dtype=np.int64)
        for first in range(0, count, self.batch):
            places = (base[first : first + self.batch, None] + own) % count + 0.5
            total = self._add(total, x, whole / self.levels, places / self.levels)
        order = np.argsort(-total, kind="stable")
        second = int(total[order[1]]) if len(order) > 1 else 0
        gap = (int(total[order[0]]) - second) / count
        chosen = int(order[0]) if gap > 0 else ABSTAIN
        return Split(chosen, float(total[order[0]]) / count, self.scale * gap, 0.0)

    def _add(self, total: Any, x: torch.Tensor, flat: Array, places: Array) -> Any:
        copies = torch.from_numpy(self.split(flat, places).astype(np.float32))
        votes = self.classifier.votes(copies.reshape(-1, *x.shape), None).numpy()
        length = max(len(total), len(votes))
        return np.pad(total, (0, length - len(total))) + np.pad(votes, (0, length - len(votes)))

    def _checked(self, x: torch.Tensor) -> Array:
        flat = torch.as_tensor(x).to(torch.float64).numpy().ravel()
        if not np.all((flat >= 0) & (flat <= 1)):
            bad = flat[~((flat >= 0) & (flat <= 1))][0]
            raise CertifyError(
                f"the input holds {bad:.6g}: splitting noise needs inputs in the box [0, 1]"
            )
        return flat
