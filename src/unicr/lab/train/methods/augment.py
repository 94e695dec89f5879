"""Plain augmentation: cross-entropy on noisy inputs (Lecuyer et al. 2019, Cohen et al. 2019)."""

from __future__ import annotations

import torch

from unicr.lab.train._method import Method, Step, Tuned


def loss(step: Step) -> torch.Tensor:
    """Cross-entropy of every noisy copy."""
    return step.cross_entropy(step.log_probabilities())


METHOD = Method("augment", loss, Tuned(samples=1), noiseless=True)
