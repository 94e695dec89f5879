"""HopSkipJump (Chen, Jordan and Wainwright, 2020): a walk along the decision boundary, by labels.

The adversarial-robustness-toolbox runs it in ℓ2 or ℓ∞; the direction to the nearest point found is
rescaled to the wanted norm. It asks for the majority vote of the smoothed classifier only.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from unicr.lab.attack._base import Attack, Bounds, Targets, library, quiet
from unicr.norms import Norm, l2, linf

Images = NDArray[np.float32]
RANDOM_STARTS = 64


class _Spent(Exception):
    """The queries for one input are used up."""


@dataclass(frozen=True)
class HopSkipJump(Attack):
    """`steps` of the walk, with `evaluations` queries for the first estimate of a gradient."""

    name: ClassVar[str] = "hopskipjump"
    EFFORT: ClassVar[tuple[str, ...]] = ("steps",)
    steps: int = 12
    evaluations: int = 40
    most_queries: int = 20_000

    def _key(self, norm: Norm, bounds: Bounds) -> Hashable:
        return _format(norm).text

    def _directions(self, targets: Targets, norm: Norm, bounds: Bounds, seed: int) -> torch.Tensor:
        perturbed = [self._walk(targets, i, _format(norm)) for i in range(len(targets))]
        return torch.from_numpy(np.stack(perturbed)) - targets.x.cpu()

    def _walk(self, targets: Targets, i: int, norm: Norm) -> Images:
        """The nearest point of another class that was met on the way from input i."""
        decide = _Decider(targets, i, norm, self.most_queries)
        start = decide.start()
        if start is None:
            return decide.origin
        classification = library("art.estimators.classification")
        walk = library("art.attacks.evasion.hop_skip_jump").HopSkipJump(
            classification.BlackBoxClassifier(
                decide, decide.origin.shape, 2, clip_values=decide.limits
            ),
            norm=2 if norm == l2 else np.inf,
            max_iter=self.steps,
            max_eval=max(self.evaluations, 1000),
            init_eval=self.evaluations,
            batch_size=max(1, 4096 // targets.model.samples),
            verbose=False,
        )
        try:
            with quiet():
                walk.generate(decide.origin[None], x_adv_init=start[None])
        except _Spent:
            pass
        return decide.nearest


def _format(norm: Norm) -> Norm:
    return linf if norm == linf else l2


class _Decider:
    """Decides by the majority of the votes around a candidate: kept (class 0) or changed (class 1).

    It remembers the nearest changed candidate, and ends the walk when the queries are spent.
    """

    def __init__(self, targets: Targets, i: int, norm: Norm, most: int) -> None:
        self._targets, self._i, self._norm, self._left = targets, i, norm, most
        self.origin: Images = targets.x[i].cpu().numpy()
        self.nearest = self.origin
        self._distance = np.inf
        low, high = float(targets.x.min()), float(targets.x.max())
        more = 0.0 if targets.clip else max(high - low, 1.0)
        self.limits = (0.0, 1.0) if targets.clip else (low - more, high + more)

    def __call__(self, candidates: Images) -> NDArray[np.float32]:
        self._left -= len(candidates)
        if self._left < 0:
            raise _Spent
        x = torch.from_numpy(np.asarray(candidates, dtype=np.float32)).to(self._targets.x.device)
        rows = torch.full((len(x),), self._i, device=x.device)
        winner = self._targets.model.votes(x, rows).argmax(1)
        changed = (winner != self._targets.classes[self._i]).cpu().numpy()
        self._remember(candidates[changed])
        return np.stack([~changed, changed], axis=1).astype(np.float32)

    def _remember(self, changed: Images) -> None:
        for candidate in changed:
            distance = self._norm(candidate - self.origin)
            if distance < self._distance:
                self._distance = distance
                self.nearest = np.array(candidate, dtype=np.float32)

    def start(self) -> Images | None:
        """A point of another class: the nearest known input, or else a random one."""
        known = [start.cpu().numpy() for start in self._targets.starts]
        low, high = self.limits
        noise = torch.rand((RANDOM_STARTS, *self.origin.shape)).numpy() * (high - low) + low
        for candidates in (known, list(noise.astype(np.float32))):
            if candidates:
                self(np.stack(candidates))
            if np.isfinite(self._distance):
                return self.nearest
        return None
