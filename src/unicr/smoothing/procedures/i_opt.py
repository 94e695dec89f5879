"""I-OPT (the paper's Algorithm 3): the best noise for one input, chosen and certified soundly.

The search sees the samples 0 … n0 − 1 of each candidate noise, the same random numbers for all of
them. The certificate comes from the fresh samples n0 … n0 + n − 1 of the noise that was chosen, or
from a union bound over the whole grid. The class is fixed before the first step: a candidate
that votes for another one is never taken.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, Self

from unicr.binomial import lower_bound
from unicr.errors import CertifyError, UnicrError
from unicr.noise import Noise
from unicr.smoothing._certificate import Certificate
from unicr.smoothing._plan import THIS_INPUT, Plan, Votes
from unicr.smoothing._question import BOUND, CHOOSE, CleanVote, Counts, Request, Steps, at
from unicr.smoothing.procedures._grid import Grid, Node
from unicr.smoothing.procedures.two_steps import TwoSteps
from unicr.smoothing.rules.fixed import Fixed
from unicr.smoothing.rules.union import Union

if TYPE_CHECKING:
    from unicr.classifier import Classifier
    from unicr.smoothing._radii import Curves, Radii

Method = Literal["compass", "hill"]
CAUTION = 0.25  # a candidate's p_A is taken at this quantile: less is won by luck
FIRST_STRIDE = 4
HURDLE = 0.01  # what a compass step must promise to win: many looks find small gains by chance


@dataclass(frozen=True)
class IOpt(TwoSteps):
    """The search for the best noise of an input, and its certificate, in one norm. `method` "hill"
    is the paper's Algorithm 3; "compass" starts with long steps.

    With `union`, every noise of the grid is certified at α / size from one set of samples; without
    it, the chosen noise is certified at α from fresh samples. With `keep`, the class must be f(x),
    the model's answer without noise.
    """

    name = "i_opt"
    scope = THIS_INPUT
    grid: Grid
    method: Method = "compass"
    union: bool = False
    keep: bool = False

    def __post_init__(self) -> None:
        if self.method not in ("compass", "hill"):
            raise CertifyError(f"method={self.method!r} must be 'compass' or 'hill'")

    def fit(self, plan: Plan) -> Plan:
        """The plan with the rule of the certificates."""
        if plan.rule not in (Fixed(), self._rule):
            raise CertifyError(
                "I-OPT needs a fixed number of samples, so it cannot be used with the rule "
                f"{plan.rule}"
            )
        return replace(plan, rule=self._rule, procedure=self)

    @property
    def _rule(self) -> Fixed | Union:
        return Union(self.grid.size) if self.union else Fixed()

    def check_plan(self, plan: Plan) -> None:
        """The union bound must be over all noises of the grid."""
        if plan.rule != self._rule:
            raise CertifyError(
                f"this search needs the rule {self._rule.text}, not {plan.rule.text}"
            )

    def check(self, plan: Plan, radii: Radii, model: Classifier | None = None) -> None:
        """The run's noise must be the one at which the search starts."""
        self._check_noise(radii.noise)

    def _check_noise(self, noise: Noise) -> None:
        if noise != self.grid.noise(self.grid.centre):
            raise CertifyError(f"this search starts from another noise than {noise.text}")

    def offers(self, noise: str) -> bool:
        """Whether the search may choose the noise of this text."""
        return any(self.grid.noise(node).text == noise for node in product(*self.grid.ranges))

    def steps(self, plan: Plan, noise: Noise, curves: Curves) -> Steps[Certificate]:
        """A certificate under the noise that was found best for this input.

        With probability ≥ 1 − α it holds for the classifier smoothed with that noise
        (docs/theory.md#what-optimisation-may-use).
        """
        if len(curves.norms) != 1:
            raise CertifyError(
                "a search needs exactly one norm, because each norm has its own best noise"
            )
        self._check_noise(noise)
        search = _Search(self, plan, curves)
        yield from search.begin()
        node = yield from search.climb()
        chosen = self.grid.noise(node)
        counts = yield from search.fresh(node)
        selection = search.selection[node]
        return self.conclude(plan, curves.of(chosen), selection, counts, chosen)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the spec of a run."""
        return {
            "name": self.name,
            **self.grid.to_dict(),
            "method": self.method,
            "union": self.union,
            "keep": self.keep,
        }

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> Self:
        """From the settings that `to_dict` wrote."""
        values = {"name": cls.name, **settings}
        try:
            search = cls(
                grid=Grid.from_dict(values),
                method=values["method"],
                union=values["union"],
                keep=values["keep"],
            )
            same = json.loads(json.dumps(search.to_dict())) == json.loads(json.dumps(dict(values)))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            if isinstance(error, UnicrError):
                raise
            raise CertifyError(f"cannot read the search {dict(values)!r}: {error!r}") from None
        if not same:
            raise CertifyError(f"the search {dict(values)!r} does not agree with itself")
        return search


class _Search:
    """The search for one input: its votes by node, its class, and the two ways to climb."""

    def __init__(self, settings: IOpt, plan: Plan, curves: Curves) -> None:
        self._settings, self._plan, self._curves = settings, plan, curves
        self._grid = settings.grid
        self.selection: dict[Node, Counts] = {}
        self._fresh: dict[Node, Counts] = {}
        self._class = -1
        self._start = self._grid.centre

    def _votes(self, node: Node) -> Steps[Counts]:
        """Samples 0 … n0 − 1 under the noise of a node: they choose, and bound nothing."""
        if node not in self.selection:
            noise, counted = self._grid.noise(node), self._settings.counted
            self.selection[node] = yield Request(self._plan.n0, 0, noise, counted, CHOOSE)
        return self.selection[node]

    def fresh(self, node: Node) -> Steps[Counts]:
        """The votes that certify, which no choice between nodes has seen (or all pay for)."""
        if node not in self._fresh:
            noise, counted, plan = self._grid.noise(node), self._settings.counted, self._plan
            self._fresh[node] = yield Request(plan.n, plan.n0, noise, counted, BOUND)
        return self._fresh[node]

    def begin(self) -> Steps[None]:
        """Fix the class, and find a node that votes for it."""
        choose = self._settings.choose
        if not self._settings.keep:
            votes = yield from self._votes(self._start)
            self._class = choose(votes)
            return
        clean = yield Request(1, 0, None, CleanVote(), CHOOSE)
        self._class = choose(clean)
        axis = next((i for i, a in enumerate(self._grid.axes) if a.name == "sigma"), None)
        node = list(self._start)
        while tuple(node) in self._grid:
            votes = yield from self._votes(tuple(node))
            if choose(votes) == self._class:
                self._start = tuple(node)
                return
            if axis is None:
                break
            node[axis] -= 1
        raise CertifyError(
            f"no noise in the range keeps the prediction {self._class}: allow a smaller sigma"
        )

    def _value(self, node: Node) -> Steps[float]:
        """What a node promises: the radius that its certificate is expected to have.

        −∞ outside the grid and where another class has most votes.
        """
        if node not in self._grid:
            return -math.inf
        votes = yield from self._votes(node)
        if self._settings.choose(votes) != self._class:
            return -math.inf
        radii = self._curves.of(self._grid.noise(node))
        if self._settings.union:
            counts = yield from self.fresh(node)
            votes_so_far = Votes(at(counts, self._class), None, int(counts.sum()))
            p_a, _ = self._plan.rule.conclude(votes_so_far, self._plan, radii)
        else:
            p_a = expect_p_a(at(votes, self._class), self._plan)
        return radii.first(p_a)

    def climb(self) -> Steps[Node]:
        """The best node that the method finds."""
        if self._settings.method == "hill":
            return (yield from self._climb(self._start, 1, 0.0))
        node, stride = self._start, FIRST_STRIDE
        while stride >= 1:
            node = yield from self._climb(node, stride, HURDLE)
            stride //= 2
        return node

    def _climb(self, node: Node, stride: int, hurdle: float) -> Steps[Node]:
        """Algorithm 3: along each parameter a step up, else a step down; until nothing is won."""
        radius = yield from self._value(node)
        improved = True
        while improved:
            improved = False
            for axis in range(len(node)):
                for step in (stride, -stride):
                    there = (*node[:axis], node[axis] + step, *node[axis + 1 :])
                    value = yield from self._value(there)
                    if value > radius * (1 + hurdle):
                        node, radius, improved = there, value, True
                        break
        return node


def expect_p_a(k: int, plan: Plan) -> float:
    """The p_A that n fresh samples are expected to establish, seen from k of n0 selection votes."""
    share = lower_bound(k, plan.n0, CAUTION)
    return lower_bound(math.floor(share * plan.n), plan.n, plan.alpha)


def share_answers(
    several: Iterable[Steps[Certificate]],
) -> Steps[tuple[Certificate, ...]]:
    """Several recorded procedures for one input, one after the other; a question is asked once.

    Each certificate has the transcript of its own procedure, as if it had been alone.
    """
    answers: dict[Request, Counts] = {}
    results = []
    for steps in several:
        answer: Counts | None = None
        while True:
            try:
                question = next(steps) if answer is None else steps.send(answer)
            except StopIteration as stop:
                results.append(stop.value)
                break
            if question not in answers:
                answers[question] = yield question
            answer = answers[question]
    return tuple(results)
