"""Sampling rules and procedures as values: one file each, from the command line to the auditor."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from unicr import SmoothedClassifier
from unicr.classifier import Classifier
from unicr.cli import app
from unicr.cli.certify import PlanOptions
from unicr.data import load_dataset
from unicr.errors import CertifyError
from unicr.noise import gaussian
from unicr.runs import Job, Run, certify_run, replay, verify
from unicr.smoothing import (
    Certificate,
    Counts,
    Measure,
    Plan,
    Procedure,
    Radii,
    Rule,
    Votes,
    read_norms,
    rules,
)
from unicr.smoothing.procedures import Offsets, TwoLawVotes, TwoSteps
from unicr.smoothing.rules import (
    Every,
    Fixed,
    Pilot,
    Randomised,
    Target,
    ThreeTests,
    Union,
)

EVERY = [
    Fixed(),
    ThreeTests(),
    Target(0.5),
    Pilot(0.1),
    Randomised(7),
    Union(12),
]
KNOWN = {Every, *map(type, EVERY)}
EVERY += [kind() for kind in Rule.known().values() if kind not in KNOWN]  # one that was added


@pytest.mark.parametrize("rule", EVERY, ids=lambda rule: rule.text)
def test_a_rule_is_a_value_with_a_proof(rule: Rule) -> None:
    assert Rule.parse(rule.text) == rule
    assert Rule.from_dict(rule.to_dict()) == rule
    plan = Plan(n0=10, n=400, rule=rule)
    assert Plan.from_dict(plan.to_dict()) == plan
    assert len(rule.proof) > 30
    assert 0.5 < plan.rule.best(plan) < 1


@pytest.mark.parametrize(
    "text",
    [
        *("targt(radius=1)", "target", "target(size=1)", "target(radius='a')", "fixed(1)"),
        *("__import__", "target(radius=inf)", "target(radius=1e999)", "pilot(share=-1)"),
        *("nothing", "union(candidates=0)", "(" * 300, "pilot(share=1, radius=1)"),
    ],
)
def test_rules_that_make_no_sense_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(CertifyError) as refused:
        Plan(rule=Rule.parse(text))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("words", "rule", "procedure"),
    [
        ([], Fixed(), TwoSteps()),
        (["--rule", "three"], ThreeTests(), TwoSteps()),
        (["--rule", "target(radius=0.5)"], Target(0.5), TwoSteps()),
        (["--rule", "pilot(share=0.02)"], Pilot(0.02), TwoSteps()),
        (["--rule", "union(candidates=3)"], Union(3), TwoSteps()),
        (["--rule", "every"], Every(), Offsets()),
        (["--procedure", "two_laws(share=0.4)"], Fixed(), TwoLawVotes(0.4)),
    ],
)
def test_the_command_line_names_rules_and_procedures(
    words: list[str], rule: Rule, procedure: Procedure
) -> None:
    line = ["certify", "--model", "m", "--data", "d", "--noise", "n", "--norm", "2", "--out", "o"]
    _, bound, _ = app.parse_args([*line, *words], exit_on_error=False, print_error=False)
    asked = bound.arguments.get("plan", PlanOptions())
    plan = asked.fit()
    assert (plan.rule, plan.procedure) == (rule, procedure)
    assert type(plan) is Plan


def test_a_rule_that_cannot_be_is_refused() -> None:
    with pytest.raises(CertifyError, match="must be finite"):
        PlanOptions(rule=Target(float("inf"))).fit()


HALF = '''
"""Look once at half of the samples and stop there if all agree."""
from dataclasses import dataclass, replace
from unicr.smoothing import Rule, lower_bound

@dataclass(frozen=True)
class Half(Rule):
    name = "half_once"
    proof = "two Clopper-Pearson bounds at alpha/2, one for each look, hold together"

    def next(self, votes, plan, radii):
        half = plan.n // 2
        if votes.n == 0:
            return half
        return 0 if votes.n > half or votes.top == votes.n else plan.n - half

    def conclude(self, votes, plan, radii):
        p_a = lower_bound(votes.top, votes.n, plan.alpha / 2)
        return p_a, 1.0 - p_a

    def best(self, plan):
        return lower_bound(plan.n, plan.n, plan.alpha / 2)
'''


def data(count: int = 6) -> Any:
    x = np.random.default_rng(0).normal(size=(count, 3)).astype(np.float32)
    x[0, 0] = 9.0
    return load_dataset((x, (x[:, 0] > 0).astype(np.int64)))


class Regressor(Classifier):
    """A model with a number for every input: the first coordinate."""

    def __init__(self) -> None:
        super().__init__(name="first", digest="0" * 64, num_classes=2)

    def values(self, batch: torch.Tensor) -> torch.Tensor:
        return batch[:, 0]

    def predict(self, batch: torch.Tensor) -> torch.Tensor:
        return (self.values(batch) > 0).long()


def test_a_new_rule_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half_once.py").write_text(HALF)
    monkeypatch.setattr(rules, "__path__", [*rules.__path__, str(tmp_path)])
    Rule.known().reload()
    plan = Plan(n=400, rule=Rule.parse("half_once"))
    job = Job(Regressor(), data(), gaussian(sigma=0.5), norms=read_norms(2), plan=plan, seed=0)
    with certify_run(job, tmp_path / "run") as run:
        assert {row.certificate.n for row in run.rows() if row.certificate} == {200, 400}
        assert list(verify(run)) == []
    with Run(tmp_path / "run") as run:
        assert run.spec.plan == plan
    monkeypatch.undo()
    Rule.known().reload()
    with pytest.raises(CertifyError, match="no rule 'half_once'"):
        Rule.parse("half_once")


# another kind of certificate ---------------------------------------------------------------------


@dataclass(frozen=True)
class Interval(Certificate):
    """With probability ≥ 1 − α: the median of f(x + δ + ε) lies in [low, high] below the radius."""

    low: float = 0.0
    high: float = 0.0


@dataclass(frozen=True)
class Bins(Measure):
    """Counts of f's values by bins of width `width`."""

    name = "bins"
    width: float = 0.5
    bins: int = 64

    def labels(self, model: Classifier, batch: torch.Tensor) -> torch.Tensor:
        assert isinstance(model, Regressor)
        place = (model.values(batch) / self.width).floor().long() + self.bins // 2
        return place.clamp(0, self.bins - 1)

    def size(self, model: Classifier, classes: int | None) -> int | None:
        return self.bins


BINS = Bins()


@Procedure.known().add
@dataclass(frozen=True)
class Median(TwoSteps):
    """The bins about the median are tested.

    More than half of the probability in an interval puts the median there, and that is a set like
    any class: the radius of p_A holds for it.
    """

    name = "median"
    certificate = Interval
    counted = BINS
    about: int = 3

    def choose(self, selection: Counts) -> int:
        return int(np.searchsorted(np.cumsum(selection), selection.sum() / 2))

    def tally(self, selection: Counts, counts: Counts) -> Votes:
        at = self.choose(selection)
        inside = counts[max(0, at - self.about) : at + self.about + 1]
        return Votes(int(inside.sum()), None, int(counts.sum()))

    def conclude(
        self, plan: Plan, radii: Radii, selection: Counts, counts: Counts, noise: Any = None
    ) -> Certificate:

        found = super().conclude(plan, radii, selection, counts, noise)
        assert isinstance(found, Interval)
        low = (self.choose(selection) - self.about - BINS.bins // 2) * BINS.width
        return replace(found, low=low, high=low + (2 * self.about + 1) * BINS.width)


def test_another_kind_of_certificate_goes_all_the_way(tmp_path: Path) -> None:
    """Regression, defined in this file: sampled, stored, read, recomputed and replayed."""
    model, inputs = Regressor(), data()
    plan = Plan(n=1000, procedure=Median())
    law, norms = gaussian(sigma=0.5), read_norms([2, "inf"])
    job = Job(model, inputs, law, norms=norms, plan=plan, seed=0)
    with certify_run(job, tmp_path / "run") as run:
        assert list(verify(run)) == []
        assert [text for _, text in replay(run, model, inputs, 6)] == [None] * 6
        rows = list(run.rows())
        assert run.spec.plan.procedure == Median()
    certified = 0
    for row in rows:
        c = row.certificate
        assert isinstance(c, Interval)
        first = float(inputs[row.idx][0][0])  # f is linear: its median moves with the input
        if not c.abstained:
            certified += 1
            assert c.low <= first - c.radius(2)
            assert first + c.radius(2) <= c.high
    assert certified == len(rows)
    with Run(tmp_path / "run", create=True) as run, run.write():
        run._db.execute("UPDATE results SET claims = replace(claims, '\"low\": ', '\"low\": 1')")
    with Run(tmp_path / "run") as run:
        wrong = [problem.idx for problem in verify(run)]
    assert sorted(idx for idx in wrong if idx is not None) == [row.idx for row in rows]


def test_votes_after_a_fork() -> None:
    """Threads do not survive a fork: a child must get its own."""
    smoothed = SmoothedClassifier(
        lambda b: (b[:, 0] > 0).long(), gaussian(sigma=1), num_classes=2, seed=0
    )
    first = smoothed._runners[0]
    smoothed._runners[:] = [first, type(first)(first.classifier)]  # two shares: the pool is used
    x = torch.ones(3)
    here = smoothed.votes(x, 600, start=0).tolist()
    child = os.fork()
    if child == 0:
        os._exit(0 if smoothed.votes(x, 600, start=0).tolist() == here else 1)
    assert os.waitpid(child, 0)[1] == 0
