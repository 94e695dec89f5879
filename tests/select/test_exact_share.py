"""Which samples and which part of α a selective certificate takes: exact values, no rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import stats

from unicr import SelectiveClassifier, noise
from unicr.errors import CertifyError
from unicr.norms import l2, linf
from unicr.select import Selector
from unicr.smoothing import Counts, Curves, Plan, Request, Transcript, answer_all, recompute
from unicr.smoothing.procedures import MemberVotes, SelectiveCertificate

ALPHA, N0, N = 0.1, 60, 900
LOOKS = 4  # each test may stop at four sizes, and pays for all of them
SMALL = noise.gaussian(sigma=0.2)
WIDE = (noise.gaussian(sigma=1), noise.gaussian(sigma=1.5), noise.gaussian(sigma=2))
SETTINGS = Selector(SMALL, WIDE[:2], share=0.25)
Shares = Mapping[int, tuple[float, ...]]


CURVES = Curves((l2,), 3)


def certify(
    settings: Selector, curves: Curves, shares: Shares
) -> tuple[SelectiveCertificate, list[tuple[int, Request]]]:
    """A certificate from votes of these shares for each member, and what was asked."""
    asked: list[tuple[int, Request]] = []

    def answer(ask: Request) -> Counts:
        assert isinstance(ask.counted, MemberVotes)
        asked.append((ask.counted.index, ask))
        found = np.floor(np.array(shares[ask.counted.index]) * ask.n).astype(np.int64)
        found[int(np.argmax(found))] += ask.n - found.sum()
        return found

    plan = settings.fit(Plan(n0=N0, n=N, alpha=ALPHA))
    found = answer_all(settings.steps(plan, settings.noise, curves), answer)
    assert isinstance(found, SelectiveCertificate)
    return found, asked


def fresh(asked: list[tuple[int, Request]], member: int) -> int:
    """Votes of a member after its first n0, which choose only."""
    return sum([ask.n for index, ask in asked if index == member][1:])


DECIDED: Shares = {0: (0.0, 1.0), 1: (0.9, 0.1), 2: (0.02, 0.98)}
UNDECIDED: Shares = {0: (0.45, 0.55), 1: (0.02, 0.98), 2: (0.04, 0.96)}


def test_the_classifier_has_its_part_of_alpha_and_the_selector_the_rest() -> None:
    """Unanimous votes for choice 1: P(h ≥ 1) is bounded once, at share·α over four looks."""
    found, asked = certify(SETTINGS, CURVES, DECIDED)
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
    found, asked = certify(wide, CURVES, UNDECIDED)
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
    found, asked = certify(SETTINGS, CURVES, shares)
    ends = sorted((ask.start, ask.start + ask.n) for _, ask in asked)
    assert all(one[1] <= two[0] for one, two in pairwise(ends)), ends
    assert len(asked) > 3
    assert found.n0 + found.n == sum(ask.n for _, ask in asked)
    assert all(ask.noise == SETTINGS.laws[index] for index, ask in asked)


def test_classifiers_that_disagree_are_not_joined() -> None:
    shares = {**UNDECIDED, 1: (0.98, 0.02)}
    found, _ = certify(SETTINGS, CURVES, shares)
    assert found.radius() == 0.0
    assert found.predict == -1


def test_both_sides_of_the_selector_are_tested() -> None:
    """The middle one of three: s ≥ 1 and s ≤ 1 each hold with half of the part."""
    three = Selector(SMALL, WIDE, share=0.25)
    shares: Shares = {0: (0, 1, 0), 1: (1, 0), 2: (0.03, 0.97), 3: (1, 0)}
    found, asked = certify(three, CURVES, shares)
    assert found.among == (1, 1)
    bound = (0.25 * ALPHA / (2 * LOOKS)) ** (1 / fresh(asked, 0))
    limit = 0.2 * stats.norm.ppf(bound)
    assert limit * (1 - 5e-4) <= found.radius() <= limit
    lower: Shares = {**shares, 0: (0, 0.5, 0.5)}
    found, asked = certify(three, CURVES, lower)
    assert found.radius() == 0.0  # class 0 beyond, and s goes there


def test_every_part_pays_for_its_sampler_and_for_the_grid() -> None:
    dim = 40_000
    for text in ("1/64", "1/4096"):
        curves = Curves((l2, linf), dim, lattice=noise.Lattice.parse(text))
        radii = [curves.of(law) for law in SETTINGS.laws]
        found, asked = certify(SETTINGS, curves, DECIDED)
        p = (0.25 * ALPHA / LOOKS) ** (1 / fresh(asked, 0))
        p_a, p_b = radii[0].charge_bounds(p, 1 - p)
        assert p_a < p - 1e-12
        limits = radii[0].at(p_a, p_b)
        free = radii[0].at(p, 1 - p)
        for one, limit, uncharged in zip(found.radii, limits, free, strict=True):
            assert one.radius <= limit.radius * (1 + 1e-13)
            assert one.radius < uncharged.radius or one.radius == 0
        assert not found.between_points
        assert found.charge == max(one.charge or 0.0 for one in radii)


def test_the_whole_predictor_pays_for_the_grid_once() -> None:
    def ones(batch: torch.Tensor) -> torch.Tensor:
        return torch.ones(len(batch), dtype=torch.int64)

    laws = [noise.gaussian(sigma=1), noise.gaussian(sigma=1)]
    parts = (ones, noise.gaussian(sigma=1), ones, laws)
    coarse, fine = (
        SelectiveClassifier(*parts, lattice=text).certify(torch.full((16,), 0.25), 2, n=500)
        for text in ("1/16", "2^-24")
    )
    assert coarse.radius() == pytest.approx(fine.radius() - 4 / 16, abs=0.02 * 4 / 16)


def test_answers_that_fit_no_question_are_refused() -> None:
    """Votes of another member, samples under another noise, a vote more, an answer more or less."""
    found, _ = certify(SETTINGS, CURVES, DECIDED)
    plan = SETTINGS.fit(Plan(n0=N0, n=N, alpha=ALPHA))

    def again(transcript: Transcript) -> object:
        return recompute(SETTINGS.steps(plan, SETTINGS.noise, CURVES), transcript)

    parts = found.transcript.exchanges
    assert again(found.transcript) == found
    for i, one in enumerate(parts):
        other = "member(index=1)" if "2" in one.counted else "member(index=2)"
        for changed in (
            (replace(one, counted=other),),
            (replace(one, noise="gaussian(sigma=9)"),),
            (replace(one, start=one.start + 1),),
            (replace(one, counts=(one.counts[0], one.counts[1] + 1)),),
            (replace(one, counts=(one.counts[0], one.counts[1] + 1), n=one.n + 1),),
            (one, one),
            (),
        ):
            with pytest.raises(CertifyError):
                again(Transcript((*parts[:i], *changed, *parts[i + 1 :])))
    with pytest.raises(CertifyError, match="was not asked for"):
        again(Transcript((*parts, parts[-1])))


def test_a_test_that_proves_nothing_is_an_abstention() -> None:
    """The selector says choice 1 at first, and then any: no class is left to promise."""
    plan = SETTINGS.fit(Plan(n0=N0, n=N, alpha=ALPHA))

    def answer(ask: Request) -> Counts:
        assert isinstance(ask.counted, MemberVotes)
        index, first = ask.counted.index, ask.start == 0
        if index == 0:
            return np.array([0, ask.n]) if first else np.array([ask.n - ask.n // 2, ask.n // 2])
        return np.array([ask.n, 0]) if index == 1 else np.array([0, ask.n])

    found = answer_all(SETTINGS.steps(plan, SETTINGS.noise, CURVES), answer)
    assert (found.predict, found.radius()) == (-1, 0.0)
    assert found.radii[0].guarantee == "abstain"


def test_the_proved_radius_is_that_of_the_weakest_part() -> None:
    found, _ = certify(SETTINGS, Curves((l2, linf), 3), DECIDED)
    for one in found.radii:
        assert one.radius == one.proved == pytest.approx(one.searched, rel=1e-12)
        assert one.radius > 0


def test_the_choice_is_the_median() -> None:
    """Votes 40 : 25 : 35 have their median at choice 1, where the fewest are."""
    three = Selector(SMALL, WIDE, share=0.25)
    shares: Shares = {0: (0.4, 0.25, 0.35), 1: (0, 1), 2: (0, 1), 3: (0, 1)}
    found, asked = certify(three, CURVES, shares)
    assert found.noise == "gaussian(sigma=1.5)"
    assert found.among[0] <= 1 <= found.among[1]
    assert asked[1][0] == 2
