"""Certify "the selector, then the classifier that it chooses" at one input.

Let s(x) be the median of h(x + η), g_k the classifier smoothed with noise k, g(x) = g_{s(x)}(x). If
s stays among the choices l … u on the open ball B(x, R_s), and every g_k with l ≤ k ≤ u gives A on
B(x, R_k), then g = A on B(x, min(R_s, R_l, …, R_u)): at any point of it s picks one of those k, and
that one says A. Nothing depends on other inputs. s ≥ l as long as P(h ≥ l) > ½, and s ≤ u as long
as P(h ≤ u) > ½: two binary smoothed classifiers, each with the radius of its own bound. With l = 0
and u = m − 1 nothing is asked of h at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from unicr.binomial import lower_bound as clopper_pearson
from unicr.classifier import Classifier, Selective
from unicr.errors import CertifyError, UnicrError
from unicr.extras import torch
from unicr.noise import Noise
from unicr.noise.internal import check_parses
from unicr.radius import Grade
from unicr.radius.internal import find_weakest, name_guarantee
from unicr.smoothing._certificate import ABSTAIN, Certificate, NormRadius
from unicr.smoothing._closed import ClosedNoise, read_noise
from unicr.smoothing._plan import Plan
from unicr.smoothing._question import BOUND, CHOOSE, SUPPORT, Counts, Measure, Request, Steps, add
from unicr.smoothing.procedures.two_steps import TwoSteps

if TYPE_CHECKING:
    from unicr.smoothing._radii import Curves, Radii

LOOKS = 4  # a test may stop at 1/27, 1/9 and 1/3 of its votes, each look at its share of α
CAUTION = 0.25  # a share of few votes is taken at this quantile
LITTLE = 0.02  # of the radius wanted: what is not worth waiting for
SHARE = 0.1  # of α, for all that backs the first classifier up


def median(counts: Counts) -> int:
    """The first choice that, with all before it, has half of the votes or more."""
    return int(np.searchsorted(np.cumsum(counts), counts.sum() / 2))


def share_of(counts: Counts, first: int, last: int) -> int:
    """How many votes are for first … last."""
    return int(counts[first : last + 1].sum())


@dataclass(frozen=True)
class MemberVotes(Measure):
    """Every noisy copy votes for what member number `index` says; 0 is the selector."""

    name = "member"
    index: int = 0

    def labels(self, model: Classifier, batch: torch.Tensor) -> torch.Tensor:
        """Choices of the selector, classes of the others."""
        return self._members(model)[self.index].predict_unchecked(batch)

    def size(self, model: Classifier, classes: int | None) -> int | None:
        """The number of choices for the selector, of classes for the others."""
        members = self._members(model)
        if self.index == 0:
            return len(members) - 1
        return members[self.index].num_classes if classes is None else classes

    def _members(self, model: Classifier) -> Sequence[Classifier]:
        if not isinstance(model, Selective) or not 0 <= self.index < len(model.members):
            raise CertifyError(
                f"{model.name} has no classifier number {self.index}: it is not the selector of "
                "this run"
            )
        return model.members


@dataclass(frozen=True)
class _Test:
    """P(member votes for first … last) from below; the radius that this gives backs the others."""

    member: int
    first: int
    last: int


class _Tests:
    """One input: the samples taken so far, and the tests that back the first classifier up.

    Samples are taken one after the other from the input's stream, each once: whatever is decided
    from earlier ones, the next are fresh, so every test holds at its own α given all before it, and
    the α of all tests add up (union bound).
    """

    def __init__(self, settings: Selector, plan: Plan, radii: Sequence[Radii]) -> None:
        self.plan, self.radii, self.choices = plan, radii, len(settings.choices)
        self.laws = settings.laws
        self.alpha = plan.alpha * settings.share
        self.most = settings.votes or plan.n
        self.few: dict[int, Counts] = {}
        self.used = 0

    def ask(self, member: int, n: int, purpose: str = SUPPORT) -> Steps[Counts]:
        """n fresh votes of a member under its noise."""
        start, self.used = self.used, self.used + n
        return (yield Request(n, start, self.laws[member], MemberVotes(member), purpose))

    def look(self, member: int) -> Steps[Counts]:
        """n0 votes that nothing is bounded with: they choose what to claim and to test."""
        if member not in self.few:
            self.few[member] = yield from self.ask(member, self.plan.n0, CHOOSE)
        return self.few[member]

    def expected(self, test: _Test, tests: int) -> Steps[float]:
        """The radius, in the first norm, that a test promises by the few votes of its member."""
        few = yield from self.look(test.member)
        share = clopper_pearson(share_of(few, test.first, test.last), self.plan.n0, CAUTION)
        return self._reached(test, math.floor(share * self.most), self.most, tests)

    def _reached(self, test: _Test, k: int, n: int, tests: int) -> float:
        bound = clopper_pearson(k, n, self.alpha / (tests * LOOKS))
        return self.radii[test.member].first(bound)

    def tests(self, first: int, last: int, main: int, label: int) -> list[_Test]:
        """What must hold so that the predictor says `label` wherever s is in first … last."""
        end = self.choices - 1
        sides = [_Test(0, first, end)] if first > 0 else []
        sides += [_Test(0, 0, last)] if last < end else []
        others = [k for k in range(first, last + 1) if k != main]
        return sides + [_Test(1 + k, label, label) for k in others]

    def plan_tests(self, main: int, label: int, wanted: float) -> Steps[tuple[int, int]]:
        """The choices (first, last) round the main one whose tests promise the largest radius."""
        best, best_range = -1.0, (main, main)
        for first, last in _intervals(main, self.choices):
            tests = self.tests(first, last, main, label)
            value = wanted
            for test in tests:
                most = self._reached(test, self.most, self.most, len(tests))
                if min(value, most) <= best + LITTLE * wanted:
                    value = -math.inf
                    break
                value = min(value, (yield from self.expected(test, len(tests))))
            if value > best + LITTLE * wanted:
                best, best_range = value, (first, last)
        return best_range

    def bound(self, tests: Sequence[_Test], wanted: float) -> Steps[list[float]]:
        """A lower bound for each test, all of them at self.alpha together.

        Each is taken at LOOKS sample sizes fixed beforehand; the bounds at all looks of all tests
        hold together (union), so it may stop at any look, and the largest counts.
        """
        sizes = [math.ceil(self.most / 3 ** (LOOKS - 1 - i)) for i in range(LOOKS)]
        level = self.alpha / (len(tests) * LOOKS)
        bounds = [0.0] * len(tests)
        for member in dict.fromkeys(test.member for test in tests):
            mine = [i for i, test in enumerate(tests) if test.member == member]
            counts: Counts = np.zeros(0, dtype=np.int64)
            for before, now in pairwise([0, *sizes]):
                if now > before:
                    counts = add(counts, (yield from self.ask(member, now - before)))
                hits = [share_of(counts, tests[i].first, tests[i].last) for i in mine]
                for i, k in zip(mine, hits, strict=True):
                    bounds[i] = max(bounds[i], clopper_pearson(k, now, level))
                have = min(self.radii[member].first(bounds[i]) for i in mine)
                hope = min(
                    self._reached(tests[i], math.floor(k / now * self.most), self.most, len(tests))
                    for i, k in zip(mine, hits, strict=True)
                )
                if have >= wanted or hope <= have + LITTLE * wanted:
                    break
            wanted = min(wanted, have)
            if wanted <= 0:
                break
        return bounds


def _intervals(main: int, choices: int) -> Iterator[tuple[int, int]]:
    """All first … last round the main choice, the shortest first."""
    ranges = [(a, b) for a in range(main + 1) for b in range(main, choices)]
    yield from sorted(ranges, key=lambda ends: ends[1] - ends[0])


@dataclass(frozen=True, repr=False)
class SelectiveCertificate(Certificate):
    """A certificate of the whole predictor: x goes to the selector, then to the chosen classifier.

    `among` are the choices (first and last) that the selector is certified to stay within: all of
    them have this class in the radius. `n` counts all fresh votes; `p_a`, `p_b`, `selection` and
    `counts` are those of the classifier under `noise`.
    """

    among: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "among", tuple(self.among))


def _least(a: NormRadius, b: NormRadius) -> NormRadius:
    """What two radii allow together."""
    proved, searched = min(a.proved, b.proved), min(a.searched, b.searched)
    says = "abstain" if 0.0 in (a.searched, b.searched) else name_guarantee(proved, searched)
    less = min(a, b, key=lambda bracket: bracket.radius)
    grades = [Grade(bracket.grade) for bracket in (a, b) if bracket.grade is not None]
    grade = str(find_weakest(*grades)) if proved > 0 and grades else None
    return NormRadius(a.norm, less.radius, proved, searched, says, grade)


@dataclass(frozen=True)
class Selector(TwoSteps):
    """Certificates of a predictor with a selector. `noise` is the noise of the selector, and
    `choices` are the noises of the classifiers 0, 1, …, usually in order of size.

    `share` of α is spent on the selector (and on further classifiers if it stays undecided), the
    rest on the chosen classifier. The chosen classifier takes n votes at every input, so a smaller
    α makes its radius smaller. The selector stops when its radius is large enough, and a smaller α
    costs only some more votes, as log(1/α). So the share is small. `votes` is the largest number of
    votes of each such test (n if None).
    """

    name = "selector"
    certificate = SelectiveCertificate
    noise: Noise
    choices: tuple[Noise, ...]
    share: float = SHARE
    votes: int | None = None

    def __post_init__(self) -> None:
        if len(self.choices) < 2:
            raise CertifyError(
                f"a selector needs at least two noises to choose from, not {len(self.choices)}"
            )
        if not 0 < self.share < 1:
            raise CertifyError(f"share={self.share!r} of alpha must lie strictly between 0 and 1")
        if self.votes is not None and self.votes < 1:
            raise CertifyError(f"votes={self.votes} must be at least 1")

    def check_plan(self, plan: Plan) -> None:
        """No union bound: nothing is chosen by the samples that bound."""
        if plan.rule.among_noises:
            raise CertifyError("the rule union is for I-OPT only: leave it out for a selector")

    def check(self, plan: Plan, radii: Radii, model: Classifier | None = None) -> None:
        """The run's noise is the selector's, and the model has a classifier for each choice."""
        self._check_noise(radii.noise)
        if model is None:
            return
        if not isinstance(model, Selective):
            raise CertifyError(f"{model.name} is not a selector: make one with `unicr select`")
        if len(model.members) != 1 + len(self.choices):
            raise CertifyError(
                f"the selector has {len(self.choices)} noises but {len(model.members) - 1} "
                "classifiers"
            )

    def _check_noise(self, noise: Noise) -> None:
        if noise != self.noise:
            raise CertifyError(f"the noise of the selector is {self.noise.text}, not {noise.text}")

    @property
    def laws(self) -> tuple[Noise, ...]:
        """The noise of each member: of the selector, then of each classifier."""
        return (self.noise, *self.choices)

    def open_noises(self, open_noise: Callable[[Noise], Noise]) -> Self:
        """With noises that are code opened by `open_noise`, which may refuse."""
        own, *choices = map(open_noise, self.laws)
        return replace(self, noise=own, choices=tuple(choices))

    def steps(self, plan: Plan, noise: Noise, curves: Curves) -> Steps[Certificate]:
        """One certificate of the whole predictor, in all norms.

        With probability ≥ 1 − α over the samples, g(x + δ) is `predict` for every ‖δ‖_p below the
        radius. The first classifier is bounded by the plan's rule at (1 − share)·α; what backs it
        up by `_Tests.bound` at share·α. The selector's votes that choose the classifier bound
        nothing. On a lattice, one for all members, s and every g_k are functions of its points;
        each bound pays what its own sampler errs by (docs/theory.md#the-selector).
        """
        self._check_noise(noise)
        radii = [curves.of(law) for law in self.laws]
        asked = _Tests(self, plan, radii)
        main = median((yield from asked.look(0)))
        member = 1 + main
        # α is shared: (1 − share) for the classifier that answers, the rest for all that backs it.
        first = replace(plan, alpha=plan.alpha * (1 - self.share))
        selection = yield from asked.look(member)
        counts: Counts = np.zeros(0, dtype=np.int64)
        while more := plan.rule.next(self.tally(selection, counts), first, radii[member]):
            counts = add(counts, (yield from asked.ask(member, more, BOUND)))
        alone = self.conclude(first, radii[member], selection, counts, self.laws[member])
        shown, among = list(alone.radii), (main, main)
        wanted = min((bracket.radius for bracket in alone.radii[:1]), default=0.0)
        label = alone.predict
        if not alone.abstained:
            among = yield from asked.plan_tests(main, label, wanted)
            tests = asked.tests(*among, main, label)
            bounds = yield from asked.bound(tests, wanted)
            for test, p in zip(tests, bounds, strict=True):
                p_a, p_b = radii[test.member].charge_bounds(p, 1.0 - p)
                backing = radii[test.member].at(p_a, p_b)
                shown = [_least(a, b) for a, b in zip(shown, backing, strict=True)]
                label = label if p_a > p_b else ABSTAIN
        chosen = plan.n0 * len(asked.few)
        charges = [member.charge for member in radii]
        return replace(
            cast("SelectiveCertificate", alone),  # what `conclude` made of this plan
            predict=label,
            n0=chosen,
            n=asked.used - chosen,
            alpha=plan.alpha,
            radii=tuple(shown),
            charge=None if None in charges else max(c for c in charges if c is not None),
            among=among,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the settings of a run."""
        return {
            "name": self.name,
            "noise": _write_noise(self.noise),
            "choices": [_write_noise(noise) for noise in self.choices],
            "share": self.share,
            "votes": self.votes,
        }

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> Self:
        """From the settings that `to_dict` wrote; noises that are code stay closed."""
        values = {"name": cls.name, **settings}
        try:
            texts = [values["noise"], *values["choices"]]
            share, votes = values["share"], values["votes"]
            if not all(isinstance(text, str) for text in texts) or not isinstance(share, float):
                raise ValueError("texts of noises and a share are needed")
            if not (votes is None or type(votes) is int) or not math.isfinite(share):
                raise ValueError(f"votes={votes!r}, share={share!r}")
            own, *choices = map(read_noise, texts)
            selector = cls(own, tuple(choices), share, votes)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, UnicrError):
                raise
            raise CertifyError(f"cannot read the selector {values!r}: {error!r}") from None
        if selector.to_dict() != values:
            raise CertifyError(f"the selector {values!r} does not agree with itself")
        return selector


def _write_noise(noise: Noise) -> str:
    return noise.text if isinstance(noise, ClosedNoise) else check_parses(noise)
