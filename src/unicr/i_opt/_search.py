"""I-OPT (the paper's Algorithm 3): the best noise for one input, chosen and certified soundly.

The search sees the samples 0 … n0 − 1 of each candidate noise, the same random numbers for all of
them. The certificate comes from the fresh samples n0 … n0 + n − 1 of the noise that was chosen, or
from a union bound over the whole grid. The class is fixed before the first step: a candidate
that votes for another one is never taken.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from typing import Any, Literal

from unicr.errors import CertifyError, UnicrError
from unicr.extras import torch
from unicr.i_opt._grid import Grid, Node
from unicr.noise import Lattice, Noise
from unicr.norms import Norm
from unicr.runs import Manifest
from unicr.smoothing import (
    Ask,
    Certificate,
    Counts,
    Plan,
    Procedure,
    Radii,
    Votes,
    lower_bound,
)
from unicr.smoothing.rules import Fixed, Union

Method = Literal["compass", "hill"]
CAUTION = 0.25  # a candidate's p_A is taken at this quantile: less is won by luck
FIRST_STRIDE = 4
HURDLE = 0.01  # what a compass step must promise to win: many looks find small gains by chance
MOST_NOISES = 100_000


@dataclass(frozen=True)
class IOpt:
    """Settings of a search. `method` "hill" is Algorithm 3; "compass" takes long strides first.

    `union` certifies every noise of the grid at α / size from one set of samples instead of
    the chosen one from fresh samples at α. `keep` fixes the class to the classifier's own f(x).
    """

    grid: Grid
    method: Method = "compass"
    union: bool = False
    keep: bool = False

    def __post_init__(self) -> None:
        if self.method not in ("compass", "hill"):
            raise CertifyError(f"method={self.method!r} must be 'compass' or 'hill'")

    def plan(self, n0: int, n: int, alpha: float) -> Plan:
        """The plan of the certificates."""
        rule = Union(self.grid.size) if self.union else Fixed()
        return Plan(n0=n0, n=n, alpha=alpha, rule=rule)

    @cached_property
    def noises(self) -> frozenset[str]:
        """The texts of all noises that it may choose."""
        if self.grid.size > MOST_NOISES:
            raise CertifyError(f"a grid of {self.grid.size} noises: at most {MOST_NOISES}")
        nodes = product(*self.grid.ranges)
        return frozenset(self.grid.noise(node).text for node in nodes)

    def again(
        self, manifest: Manifest
    ) -> Callable[[torch.Tensor], Procedure[tuple[Certificate, ...]]]:
        """What makes the procedure of each input of a run, to replay it."""
        dim, points = math.prod(manifest.shape), manifest.points
        curves = Curves(manifest.parsed_norms, dim, manifest.searched, points)
        return lambda x: optimised(self, manifest.plan, curves.at(x))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest of a run."""
        return {
            **self.grid.to_dict(),
            "method": self.method,
            "union": self.union,
            "keep_prediction": self.keep,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> IOpt:
        """The inverse of `to_dict`."""
        try:
            found = cls(
                grid=Grid.from_dict(values),
                method=values["method"],
                union=values["union"],
                keep=values["keep_prediction"],
            )
            same = json.loads(json.dumps(found.to_dict())) == json.loads(json.dumps(dict(values)))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            if isinstance(error, UnicrError):
                raise
            raise CertifyError(f"the search {dict(values)!r} cannot be read: {error!r}") from None
        if not same:
            raise CertifyError(f"the search {dict(values)!r} says something else than it is")
        return found


class Curves:
    """The radii of every noise of a grid in some norms, made when first asked for.

    `points` is the lattice of the inputs.
    """

    def __init__(
        self, norms: Sequence[Norm], dim: int, searched: bool = False, points: Lattice | None = None
    ) -> None:
        def made(noise: Noise, norm: Norm) -> Radii:
            return Radii(noise, [norm], dim, searched=searched, lattice=points)

        self.norms, self._points, self._made = tuple(norms), points, cache(made)
        self._moved = False

    def at(self, x: torch.Tensor) -> Curves:
        """Those of one input, which may have to be moved to its lattice."""
        own = copy.copy(self)
        own._moved = self._points is not None and not self._points.holds(x.cpu().numpy())
        return own

    def of(self, noise: Noise, norm: Norm) -> Radii:
        """Radii of one noise in one norm."""
        return self._made(noise, norm).when(moved=self._moved)


def optimised(settings: IOpt, plan: Plan, curves: Curves) -> Procedure[tuple[Certificate, ...]]:
    """One certificate per norm, each under the noise that was found best for this input in it.

    With probability ≥ 1 − α each certificate holds for the classifier smoothed with its own noise.
    Votes are asked for once per noise, whatever the number of norms.
    """
    search = _Search(settings, plan, curves)
    yield from search.begin()
    found = []
    for norm in curves.norms:
        node = yield from search.best(norm)
        noise = settings.grid.noise(node)
        counts = yield from search.fresh(node)
        radii = curves.of(noise, norm)
        found.append(plan.measure.conclude(plan, radii, search.selection[node], counts, noise))
    return tuple(found)


class _Search:
    """The search for one input: its votes by node, its class, and the two ways to climb."""

    def __init__(self, settings: IOpt, plan: Plan, curves: Curves) -> None:
        self._settings, self._plan, self._curves = settings, plan, curves
        self._grid = settings.grid
        self.selection: dict[Node, Counts] = {}
        self._fresh: dict[Node, Counts] = {}
        self._class = -1
        self._start = self._grid.centre

    def _votes(self, node: Node) -> Procedure[Counts]:
        if node not in self.selection:
            self.selection[node] = yield Ask(self._plan.n0, 0, self._grid.noise(node))
        return self.selection[node]

    def fresh(self, node: Node) -> Procedure[Counts]:
        """The votes that certify, which no choice between nodes has seen (or all pay for)."""
        if node not in self._fresh:
            self._fresh[node] = yield Ask(self._plan.n, self._plan.n0, self._grid.noise(node))
        return self._fresh[node]

    def begin(self) -> Procedure[None]:
        """Fix the class, and find a node that votes for it."""
        if not self._settings.keep:
            votes = yield from self._votes(self._start)
            self._class = self._plan.measure.chosen(votes)
            return
        clean = yield Ask(1, 0, clean=True)
        self._class = self._plan.measure.chosen(clean)
        axis = next((i for i, a in enumerate(self._grid.axes) if a.name == "sigma"), None)
        node = list(self._start)
        while tuple(node) in self._grid:
            votes = yield from self._votes(tuple(node))
            if self._plan.measure.chosen(votes) == self._class:
                self._start = tuple(node)
                return
            if axis is None:
                break
            node[axis] -= 1
        raise CertifyError(
            f"no noise in the range keeps the prediction {self._class}: allow a smaller sigma"
        )

    def value(self, node: Node, norm: Norm) -> Procedure[float]:
        """What a node promises: the radius that its certificate is expected to have.

        −∞ outside the grid and where another class has most votes.
        """
        if node not in self._grid:
            return -math.inf
        votes = yield from self._votes(node)
        if self._plan.measure.chosen(votes) != self._class:
            return -math.inf
        if self._settings.union:
            counts = yield from self.fresh(node)
            seen = Votes(_votes_for(self._class, counts), None, int(counts.sum()))
            radii = self._curves.of(self._grid.noise(node), norm)
            p_a, _ = self._plan.rule.conclude(seen, self._plan, radii)
        else:
            p_a = promised(_votes_for(self._class, votes), self._plan)
        return self._curves.of(self._grid.noise(node), norm).first(p_a)

    def best(self, norm: Norm) -> Procedure[Node]:
        """The best node found for one norm."""
        if self._settings.method == "hill":
            return (yield from self._climb(norm, self._start, 1, 0.0))
        node, stride = self._start, FIRST_STRIDE
        while stride >= 1:
            node = yield from self._climb(norm, node, stride, HURDLE)
            stride //= 2
        return node

    def _climb(self, norm: Norm, node: Node, stride: int, hurdle: float) -> Procedure[Node]:
        """Algorithm 3: along each parameter a step up, else a step down; until nothing is won."""
        radius = yield from self.value(node, norm)
        improved = True
        while improved:
            improved = False
            for axis in range(len(node)):
                for step in (stride, -stride):
                    there = (*node[:axis], node[axis] + step, *node[axis + 1 :])
                    value = yield from self.value(there, norm)
                    if value > radius * (1 + hurdle):
                        node, radius, improved = there, value, True
                        break
        return node


def _votes_for(label: int, votes: Counts) -> int:
    return int(votes[label]) if label < len(votes) else 0


def promised(k: int, plan: Plan) -> float:
    """The p_A that n fresh samples are expected to establish, seen from k of n0 selection votes."""
    share = lower_bound(k, plan.n0, CAUTION)
    return lower_bound(math.floor(share * plan.n), plan.n, plan.alpha)
