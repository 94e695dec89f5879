"""Who pays which part of α, with which samples: exact values from binomial tails, not rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import mpmath
import numpy as np
import pytest
import torch
from scipy import optimize, stats

from unicr import SmoothedClassifier, noise
from unicr.errors import CertifyError
from unicr.noise import Noise
from unicr.noise.internal import LatticeNoise
from unicr.norms import Norm, l2
from unicr.smoothing import (
    Certificate,
    Counts,
    Curves,
    Exchange,
    Plan,
    Radii,
    Request,
    Rule,
    Transcript,
    VoteCounter,
    Votes,
    answer_all,
    clear_winner,
    log_wealth,
    lower_bound,
    recompute,
    upper_bound,
)
from unicr.smoothing.procedures import TwoLawCertificate, TwoLawVotes
from unicr.smoothing.rules import Every, Fixed, Pilot, Randomised, Target, ThreeTests, Union

LAW = noise.gaussian(sigma=1)
CURVES = Curves([l2], 3)
GAUSSIAN = CURVES.of(LAW)
ALPHA = 0.01


def least_p(k: int, n: int, alpha: float) -> float:
    """The p at which k or more of n successes have probability α: found without beta functions."""
    return float(optimize.brentq(lambda p: stats.binom.sf(k - 1, n, p) - alpha, 0, 1, xtol=1e-15))


def most_p(k: int, n: int, alpha: float) -> float:
    """The p at which k or fewer of n successes have probability α."""
    return float(optimize.brentq(lambda p: stats.binom.cdf(k, n, p) - alpha, 0, 1, xtol=1e-15))


@pytest.mark.parametrize(("k", "n", "alpha"), [(1, 7, 0.05), (93, 100, 0.001), (700, 999, 0.3)])
def test_the_bounds_are_where_the_binomial_tail_is_alpha(k: int, n: int, alpha: float) -> None:
    assert lower_bound(k, n, alpha) == pytest.approx(least_p(k, n, alpha), rel=1e-9)
    assert upper_bound(k, n, alpha) == pytest.approx(most_p(k, n, alpha), rel=1e-9)
    assert lower_bound(n, n, alpha) == pytest.approx(alpha ** (1 / n), rel=1e-12)
    assert upper_bound(0, n, alpha) == pytest.approx(1 - alpha ** (1 / n), rel=1e-12)
    assert (lower_bound(0, n, alpha), upper_bound(n, n, alpha)) == (0.0, 1.0)


def concluded(rule: Rule, votes: Votes, plan: Plan) -> tuple[float, float]:
    return rule.conclude(votes, replace(plan, rule=rule), GAUSSIAN)


@pytest.mark.parametrize(
    ("rule", "share"), [(Fixed(), 1.0), (Union(5), 1 / 5)], ids=["fixed", "union"]
)
def test_one_bound_has_all_of_alpha_and_one_of_several_its_part(rule: Rule, share: float) -> None:
    plan = Plan(n0=10, n=400, alpha=ALPHA)
    p_a, p_b = concluded(rule, Votes(371, 20, 400, (9, 1)), plan)
    assert p_a == pytest.approx(least_p(371, 400, ALPHA * share), rel=1e-9)
    assert p_b == 1 - p_a
    assert rule.best(plan) == pytest.approx(least_p(400, 400, ALPHA * share), rel=1e-9)


def test_three_bounds_have_a_third_of_alpha_each_and_hold_every_other_class() -> None:
    plan = Plan(n0=10, n=400, alpha=ALPHA)
    for second, rest in ((60, 20), (20, 60)):
        votes = Votes(400 - second - rest, second, 400, (6, 4))
        p_a, p_b = concluded(ThreeTests(), votes, plan)
        assert p_a == pytest.approx(least_p(320, 400, ALPHA / 3), rel=1e-9)
        assert p_b == pytest.approx(most_p(60, 400, ALPHA / 3), rel=1e-9)
    p_a, p_b = concluded(ThreeTests(), Votes(320, None, 400, (10,)), plan)
    assert p_a == pytest.approx(least_p(320, 400, ALPHA), rel=1e-9)
    assert p_b == 1 - p_a


def test_pilot_bounds_just_the_number_of_votes_that_it_asked_for() -> None:
    rule, plan = Pilot(share=0.05), Plan(n0=50, n=4000, alpha=ALPHA)
    votes = Votes(0, 0, 0, (48, 2))
    n = rule.next(votes, plan, GAUSSIAN)
    assert 0 < n < plan.n
    p_a, _ = concluded(rule, Votes(n - 9, 9, n, (48, 2)), plan)
    assert p_a == pytest.approx(least_p(n - 9, n, ALPHA), rel=1e-9)
    for other in (n - 1, n + 1, plan.n):
        assert concluded(rule, Votes(other - 9, 9, other, (48, 2)), plan) == (0.0, 1.0)
    # the fresh votes say nothing about the size
    assert rule.next(Votes(0, 0, 1, (48, 2)), plan, GAUSSIAN) == n - 1
    assert rule.next(Votes(1, 0, 1, (48, 2)), plan, GAUSSIAN) == n - 1


def test_the_draw_of_the_randomised_bound_knows_nothing_of_the_fresh_votes() -> None:
    """P(X > k) + u·P(X = k) = α at the bound: solved for u, which is one number for all k."""
    plan = Plan(n0=10, n=300, alpha=ALPHA)
    for seed in (1, 2, 3):
        found = []
        for k in (170, 220, 291):
            p_a, p_b = concluded(Randomised(seed), Votes(k, 300 - k, 300, (7, 3)), plan)
            assert p_b == 1 - p_a
            beyond, at = stats.binom.sf(k, 300, p_a), stats.binom.pmf(k, 300, p_a)
            found.append((ALPHA - beyond) / at)
        assert found == pytest.approx([found[0]] * 3, abs=1e-6)
        assert 0 < found[0] < 1
    keyed = Randomised(1).with_key("nonce", "model", "noise")
    assert keyed == Randomised(9).with_key("nonce", "model", "noise")
    assert keyed != Randomised(1).with_key("another nonce", "model", "noise")


def evidence(k: int, n: int, p: float) -> mpmath.mpf:
    """The mixture over all probabilities above p, as a likelihood ratio to p itself."""
    with mpmath.workdps(40):
        above = mpmath.betainc(k + 0.5, n - k + 0.5, p, 1)
        prior = mpmath.betainc(0.5, 0.5, p, 1)
        return above / prior / (mpmath.mpf(p) ** k * (1 - mpmath.mpf(p)) ** (n - k))


def test_a_target_is_certified_by_evidence_of_one_over_alpha_and_not_by_less() -> None:
    rule, plan = Target(radius=0.8), Plan(n0=10, n=400, alpha=ALPHA, rule=Target(radius=0.8))
    needed = GAUSSIAN.find_least_p_a(0.8)
    assert stats.norm.cdf(0.8) <= needed <= stats.norm.cdf(0.8) + 2e-4
    enough = next(k for k in range(316, 400) if evidence(k, 400, needed) >= 1 / ALPHA)
    assert rule.conclude(Votes(enough, None, 400), plan, GAUSSIAN) == (needed, 1 - needed)
    for fewer in (0, 100, 250, enough - 1):  # however strongly they speak for a smaller p_A
        assert rule.conclude(Votes(fewer, None, 400), plan, GAUSSIAN) == (0.0, 1.0)
    for k in (320, 330, 345):
        found = log_wealth(k, 400, needed, above=True)
        assert found == pytest.approx(float(mpmath.log(evidence(k, 400, needed))), rel=1e-9)
        other = log_wealth(400 - k, 400, 1 - needed, above=False)
        assert other == pytest.approx(found, rel=1e-9)


def test_a_needed_probability_is_rounded_up_and_pays_charge_and_move() -> None:
    lattice = noise.Lattice.parse("2^-12")
    plain = Radii(noise.gaussian(sigma=1), [l2], 100_000, lattice=lattice)
    for radii in (GAUSSIAN, plain, plain.without_sampling()):
        for wanted in (0.3, 1.1, 2.7):
            p = radii.find_least_p_a(wanted)
            (found,) = radii.at(*radii.charge_bounds(p, 1 - p))
            assert wanted <= found.radius <= wanted * (1 + 1e-3)
    assert GAUSSIAN.find_least_p_a(50.0) == math.nextafter(1.0, 0.0)


@pytest.mark.parametrize("alpha", [0.05, 0.001])
def test_a_prediction_is_a_two_sided_test_at_alpha(alpha: float) -> None:
    decided = 0
    for first in range(1, 40):
        for second in range(first + 1):
            p = stats.binomtest(first, first + second, 0.5).pvalue
            wanted = 1 if p <= alpha else -1
            assert clear_winner(np.array([second, first, 0]), alpha) == wanted
            decided += wanted == 1 and second > 0
    assert decided > 10


def noisy_sign(batch: torch.Tensor) -> torch.Tensor:
    """Class 1 where the first value is above zero."""
    return (batch[:, 0] > 0).long()


@pytest.mark.usefixtures("one_thread")
def test_predict_tests_the_votes_of_g_at_alpha_for_one_input_and_for_many() -> None:
    alpha, n = 0.05, 60
    g = SmoothedClassifier(noisy_sign, noise.gaussian(sigma=1), num_classes=2, seed=3)
    inputs = torch.linspace(-0.4, 0.4, 40)[:, None].repeat(1, 4)
    p = []
    for i, x in enumerate(inputs):
        zeros, ones = (int(v) for v in g.votes(x, n, start=0, input_index=i))
        p.append(stats.binomtest(ones, n, 0.5).pvalue)
        wanted = int(ones > zeros) if p[-1] <= alpha else -1
        assert g.predict(x, n=n, alpha=alpha, input_index=i) == wanted
        p[-1] = p[-1] if wanted == -1 else math.nan
    assert np.nanmin(p) < 2 * alpha  # some would be decided at twice α
    many = g.predict(torch.stack(list(inputs)), n=n, alpha=alpha)
    assert many.tolist() == [
        g.predict(x, n=n, alpha=alpha, input_index=i) for i, x in enumerate(inputs)
    ]
    with pytest.raises(CertifyError, match="6 or more"):
        g.predict(inputs[0], n=5, alpha=alpha)
    assert SmoothedClassifier(
        lambda batch: torch.zeros(len(batch), dtype=torch.int64), g.noise, num_classes=2
    ).predict(inputs[0], n=6, alpha=alpha) == 0  # fmt: skip


def certified(
    plan: Plan, answer: Callable[[Request], Counts], law: Noise = LAW, curves: Curves = CURVES
) -> Certificate:
    """The certificate that a plan's procedure makes of these answers."""
    return answer_all(plan.procedure.steps(plan, law, curves), answer)


@dataclass
class Recorder:
    """Answers questions with votes of fixed shares, and keeps the questions."""

    share: Callable[[Request], float]

    def __post_init__(self) -> None:
        self.asks: list[Request] = []

    def __call__(self, ask: Request) -> Counts:
        self.asks.append(ask)
        k = round(ask.n * self.share(ask))
        return np.array([ask.n - k, k, 0], dtype=np.int64)

    def check_disjoint(self) -> None:
        """No noisy copy is counted twice."""
        ends = sorted((ask.start, ask.start + ask.n) for ask in self.asks)
        assert ends[0][0] == 0
        assert all(one[1] <= two[0] for one, two in pairwise(ends)), ends


RULES = [
    Fixed(), Pilot(share=0.05), Randomised(3), ThreeTests(), Union(3), Target(0.1), Target(1.02),
]  # fmt: skip
KNOWN = {Every, *map(type, RULES)}
RULES += [kind() for kind in Rule.known().values() if kind not in KNOWN]  # one that was added


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.text)
def test_no_sample_is_counted_twice(rule: Rule) -> None:
    plan = Plan(n0=100, n=4000, alpha=ALPHA, rule=rule)
    answer = Recorder(lambda ask: 0.85)
    found = certified(plan, answer)
    answer.check_disjoint()
    assert (answer.asks[0].n, answer.asks[0].start) == (100, 0)
    assert sum(found.selection) == 100
    assert sum(found.counts) == found.n == sum(ask.n for ask in answer.asks[1:])
    if rule == Target(1.02):
        assert len(answer.asks) > 5


def test_the_class_and_its_runner_up_are_those_of_the_selection() -> None:
    """Fresh votes for another class do not change what is bounded."""
    plan = Plan(n0=100, n=1000, alpha=ALPHA, rule=ThreeTests())
    fresh = np.array([100, 500, 40, 360])

    def answer(ask: Request) -> Counts:
        return np.array([10, 20, 25, 45]) if ask.start == 0 else fresh

    found = certified(plan, answer)
    assert found.p_a == pytest.approx(least_p(360, 1000, ALPHA / 3), rel=1e-9)
    assert found.p_b == pytest.approx(most_p(600, 1000, ALPHA / 3), rel=1e-9)  # all the others
    assert found.predict == -1
    fresh = np.array([10, 30, 60, 900])
    found = certified(plan, answer)
    assert found.predict == 3
    assert found.p_b == pytest.approx(most_p(60, 1000, ALPHA / 3), rel=1e-9)


class Even(Rule):
    """Says that both classes have the same bound."""

    name = "even for a test"
    proof = "none"

    def conclude(self, votes: Votes, plan: Plan, radii: Radii) -> tuple[float, float]:
        return 0.25, 0.25


def test_where_no_class_is_more_probable_nothing_is_claimed() -> None:
    plan = Plan(n0=10, n=10, rule=Even())
    found = certified(plan, Recorder(lambda ask: 1.0))
    assert (found.predict, found.radius()) == (-1, 0.0)
    assert found.radii[0].guarantee == "abstain"


CROSS = noise.l1_exp(k=1, j=0, scale=1, dim=6)


CROSS_CURVES = Curves([Norm(1)], 6)


@pytest.mark.parametrize("inside", [0.999, 0.6])
def test_two_laws_share_alpha_and_count_no_sample_twice(inside: float) -> None:
    """The radius of p_A alone where the second law does not pay, with all of α."""
    plan = TwoLawVotes(0.5).fit(Plan(n0=200, n=3001, alpha=ALPHA))
    answer = Recorder(lambda ask: 0.8 if ask.noise is None else inside)
    found = certified(plan, answer, CROSS, CROSS_CURVES)
    answer.check_disjoint()
    assert isinstance(found, TwoLawCertificate)
    assert found.alpha == ALPHA
    assert found.n == plan.n
    first, second = sum(found.counts), sum(found.second)
    if inside < 0.9:
        assert (first, second, found.q_a) == (3001, 0, None)
        assert found.p_a == pytest.approx(least_p(round(0.8 * 3001), 3001, ALPHA), rel=1e-9)
    else:
        assert (first, second) == (1501, 1500)
        assert found.p_a == pytest.approx(least_p(round(0.8 * 1501), 1501, ALPHA / 2), rel=1e-9)
        assert found.q_a == pytest.approx(least_p(round(0.999 * 1500), 1500, ALPHA / 2), rel=1e-9)
    assert again(plan, found.transcript, CROSS, CROSS_CURVES) == found
    for changed in forged(found.transcript):
        with pytest.raises(CertifyError):
            again(plan, changed, CROSS, CROSS_CURVES)


def again(
    plan: Plan, transcript: Transcript, law: Noise = LAW, curves: Curves = CURVES
) -> Certificate:
    """The certificate that a transcript gives by itself."""
    return recompute(plan.procedure.steps(plan, law, curves), transcript)


def forged(transcript: Transcript) -> Iterator[Transcript]:
    """A vote more or less in each answer, with a sample more or less asked for or not; an answer
    more, one less, each twice, two in the other order, and other samples than were asked for.
    """
    parts = transcript.exchanges
    for i, one in enumerate(parts):
        top = int(np.argmax(one.counts))
        for votes, n, start in (
            (1, 0, 0), (-1, 0, 0), (1, 1, 0), (-1, -1, 0), (0, 0, 1), (one.n, one.n, 0),
        ):  # fmt: skip
            counts = list(one.counts)
            counts[top] += votes
            changed = replace(one, counts=tuple(counts), n=one.n + n, start=one.start + start)
            yield Transcript((*parts[:i], changed, *parts[i + 1 :]))
        yield Transcript((*parts[:i], *parts[i + 1 :]))
        yield Transcript((*parts[: i + 1], *parts[i:]))
        purpose = "support" if one.purpose == "choose" else "choose"
        for other in (replace(one, purpose=purpose), replace(one, noise="gaussian(sigma=9)")):
            yield Transcript((*parts[:i], other, *parts[i + 1 :]))
    yield Transcript((*parts, parts[-1]))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.text)
def test_a_transcript_with_other_votes_than_were_asked_for_is_refused(rule: Rule) -> None:
    """For every rule: the number of votes and of samples, their order, purpose and noise."""
    plan = Plan(n0=100, n=4000, alpha=ALPHA, rule=rule)
    found = certified(plan, Recorder(lambda ask: 0.85))
    assert again(plan, found.transcript) == found
    for changed in forged(found.transcript):
        with pytest.raises(CertifyError):
            again(plan, changed)


def test_an_answer_has_one_vote_for_each_sample() -> None:
    plan = Plan(n0=10, n=100, alpha=ALPHA)
    for more in (1, -1):
        with pytest.raises(CertifyError, match="samples were asked for"):
            certified(plan, lambda ask, more=more: np.array([0, ask.n + more]))  # type: ignore[misc]


def test_a_procedure_that_asks_for_a_sample_twice_is_stopped() -> None:
    def twice() -> Generator[Request, Counts, Certificate]:
        yield Request(10, 0)
        yield Request(10, 9)
        raise AssertionError("the second question was answered")

    with pytest.raises(CertifyError, match="used twice"):
        answer_all(twice(), lambda ask: np.array([ask.n]))
    kept = Exchange.of(Request(3, 5), (1, 2))
    assert Exchange.from_dict(kept.to_dict()) == kept


def test_the_second_law_is_asked_about_the_class_of_the_selection() -> None:
    plan = TwoLawVotes(0.5).fit(Plan(n0=200, n=3000, alpha=ALPHA))
    answer = Recorder(lambda ask: 0.8 if ask.noise is None else 0.999)

    def other(ask: Request) -> Counts:
        late = ask.noise is not None and ask.start > plan.n + plan.n0
        return np.array([0, 0, ask.n]) if late else answer(ask)

    found = certified(plan, other, CROSS, CROSS_CURVES)
    assert isinstance(found, TwoLawCertificate)
    assert found.q_a == 0.0  # class 1 was chosen, and the ball votes for the others alone
    assert found.predict == 1


LATTICE = noise.Lattice.parse("1/16")


def three_parts(batch: torch.Tensor) -> torch.Tensor:
    """Class 1 above zero, class 2 below −1, class 0 between."""
    return (batch[:, 0] > 0).long() + 2 * (batch[:, 0] < -1).long()


def certify(x: torch.Tensor, norms: list[float], rule: Rule) -> tuple[Certificate, float]:
    law = noise.laplace(sigma=1)
    g = SmoothedClassifier(three_parts, law, num_classes=3, lattice=LATTICE)
    found = g.certify(x, norms, plan=Plan(n0=200, n=500, alpha=ALPHA, rule=rule))
    tau = LatticeNoise(law, LATTICE).tau
    assert tau is not None
    return found, tau


@pytest.mark.parametrize("rule", [Fixed(), ThreeTests()], ids=["fixed", "three"])
def test_p_a_and_p_b_pay_three_times_dim_times_tau(rule: Rule) -> None:
    dim = 2000
    found, tau = certify(torch.full((dim,), 0.5), [1], rule)
    share = 1.0 if rule == Fixed() else 1 / 3
    assert found.charge == 3 * dim * tau
    assert found.charge > 1e-13
    bound = lower_bound(found.counts[1], 500, ALPHA * share)
    assert bound - found.p_a == pytest.approx(found.charge, abs=3e-16)
    if rule == ThreeTests():
        assert found.counts[0] > found.counts[2] > 0
        most = upper_bound(found.counts[0], 500, ALPHA / 3)
        assert found.p_b - most == pytest.approx(found.charge, abs=3e-16)
        assert found.p_b < 1 - found.p_a
    else:
        assert found.p_b == 1 - found.p_a


def test_free_bounds_are_charged_on_both_sides_and_end_at_the_binary_case() -> None:
    radii = Radii(noise.gaussian(sigma=1), [l2], 100_000, lattice=LATTICE)
    charge = radii.charge
    assert charge is not None
    assert radii.charge_bounds(0.9, 0.05) == (0.9 - charge, 0.05 + charge)
    near = 0.1 - charge / 2
    assert radii.charge_bounds(0.9, near) == (0.9 - charge, near + charge)
    assert radii.charge_bounds(0.9, 1 - 0.9) == (0.9 - charge, 1 - (0.9 - charge))
    assert radii.charge_bounds(0.0, 1.0) == (0.0, 1.0)
    assert radii.charge_bounds(charge / 2, 0.3)[0] == 0.0


def test_a_radius_pays_for_moving_both_inputs_to_the_grid() -> None:
    """h/2 in each coordinate for x, as much again for the other input: the triangle inequality."""
    dim, h, norms = 9, 1 / 16, [0.5, 1.0, 1.5, math.inf]
    law, n, plan = noise.gaussian(sigma=1), 500, Plan(n0=20, n=500, alpha=ALPHA)
    for x in (torch.full((dim,), 3.0), torch.full((dim,), 3.01)):
        g = SmoothedClassifier(noisy_sign, law, num_classes=2, lattice=LATTICE)
        found = g.certify(x, norms, plan=plan)
        assert not found.between_points
        p_a = lower_bound(found.counts[1], n, ALPHA) - 2 * dim * (
            LatticeNoise(law, LATTICE).tau or 0.0
        )
        for one, p in zip(found.radii, norms, strict=True):
            exact = float(stats.norm.ppf(p_a)) * min(
                1.0, dim ** ((0 if math.isinf(p) else 1 / p) - 0.5)
            )
            if p < 1:  # lengths to the power p obey it: to move by e costs e^p
                steps = dim * h**p
                left = (exact**p - steps) ** (1 / p) if exact**p > steps else 0.0
            else:
                left = max(exact - h * (1.0 if math.isinf(p) else dim ** (1 / p)), 0.0)
            assert left - 0.02 * h * dim <= one.radius <= left
            assert one.proved == one.radius == pytest.approx(one.searched, rel=1e-12)


@pytest.mark.usefixtures("one_thread")
def test_no_noisy_copy_is_seen_twice() -> None:
    """In the passes of one call, small and large ones."""
    seen: list[bytes] = []

    def watch(batch: torch.Tensor) -> torch.Tensor:
        seen.extend(row.tobytes() for row in batch.numpy())
        return (batch[:, 0] > 0).long()

    for batch in (4, 128):
        g = SmoothedClassifier(watch, noise.gaussian(sigma=1), num_classes=2, batch=batch)
        g.votes(torch.zeros(5), 1, start=0)  # shows whether the model looks at its batch
        seen.clear()
        assert g.votes(torch.zeros(5), 100, start=50).sum() == 100
        assert len(set(seen)) == len(seen) >= 100


@pytest.mark.usefixtures("one_thread")
def test_nonce_settings_input_and_number_decide_the_noise() -> None:
    """Votes one by one: equal where all four are, and different by 60 fair coins elsewhere."""
    model = torch.nn.Linear(5, 2)
    model.load_state_dict({"weight": torch.tensor([[-1.0] * 5, [1.0] * 5]), "bias": torch.zeros(2)})

    def votes(nonce: str, commitment: str = "5" * 64, start: int = 0, index: int = 0) -> list[int]:
        g = VoteCounter(
            model,
            noise.gaussian(sigma=1),
            num_classes=2,
            nonce=nonce,
            batch=1,
            commitment=commitment,
        )
        x, which = torch.zeros(5), range(start, start + 60)
        return [int(g.votes(x, 1, start=i, input_index=index)[1]) for i in which]

    one = votes("a" * 64)
    assert votes("a" * 64) == one
    assert votes("a" * 64, start=20)[:40] == one[20:]
    others = [votes("b" * 64), votes("a" * 64, "6" * 64), votes("a" * 64, index=1)]
    assert all(other != one for other in others)


def test_counts_hold_n_votes_where_n_is_no_multiple_of_a_pass() -> None:
    g = SmoothedClassifier(noisy_sign, noise.gaussian(sigma=1), num_classes=2, seed=1, batch=32)
    whole = g.votes(torch.zeros(3), 1001, start=5)
    assert whole.sum() == 1001
    parts = [g.votes(torch.zeros(3), n, start=s) for n, s in ((1, 5), (333, 6), (667, 339))]
    assert np.array_equal(np.sum(parts, axis=0), whole)


def test_noise_of_a_seed_is_named_an_experiment() -> None:
    for seed in (0, 7):
        g = SmoothedClassifier(noisy_sign, noise.gaussian(sigma=1), num_classes=2, seed=seed)
        found = g.certify(torch.ones(3), n=100)
        assert found.seed == seed
        assert f"noise of seed {seed}: an experiment" in found.promise
    free = SmoothedClassifier(noisy_sign, noise.gaussian(sigma=1), num_classes=2)
    assert free.certify(torch.ones(3), n=100).seed is None


def test_a_searched_radius_is_claimed_only_where_asked_for_and_named_so() -> None:
    law, votes = noise.laplace(sigma=1), Recorder(lambda ask: 1.0)
    plan = Plan(n0=10, n=100, alpha=ALPHA)
    for searched in (False, True):
        curves = Curves([l2], 3072, searched=searched)  # they come with the package
        found = certified(plan, votes, law, curves)
        (one,) = found.radii
        assert one.proved < one.searched
        assert one.radius == (one.searched if searched else one.proved)
        assert ("searched; proved only" in found.promise) is searched
