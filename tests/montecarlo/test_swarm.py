"""The swarm over directions: never worse than its start, repeatable, honest about its end."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from unicr import noise
from unicr.montecarlo import MonteCarlo
from unicr.montecarlo._swarm import Swarm, list_first_directions, swarm, unit_rows, weak_directions
from unicr.norms import Norm
from unicr.values import Array

DIM = 6
WEIGHTS = torch.linspace(1, 3, DIM, dtype=torch.float64)


def quadratic(directions: torch.Tensor, limits: Array | None) -> Array:
    """The boundary radius of a Gaussian with scales 1/w: 1/‖w·δ‖_2, least at the last axis."""
    radii = 1 / (directions * WEIGHTS).norm(dim=1).numpy()
    return radii if limits is None else np.where(radii < limits, radii, math.inf)


def fly(
    cost: Callable[[torch.Tensor, Array | None], Array],
    initial: torch.Tensor,
    *,
    particles: int = 8,
    iterations: int = 30,
    seed: int = 0,
) -> Swarm:
    settings = MonteCarlo(particles=particles, iterations=iterations, seed=seed)
    return swarm(cost, initial, Norm(2.0), settings)


def random_start(seed: int = 0) -> torch.Tensor:
    return torch.randn(12, DIM, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_it_improves_on_random_starts_and_finds_the_minimum() -> None:
    found = fly(quadratic, random_start(), particles=12, iterations=60)
    assert found.radii[0] < quadratic(unit_rows(random_start(), Norm(2.0)), None).min()
    assert found.radii[0] == pytest.approx(1 / 3, rel=0.02)
    assert quadratic(found.directions[:1], None)[0] == pytest.approx(found.radii[0])
    assert found.converged


@pytest.mark.parametrize("seed", range(10))
def test_it_is_never_worse_than_its_best_start(seed: int) -> None:
    initial = random_start(seed)
    best = quadratic(unit_rows(initial, Norm(2.0)), None).min()
    found = fly(quadratic, initial, particles=2, iterations=seed % 3, seed=seed)
    assert found.radii[0] <= best * (1 + 1e-12)


def test_the_seed_decides() -> None:
    one, same = (fly(quadratic, random_start(), seed=5) for _ in range(2))
    other = fly(quadratic, random_start(), seed=6)
    assert torch.equal(one.directions, same.directions)
    assert not torch.equal(one.directions, other.directions)


def test_it_says_when_it_did_not_converge() -> None:
    assert not fly(quadratic, random_start(), iterations=2).converged
    assert not fly(quadratic, random_start(), iterations=0).converged
    flat = fly(lambda rows, limits: np.full(len(rows), 1.0 if limits is None else math.inf),
               random_start())  # fmt: skip
    assert flat.converged


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, math.inf])
def test_rows_have_unit_length(p: float) -> None:
    rows = unit_rows(random_start() * 1e-200, Norm(p))
    for row in rows:
        assert Norm(p)(row.numpy()) == pytest.approx(1, rel=1e-12)
    speck = torch.tensor([[1.0, 1e-12, -2.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    assert unit_rows(speck, Norm(p))[0, 1] == 0
    assert unit_rows(speck, Norm(p))[1].tolist() == [0, 0, 0]


def test_it_starts_from_the_positions_of_the_paper() -> None:
    rows = list_first_directions(noise.laplace(sigma=1), Norm(2.0), 20, count=24, seed=0)
    assert len(rows) >= 24
    patterns = {tuple(row.tolist()) for row in rows}
    for k in (1, 2, 4, 16, 20):
        assert (1.0,) * k + (0.0,) * (20 - k) in patterns
    skewed = noise.from_density(lambda x: -np.exp(-x) - x)
    rows = list_first_directions(skewed, Norm(2.0), 20, count=24, seed=0)
    patterns = {tuple(row.tolist()) for row in rows}
    assert (-1.0,) + (0.0,) * 19 in {tuple(x + 0.0 for x in row) for row in patterns}


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_weak_directions_of_a_correlated_gaussian(p: float) -> None:
    generator = torch.Generator().manual_seed(3)
    basis, _ = torch.linalg.qr(torch.randn(DIM, DIM, generator=generator, dtype=torch.float64))
    values = torch.linspace(0.2, 2, DIM, dtype=torch.float64)
    inverse = basis @ torch.diag(1 / values) @ basis.T
    one = noise.Joint(
        lambda z: -0.5 * ((z @ inverse) * z).sum(1),
        lambda n, g: (
            (torch.randn(n, DIM, generator=g, dtype=torch.float64) * values.sqrt()) @ basis.T
        ),
        dim=DIM,
    )
    rows = unit_rows(torch.stack(weak_directions(one, one.dim, Norm(p))), Norm(p))
    reached = max(float(row @ inverse @ row) for row in rows)
    fan = torch.randn(20_000, DIM, generator=generator, dtype=torch.float64)
    corners = torch.tensor(np.array(np.meshgrid(*[[-1.0, 1.0]] * DIM)).reshape(DIM, -1).T)
    fan = unit_rows(torch.cat([fan, corners, torch.eye(DIM, dtype=torch.float64)]), Norm(p))
    best = max(float(row @ inverse @ row) for row in fan)
    assert reached > 0.98 * best
