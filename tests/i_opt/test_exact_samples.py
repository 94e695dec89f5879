"""Which samples certify after a search, and at which α: exact values, no rates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from unicr.i_opt import Axis, Grid, IOpt
from unicr.noise import Lattice, parse
from unicr.norms import l1, l2
from unicr.smoothing import Certificate, Counts, Curves, Plan, Request, answer_all

ALPHA, N0, N = 0.01, 50, 700
GRID = Grid.around(parse("gaussian(sigma=1)"), "gaussian", (Axis("sigma", 0.5, 2, 2**0.5),))


def certify(
    settings: IOpt, curves: Curves, share: Callable[[Request], float] = lambda ask: 0.9
) -> tuple[Certificate, list[Request]]:
    asked: list[Request] = []

    def answer(ask: Request) -> Counts:
        asked.append(ask)
        k = round(share(ask) * ask.n)
        return np.array([ask.n - k, k])

    plan = settings.fit(Plan(n0=N0, n=N, alpha=ALPHA))
    law = settings.grid.noise(settings.grid.centre)
    return answer_all(settings.steps(plan, law, curves), answer), asked


@pytest.mark.parametrize("union", [False, True])
def test_the_search_sees_the_first_samples_and_fresh_ones_certify(union: bool) -> None:
    found, asked = certify(IOpt(GRID, union=union), Curves((l2,), 3))
    candidates = [ask for ask in asked if ask.start == 0]
    fresh = [ask for ask in asked if ask.start != 0]
    assert {ask.n for ask in candidates} == {N0}
    assert {(ask.start, ask.n) for ask in fresh} == {(N0, N)}
    assert len({ask.noise for ask in candidates}) == len(candidates) > 1
    assert len(fresh) == (len(candidates) if union else 1)
    assert found.noise == "gaussian(sigma=2)"  # the same votes are worth most there
    assert fresh[-1].noise is not None
    part = ALPHA / GRID.size if union else ALPHA
    k = found.counts[1]
    assert sum(found.counts) == found.n == N
    assert stats.binom.sf(k - 1, N, found.p_a) == pytest.approx(part, rel=1e-6)
    radius = 2 * stats.norm.ppf(found.p_a)
    assert radius * (1 - 5e-4) <= found.radius() <= radius


def test_a_union_is_over_all_noises_of_the_grid() -> None:
    axes = (Axis("sigma", 0.5, 2, 2**0.5), Axis("beta", 1, 2, 0.5))
    grid = Grid.around(parse("gaussian(sigma=1)"), "gennorm", axes)
    assert grid.size == 15
    found, _ = certify(IOpt(grid, union=True), Curves((l1,), 3))
    part = ALPHA / 15
    assert stats.binom.sf(found.counts[1] - 1, N, found.p_a) == pytest.approx(part, rel=1e-6)


def test_votes_of_another_class_are_never_taken() -> None:
    """From sigma = 1.4 on the other class has most votes, and would have a larger radius."""

    def share(ask: Request) -> float:
        assert ask.noise is not None
        return 0.6 if ask.noise.sigma < 1.2 else 0.01

    found, _ = certify(IOpt(GRID), Curves((l2,), 3), share)
    assert found.predict == 1
    assert found.noise is not None
    assert parse(found.noise).sigma < 1.2


def test_every_input_pays_for_the_grid_and_for_the_sampler() -> None:
    step, dim = Lattice.parse("1/32"), 100
    for norm, p in ((l1, 1), (l2, 2)):
        coarse = Curves((norm,), dim, lattice=step)
        paid, free = (certify(IOpt(GRID), c)[0] for c in (coarse, Curves((norm,), dim)))
        assert paid.lattice == step.text
        assert paid.charge == coarse.of(parse(str(paid.noise))).charge
        assert paid.charge is not None
        assert paid.charge > 0
        if paid.noise == free.noise:
            left = free.radius() - dim ** (1 / p) / 32
            assert left - 0.02 * dim ** (1 / p) / 32 - 1e-6 <= paid.radius() <= left
        assert norm != l2 or paid.noise == free.noise
