"""Which samples and which part of α a selective certificate takes: exact values, no rates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import stats

from unicr import SelectiveClassifier, noise
from unicr.norms import l2, linf
from unicr.select import Selector, selective
from unicr.smoothing import Ask, Counts, Radii, converse
from unicr.smoothing.measures import MemberVotes, SelectiveCertificate

ALPHA, N0, N = 0.1, 60, 900
LOOKS = 4  # each test may stop at four sizes, and pays for all of them
SMALL = noise.gaussian(sigma=0.2)
WIDE = (noise.gaussian(sigma=1), noise.gaussian(sigma=1.5), noise.gaussian(sigma=2))
SETTINGS = Selector(SMALL, WIDE[:2], share=0.25)
Shares = Mapping[int, tuple[float, ...]]


def certify(
    settings: Selector, radii: tuple[Radii, ...], shares: Shares
) -> tuple[SelectiveCertificate, list[tuple[int, Ask]]]:
    """A certificate from votes of these shares for each member, and what was asked."""
    asked: list[tuple[int, Ask]] = []

    def answer(ask: Ask) -> Counts:
        assert isinstance(ask.measure, MemberVotes)
        asked.append((ask.measure.index, ask))
        found = np.floor(np.array(shares[ask.measure.index]) * ask.n).astype(np.int64)
        found[int(np.argmax(found))] += ask.n - found.sum()
        return found

    plan = settings.plan(N0, N, ALPHA)
    return converse(selective(settings, plan, radii), answer), asked


def fresh(asked: list[tuple[int, Ask]], member: int) -> int:
    """Votes of a member after its first n0, which choose only."""
    return sum([ask.n for index, ask in asked if index == member][1:])


DECIDED: Shares = {0: (0.0, 1.0), 1: (0.9, 0.1), 2: (0.02, 0.98)}
UNDECIDED: Shares = {0: (0.45, 0.55), 1: (0.02, 0.98), 2: (0.04, 0.96)}


def test_the_classifier_has_its_part_of_alpha_and_the_selector_the_rest() -> None:
    """Unanimous votes for choice 1: P(h ≥ 1) is bounded once, at share·α over four looks."""
    radii = SETTINGS.radii((l2,), 3, searched=False)
    found, asked = certify(SETTINGS, radii, DECIDED)
    k = found.counts[1]
    part = 0.75 * ALPHA
    assert stats.binom.sf(k - 1, N, found.p_a) == pytest.approx(part, rel=1e-6)
    m = fresh(asked, 0)
    bound = (0.25 * ALPHA / LOOKS) ** (1 / m)
    limit = 0.2 * stats.norm.ppf(bound)
    assert limit < stats.norm.ppf(found.p_a)  # the selector limits
    assert limit * (1 - 5e-4) <= found.radius() <= limit
    assert found.among == (1, 1)
    assert found.alpha == ALPHA


def test_every_test_pays_its_part_where_several_are_needed() -> None:
    """s may be any of the two: no test of h, one of the other classifier, at share·α."""
    wide = Selector(SMALL, (noise.gaussian(sigma=0.3), noise.gaussian(sigma=3)), share=0.25)
    radii = wide.radii((l2,), 3, searched=False)
    found, asked = certify(wide, radii, UNDECIDED)
    assert found.among == (0, 1)
    assert fresh(asked, 0) == 0
    m = fresh(asked, 1)
    looks = [int(np.floor(0.02 * ask.n)) for index, ask in asked if index == 1][1:]
    sizes = [ask.n for index, ask in asked if index == 1][1:]
    best = 0.0
    for votes, size in zip(np.cumsum(np.subtract(sizes, looks)), np.cumsum(sizes), strict=True):
        level = 0.25 * ALPHA / LOOKS
        best = max(best, float(stats.beta.ppf(level, votes, size - votes + 1)))
    limit = 0.3 * stats.norm.ppf(best)
    assert m == sum(sizes)
    assert limit * (1 - 5e-4) <= found.radius() <= limit * (1 + 1e-12)
    assert found.predict == 1


@pytest.mark.parametrize("shares", [DECIDED, UNDECIDED], ids=["decided", "undecided"])
def test_no_sample_of_an_input_is_used_twice(shares: Shares) -> None:
    radii = SETTINGS.radii((l2,), 3, searched=False)
    found, asked = certify(SETTINGS, radii, shares)
    ends = sorted((ask.start, ask.start + ask.n) for _, ask in asked)
    assert all(one[1] <= two[0] for one, two in pairwise(ends)), ends
    assert len(asked) > 3
    assert found.n0 + found.n == sum(ask.n for _, ask in asked)
    assert all(ask.noise == SETTINGS.laws[index] for index, ask in asked)


def test_classifiers_that_disagree_are_not_joined() -> None:
    shares = {**UNDECIDED, 1: (0.98, 0.02)}
    found, _ = certify(SETTINGS, SETTINGS.radii((l2,), 3, searched=False), shares)
    assert found.radius() == 0.0
    assert found.predict == -1


def test_both_sides_of_the_selector_are_tested() -> None:
    """The middle one of three: s ≥ 1 and s ≤ 1 each hold with half of the part."""
    three = Selector(SMALL, WIDE, share=0.25)
    shares: Shares = {0: (0, 1, 0), 1: (1, 0), 2: (0.03, 0.97), 3: (1, 0)}
    found, asked = certify(three, three.radii((l2,), 3, searched=False), shares)
    assert found.among == (1, 1)
    bound = (0.25 * ALPHA / (2 * LOOKS)) ** (1 / fresh(asked, 0))
    limit = 0.2 * stats.norm.ppf(bound)
    assert limit * (1 - 5e-4) <= found.radius() <= limit
    lower: Shares = {**shares, 0: (0, 0.5, 0.5)}
    found, asked = certify(three, three.radii((l2,), 3, searched=False), lower)
    assert found.radius() == 0.0  # class 0 beyond, and s goes there


def test_every_part_pays_for_its_sampler_and_for_an_input_that_was_moved() -> None:
    dim, lattice = 40_000, noise.Lattice.parse("1/64")
    for moved in (False, True):
        plain = SETTINGS.radii((l2, linf), dim, searched=False, lattice=lattice)
        radii = tuple(one.when(moved=moved) for one in plain)
        found, asked = certify(SETTINGS, radii, DECIDED)
        p = (0.25 * ALPHA / LOOKS) ** (1 / fresh(asked, 0))
        p_a, p_b = radii[0].charged(p, 1 - p)
        assert p_a < p - 1e-12
        limits = radii[0].at(p_a, p_b)
        free = radii[0].at(p, 1 - p)
        for one, limit, uncharged in zip(found.radii, limits, free, strict=True):
            assert one.radius <= limit.radius * (1 + 1e-13)
            assert one.radius < uncharged.radius or one.radius == 0
        assert found.moved is moved
        assert found.charge == max(one.charge or 0.0 for one in radii)


def test_an_input_off_the_lattice_is_seen_by_the_whole_predictor() -> None:
    def ones(batch: torch.Tensor) -> torch.Tensor:
        return torch.ones(len(batch), dtype=torch.int64)

    laws = [noise.gaussian(sigma=1), noise.gaussian(sigma=1)]
    found = []
    for x in (torch.full((16,), 0.25), torch.full((16,), 0.26)):
        g = SelectiveClassifier(ones, noise.gaussian(sigma=1), ones, laws, lattice="1/16")
        found.append(g.certify(x, 2, n=500))
    on, off = found
    assert (on.moved, off.moved) == (False, True)
    assert off.radius() == pytest.approx(on.radius() - 4 / 16, rel=1e-9)
    assert on.radii[0].off == pytest.approx(4 / 32, rel=1e-9)


Change = Callable[[SelectiveCertificate], SelectiveCertificate]


def votes(index: int, change: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Change:
    def changed(c: SelectiveCertificate) -> SelectiveCertificate:
        talk = list(c.talk)
        talk[index] = (talk[index][0], change(talk[index][1]))
        return replace(c, talk=tuple(talk))

    return changed


FORGERIES: dict[str, Change] = {
    "one vote more": votes(-1, lambda v: (v[0], v[1] + 1)),
    "one vote less": votes(2, lambda v: (v[0] - 1, *v[1:])),
    "a vote changes sides": votes(2, lambda v: (v[0] - 1, v[1] + 1)),
    "another member": lambda c: replace(c, talk=((1, c.talk[0][1]), *c.talk[1:])),
    "an answer more": lambda c: replace(c, talk=(*c.talk, c.talk[-1])),
    "an answer less": lambda c: replace(c, talk=c.talk[:-1]),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_answers_that_fit_no_question_are_refused(name: str) -> None:
    from unicr.select._certify import recounted

    radii = SETTINGS.radii((l2,), 3, searched=False)
    found, _ = certify(SETTINGS, radii, DECIDED)
    plan = SETTINGS.plan(N0, N, ALPHA)

    def again(c: SelectiveCertificate) -> SelectiveCertificate | str:
        return recounted(c, lambda: selective(SETTINGS, plan, radii))

    assert again(found) == found
    forged = FORGERIES[name](found)
    assert again(forged) != forged


def test_an_answer_more_is_refused() -> None:
    from unicr.select._certify import recounted

    radii = SETTINGS.radii((l2,), 3, searched=False)
    found, _ = certify(SETTINGS, radii, DECIDED)
    plan = SETTINGS.plan(N0, N, ALPHA)
    more = replace(found, talk=(*found.talk, found.talk[-1]))
    assert isinstance(recounted(more, lambda: selective(SETTINGS, plan, radii)), str)


def test_votes_of_another_member_are_refused() -> None:
    """As many votes, by the other classifier."""
    from unicr.select._certify import recounted

    radii = SETTINGS.radii((l2,), 3, searched=False)
    found, _ = certify(SETTINGS, radii, DECIDED)
    plan = SETTINGS.plan(N0, N, ALPHA)
    talk = tuple((1 if member == 2 else member, counts) for member, counts in found.talk)
    assert talk != found.talk
    again = recounted(replace(found, talk=talk), lambda: selective(SETTINGS, plan, radii))
    assert isinstance(again, str)


def test_a_test_that_proves_nothing_is_an_abstention() -> None:
    """The selector says choice 1 at first, and then any: no class is left to promise."""
    radii = SETTINGS.radii((l2,), 3, searched=False)
    plan = SETTINGS.plan(N0, N, ALPHA)

    def answer(ask: Ask) -> Counts:
        assert isinstance(ask.measure, MemberVotes)
        index, first = ask.measure.index, ask.start == 0
        if index == 0:
            return np.array([0, ask.n]) if first else np.array([ask.n - ask.n // 2, ask.n // 2])
        return np.array([ask.n, 0]) if index == 1 else np.array([0, ask.n])

    found = converse(selective(SETTINGS, plan, radii), answer)
    assert (found.predict, found.radius()) == (-1, 0.0)
    assert found.radii[0].guarantee == "abstain"


def test_the_proved_radius_is_that_of_the_weakest_part() -> None:
    radii = SETTINGS.radii((l2, linf), 3, searched=False)
    found, _ = certify(SETTINGS, radii, DECIDED)
    for one in found.radii:
        assert one.radius == one.proved == pytest.approx(one.searched, rel=1e-12)
        assert one.radius > 0


def test_the_choice_is_the_median() -> None:
    """Votes 40 : 25 : 35 have their median at choice 1, where the fewest are."""
    three = Selector(SMALL, WIDE, share=0.25)
    shares: Shares = {0: (0.4, 0.25, 0.35), 1: (0, 1), 2: (0, 1), 3: (0, 1)}
    found, asked = certify(three, three.radii((l2,), 3, searched=False), shares)
    assert found.noise == "gaussian(sigma=1.5)"
    assert found.among[0] <= 1 <= found.among[1]
    assert asked[1][0] == 2
