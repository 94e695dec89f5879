"""Margin: attack each input as far as its own radius reaches, and give up what is lost.

The average radius grows alike wherever the border moves away from an input, be that near or far.
Cross-entropy on noisy copies sees the border only where noise crosses it: seldom for inputs with
large radii, which is most of them. So each input is moved towards the border by `REACH` times the
radius that the mean probability of its label would certify, at most by `radius`, where about half
of its copies cross; inputs that the smoothed classifier has wrong stay, and count less. One
attack strength for all, as in `smoothadv`, pushes hard inputs across the border instead. The copies
that are learnt from have other noise than those the attack was led by: it is the border of the
smoothed classifier that counts, not that around a few samples.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from unicr.lab.train._method import Method, Step, Tuned
from unicr.lab.train.methods.smoothadv import farthest

REACH = 1.5  # probabilities of a network that learns under attack are shy of votes
LOST = 0.6  # how much an input counts whose label has less than half of the probability


def loss(step: Step) -> torch.Tensor:
    """Cross-entropy of noisy copies of the moved inputs, each with its neighbour's noise."""
    moved, lost = attack_batch(step)
    logs = replace(step, noise=step.noise.roll(1, 1)).log_probabilities(moved)
    counts = 1 - step.warm * (1 - LOST) * lost
    return -(step.of_label(logs).mean(0) * counts).mean()


def attack_batch(step: Step) -> tuple[torch.Tensor, torch.Tensor]:
    """The inputs, each moved towards the border by what it can bear; 1 for those that are lost."""
    start = step.inputs.clone().requires_grad_()
    logs = step.of_label(step.log_probabilities(start))
    mean = torch.logsumexp(logs, 0) - math.log(len(logs))
    (gradient,) = torch.autograd.grad(-mean.sum(), start)
    with torch.no_grad():
        p = mean.exp()
        far = step.warm * (REACH * step.radii.of(p)).clamp_max(step.tuned.radius)
        ahead = farthest(gradient, step.radii.norm) * far.view(-1, *[1] * (gradient.dim() - 1))
        return step.inputs + ahead, (p < 0.5).float()


METHOD = Method("margin", loss, Tuned(samples=2, radius=0.9999))
