"""SmoothAdv: train on attacks against the smoothed classifier (Salman et al. 2019), in any norm.

The attack raises −log of the mean probability of the label over the noisy copies, inside the ball
of `radius`. It goes by Frank-Wolfe steps towards the ball's farthest points along the gradient, so
that no projection is needed, whatever the norm. A `weight` adds the term of `consistency`.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from unicr.lab.train._method import Method, Step, Tuned
from unicr.lab.train.methods.consistency import disagreement
from unicr.norms import Norm


def loss(step: Step) -> torch.Tensor:
    """Cross-entropy of the noisy copies of attacked inputs, with the same noise as the attack."""
    logs = step.log_probabilities(attack_batch(step, step.warm * step.tuned.radius))
    loss = step.cross_entropy(logs)
    if step.tuned.weight:
        loss = loss + step.warm * disagreement(logs, step.tuned.weight)
    return loss


def attack_batch(step: Step, radius: float) -> torch.Tensor:
    """The inputs moved by at most `radius` in the norm, against their labels."""
    moved = torch.zeros_like(step.inputs)
    for i in range(step.tuned.steps):
        moved.requires_grad_()
        logs = step.of_label(step.log_probabilities(step.inputs + moved))
        rising = -torch.logsumexp(logs, 0).sum()
        (gradient,) = torch.autograd.grad(rising, moved)
        with torch.no_grad():
            moved = moved + (radius * farthest(gradient, step.radii.norm) - moved) / (i + 1)
    return (step.inputs + moved).detach()


def farthest(gradient: torch.Tensor, norm: Norm) -> torch.Tensor:
    """For each input the point of the unit ball that is farthest along its gradient.

    By Hölder's inequality sign(g)|g|^(q−1), scaled, with 1/p + 1/q = 1; the largest coordinate
    alone for p ≤ 1, and all signs for p = ∞.
    """
    flat = gradient.flatten(1)
    size = flat.abs()
    size = size / size.amax(1, keepdim=True).clamp_min(torch.finfo(size.dtype).tiny)
    if norm.p <= 1:
        best = torch.zeros_like(size).scatter_(1, size.argmax(1, keepdim=True), 1.0)
    elif math.isinf(norm.p):
        best = torch.ones_like(size)
    else:
        best = size ** (1 / (norm.p - 1))
        best = best / (best**norm.p).sum(1, keepdim=True).clamp_min(1) ** (1 / norm.p)
    return (flat.sign() * best).view_as(gradient)


METHOD = Method("smoothadv", loss, replace(Tuned(), samples=2, radius=0.84, steps=2))
