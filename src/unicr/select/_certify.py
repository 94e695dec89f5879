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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from unicr.radius import Grade
from unicr.radius.internal import guarantee_of, weakest
from unicr.select._selector import Selector
from unicr.smoothing import ABSTAIN, Ask, Counts, NormRadius, Plan, Procedure, Radii, add
from unicr.smoothing import lower_bound as clopper_pearson
from unicr.smoothing.measures import MemberVotes, SelectiveCertificate

LOOKS = 4  # a test may stop at 1/27, 1/9 and 1/3 of its votes, each look at its share of α
CAUTION = 0.25  # a share of few votes is taken at this quantile
LITTLE = 0.02  # of the radius wanted: what is not worth waiting for


def median(counts: Counts) -> int:
    """The first choice that, with all before it, has half of the votes or more."""
    return int(np.searchsorted(np.cumsum(counts), counts.sum() / 2))


def share_of(counts: Counts, first: int, last: int) -> int:
    """How many votes are for first … last."""
    return int(counts[first : last + 1].sum())


@dataclass(frozen=True)
class _Test:
    """P(member votes for first … last) from below; the radius that this gives backs the others."""

    member: int
    first: int
    last: int


class _Walk:
    """One input: the questions asked so far, and the tests that back the first classifier up.

    Samples are taken one after the other from the input's stream, each once: whatever is decided
    from earlier ones, the next are fresh, so every test holds at its own α given all before it, and
    the α of all tests add up (union bound).
    """

    def __init__(self, settings: Selector, plan: Plan, radii: Sequence[Radii]) -> None:
        self.plan, self.radii, self.choices = plan, radii, len(settings.choices)
        self.laws = settings.laws
        self.alpha = plan.alpha * settings.share
        self.most = settings.votes or plan.n
        self.talk: list[tuple[int, tuple[int, ...]]] = []
        self.few: dict[int, Counts] = {}
        self._used = 0

    def ask(self, member: int, n: int) -> Procedure[Counts]:
        """n fresh votes of a member under its noise."""
        question = Ask(n, self._used, self.laws[member], measure=MemberVotes(member))
        counts = yield question
        self._used += n
        self.talk.append((member, tuple(int(c) for c in counts)))
        return counts

    def look(self, member: int) -> Procedure[Counts]:
        """n0 votes that nothing is bounded with: they choose what to claim and to test."""
        if member not in self.few:
            self.few[member] = yield from self.ask(member, self.plan.n0)
        return self.few[member]

    def expected(self, test: _Test, tests: int) -> Procedure[float]:
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

    def plan_tests(self, main: int, label: int, wanted: float) -> Procedure[tuple[int, int]]:
        """The choices (first, last) round the main one whose tests promise the largest radius."""
        best, found = -1.0, (main, main)
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
                best, found = value, (first, last)
        return found

    def bound(self, tests: Sequence[_Test], wanted: float) -> Procedure[list[float]]:
        """A lower bound for each test, all of them at self.alpha together.

        Each is taken at LOOKS sample sizes fixed beforehand; the bounds at all looks of all tests
        hold together (union), so it may stop at any look, and the largest counts.
        """
        sizes = [math.ceil(self.most / 3 ** (LOOKS - 1 - i)) for i in range(LOOKS)]
        level = self.alpha / (len(tests) * LOOKS)
        found = [0.0] * len(tests)
        for member in dict.fromkeys(test.member for test in tests):
            mine = [i for i, test in enumerate(tests) if test.member == member]
            counts: Counts = np.zeros(0, dtype=np.int64)
            for before, now in pairwise([0, *sizes]):
                if now > before:
                    counts = add(counts, (yield from self.ask(member, now - before)))
                hits = [share_of(counts, tests[i].first, tests[i].last) for i in mine]
                for i, k in zip(mine, hits, strict=True):
                    found[i] = max(found[i], clopper_pearson(k, now, level))
                have = min(self.radii[member].first(found[i]) for i in mine)
                hope = min(
                    self._reached(tests[i], math.floor(k / now * self.most), self.most, len(tests))
                    for i, k in zip(mine, hits, strict=True)
                )
                if have >= wanted or hope <= have + LITTLE * wanted:
                    break
            wanted = min(wanted, have)
            if wanted <= 0:
                break
        return found


def _intervals(main: int, choices: int) -> Iterator[tuple[int, int]]:
    """All first … last round the main choice, the shortest first."""
    found = [(a, b) for a in range(main + 1) for b in range(main, choices)]
    yield from sorted(found, key=lambda one: one[1] - one[0])


def selective(
    settings: Selector, plan: Plan, radii: Sequence[Radii]
) -> Procedure[SelectiveCertificate]:
    """One certificate of the whole predictor, in all norms of `radii` (selector, then choices).

    With probability ≥ 1 − α over the samples, g(x + δ) is `predict` for every ‖δ‖_p below the
    radius. The first classifier is bounded by the plan's rule at (1 − share)·α; what backs it up by
    `_Walk.bound` at share·α. The selector's votes that choose the classifier bound nothing. On a
    lattice, one for all members, s and every g_k are functions of its points; each bound pays what
    its own sampler errs by.
    """
    walk = _Walk(settings, plan, radii)
    main = median((yield from walk.look(0)))
    member = 1 + main
    first = replace(plan, alpha=plan.alpha * (1 - settings.share))
    selection = yield from walk.look(member)
    counts: Counts = np.zeros(0, dtype=np.int64)
    while more := plan.rule.next(plan.measure.votes(selection, counts), first, radii[member]):
        counts = add(counts, (yield from walk.ask(member, more)))
    alone = plan.measure.conclude(first, radii[member], selection, counts, walk.laws[member])
    found, among = list(alone.radii), (main, main)
    wanted = min((one.radius for one in alone.radii[:1]), default=0.0)
    label = alone.predict
    if not alone.abstained:
        among = yield from walk.plan_tests(main, label, wanted)
        tests = walk.tests(*among, main, label)
        bounds = yield from walk.bound(tests, wanted)
        for test, p in zip(tests, bounds, strict=True):
            p_a, p_b = radii[test.member].charged(p, 1.0 - p)
            backing = radii[test.member].at(p_a, p_b)
            found = [_least(a, b) for a, b in zip(found, backing, strict=True)]
            label = label if p_a > p_b else ABSTAIN
    asked = sum(sum(counts) for _, counts in walk.talk)
    chosen = plan.n0 * len(walk.few)
    charges = [one.charge for one in radii]
    return SelectiveCertificate(
        predict=label,
        p_a=alone.p_a,
        p_b=alone.p_b,
        n0=chosen,
        n=asked - chosen,
        alpha=plan.alpha,
        selection=alone.selection,
        counts=alone.counts,
        radii=tuple(found),
        noise=walk.laws[member].text,
        lattice=alone.lattice,
        moved=alone.moved,
        charge=None if None in charges else max(c for c in charges if c is not None),
        talk=tuple(walk.talk),
        among=among,
    )


def _least(a: NormRadius, b: NormRadius) -> NormRadius:
    """What two radii allow together."""
    proved, searched = min(a.proved, b.proved), min(a.searched, b.searched)
    says = "abstain" if 0.0 in (a.searched, b.searched) else guarantee_of(proved, searched)
    less = min(a, b, key=lambda one: one.radius)
    grades = [Grade(one.grade) for one in (a, b) if one.grade is not None]
    grade = weakest(*grades) if proved > 0 and grades else None
    return NormRadius(a.norm, less.radius, proved, searched, says, grade, less.off)


def recounted(
    certificate: SelectiveCertificate, start: Callable[[], Procedure[SelectiveCertificate]]
) -> SelectiveCertificate | str:
    """The certificate that its own votes give again, or why they do not answer the questions."""
    procedure = start()
    answers = iter(certificate.talk)
    try:
        ask = next(procedure)
        while True:
            member, counts = next(answers, (-1, ()))
            assert isinstance(ask.measure, MemberVotes)
            if member != ask.measure.index or sum(counts) != ask.n:
                return (
                    f"{sum(counts)} votes of member {member} where {ask.n} of member "
                    f"{ask.measure.index} are asked for"
                )
            ask = procedure.send(np.asarray(counts, dtype=np.int64))
    except StopIteration as stop:
        if next(answers, None) is not None:
            return "it holds votes that nobody asked for"
        found: SelectiveCertificate = stop.value
        return found
