"""Phase II for any density: a particle swarm over directions in R^d, cost ‖λδ‖_p on the boundary.

It starts from the paper's positions (one-hot for finite p, all-equal for ∞), k-sparse and random
ones, and from directions in which samples say that the noise is weak. A particle that moves is
solved for its radius only where it fails at its own best one, so most moves cost one evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from unicr.extras import torch
from unicr.montecarlo._settings import MonteCarlo
from unicr.noise import Noise
from unicr.norms import Norm
from unicr.values import Array

Cost: TypeAlias = "Callable[[torch.Tensor, Array | None], Array]"

PATIENCE = 5  # iterations without progress after which the swarm has converged
FAR = 1.5  # starting directions beyond this many times the best radius are not solved for
DUST = 1e-9  # coordinates below this share of the largest are zero
ALIKE = 0.9999  # cosine above which two directions are the same
GRADIENT_DIM = 256  # largest dimension in which the score is differenced coordinate by coordinate
COVARIANCE_DIM = 1024  # largest dimension with a covariance matrix: 8 MB
WEAK_SAMPLES = 4096  # for that matrix: four for each of its rows at least
WEAK_STREAM = 0x4D43_00FF  # an input number that no dataset has, so that no samples are shared


@dataclass(frozen=True)
class Swarm:
    """Distinct directions (rows, ‖δ‖_p = 1), best first, with their radii, and how it ended."""

    directions: torch.Tensor
    radii: Array
    converged: bool


def unit_rows(x: torch.Tensor, norm: Norm) -> torch.Tensor:
    """Every row divided by its ℓp norm, specks removed; a zero row stays zero."""
    top = x.abs().amax(1, keepdim=True)
    safe = torch.where(top > 0, top, torch.ones_like(top))
    y = x / safe
    y = torch.where(y.abs() < DUST, torch.zeros_like(y), y)
    if math.isinf(norm.p):
        return y
    length = y.abs().pow(norm.p).sum(1, keepdim=True).pow(1 / norm.p)
    return y / torch.where(length > 0, length, torch.ones_like(length))


def swarm(
    cost: Cost,
    initial: torch.Tensor,
    norm: Norm,
    settings: MonteCarlo,
    *,
    gain: float = 2e-3,
    finalists: int = 3,
    report: Callable[[float], None] = lambda done: None,
) -> Swarm:
    """Minimise `cost` over directions; never worse than the best row of `initial`.

    `cost(rows, limits)` gives the boundary radius of each row, or inf where `limits` is given and
    the row is no better than its limit. All initial rows are tried, the best `settings.particles`
    fly: v ← inertia·v + cognitive·r₁·(own best − x) + social·r₂·(best of all − x), with fresh
    uniform r per coordinate. A move counts where it gains the share `gain`. `converged`: the last 5
    iterations together gained less than that. The result holds the best `finalists` directions, and
    as many of the initial ones, which were not fitted to the samples.
    """
    particles, iterations = settings.particles, settings.iterations
    generator = torch.Generator().manual_seed(settings.seed & (2**63 - 1))
    pool = unit_rows(initial.to(torch.float64), norm)
    pool = pool[pool.abs().sum(1) > 0]
    radii = _first_costs(cost, pool)
    order = np.argsort(radii, kind="stable")
    personal = pool[order[:particles].tolist()].clone()
    own_radius = radii[order[:particles]].copy()
    x = personal.clone()
    velocity = 0.1 * (_uniform(x, generator) - 0.5) * x.abs()
    history = [float(radii[order[0]])]
    converged = False
    for done in range(1, iterations + 1):
        leader = personal[int(np.argmin(own_radius))]
        velocity = (
            settings.inertia * velocity
            + settings.cognitive * _uniform(x, generator) * (personal - x)
            + settings.social * _uniform(x, generator) * (leader - x)
        )
        moved = unit_rows(x + velocity, norm)
        still = moved.abs().sum(1) == 0
        x = torch.where(still[:, None], x, moved)
        limits = (1 - gain) * np.minimum(own_radius, FAR * history[-1])
        costs = np.asarray(cost(x, limits), dtype=np.float64)
        better = costs < own_radius
        personal[torch.from_numpy(better)] = x[torch.from_numpy(better)]
        own_radius = np.where(better, costs, own_radius)
        history.append(float(own_radius.min()))
        report(done / iterations)
        if done >= PATIENCE and history[-1] >= (1 - gain) * history[-1 - PATIENCE]:
            converged = True
            break
    rows = torch.cat([personal, pool])
    values = np.concatenate([own_radius, radii])
    chosen = _distinct(rows, values, finalists, [])
    unfitted = np.concatenate([np.full(len(personal), math.inf), radii])
    chosen = sorted(_distinct(rows, unfitted, finalists, chosen), key=lambda i: float(values[i]))
    return Swarm(rows[chosen], values[chosen], converged)


def _first_costs(cost: Cost, pool: torch.Tensor) -> Array:
    """The radius of every row that is not far worse than the best; inf for the others."""
    radii = np.full(len(pool), math.inf)
    best = math.inf
    for i in range(len(pool)):
        limit = np.array([FAR * best]) if math.isfinite(best) else None
        radii[i] = cost(pool[i : i + 1], limit)[0]
        best = min(best, radii[i])
    return radii


def _uniform(like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.rand(like.shape, generator=generator, dtype=torch.float64).to(like.device)


def _distinct(rows: torch.Tensor, values: Array, count: int, already: list[int]) -> list[int]:
    """`already` and the best `count` other rows of finite value, no two pointing the same way."""
    chosen = list(already)
    for i in np.argsort(values, kind="stable").tolist():
        if len(chosen) == len(already) + count or not (math.isfinite(values[i]) or not chosen):
            break
        unit = rows[i] / rows[i].norm()
        if all(float(unit @ rows[j]) < ALIKE * float(rows[j].norm()) for j in chosen):
            chosen.append(i)
    return chosen


# where to start -----------------------------------------------------------------------------


def list_first_directions(
    noise: Noise, norm: Norm, dim: int, *, count: int, seed: int
) -> torch.Tensor:
    """At least `count` directions: the paper's, k-sparse, with dust, weak ones and random ones."""
    generator = torch.Generator().manual_seed((seed ^ 0x5EED) & (2**63 - 1))
    rows = [_paper(dim, k) for k in sorted({1, 2, 3, dim, *_powers(dim)})]
    if not math.isinf(norm.p) and dim > 4:
        rows += [_dusty(dim, big, share, norm) for big in (1, 2) for share in (0.05, 0.15, 0.4)]
    if noise.scales is not None:
        rows = [*rows, *_on_smallest(noise.scales, norm)]
    elif noise.iid is None:
        rows += [_one_hot(i, dim) for i in torch.randperm(dim, generator=generator)[:32]]
        if noise.radial is None:  # the length alone says which direction is weak
            rows += weak_directions(noise, dim, norm)
    while len(rows) < count - 1 or not len(rows) > 3:
        rows.append(_random(dim, len(rows), generator, sparse=noise.iid is None))
    rows.append(torch.randn(dim, generator=generator, dtype=torch.float64))
    directions = torch.stack(rows)
    if not noise.facts.symmetric:
        directions = torch.cat([directions, -directions])
    return directions


def _powers(dim: int) -> list[int]:
    return [1 << j for j in range(dim.bit_length()) if 1 << j <= dim]


def _paper(dim: int, k: int) -> torch.Tensor:
    row = torch.zeros(dim, dtype=torch.float64)
    row[:k] = 1.0
    return row


def _dusty(dim: int, big: int, share: float, norm: Norm) -> torch.Tensor:
    """`big` large coordinates, all others small, carrying `share` of Σ|δ_i|^p."""
    p = min(norm.p, 8.0)
    row = torch.full((dim,), (share / (dim - big)) ** (1 / p), dtype=torch.float64)
    row[:big] = ((1 - share) / big) ** (1 / p)
    return row


def _one_hot(i: torch.Tensor, dim: int) -> torch.Tensor:
    return torch.nn.functional.one_hot(i, dim).to(torch.float64)


def _random(dim: int, number: int, generator: torch.Generator, *, sparse: bool) -> torch.Tensor:
    """Gaussian, random signs, or random signs on a random few coordinates, in turn."""
    signs = torch.randint(0, 2, (dim,), generator=generator).to(torch.float64) * 2 - 1
    kind = number % 3
    if kind == 0:
        return torch.randn(dim, generator=generator, dtype=torch.float64)
    if kind == 1 or not sparse:
        return signs
    k = 1 + int(torch.randint(0, dim, (1,), generator=generator))
    keep = torch.zeros(dim, dtype=torch.float64)
    keep[torch.randperm(dim, generator=generator)[:k]] = 1.0
    return signs * keep


def _on_smallest(scales: Array, norm: Norm) -> list[torch.Tensor]:
    """Equal moves on the k smallest scales, and the worst direction of a Gaussian."""
    order = torch.from_numpy(np.argsort(scales, kind="stable"))
    rows, smallest = [], int(np.sum(scales <= scales.min() * 1.001))
    for k in (*{1, 2, 3, *_powers(len(scales))}, smallest):
        row = torch.zeros(len(scales), dtype=torch.float64)
        row[order[:k]] = 1.0
        rows.append(row)
    if norm.p > 2:
        power = -2.0 / (norm.p - 2) if math.isfinite(norm.p) else 0.0
        rows.append(torch.from_numpy((scales / scales.min()) ** power))
    rows.append(torch.from_numpy(1 / scales))
    return rows


def weak_directions(noise: Noise, dim: int, norm: Norm) -> list[torch.Tensor]:
    """Directions in which the samples say that small moves are easiest to see.

    Small moves are told apart by δᵀFδ, F the Fisher information E[∇log μ ∇log μᵀ] (differenced for
    d ≤ 256, the inverse covariance of samples up to 1,024, nothing beyond). Its largest
    eigenvectors, and from each the climb to a maximum of δᵀFδ on the ℓp ball.
    """
    if dim > COVARIANCE_DIM:
        return []
    z = noise.sample(WEAK_SAMPLES, input_index=WEAK_STREAM, dtype=torch.float64)
    information = _information(noise, dim, z)
    if information is None:
        return []
    _, vectors = torch.linalg.eigh(information)
    top = [vectors[:, -1 - j] for j in range(min(4, dim))]
    starts = [*top, torch.ones(dim, dtype=torch.float64)]
    strongest = _one_hot(information.diag().argmax(), dim)
    return [*top, strongest, *(_climb(information, start, norm) for start in starts)]


def _information(noise: Noise, dim: int, z: torch.Tensor) -> torch.Tensor | None:
    if dim > GRADIENT_DIM:
        covariance = torch.cov(z.T)
        ridge = 1e-6 * covariance.diag().mean()
        return torch.linalg.inv(covariance + ridge * torch.eye(dim, dtype=torch.float64))
    scores = torch.empty_like(z)
    spread = z.abs().median(0).values.clamp_min(1e-12)
    for i in range(dim):
        step = 1e-4 * float(spread[i])
        ahead, behind = z.clone(), z.clone()
        ahead[:, i] += step
        behind[:, i] -= step
        scores[:, i] = (noise.log_prob(ahead) - noise.log_prob(behind)) / (2 * step)
    scores = scores[torch.isfinite(scores).all(1)]
    if len(scores) < 2 * dim:
        return None
    return torch.as_tensor(scores.T @ scores / len(scores))


def _climb(information: torch.Tensor, start: torch.Tensor, norm: Norm) -> torch.Tensor:
    """A local maximum of the convex δᵀFδ on the unit ball: δ ← the point that maximises gᵀδ."""
    row = start
    for _ in range(50):
        g = information @ row
        if norm.p <= 1:
            row = _one_hot(g.abs().argmax(), len(g))
        elif math.isinf(norm.p):
            row = torch.where(g >= 0, 1.0, -1.0).to(torch.float64)
        else:
            row = g.sign() * (g.abs() / g.abs().max()).pow(1 / (norm.p - 1))
            row = row / row.norm()
    return row
