"""Look-ups against the distance to every single region: nothing is missed, whatever they are."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from unicr.guard import Metric
from unicr.guard._table import Table
from unicr.norms import parse_norm

Rng = np.random.Generator
Points = NDArray[np.float32]


def cloud(rng: Rng, n: int, dim: int) -> tuple[Points, NDArray[np.float64]]:
    return rng.random((n, dim)).astype(np.float32), rng.random(n) * math.sqrt(dim) / 4


def huge(rng: Rng, n: int, dim: int) -> tuple[Points, NDArray[np.float64]]:
    """Some reaches are as wide as everything, or infinite."""
    points, reach = cloud(rng, n, dim)
    reach[rng.random(n) < 0.2] = 1e150
    reach[rng.random(n) < 0.1] = math.inf
    return points, reach


def equal(rng: Rng, n: int, dim: int) -> tuple[Points, NDArray[np.float64]]:
    """Few centres, each many times; reach 0 or a little."""
    few = rng.random((3, dim)).astype(np.float32)
    return few[rng.integers(3, size=n)], np.where(rng.random(n) < 0.5, 0.0, 0.5)


def ties(rng: Rng, n: int, dim: int) -> tuple[Points, NDArray[np.float64]]:
    """Whole numbers: distances to whole queries are equal to reaches again and again."""
    points = np.zeros((n, dim), np.float32)
    points[np.arange(n), rng.integers(dim, size=n)] = rng.integers(-4, 5, size=n)
    return points, rng.integers(0, 5, size=n).astype(float)


def scales(rng: Rng, n: int, dim: int) -> tuple[Points, NDArray[np.float64]]:
    """From 1e-30 to 1e30, where a sum rounds away whatever is small."""
    sizes = 10.0 ** rng.integers(-30, 31, size=n)
    points = (rng.normal(size=(n, dim)) * sizes[:, None]).astype(np.float32)
    return points, np.abs(rng.normal(size=n)) * sizes


def line(rng: Rng, n: int, dim: int) -> tuple[Points, NDArray[np.float64]]:
    """All on one line, close together."""
    at = rng.normal(size=(n, 1))
    return (at * np.linspace(0.5, 1, dim)).astype(np.float32), np.full(n, 0.01)


Kind = Callable[[Rng, int, int], tuple[Points, NDArray[np.float64]]]
KINDS: list[Kind] = [cloud, huge, equal, ties, scales, line]


def queries(rng: Rng, points: Points, reach: NDArray[np.float64], metric: Metric) -> list[Points]:
    """Centres, points near the edge of a region along an axis and in any direction, and others."""
    found = []
    for at in rng.integers(len(points), size=3):
        radius = min(metric.radius(float(reach[at])), 1e30)
        axis, any_way = np.zeros(points.shape[1]), rng.normal(size=points.shape[1])
        axis[rng.integers(len(axis))] = radius
        any_way *= radius / metric.norm(any_way)
        found += [points[at] + step for step in (0 * axis, axis, any_way, 0.999 * any_way)]
    found.append(np.median(points, axis=0))
    return [one.astype(np.float32) for one in found]


@pytest.mark.parametrize("p", ["0.5", "1", "2", "3", "inf"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("dim", [3, 150])
def test_a_look_up_finds_what_every_single_distance_says(kind: Kind, p: str, dim: int) -> None:
    """While the memory grows: the regions whose distance, rounded up, is below their reach, the
    deepest first, and the room that no region of another class has.
    """
    rng = np.random.default_rng([dim, KINDS.index(kind), int(2 * min(float(p), 9))])
    metric = Metric(parse_norm(p))
    points, reach = kind(rng, 150, dim)
    table, held = Table(dim), 0
    for upto in (1, 63, 64, 65, 150):
        for i in range(table.size, upto):
            table.append(points[i], float(reach[i]), i % 3)
        regions = table.snapshot()
        for x in queries(rng, points[:upto], reach[:upto], metric):
            z = x.astype(np.float64)
            away = [metric.above(z, c.astype(np.float64)) for c in points[:upto]]
            inside = [i for i in range(upto) if away[i] == 0 or away[i] < reach[i]]
            inside.sort(key=lambda i: (away[i] - reach[i], i))
            assert regions.list_holding(metric, z) == [(i, away[i]) for i in inside]
            held += len(inside)
            others = [i for i in range(upto) if i % 3 != 1]
            below = [float(metric.below(z, points[i : i + 1])[0]) for i in others]
            free = [
                math.nextafter(d - reach[i], -math.inf) for i, d in zip(others, below, strict=True)
            ]
            for wanted in (0.5, 3.0):
                expected = max(0.0, min([wanted, *free]))
                assert regions.room(metric, z, 1, wanted) == expected
    assert held > 20
