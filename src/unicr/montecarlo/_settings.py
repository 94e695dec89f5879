"""What the Monte Carlo engine can be told and what it finds, without the engine, which is heavy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from unicr.errors import RadiusError
from unicr.values import Array

Estimator = Literal["weighted", "quantile"]
Method = Literal["clopper-pearson", "dkw", "hockey-stick", "none"]
ESTIMATORS, METHODS = get_args(Estimator), get_args(Method)
LEAST_VALUES = {"samples": 2, "particles": 1, "iterations": 0, "threads": 1}


@dataclass(frozen=True)
class MonteCarloResult:
    """What the engine found: a radius along one direction, and how sure that is."""

    radius: float
    direction: Array
    radius_with_confidence: float | None
    converged: bool


@dataclass(frozen=True)
class MonteCarlo:
    """The settings of the Monte Carlo engine, the paper's own algorithm.

    Parameters
    ----------
    samples
        Noise samples for the radius, and as many fresh ones for its confidence.
    particles
        The worst direction is searched with a particle swarm: its number of particles.
    iterations
        Largest number of steps of the swarm. It stops earlier when it has converged.
    seed
        Random seed: the same seed gives the same result.
    search_samples
        Samples that the swarm sees (256 to 2,048 if left out, fewer in high dimension). The best
        directions are then measured on other samples.
    inertia
        Inertia of the particles (Clerc and Kennedy's constriction).
    cognitive
        Pull of a particle towards its own best direction.
    social
        Pull of a particle towards the best direction of all.
    tolerance
        Relative accuracy of the radius; ten times coarser while the swarm searches.
    estimator
        How the worst classifier's answers at a moved input are estimated: weighted (samples of the
        shifted noise, weighed by their density ratio) or quantile (the paper's pair of empirical
        distribution functions, which needs about ten times the samples).
    confidence_method
        A second, smaller radius holds in the direction found with confidence 1 - alpha: how it is
        tested. none skips it.
    alpha
        The probability that this second radius is too large.
    device
        Where torch computes: cpu, cuda, …
    threads
        Threads of torch on a CPU. More than 1 rarely helps.
    """

    samples: int = 20_000
    particles: int = 24
    iterations: int = 20
    seed: int = 0
    search_samples: int | None = None
    inertia: float = 0.7298
    cognitive: float = 1.4962
    social: float = 1.4962
    tolerance: float = 1e-4
    estimator: Estimator = "weighted"
    confidence_method: Method = "clopper-pearson"
    alpha: float = 1e-3
    device: str = "cpu"
    threads: int = 1

    def __post_init__(self) -> None:
        for name, least in LEAST_VALUES.items():
            _check_whole(name, getattr(self, name), least)
        if self.search_samples is not None:
            _check_whole("search_samples", self.search_samples, 2)
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise RadiusError(f"seed={self.seed!r} must be a whole number")
        for name in ("inertia", "cognitive", "social"):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and math.isfinite(value) and value >= 0):
                raise RadiusError(f"{name}={value!r} must be a finite number of at least 0")
        if not 0 < self.tolerance < 0.1:
            raise RadiusError(f"tolerance={self.tolerance!r} must lie between 0 and 0.1")
        if not 0 < self.alpha < 1:
            raise RadiusError(f"alpha={self.alpha!r} must lie between 0 and 1, such as 0.001")
        if self.estimator not in ESTIMATORS:
            raise RadiusError(
                f"estimator={self.estimator!r} must be one of {', '.join(ESTIMATORS)}"
            )
        if self.confidence_method not in METHODS:
            raise RadiusError(
                f"confidence_method={self.confidence_method!r} must be one of {', '.join(METHODS)}"
            )


def _check_whole(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise RadiusError(f"{name}={value!r} must be a whole number of at least {least}")
