"""I-OPT: the search per input, and that its certificates are as good as their word.

Planted classifiers: a half-space {x_1 > 0}, whose smoothed version is exactly robust up to the
margin under every symmetric noise, and an interval |x_1| < 1, where more noise changes the class.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from unicr import SmoothedClassifier
from unicr.classifier import load_classifier
from unicr.cli import app
from unicr.data import load_dataset
from unicr.errors import CertifyError, RunError
from unicr.i_opt import Axis, Grid, IOpt, i_opt_run
from unicr.noise import parse
from unicr.norms import Norm, l1, l2, linf
from unicr.runs import (
    Job,
    Row,
    Run,
    certify_run,
    evidence,
    load_scores,
    read_commitment,
    replay,
    verify,
)
from unicr.smoothing import (
    THIS_INPUT,
    Certificate,
    Counts,
    Curves,
    Plan,
    Request,
    Transcript,
    record,
)
from unicr.smoothing.procedures import share_answers
from unicr.smoothing.procedures.i_opt import expect_p_a
from unicr.smoothing.rules import Target, Union

MARGIN = 0.8
SIGMA = Axis("sigma", 0.25, 4, 2**0.25)
BETA = Axis("beta", 1, 3, 0.25)


def half_space(batch: torch.Tensor) -> torch.Tensor:
    return (batch.flatten(1)[:, 0] > 0).long()


def interval(batch: torch.Tensor) -> torch.Tensor:
    return (batch.flatten(1)[:, 0].abs() < 1).long()


def lattice(init: str = "gaussian(sigma=1)", *axes: Axis) -> Grid:
    return Grid.around(parse(init), "gennorm", axes or (SIGMA, BETA))


Model = Callable[[torch.Tensor], torch.Tensor]


def found(
    settings: IOpt,
    plan: Plan,
    x: torch.Tensor,
    *,
    model: Model = half_space,
    norms: tuple[Norm, ...] = (l1,),
    index: int = 0,
    asked: list[Request] | None = None,
    curves: Curves | None = None,
) -> tuple[Certificate, ...]:
    smoothed = SmoothedClassifier(
        load_classifier(model, num_classes=2), parse("gaussian(sigma=1)"), seed=11, batch=4000
    )

    def answer(ask: Request) -> Counts:
        if asked is not None:
            asked.append(ask)
        return smoothed.answer(ask, x, index)

    each = [curves] if curves else [Curves((norm,), x.numel()) for norm in norms]
    noise = settings.grid.noise(settings.grid.centre)
    steps = share_answers([record(settings.steps(plan, noise, one)) for one in each])
    try:
        question = next(steps)
        while True:
            question = steps.send(answer(question))
    except StopIteration as stop:
        result: tuple[Certificate, ...] = stop.value
        return result


TRIALS, ALPHA = 200, 0.1
MOST = 43  # P(Binomial(200, 0.1) > 43) < 1e-6: the false-alarm rate of each of these tests
COARSE = (Axis("sigma", 0.35, 2.9, 2**0.5), Axis("beta", 1, 3, 0.5))


def false_certificates(settings: IOpt, plan: Plan) -> int:
    """How many of TRIALS certificates claim more than the margin, which is the exact radius."""
    x = torch.tensor([MARGIN, 0.0])
    curves = Curves((l1,), 2)
    claims = [found(settings, plan, x, index=i, curves=curves)[0] for i in range(TRIALS)]
    return sum(c.predict == 0 or c.radius(1) > MARGIN * (1 + 1e-9) for c in claims)


@pytest.mark.parametrize("union", [False, True])
@pytest.mark.parametrize("method", ["compass", pytest.param("hill", marks=pytest.mark.slow)])
def test_false_certificates_stay_within_alpha_with_the_climb_on(union: bool, method) -> None:  # type: ignore[no-untyped-def]
    assert stats.binom.sf(MOST, TRIALS, ALPHA) < 1e-6
    settings = IOpt(lattice("gaussian(sigma=1)", *COARSE), method=method, union=union)
    assert false_certificates(settings, settings.fit(Plan(n0=100, n=200, alpha=ALPHA))) <= MOST


def test_certifying_on_the_samples_that_chose_is_caught() -> None:
    """The naive way: every candidate at α on the same samples, the best is claimed."""
    settings = IOpt(lattice("gaussian(sigma=1)", *COARSE), union=True)
    naive = Plan(n0=100, n=200, alpha=ALPHA)
    assert false_certificates(settings, naive) > MOST


def test_the_search_comes_near_the_best_noise_of_the_lattice() -> None:
    """On the interval p_A is known in closed form; every place of the lattice is computed."""
    axis = Axis("sigma", 0.1, 1.6, 2**0.25)
    plan = Plan(n0=4000, n=4000, alpha=0.001)
    curves = Curves((l1,), 1)
    grid = lattice("gaussian(sigma=0.2)", axis, BETA)

    def exact(place: tuple[int, ...]) -> float:
        law = grid.noise(place)
        p = 1 - 2 * float(law.sf(1.0))  # type: ignore[attr-defined]
        expected = int(p * plan.n)
        bound = float(stats.beta.ppf(plan.alpha, expected, plan.n - expected + 1))
        return curves.of(law).first(bound)

    places = itertools.product(range(-4, 13), range(-4, 5))
    best = max(exact(place) for place in places if place in grid)
    x = torch.zeros(1)
    for method, share in (("compass", 0.95), ("hill", 0.8)):
        settings = IOpt(grid, method=method)  # type: ignore[arg-type]
        (certificate,) = found(settings, plan, x, model=interval, curves=curves)
        assert certificate.predict == 1
        assert certificate.radius(1) > share * best
        start = exact(grid.centre)
        assert certificate.radius(1) > 1.4 * start


def test_the_class_never_changes_silently() -> None:
    """σ = 0.5 votes for the interval; large σ for its outside, at a larger radius."""
    settings = IOpt(lattice("gaussian(sigma=0.5)", Axis("sigma", 0.25, 64, 2**0.5)))
    plan = settings.fit(Plan(n0=500, n=1000, alpha=0.001))
    x = torch.zeros(1)
    outside = IOpt(lattice("gaussian(sigma=32)", Axis("sigma", 0.25, 64, 2**0.5)))
    (large,) = found(outside, plan, x, model=interval)
    (kept,) = found(settings, plan, x, model=interval)
    assert large.predict == 0
    assert kept.predict == 1
    assert large.radius(1) > kept.radius(1) > 0


def test_keep_prediction_starts_where_the_noise_agrees_with_the_classifier() -> None:
    grid = lattice("gaussian(sigma=4)", Axis("sigma", 0.25, 8, 2**0.5), BETA)
    plan = Plan(n0=500, n=1000, alpha=0.001)
    x = torch.zeros(1)
    (free,) = found(IOpt(grid), plan, x, model=interval)
    (kept,) = found(IOpt(grid, keep=True), plan, x, model=interval)
    assert free.predict == 0
    assert kept.predict == 1
    assert parse(kept.noise or "").sigma < 2
    assert kept.radius(1) > 0


def test_a_prediction_that_no_noise_keeps_is_said() -> None:
    settings = IOpt(lattice("gaussian(sigma=4)", Axis("sigma", 3, 8, 1.5)), keep=True)
    with pytest.raises(CertifyError, match="keeps the prediction 1: allow a smaller sigma"):
        found(settings, Plan(n0=500, n=1000), torch.zeros(1), model=interval)


def test_votes_are_counted_once_per_noise_and_shared_between_norms() -> None:
    asked: list[Request] = []
    settings = IOpt(lattice("gaussian(sigma=1)", SIGMA))
    plan = settings.fit(Plan(n0=200, n=400, alpha=0.001))
    three = found(settings, plan, torch.tensor([MARGIN]), norms=(l1, l2, linf), asked=asked)
    seen = [(ask.noise, ask.start, ask.n) for ask in asked]
    assert len(set(seen)) == len(seen)
    assert {(start, n) for _, start, n in seen} == {(0, 200), (200, 400)}
    chosen = {c.noise for c in three}
    assert sum(start == 200 for _, start, _ in seen) == len(chosen)
    assert [c.radii[0].norm for c in three] == ["1", "2", "inf"]


def test_promise_is_what_the_final_samples_are_expected_to_give() -> None:
    plan = Plan(n0=1000, n=10_000, alpha=0.001)
    cautious = float(stats.beta.ppf(0.25, 900, 101))
    expected = float(stats.beta.ppf(0.001, int(cautious * 10_000), 10_001 - int(cautious * 10_000)))
    assert expect_p_a(900, plan) == pytest.approx(expected, rel=1e-12)
    assert expect_p_a(0, plan) == 0


@pytest.mark.parametrize("bad", ["annealing", ""])
def test_an_unknown_method_is_refused(bad: str) -> None:
    with pytest.raises(CertifyError, match="compass"):
        IOpt(lattice(), method=bad)  # type: ignore[arg-type]


def mnist_job(settings: IOpt, norms: tuple[Norm, ...], limit: int, **more) -> Job:  # type: ignore[no-untyped-def]
    arguments: dict[str, Any] = {"spec": more.pop("model", "builtin:mnist-mlp-0.5")}
    values = {"n0": 200, "n": 1000, "alpha": 0.001} | more.pop("plan", {})
    return Job(
        classifier=load_classifier(**arguments),
        data=load_dataset("builtin:mnist"),
        noise=settings.grid.noise(settings.grid.centre),
        norms=norms,
        plan=Plan(**values),
        limit=limit,
        model_arguments=arguments,
        data_spec="builtin:mnist",
        **more,
        seed=0,
    )


CHEAP = Axis("beta", 1, 2, 1)  # Laplace and Gaussian: closed-form curves in ℓ1


def rows_of(folder: Path) -> list[tuple[object, ...]]:
    with Run(folder) as store:
        return [(r.idx, r.label, r.certificate) for r in store.rows()]


def test_a_run_is_an_ordinary_run(tmp_path: Path) -> None:
    settings = IOpt(lattice("gaussian(sigma=0.5)", Axis("sigma", 0.125, 2, 2**0.5), CHEAP))
    norms = (l1, linf)
    places = i_opt_run(mnist_job(settings, norms, 6), settings, tmp_path / "a")
    assert list(places.values()) == [tmp_path / "a/l1", tmp_path / "a/linf"]
    for norm, folder in places.items():
        with Run(folder) as store:
            spec = store.spec
            assert spec.scope == THIS_INPUT
            assert spec.plan.procedure == settings
            assert list(verify(store)) == []
            model, data = load_classifier(spec.model), load_dataset(spec.data)
            again = replay(store, model, data, 2)
            assert [text for _, text in again] == [None, None]
            rows = list(store.rows())
            values = store.table()[0]
        assert values["scope"] == THIS_INPUT
        assert values["noise"] == rows[0].certificate.noise  # type: ignore[union-attr]
        (scores,) = load_scores([folder], None)[norm.text]
        assert scores.average_radius > 0
        assert THIS_INPUT in scores.name
    workers = mnist_job(settings, norms, 6, workers=2, chunk=300)
    i_opt_run(workers, settings, tmp_path / "b")
    for name in ("l1", "linf"):
        assert rows_of(tmp_path / "a" / name) == rows_of(tmp_path / "b" / name)


def test_a_search_is_committed_to_before_its_nonce(tmp_path: Path, capsys: Any) -> None:
    """Two norms: one commitment, which the run of each norm has; another search is refused."""
    out = tmp_path / "out"
    words = ["i-opt", "--model", "builtin:mnist-mlp-0.5", "--data", "builtin:mnist", "--norm", "2",
             "inf", "--n0", "100", "--n", "200", "--max", "2", "--out", str(out), "--init",
             "gaussian(sigma=0.5)", "--range", "beta=2:2:1"]  # fmt: skip
    sigmas, required = ["sigma=0.25:1:2"], ["--require", "accuracy(inf, 0.001) >= 0.5"]
    nonce = ["--nonce", "5c" * 32]

    def run(*more: str) -> object:
        return app([*words, *sigmas, *more], exit_on_error=False, print_error=False)

    with pytest.raises(CertifyError, match="before the nonce exists"):
        run("--commit", *nonce)
    with pytest.raises(CertifyError, match="give it with --commit"):
        run(*required)
    assert run("--commit", *required) == 0
    found = read_commitment(out)
    assert found is not None
    assert f"commitment {found[0]}" in capsys.readouterr().out
    assert [path.name for path in out.iterdir()] == ["commitment.json"]
    with pytest.raises(RunError, match="give --nonce"):
        run()
    with pytest.raises(RunError, match=r"not the one that .* commits to"):
        run("--keep-prediction", *nonce)
    assert run(*nonce) == 0
    verdicts = {}
    for norm in ("2", "inf"):
        folder = out / f"l{norm}"
        assert read_commitment(folder) == found
        with Run(folder) as opened:
            assert opened.spec.commitment == found[0]
            facts = evidence(opened)
        verdicts[norm] = (facts["verdict"], facts["requirements"][0]["verdict"])
        check = ["verify", str(folder), "--replay", "1", "--commitment", found[0], *nonce]
        assert app(check, exit_on_error=False, print_error=False) == 0
    elsewhere = ("in the run of that norm",) * 2
    assert verdicts == {"2": elsewhere, "inf": ("pass", "pass")}


def test_resume_goes_on_and_refuses_another_search(tmp_path: Path) -> None:
    settings = IOpt(lattice("gaussian(sigma=0.5)", Axis("sigma", 0.25, 1, 2**0.5)))
    norms = (l1, l2)
    i_opt_run(mnist_job(settings, norms, 4), settings, tmp_path / "whole")
    seen: list[int] = []

    class Stop(Exception):
        pass

    def stop_at_two(row: Row) -> None:
        seen.append(row.idx)
        if len(seen) == 2:
            raise Stop

    with pytest.raises(Stop):
        i_opt_run(mnist_job(settings, norms, 4), settings, tmp_path / "cut", on_result=stop_at_two)
    with pytest.raises(RunError, match="--resume"):
        i_opt_run(mnist_job(settings, norms, 4), settings, tmp_path / "cut")
    hill = IOpt(settings.grid, method="hill")
    with pytest.raises(RunError, match=r"plan: .*'compass'.* there, .*'hill'.* now"):
        i_opt_run(mnist_job(hill, norms, 4), hill, tmp_path / "cut", resume=True)
    with pytest.raises(RunError, match=r"plan: .*'i_opt'.* there, .*'two_steps'.* now"):
        certify_run(mnist_job(settings, (l1,), 4), tmp_path / "cut/l1", resume=True)
    i_opt_run(mnist_job(settings, norms, 4), settings, tmp_path / "cut", resume=True)
    for name in ("l1", "l2"):
        assert rows_of(tmp_path / "whole" / name) == rows_of(tmp_path / "cut" / name)


def test_the_bound_follows_from_the_search_whatever_plan_the_job_brings(tmp_path: Path) -> None:
    """A job with an ordinary plan must not certify a union of noises at the whole α."""
    settings = IOpt(lattice("gaussian(sigma=0.5)", Axis("sigma", 0.25, 1, 2)), union=True)
    plain = replace(mnist_job(IOpt(settings.grid), (l1,), 2), noise=parse("gaussian(sigma=0.25)"))
    i_opt_run(plain, settings, tmp_path / "plain")
    i_opt_run(mnist_job(settings, (l1,), 2), settings, tmp_path / "own")
    assert rows_of(tmp_path / "plain") == rows_of(tmp_path / "own")
    with Run(tmp_path / "plain") as run:
        assert run.spec.plan.rule == Union(3)
        assert parse(run.spec.noise.text).sigma == 0.5
    early = replace(plain, plan=replace(plain.plan, rule=Target(1.0)))
    with pytest.raises(CertifyError, match="fixed number of samples"):
        i_opt_run(early, settings, tmp_path / "early")


def test_an_altered_noise_does_not_verify(tmp_path: Path) -> None:
    settings = IOpt(lattice("gaussian(sigma=0.5)", Axis("sigma", 0.25, 1, 2**0.5)))
    i_opt_run(mnist_job(settings, (l2,), 2), settings, tmp_path)
    with sqlite3.connect(tmp_path / "run.sqlite") as db:
        db.execute(
            "UPDATE results SET claims = json_set(claims, '$.noise', 'gaussian(sigma=3)') "
            "WHERE idx = 1"
        )
    with Run(tmp_path) as store:
        problems = [str(problem) for problem in verify(store)]
    assert len(problems) == 2
    assert "sealed" in problems[0]
    assert "input 1: noise 'gaussian(sigma=3)' stored, 'gennorm" in problems[1]


def test_an_input_for_which_the_search_fails_verifies(tmp_path: Path) -> None:
    """It has no certificate, so no noise of its own that the search might not choose."""
    settings = IOpt(lattice("gaussian(sigma=20)", Axis("sigma", 20, 40, 2)), keep=True)
    i_opt_run(mnist_job(settings, (l2,), 4), settings, tmp_path)
    with Run(tmp_path) as store:
        assert any(row.certificate is None for row in store.rows())
        assert list(verify(store)) == []


def test_a_search_that_did_not_go_where_its_votes_lead_is_refused(tmp_path: Path) -> None:
    """The certificate of another noise of the grid, with its honest votes: not what was chosen."""
    settings = IOpt(lattice("gaussian(sigma=0.5)", Axis("sigma", 0.25, 1, 2)))
    i_opt_run(mnist_job(settings, (l2,), 1), settings, tmp_path)
    with Run(tmp_path, create=True) as store:
        (row,) = store.rows()
        one = row.certificate
        assert one is not None
        parts = one.transcript.exchanges
        other = next(e.noise for e in parts if e.noise != one.noise)
        turned = (*parts[:-1], replace(parts[-1], noise=other))
        store.add(replace(row, certificate=replace(one, transcript=Transcript(turned))))
    with Run(tmp_path) as store:
        wrong = [str(problem) for problem in verify(store) if problem.idx is not None]
    assert ["the votes before it ask" in text for text in wrong] == [True]


@pytest.mark.slow
@pytest.mark.parametrize("sigma", ["0.25", "0.5", "1.0"])
def test_i_opt_beats_the_fixed_noise_on_mnist(tmp_path: Path, sigma: str) -> None:
    """200 digits, fresh samples: the average radius is at least the fixed noise's, in each norm."""
    norms = (l1, l2, linf)
    widest = Axis("sigma", float(sigma) / 4, float(sigma) * 4, 2**0.25)
    settings = IOpt(lattice(f"gaussian(sigma={sigma})", widest, BETA))
    plan = {"n0": 500, "n": 5000}
    job = mnist_job(settings, norms, 200, plan=plan, model=f"builtin:mnist-mlp-{sigma}")
    certify_run(job, tmp_path / "fixed").close()
    i_opt_run(job, settings, tmp_path / "chosen")
    fixed = load_scores([tmp_path / "fixed"], None)
    for norm in norms:
        (before,) = fixed[norm.text]
        (after,) = load_scores([tmp_path / "chosen" / f"l{norm.text}"], None)[norm.text]
        assert np.isfinite(after.radius).all()
        print(f"{norm}: {before.average_radius:.4f} fixed, {after.average_radius:.4f} chosen")
        assert after.average_radius >= before.average_radius
