"""The paper's own engine: Monte Carlo boundary, scalar search, particle swarm, any joint density.

Algorithm 1 estimates K(δ) from samples of the log-ratio, Algorithm 2 finds the λ where K falls to
zero, the swarm moves the direction. Needs log μ and samples, nothing else. It proves nothing: the
result is a `searched` radius, with a confidence along the direction that was found.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from unicr.extras import torch
from unicr.montecarlo._boundary import Boundary
from unicr.montecarlo._confidence import confirm_radius
from unicr.montecarlo._logratio import LogRatios, typical_size
from unicr.montecarlo._settings import MonteCarlo, MonteCarloResult
from unicr.montecarlo._swarm import list_first_directions, swarm, unit_rows
from unicr.noise import Noise
from unicr.norms import Norm
from unicr.progress import tell
from unicr.tradeoff.internal import guess_radius
from unicr.values import Array

SEARCH_WORK = 1 << 20  # samples × coordinates that one swarm evaluation may touch
SEARCH_SAMPLES = (256, 2048)  # least and most that the swarm sees
GAIN = 2e-3  # the least relative gain that the swarm counts as progress …
NOISE = 0.25  # … and its size at one sample: a smaller gain would be fitted to the samples
LARGE = 1 << 28  # samples × coordinates above which fewer finalists are measured


def monte_carlo(
    noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float, settings: MonteCarlo
) -> MonteCarloResult:
    """The smallest ‖λδ‖_p on the robustness boundary that the swarm finds, p_B < p_A.

    Three independent sample sets: the swarm searches on the first; the best directions are measured
    on the second, which also proposes thresholds; `radius_with_confidence` is tested on the third.
    """
    with _torch_threads(settings.threads):
        noise.check_agreement()
    monotone = noise.facts.log_concave or (noise.facts.symmetric and noise.facts.unimodal)

    def sample_set(stream: int, samples: int) -> LogRatios:
        return LogRatios(
            noise, dim, samples, seed=settings.seed, stream=stream, device=settings.device
        )

    def boundary(ratios: LogRatios) -> Boundary:
        return Boundary(ratios, p_a, p_b, estimator=settings.estimator, monotone=monotone)

    with _torch_threads(settings.threads):
        search = sample_set(0, search_samples(settings, dim))
        searcher = boundary(search)
        size = typical_size(search) * guess_radius(p_a, p_b)
        coarse = min(10 * settings.tolerance, 1e-2)

        def cost(directions: torch.Tensor, limits: Array | None) -> Array:
            guess = size / directions.norm(dim=1).cpu().numpy()
            return searcher.radii(directions, guess, tolerance=coarse, limits=limits)

        initial = list_first_directions(
            noise, norm, dim, count=settings.particles, seed=settings.seed
        ).to(settings.device)
        _tell("starting directions", 0.0)
        flown = swarm(
            cost,
            initial,
            norm,
            settings,
            gain=max(GAIN, NOISE / math.sqrt(search.samples)),
            finalists=1 if settings.samples * dim > LARGE else 2,
            report=lambda done: _tell("particle swarm", 0.7 * done),
        )
        measured = sample_set(1, settings.samples)
        radius, direction = _measure(
            boundary(measured),
            unit_rows(flown.directions, norm),
            flown.radii,
            settings,
        )
        confident: float | None = None
        if settings.confidence_method != "none" and math.isfinite(radius):
            _tell("confidence", 0.85)
            confident = confirm_radius(
                measured,
                sample_set(2, settings.samples),
                direction,
                radius,
                p_a,
                p_b,
                method=settings.confidence_method,
                failure=settings.alpha,
                seed=settings.seed,
            )
    _tell("done", 1.0)
    return MonteCarloResult(radius, direction.cpu().numpy(), confident, flown.converged)


def _tell(stage: str, share: float) -> None:
    """Which share of the search is done; the shares of its stages are what they usually take."""
    tell("searching for the worst direction", share, 1.0, stage)


@contextmanager
def _torch_threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _measure(
    boundary: Boundary,
    directions: torch.Tensor,
    radii: Array,
    settings: MonteCarlo,
) -> tuple[float, torch.Tensor]:
    """The smallest radius among the finalists at a sample set that the swarm did not see."""
    best, at = math.inf, 0
    for i in range(len(directions)):
        _tell("measuring the best directions", 0.7 + 0.15 * i / len(directions))
        direction = directions[i : i + 1]
        limit = np.array([best]) if math.isfinite(best) else None
        guess = radii[i : i + 1] if 0 < radii[i] < math.inf else np.ones(1)
        measured = boundary.radii(direction, guess, tolerance=settings.tolerance, limits=limit)
        if measured[0] < best:
            best, at = float(measured[0]), i
    return best, directions[at]


def search_samples(settings: MonteCarlo, dim: int) -> int:
    """How many samples the swarm sees."""
    if settings.search_samples is not None:
        return settings.search_samples
    least, most = SEARCH_SAMPLES
    return min(settings.samples, max(least, min(most, SEARCH_WORK // dim)))
