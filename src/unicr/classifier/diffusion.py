"""A diffusion model as the denoiser in front of a classifier: one step, at the noise's own time.

The strongest published certificates on ImageNet are made so (Carlini et al. 2023). The classifier
stays as it is; the pair is one base classifier, and every guarantee holds as before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from unicr.errors import ModelError


def linear_schedule(steps: int = 1000, first: float = 1e-4, last: float = 0.02) -> torch.Tensor:
    """The variances β_t of the usual linear schedule."""
    return torch.linspace(first, last, steps, dtype=torch.float64)


class DiffusionDenoiser(nn.Module):
    """x + σε in [0, 1] to the model's estimate of x, also in [0, 1].

    `network(x_t, t)` predicts the noise ε of a diffusion over images in [−1, 1] with variances
    `betas`; where it gives twice the channels (a learned variance), the first half counts. `sigma`
    is that of the smoothing noise. In [−1, 1] it is 2σ; the time t is the one at which the
    diffusion has that share of noise, (1 − ᾱ_t) / ᾱ_t = (2σ)², the next later one of the schedule.

    Give it to `unicr.Denoised(denoiser, classifier)`.
    """

    def __init__(
        self, network: nn.Module, sigma: float, betas: Sequence[float] | torch.Tensor | None = None
    ) -> None:
        super().__init__()
        variances = linear_schedule() if betas is None else torch.as_tensor(betas).double()
        if variances.ndim != 1 or not bool(((variances > 0) & (variances < 1)).all()):
            raise ModelError("betas must be numbers between 0 and 1, one for each step")
        if not 0 < sigma < float("inf"):
            raise ModelError(f"sigma={sigma} must be a finite number above 0")
        kept = torch.cumprod(1 - variances, 0)
        share = (1 - kept) / kept
        self.time = int(torch.searchsorted(share, torch.tensor(4 * sigma**2).double()))
        if self.time == len(share):
            raise ModelError(
                f"sigma={sigma} is too large: the diffusion model adds at most "
                f"{float(share[-1]) ** 0.5 / 2:.4g}"
            )
        self.network = network
        self.sigma = sigma
        self.kept = float(kept[self.time])

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """One step back to an estimate of the clean images."""
        x_t = (2 * batch - 1) * self.kept**0.5
        time = torch.full((len(batch),), self.time, device=batch.device)
        noise = self._predicted(self.network(x_t, time), x_t)
        clean = (x_t - (1 - self.kept) ** 0.5 * noise) / self.kept**0.5
        return (clean.clamp(-1, 1) + 1) / 2

    def _predicted(self, output: Any, x_t: torch.Tensor) -> torch.Tensor:
        found = getattr(output, "sample", output)  # diffusers wraps its tensors
        if not isinstance(found, torch.Tensor) or found.ndim < 2:
            raise ModelError("the diffusion network must return the noise that it predicts")
        if found.shape[1] == 2 * x_t.shape[1]:
            found = found[:, : x_t.shape[1]]
        if found.shape != x_t.shape:
            raise ModelError(
                f"the diffusion network returned shape {tuple(found.shape)} for an input of shape "
                f"{tuple(x_t.shape)}"
            )
        return found
