"""Consistency: noisy copies of one input should get one answer (Jeong and Shin 2020).

Votes that agree are what a large p_A is. So the divergence of every copy's probabilities from
their mean is added to the cross-entropy, and the entropy of the mean, which keeps it decided.
"""

from __future__ import annotations

import torch

from unicr.lab.train._method import Method, Step, Tuned

ENTROPY = 0.5  # weight of the entropy of the mean


def loss(step: Step) -> torch.Tensor:
    """Cross-entropy plus warm × (weight × divergence + 0.5 × entropy)."""
    logs = step.log_probabilities()
    return step.cross_entropy(logs) + step.warm * disagreement(logs, step.tuned.weight)


def disagreement(logs: torch.Tensor, weight: float) -> torch.Tensor:
    """weight × mean KL(mean of the copies ‖ copy) + 0.5 × entropy of the mean."""
    mean = logs.exp().mean(0)
    log_mean = mean.clamp_min(1e-20).log()
    divergence = (mean * (log_mean - logs)).sum(2).mean()
    return weight * divergence - ENTROPY * (mean * log_mean).sum(1).mean()


METHOD = Method("consistency", loss, Tuned(samples=2, weight=5.0))
