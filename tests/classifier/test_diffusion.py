"""One denoising step against the posterior mean, and a small denoiser that is trained here."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unicr import Denoised, SmoothedClassifier, noise
from unicr.classifier import DiffusionDenoiser, load_classifier
from unicr.classifier.diffusion import linear_schedule
from unicr.data import load_dataset
from unicr.errors import ModelError

KEPT = torch.cumprod(1 - linear_schedule(), 0)


class Ideal(nn.Module):
    """E[ε | x_t] where images in [−1, 1] are normal with mean m and deviation s: a closed form."""

    def __init__(self, mean: float, deviation: float) -> None:
        super().__init__()
        self.mean, self.deviation = mean, deviation

    def forward(self, x_t: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        kept = KEPT[time].float().view(-1, *[1] * (x_t.ndim - 1))
        spread = kept * self.deviation**2 + 1 - kept
        return (1 - kept).sqrt() * (x_t - kept.sqrt() * self.mean) / spread


@pytest.mark.parametrize("sigma", [0.05, 0.25, 1.0])
def test_the_step_is_the_posterior_mean(sigma: float) -> None:
    """y = x + 2σε in [−1, 1] with x ~ N(m, s²): E[x | y] = (s²y + 4σ²m) / (s² + 4σ²)."""
    mean, deviation = 0.1, 0.2
    step = DiffusionDenoiser(Ideal(mean, deviation), sigma)
    torch.manual_seed(0)
    noisy = torch.rand(20, 1, 4, 4) * 0.4 + 0.3
    variance = (1 - step.kept) / step.kept  # the schedule's own, at least (2σ)² and close to it
    assert 4 * sigma**2 <= variance < 4.4 * sigma**2 + 2e-3
    y = 2 * noisy - 1
    wanted = (deviation**2 * y + variance * mean) / (deviation**2 + variance)
    assert torch.allclose(step(noisy), (wanted + 1) / 2, atol=1e-5)


def test_learned_variances_and_wrapped_outputs() -> None:
    class Twice(Ideal):
        def forward(self, x_t: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
            return torch.cat([super().forward(x_t, time), torch.full_like(x_t, 9.0)], 1)

    batch = torch.rand(3, 2, 4, 4)
    plain, twice = (DiffusionDenoiser(kind(0.0, 0.5), 0.25) for kind in (Ideal, Twice))
    assert torch.equal(plain(batch), twice(batch))


def test_what_cannot_be_is_told() -> None:
    with pytest.raises(ModelError, match="is too large"):
        DiffusionDenoiser(Ideal(0, 1), 1e4)
    with pytest.raises(ModelError, match="sigma=0"):
        DiffusionDenoiser(Ideal(0, 1), 0)
    with pytest.raises(ModelError, match="betas"):
        DiffusionDenoiser(Ideal(0, 1), 0.5, [0.1, 1.5])
    with pytest.raises(ModelError, match=r"returned shape \(2, 5\)"):
        DiffusionDenoiser(nn.Identity(), 0.5)._predicted(torch.zeros(2, 5), torch.zeros(2, 3))


class Small(nn.Module):
    """A network that predicts noise on digits, told the time by one channel."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(2, 16, 5, padding=2), nn.ReLU(),
            nn.Conv2d(16, 16, 5, padding=2), nn.ReLU(),
            nn.Conv2d(16, 1, 5, padding=2),
        )  # fmt: skip

    def forward(self, x_t: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        told = (time.view(-1, 1, 1, 1) / 1000).float().expand_as(x_t)
        return self.layers(torch.cat([x_t, told], 1))


@pytest.mark.slow
def test_a_denoiser_that_was_trained_helps_a_classifier_that_knows_no_noise() -> None:
    """On digits that neither has seen: σ = 0.5 in front of the model for σ = 0.25."""
    torch.manual_seed(0)
    digits = load_dataset("builtin:mnist")
    images = torch.stack([digits[i][0] for i in range(800)]) * 2 - 1
    network = Small()
    optimiser = torch.optim.Adam(network.parameters(), 2e-3)
    for _ in range(400):
        batch = images[torch.randint(len(images), (64,))]
        time = torch.randint(100, 600, (64,))
        kept = KEPT[time].float().view(-1, 1, 1, 1)
        epsilon = torch.randn_like(batch)
        guess = network(kept.sqrt() * batch + (1 - kept).sqrt() * epsilon, time)
        loss = (guess - epsilon).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    base = load_classifier("builtin:mnist-mlp-0.25")
    law = noise.gaussian(sigma=0.7)
    before = SmoothedClassifier(base, law, seed=0)
    after = SmoothedClassifier(Denoised(DiffusionDenoiser(network, 0.7), base), law, seed=0)
    radii = [
        sum(
            found.radius()
            for i, (x, label) in ((i, digits[i]) for i in range(900, 930))
            if (found := g.certify(x, n0=50, n=400, input_index=i)).predict == label
        )
        for g in (before, after)
    ]
    assert radii[1] > 1.1 * radii[0]
