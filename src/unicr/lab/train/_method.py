"""What a method of training is: a loss over some noisy copies of each input of a batch.

A new method is one new file in `methods/` that holds a `Method`, or an entry point of another
distribution; nothing else changes. Methods
know the noise by its samples and by its p_A–R curve only, so each works for every noise and norm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy import special
from torch.nn import functional

from unicr.lab.train._settings import TrainError
from unicr.noise import Noise
from unicr.norms import Norm
from unicr.radius import RadiusCurve
from unicr.registry import Catalogue


@dataclass(frozen=True)
class Reach:
    """The radius that a probability certifies under one noise, in one norm and dimension."""

    noise: Noise
    norm: Norm
    dim: int

    @cached_property
    def curve(self) -> RadiusCurve:
        """Searched where the proved one is not known in closed form: training promises nothing."""
        return RadiusCurve(self.noise, self.norm, self.dim)

    def at(self, p: float) -> float:
        """The radius at a probability."""
        return float(self.curve(np.array([p]), searched=True)[0])

    @cached_property
    def _nodes(self) -> tuple[torch.Tensor, torch.Tensor]:
        quantiles = np.linspace(0, LARGEST, 400)
        radii = self.curve(special.ndtr(quantiles), searched=True)
        return torch.tensor(quantiles).float(), torch.tensor(radii).float()

    def of(self, p: torch.Tensor) -> torch.Tensor:
        """The radii of probabilities from 1/2 up, differentiable: linear between the nodes.

        The nodes are even in the normal quantile of p, in which Gaussian radii are linear.
        """
        quantiles, radii = (nodes.to(p.device) for nodes in self._nodes)
        # by logits, since the quantile of a float32 near 1 has no gradient left
        q = torch.special.ndtri(p.double().clamp(0.5, special.ndtr(LARGEST))).float()
        right = torch.searchsorted(quantiles, q.detach()).clamp(1, len(quantiles) - 1)
        low, high = quantiles[right - 1], quantiles[right]
        share = (q - low) / (high - low)
        return radii[right - 1] + share * (radii[right] - radii[right - 1])


LARGEST = 4.0  # normal quantile of the largest probability that counts


@dataclass(frozen=True)
class Tuned:
    """The settings of a method: each of them None in `Training` stands for the method's own.

    `samples` noisy copies of each input; `weight` of what the method adds to the cross-entropy;
    `radius` in the norm; `steps` of an attack.
    """

    samples: int = 1
    weight: float = 0.0
    radius: float = 0.0
    steps: int = 0


@dataclass(frozen=True)
class Step:
    """One batch: clean inputs (b, …), labels (b), noise (samples, b, …) and the network.

    `scores` takes inputs as they are before any normalisation; `reach` is None for a method that is
    `noiseless` and needs none. `warm` rises from 0 to 1 over the
    first tenth of the training: what a method adds to the cross-entropy grows with it.
    """

    inputs: torch.Tensor
    labels: torch.Tensor
    noise: torch.Tensor
    scores: Callable[[torch.Tensor], torch.Tensor]
    tuned: Tuned
    reach: Reach | None
    warm: float = 1.0

    @property
    def radii(self) -> Reach:
        """The radii of the noise, for a method that works with them."""
        if self.reach is None:
            raise TrainError("this method needs a noise; only augment trains without one")
        return self.reach

    def log_probabilities(self, moved: torch.Tensor | None = None) -> torch.Tensor:
        """Log-softmax of every noisy copy, (samples, b, classes); of `moved` inputs if given."""
        inputs = self.inputs if moved is None else moved
        copies = (inputs + self.noise).flatten(0, 1)
        logs = functional.log_softmax(self.scores(copies), 1)
        return logs.view(*self.noise.shape[:2], -1)

    def of_label(self, logs: torch.Tensor) -> torch.Tensor:
        """What belongs to the labels, (samples, b)."""
        return logs.gather(2, self.labels.view(1, -1, 1).expand(len(logs), -1, 1))[..., 0]

    def cross_entropy(self, logs: torch.Tensor) -> torch.Tensor:
        """The mean over inputs and copies of −log of the label's probability."""
        return functional.nll_loss(logs.flatten(0, 1), self.labels.repeat(len(logs)))


@dataclass(frozen=True)
class Method:
    """One way to train. `usual` are its settings where the user gives none; a `radius` of p in
    them stands for the radius that the probability p certifies under the noise.
    """

    name: str
    loss: Callable[[Step], torch.Tensor]
    usual: Tuned
    noiseless: bool = False


METHODS: Catalogue[Method] = Catalogue("unicr.methods", "unicr.lab.train.methods", Method)
"""Every method by name."""
