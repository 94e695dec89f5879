"""The guarded predictor on planted classifiers, and runs planted into a memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from tests.guard.planted import certificate, claims, memory
from unicr import SmoothedClassifier
from unicr.classifier import load_classifier
from unicr.data import Dataset, load_dataset
from unicr.errors import CertifyError, ModelError, RunError
from unicr.guard import Guard, plant, policy
from unicr.guard._memory import FIRST_STREAM
from unicr.noise import gaussian
from unicr.norms import l2
from unicr.runs import Job, Row
from unicr.smoothing import Certificate, Curves, Plan


def band(batch: torch.Tensor) -> torch.Tensor:
    """Class 1 on the interval (−0.3, 0.3), class 0 elsewhere."""
    return (batch[:, 0].abs() < 0.3).long()


def own_noise(x: torch.Tensor, input_index: int) -> Certificate:
    """An input-dependent noise: of two scales, the one with the larger certified radius.

    Two certificates at 0.0005 each: the larger one is wrong with probability at most 0.001.
    """
    model, found = load_classifier(band), []
    for sigma in (0.1, 0.5):
        smoothed = SmoothedClassifier(model, gaussian(sigma=sigma), seed=int(10 * sigma))
        one = smoothed.certify(x, 2, n0=100, n=10_000, alpha=0.0005, input_index=input_index)
        found.append(replace(one, noise=f"gaussian(sigma={sigma})"))
    return max(found, key=lambda one: one.radius())


def true_class_and_radius(x: float, sigma: float) -> tuple[int, float]:
    law = stats.norm(x, sigma)
    inside = law.cdf(0.3) - law.cdf(-0.3)
    return int(inside > 0.5), float(sigma * stats.norm.ppf(max(inside, 1 - inside)))


def test_an_unguarded_per_input_noise_contradicts_itself_and_the_guard_does_not() -> None:
    """By the normal law σ = 0.1 is best at 0 (class 1) and σ = 0.5 at 0.24 (class 0).

    p_A = 0.9973 at 0: n = 10,000 votes leave its radius above 0.24 but for 5 standard deviations.
    """
    assert true_class_and_radius(0.0, 0.1)[0] == 1
    assert true_class_and_radius(0.0, 0.1)[1] > 0.27
    assert true_class_and_radius(0.0, 0.5)[1] < 0.07
    assert true_class_and_radius(0.24, 0.5)[0] == 0
    assert true_class_and_radius(0.24, 0.5)[1] > 0.11
    assert true_class_and_radius(0.24, 0.1)[1] < 0.07
    a, b, c = (torch.tensor([v]) for v in (0.0, 0.24, 0.3))
    first, second = own_noise(a, 0), own_noise(b, 1)
    assert (first.predict, second.predict) == (1, 0)
    assert first.radius() > 0.24, "b lies in the certified ball of a and has another class"

    with memory(1) as store:
        guard = Guard(own_noise, store)
        answers = [guard(a), guard(b), guard(c)]
        assert [one.label for one in answers] == [1, 1, 0]
        assert [one.source for one in answers] == ["fresh", "memory", "fresh"]
        assert [one.scope for one in answers] == [
            "this input's noise",
            "region 1's noise",
            "this input's noise",
        ]
        assert answers[2].shrunk_from is not None
        assert answers[2].shrunk_from > answers[2].radius
        assert answers[0].radius + answers[2].radius < float(np.float32(0.3))
    with memory(1) as store:
        guard = Guard(own_noise, store)
        assert [guard(b).label, guard(a).label] == [0, 1], "the other order, another classifier"


def test_the_order_of_queries_decides() -> None:
    rule = claims(lambda x: (int(x[0] > 0.5), 0.8))
    with memory(1) as one, memory(1) as two:
        forward, back = Guard(rule, one), Guard(rule, two)
        assert [forward(x).label for x in ([0.0], [0.6], [1.0])] == [0, 0, 1]
        assert [back(x).label for x in ([1.0], [0.6], [0.0])] == [1, 1, 0]


def test_a_repeated_query_gets_the_same_answer_whatever_the_policy_says_now() -> None:
    labels = iter([3, -1, 5, 6])
    given = {}

    def fickle(x: torch.Tensor, input_index: int) -> Certificate:
        label = next(labels)
        return certificate(label, 0.0 if label < 0 else 0.01)

    with memory(1) as store:
        guard = Guard(fickle, store)
        for x in (0.0, 1.0, 2.0, 3.0):
            given[x] = guard([x])
        for x, answer in given.items():
            again = guard([x])
            assert (again.label, again.radius, again.source) == (
                answer.label,
                answer.radius,
                "memory",
            )
        assert store.spent == 0.004


def test_answers_are_one_classifier_under_random_queries() -> None:
    """Every query within the radius of an earlier answer gets that answer: 400 queries in a box."""
    rng = np.random.default_rng(8)
    rule = claims(lambda x: (int(rng.integers(3)), float(rng.random() * 0.3)))
    history: list[tuple[np.ndarray, int, float]] = []
    sources = set()
    with memory(2) as store:
        guard = Guard(rule, store)
        for _ in range(400):
            z = rng.random(2).astype(np.float32)
            answer = guard(z)
            sources.add(answer.source)
            for x, label, radius in history:
                if np.linalg.norm(z.astype(float) - x.astype(float)) < radius * (1 - 1e-12):
                    assert answer.label == label
            history.append((z, answer.label, answer.radius))
        assert sources == {"fresh", "memory"}
        assert store.spent < 0.4


def test_streams_are_new_for_every_fresh_answer() -> None:
    seen: list[int] = []

    def certify(x: torch.Tensor, input_index: int) -> Certificate:
        seen.append(input_index)
        assert x.dtype == torch.float32
        assert x.shape == (1,)
        return certificate(0, 0.1)

    with memory(1) as store:
        guard = Guard(certify, store)
        for x in (0.0, 1.0, 0.05, 2.0):
            guard([x])
    assert seen == [FIRST_STREAM, FIRST_STREAM + 1, FIRST_STREAM + 2]


def test_nan_gets_no_answer_and_leaves_no_trace() -> None:
    with memory(1) as store:
        guard = Guard(claims(lambda x: (0, 1.0)), store)
        with pytest.raises(CertifyError, match="not finite"):
            guard(torch.tensor([float("nan")]))
        assert (len(store), store.spent) == (0, 0)


def test_a_model_that_fails_stores_nothing_but_its_samples_count() -> None:
    def broken(batch: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no such layer")

    plan = Plan(n0=10, n=100)
    with memory(1) as store:
        smoothed = SmoothedClassifier(broken, gaussian(sigma=1), seed=store.seed, lattice=None)
        curves = Curves([l2], 1)
        with pytest.raises(ModelError, match="no such layer"):
            Guard(lambda x, i: smoothed.certify_with(x, plan, curves, i), store)([0.0])
        assert (len(store), store.spent) == (0, 0.001)


def test_alpha_is_held_to() -> None:
    with memory(1) as store:
        with pytest.raises(CertifyError, match="alpha=1"):
            Guard(claims(lambda x: (0, 1.0)), store, alpha=1)
        guard = Guard(claims(lambda x: (0, 1.0)), store, alpha=1e-4)
        with pytest.raises(CertifyError, match=r"alpha=0\.001, but the guard needs 0\.0001"):
            guard([0.0])
        assert len(store) == 0


def test_a_run_with_one_noise_certifies_as_the_smoothed_classifier_does() -> None:
    plan = Plan(n0=50, n=1000, alpha=0.01)
    model, noise = load_classifier(band), gaussian(sigma=0.5)
    data = load_dataset(np.zeros((1, 1), np.float32))
    job = Job(
        model, data, noise, norms=(l2,), plan=plan, seed=0, searched=True, lattice=None, batch=9
    )
    x = torch.tensor([2.0])
    found = policy(job.spec, model, 3)(x, 9)
    other = SmoothedClassifier(model, noise, seed=3, lattice=None)
    again = other.certify(x, 2, plan=plan, searched=True, input_index=9)
    assert replace(found, seed=3) == again


def rows_for(data: Dataset, claimed: list[Certificate | None]) -> list[Row]:
    return [
        Row(i, 0, data.digest_of(i), 0.0, one, None if one else "failed")
        for i, one in enumerate(claimed)
    ]


def test_planting_a_run_shrinks_overrules_and_resumes() -> None:
    data = load_dataset(np.array([[0.0], [1.0], [0.25], [9.0], [20.0], [0.1]], np.float32))
    rows = rows_for(
        data,
        [
            certificate(0, 0.5),
            certificate(1, 0.8),
            certificate(1, 0.1),
            certificate(-1, 0.0),
            None,
            certificate(0, 0.1),
        ],
    )
    with memory(1) as store:
        plant(store, rows[:2], data)
        done = plant(store, rows, data)
        assert (done.stored, done.abstained, done.known, done.overruled) == (2, 1, 2, (2,))
        assert store.spent == 0.005
    with memory(1) as store:
        done = plant(store, rows, data)
        assert (done.stored, done.known) == (4, 0)
        ((index, before, after),) = done.shrunk
        assert (index, before) == (1, 0.8)
        assert after == pytest.approx(0.5)
        assert after < 0.5


def test_planting_other_inputs_is_refused() -> None:
    data = load_dataset(np.array([[0.0], [1.0]], np.float32))
    other = load_dataset(np.array([[0.0], [1.5]], np.float32))
    rows = rows_for(data, [certificate(0, 0.5), certificate(1, 0.1)])
    with memory(1) as store:
        with pytest.raises(RunError, match="input 1 of arrays is not the input that was certified"):
            plant(store, rows, other)
        with pytest.raises(RunError, match="input 2 of arrays"):
            plant(store, [Row(2, 0, "x", 0.0, certificate(0, 1.0))], data)
