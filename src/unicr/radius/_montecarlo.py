"""The paper's own engine: Monte Carlo boundary, scalar search, particle swarm, any joint density.

Algorithm 1 estimates K(δ) from samples of the log-ratio, Algorithm 2 finds the λ where K falls to
zero, the swarm moves the direction. Needs log μ and samples, nothing else. It proves nothing: the
result is a `searched` radius, with a confidence along the direction that was found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from unicr.errors import RadiusError
from unicr.noise import Joint, Noise
from unicr.norms import Norm
from unicr.radius._boundary import start_margin
from unicr.radius._confidence import METHODS, Method, confident_radius
from unicr.radius._logratio import LogRatios, typical_size
from unicr.radius._progress import Meter
from unicr.radius._swarm import starting_directions, swarm, unit_rows
from unicr.radius.theorems import start_guess
from unicr.values import Array

if TYPE_CHECKING:
    import torch

Estimator = Literal["weighted", "quantile"]
ESTIMATORS = ("weighted", "quantile")

LEAST = {"samples": 2, "particles": 1, "iterations": 0, "threads": 1}
SEARCH_WORK = 1 << 20  # samples × coordinates that one swarm evaluation may touch
SEARCH_SAMPLES = (256, 2048)
SCAN = 6  # points tried on the way to a known radius where K may not be monotone
OUTWARD = 1.25
FARTHEST = 1e9
GAIN = 2e-3  # the least relative gain that the swarm counts as progress …
NOISE = 0.25  # … and its size at one sample: a smaller gain would be fitted to the samples
LARGE = 1 << 28  # samples × coordinates above which fewer finalists are measured


@dataclass(frozen=True)
class MonteCarlo:
    """The settings of the Monte Carlo engine.

    samples: for the radius; as many fresh ones again for the confidence.
    particles, iterations: of the swarm; it stops early once it has converged.
    seed: everything is reproducible from it.
    search_samples: that the swarm sees (default: 256 to 2,048, fewer in high dimension). The best
        directions it finds are then measured on `samples` others.
    inertia, cognitive, social: of the particles (Clerc and Kennedy's constriction by default).
    tolerance: relative width of the bracket of λ; the swarm uses ten times that.
    estimator: "weighted" estimates the trade-off function from samples of Q weighed by e^(−L),
        "quantile" is the paper's pair of empirical CDFs; the first needs about a tenth of the
        samples, and both handle atoms by randomised tests.
    confidence_method: "clopper-pearson", "dkw" (the paper's), "hockey-stick" or "none".
    failure: total failure probability η of `radius_with_confidence`.
    device: where torch computes. progress: show a bar on a terminal when it takes long.
    threads: of torch on a CPU. Blocks are small enough for one core's cache; on a busy machine more
        threads mostly wait for each other.
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
    failure: float = 1e-3
    device: str = "cpu"
    progress: bool = True
    threads: int = 1

    def __post_init__(self) -> None:
        for name, least in LEAST.items():
            _whole(name, getattr(self, name), least)
        if self.search_samples is not None:
            _whole("search_samples", self.search_samples, 2)
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise RadiusError(f"seed={self.seed!r} must be a whole number")
        for field in fields(self):
            if field.name in ("inertia", "cognitive", "social"):
                value = getattr(self, field.name)
                if not (isinstance(value, int | float) and math.isfinite(value) and value >= 0):
                    raise RadiusError(f"{field.name}={value!r} must be a finite number ≥ 0")
        if not 0 < self.tolerance < 0.1:
            raise RadiusError(f"tolerance={self.tolerance!r} must lie between 0 and 0.1")
        if not 0 < self.failure < 1:
            raise RadiusError(f"failure={self.failure!r} must lie between 0 and 1, such as 0.001")
        if self.estimator not in ESTIMATORS:
            raise RadiusError(f"estimator={self.estimator!r} is not one of {', '.join(ESTIMATORS)}")
        if self.confidence_method not in METHODS:
            raise RadiusError(
                f"confidence_method={self.confidence_method!r} is not one of {', '.join(METHODS)}"
            )


def _whole(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise RadiusError(f"{name}={value!r} must be a whole number of at least {least}")


class Corners(NamedTuple):
    """An estimated trade-off function: Q-mass `power` against P-mass `size`, both ascending."""

    size: Array
    power: Array

    def beta(self, alpha: float) -> float:
        """T(α), linear between corners: a randomised test on an atom."""
        j = int(np.searchsorted(self.size, alpha, side="right")) - 1
        if j == len(self.size) - 1:
            return 1.0 - float(self.power[j])
        run = self.size[j + 1] - self.size[j]
        share = (alpha - self.size[j]) / run
        return 1.0 - float(self.power[j] + share * (self.power[j + 1] - self.power[j]))

    def alpha(self, beta: float) -> float:
        """The smallest α with T(α) ≤ β."""
        j = int(np.searchsorted(self.power, 1.0 - beta, side="left"))
        if j == 0:
            return 0.0
        if j == len(self.power):
            return 1.0
        share = (1.0 - beta - self.power[j - 1]) / (self.power[j] - self.power[j - 1])
        return float(self.size[j - 1] + share * (self.size[j] - self.size[j - 1]))


def weighted_corners(under_q: Array) -> Corners:
    """T from samples of Q alone: a sample with log-ratio L has Q-mass 1/n and P-mass e^(−L)/n.

    dP = e^(−L) dQ where P is absolutely continuous. Beyond a threshold the weights are bounded, so
    small type-I errors are measured by many samples instead of by few.
    """
    n = len(under_q)
    descending = -np.sort(-under_q)
    with np.errstate(over="ignore"):
        size = np.cumsum(np.exp(-descending)) / n
    power = np.arange(n + 1) / n
    return Corners(np.concatenate([[0.0], size]), power)


def quantile_corners(under_p: Array, under_q: Array) -> Corners:
    """T from the two empirical laws of L, as the paper's Algorithm 1 takes its quantiles.

    T(1 − p_A) is F̂_Q(t_A) with t_A the p_A quantile of F̂_P, T(p_B) is F̂_Q(t_B) with t_B the
    1 − p_B quantile (the paper prints p_B); equal values of L are one corner.
    """
    values = np.concatenate([under_p, under_q])
    order = np.argsort(-values, kind="stable")
    from_p = order < len(under_p)
    size = np.cumsum(from_p) / len(under_p)
    power = np.cumsum(~from_p) / len(under_q)
    last = np.append(np.diff(values[order]) != 0, True)
    return Corners(
        np.concatenate([[0.0], size[last]]),
        np.concatenate([[0.0], power[last]]),
    )


def thresholds(under_p: Array, p_a: float, p_b: float) -> tuple[float, float]:
    """Algorithm 1: t_A and t_B, the p_A and 1 − p_B quantiles of L under P."""
    ascending = np.sort(under_p)
    n = len(ascending)
    at = [min(max(math.ceil(p * n), 1), n) - 1 for p in (p_a, 1.0 - p_b)]
    return float(ascending[at[0]]), float(ascending[at[1]])


def margin(corners: Corners, p_a: float, p_b: float) -> float:
    """≥ 0 where the perturbation is certified: K, binary Φ⁻¹(p_A) less Φ⁻¹ of the least p_A."""
    if p_b >= 1.0 - p_a:
        alpha = corners.alpha(0.5)
        return float(special.ndtri(alpha) - special.ndtri(1.0 - p_a)) if alpha > 0 else -math.inf
    return corners.beta(1.0 - p_a) + corners.beta(p_b) - 1.0


class Boundary:
    """K along directions, at one set of samples: Algorithms 1 and 2, many directions at a time."""

    def __init__(
        self, ratios: LogRatios, p_a: float, p_b: float, *, estimator: Estimator, monotone: bool
    ) -> None:
        self.ratios, self.p_a, self.p_b = ratios, p_a, p_b
        self._estimator, self._monotone = estimator, monotone
        self._start = start_margin(p_a, p_b)

    def margins(self, directions: torch.Tensor, lengths: Array) -> Array:
        """`margin` of length·direction, row by row."""
        import torch

        moves = directions * torch.from_numpy(lengths).to(directions.device)[:, None]
        under_q = self.ratios.under_q(moves)
        if self._estimator == "weighted":
            corners = [weighted_corners(row) for row in under_q]
        else:
            under_p = self.ratios.under_p(moves)
            corners = [quantile_corners(*pair) for pair in zip(under_p, under_q, strict=True)]
        return np.array([margin(one, self.p_a, self.p_b) for one in corners])

    def radii(
        self,
        directions: torch.Tensor,
        guess: Array,
        *,
        tolerance: float,
        limits: Array | None = None,
    ) -> Array:
        """Algorithm 2: for each row the λ where K first falls to zero, from the certified side.

        With `limits`, inf for the rows that are certified all the way to their limit. Rows with
        ‖δ‖_p = 1 make λ the radius. Outward steps first where K may not be monotone.
        """
        count = len(directions)
        low, at_low = np.zeros(count), np.full(count, self._start)
        high, at_high = np.full(count, math.inf), np.full(count, math.nan)

        def evaluate(rows: NDArray[np.intp], lengths: Array) -> None:
            if not rows.size:
                return
            values = self.margins(directions[rows.tolist()], lengths)
            good = values >= 0
            low[rows[good]], at_low[rows[good]] = lengths[good], values[good]
            high[rows[~good]], at_high[rows[~good]] = lengths[~good], values[~good]

        if limits is not None:
            for step in [1.0] if self._monotone else np.linspace(0, 1, SCAN + 1)[1:]:
                rows = np.flatnonzero(np.isinf(high) & np.isfinite(limits))
                evaluate(rows, step * limits[rows])
        else:
            length = guess.copy() if self._monotone else guess / 16
            while (rows := np.flatnonzero(np.isinf(high) & (length < FARTHEST * guess))).size:
                before, at_before = low[rows].copy(), at_low[rows].copy()
                evaluate(rows, length[rows])
                factor = np.full(rows.size, OUTWARD)
                if self._monotone:
                    with np.errstate(divide="ignore", invalid="ignore"):
                        slope = (at_before - at_low[rows]) / (length[rows] - before)
                        reach = 1 + 1.05 * at_low[rows] / (slope * length[rows])
                    factor = np.where(slope > 0, np.clip(reach, 1.02, 4.0), 4.0)
                length[rows] *= factor
        for step in range(80):
            rows = np.flatnonzero(np.isfinite(high) & (high - low > tolerance * high))
            if not rows.size:
                break
            width = high[rows] - low[rows]
            with np.errstate(invalid="ignore", divide="ignore"):
                chord = low[rows] + width * at_low[rows] / (at_low[rows] - at_high[rows])
            chord *= 1 + (0.4 if step % 2 else -0.4) * tolerance
            middle = low[rows] + 0.5 * width
            usable = np.isfinite(chord) & (step % 4 != 3)
            edge = np.minimum(0.02 * width, 0.4 * tolerance * high[rows])
            chord = np.clip(chord, low[rows] + edge, high[rows] - edge)
            evaluate(rows, np.where(usable, chord, middle))
        return np.where(np.isfinite(high), low, math.inf)


@dataclass(frozen=True)
class Found:
    """What the engine found: a radius along one direction, and how sure that is."""

    radius: float
    direction: Array
    radius_with_confidence: float | None
    converged: bool


def monte_carlo(
    noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float, settings: MonteCarlo
) -> Found:
    """The smallest ‖λδ‖_p on the robustness boundary that the swarm finds, p_B < p_A.

    Three independent sample sets: the swarm searches on the first; the best directions are measured
    on the second, which also proposes thresholds; `radius_with_confidence` is tested on the third.
    """
    if isinstance(noise, Joint):
        with _torch_threads(settings.threads):
            noise.check_agreement()
    monotone = noise.facts.log_concave or (noise.facts.symmetric and noise.facts.unimodal)

    def sample_set(stream: int, samples: int) -> LogRatios:
        return LogRatios(
            noise, dim, samples, seed=settings.seed, stream=stream, device=settings.device
        )

    def boundary(ratios: LogRatios) -> Boundary:
        return Boundary(ratios, p_a, p_b, estimator=settings.estimator, monotone=monotone)

    with _torch_threads(settings.threads), Meter(enabled=settings.progress) as meter:
        search = sample_set(0, search_samples(settings, dim))
        searcher = boundary(search)
        size = typical_size(search) * start_guess(p_a, p_b)
        coarse = min(10 * settings.tolerance, 1e-2)

        def cost(directions: torch.Tensor, limits: Array | None) -> Array:
            guess = size / directions.norm(dim=1).cpu().numpy()
            return searcher.radii(directions, guess, tolerance=coarse, limits=limits)

        initial = starting_directions(
            noise, norm, dim, count=settings.particles, seed=settings.seed
        ).to(settings.device)
        meter.update("starting directions", 0.0)
        flown = swarm(
            cost,
            initial,
            norm,
            particles=settings.particles,
            iterations=settings.iterations,
            seed=settings.seed,
            inertia=settings.inertia,
            cognitive=settings.cognitive,
            social=settings.social,
            gain=max(GAIN, NOISE / math.sqrt(search.samples)),
            finalists=1 if settings.samples * dim > LARGE else 2,
            report=lambda done: meter.update("particle swarm", 0.7 * done),
        )
        measured = sample_set(1, settings.samples)
        radius, direction = _measure(
            boundary(measured),
            unit_rows(flown.directions, norm),
            flown.radii,
            settings,
            meter.update,
        )
        confident: float | None = None
        if settings.confidence_method != "none" and math.isfinite(radius):
            meter.update("confidence", 0.85)
            confident = confident_radius(
                measured,
                sample_set(2, settings.samples),
                direction,
                radius,
                p_a,
                p_b,
                method=settings.confidence_method,
                failure=settings.failure,
                seed=settings.seed,
            )
    return Found(radius, direction.cpu().numpy(), confident, flown.converged)


@contextmanager
def _torch_threads(count: int) -> Iterator[None]:
    import torch

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
    report: Callable[[str, float], None],
) -> tuple[float, torch.Tensor]:
    """The smallest radius among the finalists at a sample set that the swarm did not see."""
    best, at = math.inf, 0
    for i in range(len(directions)):
        report("measuring the best directions", 0.7 + 0.15 * i / len(directions))
        one = directions[i : i + 1]
        limit = np.array([best]) if math.isfinite(best) else None
        guess = radii[i : i + 1] if 0 < radii[i] < math.inf else np.ones(1)
        found = boundary.radii(one, guess, tolerance=settings.tolerance, limits=limit)
        if found[0] < best:
            best, at = float(found[0]), i
    return best, directions[at]


def search_samples(settings: MonteCarlo, dim: int) -> int:
    """How many samples the swarm sees."""
    if settings.search_samples is not None:
        return settings.search_samples
    least, most = SEARCH_SAMPLES
    return min(settings.samples, max(least, min(most, SEARCH_WORK // dim)))
