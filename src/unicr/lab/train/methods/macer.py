"""MACER: enlarge the radius itself (Zhai et al. 2020), for every noise that has a p_A–R curve.

The mean of sharpened probabilities over the noisy copies stands for p_A. Inputs that it gets right
add weight × (what their radius lacks of `radius`), in units of `radius`; the curve gives the slope.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from unicr.lab.train._method import Method, Step, Tuned

SHARP = 16.0  # factor on the scores, so that probabilities come near to votes


def loss(step: Step) -> torch.Tensor:
    """Cross-entropy of the mean probability, plus the shortfall of the radius where right."""
    logs = step.log_probabilities()
    mean = torch.logsumexp(logs, 0) - torch.tensor(float(len(logs))).log()
    loss = functional.nll_loss(mean, step.labels)
    votes = step.of_label(functional.log_softmax(SHARP * logs, 2)).exp().mean(0)
    lacking = 1 - step.radii.of(votes) / step.tuned.radius
    counted = (votes > 0.5) & (lacking > 0)
    shortfall = torch.where(counted, lacking, torch.zeros_like(lacking)).mean()
    return loss + step.warm * step.tuned.weight * shortfall


METHOD = Method("macer", loss, Tuned(samples=8, weight=6.0, radius=0.9999))
