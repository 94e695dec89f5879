"""One task of the defence study: an attack on a group of inputs, judged by fresh votes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch

from unicr.classifier import Classifier, Selective, load_classifier
from unicr.lab.attack._base import Attack, Memory, Targets, mix_seed
from unicr.lab.attack._selective import SelectiveModel, selective_judge
from unicr.lab.attack._settings import AttackError, Settings
from unicr.lab.attack._store import Outcome
from unicr.lab.attack._verdict import verdict
from unicr.noise import Lattice, Noise
from unicr.norms import parse_norm
from unicr.select import Selector
from unicr.smoothing import Counts, Passes, SmoothedModel, VoteCounter

Judge = Callable[[torch.Tensor, int, int, int], Counts]  # votes at x, n, of an input, for a class


@dataclass(frozen=True)
class Aim:
    """One certified input: its class, its noise, and its radius in every norm asked for."""

    idx: int
    x: torch.Tensor
    certified: int
    noise: Noise
    radii: dict[str, float]


@dataclass(frozen=True)
class Task:
    """One attack on a group of inputs, for every (norm, factor) in `goals`."""

    attack: Attack
    aims: tuple[Aim, ...]
    goals: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Study:
    """The unit of work for `unicr.runs.execute`: picklable, opened once per process.

    `arguments` are those of `load_classifier`; without them the classifier itself is carried.
    `batch` is the most noisy copies that an attack has in one pass, `passes` are those of the run.
    With a `selector` the whole predictor is attacked and judged, the choice of the noise too.
    """

    classifier: Classifier | None
    arguments: dict[str, Any] | None
    settings: Settings
    num_classes: int
    run_seed: int
    starts: dict[int, torch.Tensor] = field(default_factory=dict)
    batch: int = 1024
    passes: Passes | None = None
    selector: Selector | None = None
    lattice: Lattice | None = None
    between_points: bool = False

    def open(self) -> Callable[[Task], list[Outcome]]:
        """Load the model; what comes back attacks the inputs of one task."""
        return _Worker(self, self.classifier or load_classifier(**(self.arguments or {})))


def model_to_attack(
    classifier: Classifier,
    selector: Selector | None,
    noises: Sequence[Noise],
    indices: Sequence[int],
    shape: tuple[int, ...],
    *,
    num_classes: int,
    **settings: Any,
) -> SmoothedModel:
    """What attacks see of the smoothed classifier, or of the predictor with a selector."""
    if selector is None:
        return SmoothedModel(
            classifier, noises, indices, shape, num_classes=num_classes, **settings
        )
    if not isinstance(classifier, Selective):
        raise AttackError(f"{classifier.name} is not a selector: make one with `unicr select`")
    return SelectiveModel(classifier, selector, indices, shape, num_classes=num_classes, **settings)


class _Worker:
    def __init__(self, study: Study, classifier: Classifier) -> None:
        self._study, self._classifier = study, classifier
        self._judge = cache(self._make_judge)

    def _make_judge(self, noise: Noise) -> Judge:
        """g with samples that neither the certificate nor the attack has seen."""
        study, seed = self._study, self._seed("judge")
        passes: dict[str, Any] = {}
        if study.passes is not None:
            passes = {"batch": study.passes.size, "channels_last": study.passes.channels_last}
        if study.selector is not None:
            given = {"seed": seed, "lattice": study.lattice, **passes}
            return selective_judge(self._classifier, study.selector, **given)
        smoothed = VoteCounter(
            self._classifier,
            noise,
            num_classes=study.num_classes,
            seed=seed,
            lattice=study.lattice,
            **passes,
        )
        return lambda x, n, index, _: smoothed.votes(x, n, start=0, input_index=index)

    def _seed(self, role: str) -> int:
        return mix_seed(self._study.run_seed, self._study.settings.seed, role)

    def __call__(self, task: Task) -> list[Outcome]:
        targets = self._targets(task.aims)
        memory: Memory = {}
        outcomes = []
        for text, factor in task.goals:
            bounds = np.array([aim.radii[text] * factor for aim in task.aims])
            moved = task.attack.perturb(targets, parse_norm(text), bounds, memory)
            for aim, x, bound in zip(task.aims, moved, bounds.tolist(), strict=True):
                if self._study.between_points:
                    x = self._cut_to_points(aim.x, x)
                outcomes.append(self._judge_outcome(task.attack.name, text, factor, aim, x, bound))
        return outcomes

    def _cut_to_points(self, x: torch.Tensor, moved: torch.Tensor) -> torch.Tensor:
        """The change cut to whole steps, inwards: what a radius between grid points speaks of."""
        lattice = self._study.lattice
        if lattice is None:
            raise AttackError("the run has no grid to which a change could be rounded")
        steps = (moved.cpu().double() - x.cpu().double()).numpy() / float(lattice.step)
        there = lattice.integers(x.cpu().numpy()) + np.trunc(steps).astype(np.int64)
        return torch.from_numpy(lattice.floats(there)).to(moved.device)

    def _targets(self, aims: Sequence[Aim]) -> Targets:
        study, device = self._study, self._classifier.device
        x = torch.stack([aim.x for aim in aims]).to(device, torch.float32)
        model = model_to_attack(
            self._classifier,
            study.selector,
            [aim.noise for aim in aims],
            [aim.idx for aim in aims],
            tuple(x.shape[1:]),
            num_classes=study.num_classes,
            samples=study.settings.samples,
            seed=self._seed("attacker"),
            batch=study.batch,
        )
        return Targets(
            x,
            torch.tensor([aim.certified for aim in aims], device=device),
            model,
            seed=mix_seed(self._seed("attack"), [aim.idx for aim in aims]),
            clip=study.settings.clip,
            starts=tuple(study.starts.values()),
        )

    def _judge_outcome(
        self, attack: str, norm: str, factor: float, aim: Aim, moved: torch.Tensor, bound: float
    ) -> Outcome:
        settings = self._study.settings
        judge = self._judge(aim.noise)
        counts = judge(moved, settings.votes, aim.idx, aim.certified)
        votes = tuple(int(c) for c in counts)
        away = moved.cpu().to(torch.float64) - aim.x.to(torch.float64)
        return Outcome(
            attack=attack,
            norm=norm,
            factor=factor,
            idx=aim.idx,
            certified=aim.certified,
            bound=bound,
            length=parse_norm(norm)(away),
            counts=votes,
            verdict=verdict(votes, aim.certified, settings.alpha),
        )
