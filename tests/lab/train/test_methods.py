"""Methods of training: each loss against its definition, for noises and norms of every kind."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from scipy import special, stats

from unicr.classifier import load_classifier
from unicr.data import load_dataset
from unicr.errors import ModelError, UnicrError
from unicr.lab.train import Examples, Fitted, TrainError, Training, examples_of, train_run
from unicr.lab.train._folder import SETTINGS, WEIGHTS
from unicr.lab.train._method import METHODS, Reach, Step, Tuned
from unicr.lab.train._schedule import SCHEDULES
from unicr.lab.train.methods import consistency, macer, margin, smoothadv
from unicr.noise import parse
from unicr.norms import Norm
from unicr.radius import certified_radius

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def digits() -> Examples:
    return examples_of(load_dataset("builtin:mnist"), 400)


def short(noise: str | None = "gaussian(sigma=0.25)", **changes: object) -> Training:
    settings: dict[str, object] = {"epochs": 3, "batch": 50, "val_share": 0.1, **changes}
    return Training(noise, **settings)  # type: ignore[arg-type]


def step(tuned: Tuned, p: float = 2, dim: int = 6, batch: int = 5) -> Step:
    """A batch of a linear classifier with three classes."""
    draw = torch.Generator().manual_seed(0)
    weights = torch.randn(3, dim, generator=draw)
    return Step(
        torch.randn(batch, dim, generator=draw),
        torch.arange(batch) % 3,
        0.5 * torch.randn(tuned.samples, batch, dim, generator=draw),
        lambda x: x @ weights.T,
        tuned,
        Reach(parse("gaussian(sigma=0.5)"), Norm(p), dim),
    )


def test_consistency_is_the_divergence_from_the_mean() -> None:
    now = step(Tuned(samples=3, weight=7.0))
    copies = (now.inputs + now.noise).numpy()
    scores = now.scores(torch.from_numpy(copies)).double().numpy()
    p = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    mean = p.mean(0)
    rows = range(len(mean))
    label = now.labels.numpy()
    expected = -np.mean([np.log(p[k, i, label[i]]) for k in range(3) for i in rows])
    expected += 7 * np.mean([stats.entropy(mean[i], p[k, i]) for k in range(3) for i in rows])
    expected += 0.5 * np.mean([stats.entropy(mean[i]) for i in rows])
    assert float(consistency.loss(now)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, 3, math.inf])
def test_the_attack_goes_farthest_and_stays_in_the_ball(p: float) -> None:
    gradient = torch.randn(4, 2, 3, 3, generator=torch.Generator().manual_seed(1))
    best = smoothadv.farthest(gradient, Norm(p))
    rng = np.random.default_rng(2)
    for g, b in zip(gradient.numpy(), best.numpy(), strict=True):
        assert Norm(p)(b) == pytest.approx(1, rel=1e-5)
        others = rng.normal(size=(2000, *g.shape)) * rng.random((2000, 1, 1, 1)) ** 3
        for other in (*others, g, np.sign(g)):
            assert (g * other).sum() / Norm(p)(other) <= (g * b).sum() * (1 + 1e-5)
    now = step(Tuned(samples=2, steps=4), p)
    moved = smoothadv.attack_batch(now, 0.3)
    for before, after in zip(now.inputs, moved, strict=True):
        if p >= 1:
            assert Norm(p)(after - before) <= 0.3 * (1 + 1e-5)
    rows = torch.arange(len(moved))

    def right(inputs: torch.Tensor) -> torch.Tensor:
        return now.log_probabilities(inputs).exp().mean(0)[rows, now.labels]

    assert bool((right(moved) < right(now.inputs)).all())


@pytest.mark.parametrize("p", [1, 1.5, 2, math.inf])
def test_an_attack_without_a_slope_stays_in_the_ball(p: float) -> None:
    """Where all gradients are 0 (units that are all off) there is no direction, and no nan."""
    moved = smoothadv.farthest(torch.zeros(4, 1, 3, 3), Norm(p))
    assert all(Norm(p)(each) <= 1 for each in moved.numpy())


@pytest.mark.parametrize(
    ("noise", "p"), [("gaussian(sigma=0.5)", 2), ("laplace(sigma=1)", 1), ("uniform(sigma=1)", 1)]
)
def test_radii_and_their_slopes_are_those_of_the_curve(noise: str, p: float) -> None:
    reach = Reach(parse(noise), Norm(p), 50)
    for value in (0.55, 0.8, 0.99):
        at = torch.tensor([value], dtype=torch.float64, requires_grad=True)
        radius = reach.of(at)
        exact, above = (
            certified_radius(parse(noise), norm=p, dim=50, p_a=v).proved
            for v in (value, value + 1e-4)
        )
        assert radius.item() == pytest.approx(exact, rel=5e-3)
        radius.backward()  # type: ignore[no-untyped-call]
        assert at.grad is not None
        assert float(at.grad) == pytest.approx((above - exact) / 1e-4, rel=0.03)


def test_macer_counts_what_the_radius_of_right_inputs_lacks() -> None:
    now = step(Tuned(samples=200, weight=3.0, radius=0.6), batch=30)
    scores = now.scores(now.inputs + now.noise).double()
    p = scores.softmax(-1)
    rows = torch.arange(30)
    plain = -p.mean(0)[rows, now.labels].log().mean()
    votes = (16 * p.log()).softmax(-1).mean(0)[rows, now.labels].numpy()
    lacking = [max(0, 1 - 0.5 * stats.norm.ppf(v) / 0.6) if v > 0.5 else 0 for v in votes]
    assert any(lacking)
    assert not all(lacking)
    expected = float(plain) + 3 * np.mean(lacking)
    assert float(macer.loss(now)) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("warm", [1.0, 0.25])
def test_margin_moves_each_input_by_its_own_radius(warm: float) -> None:
    """By numpy, one input at a time; linear scores have gradients in closed form."""
    now = replace(step(Tuned(samples=4, radius=0.9), batch=30), warm=warm)
    weights = now.scores(torch.eye(6)).double().numpy()
    clean, noise = now.inputs.double().numpy(), now.noise.double().numpy()
    label = now.labels.numpy()

    def softmax(inputs: NDArray[np.float64]) -> NDArray[np.float64]:
        raised = np.exp(inputs @ weights)
        return np.asarray(raised / raised.sum(-1, keepdims=True))

    losses, far = [], []
    for i in range(30):
        p = softmax(clean[i] + noise[:, i])
        share = p[:, label[i]] / p[:, label[i]].sum()
        falling = share @ (p @ weights.T - weights[:, label[i]])
        mean = p[:, label[i]].mean()
        far.append(warm * min(1.5 * 0.5 * stats.norm.ppf(mean), 0.9) if mean > 0.5 else 0)
        moved = clean[i] + far[i] * falling / np.linalg.norm(falling)
        other = softmax(moved + noise[:, i - 1])[:, label[i]]  # the noise of the input before
        losses.append(-np.log(other).mean() * (1 if mean > 0.5 else 1 - 0.4 * warm))
    assert min(far) == 0
    assert max(far) == pytest.approx(0.9 * warm)
    assert len(set(far)) > 5
    assert float(margin.loss(now)) == pytest.approx(np.mean(losses), rel=1e-4)


@pytest.mark.parametrize("method", ["consistency", "smoothadv", "macer", "margin"])
@pytest.mark.parametrize(
    ("noise", "norm"), [("laplace(sigma=0.25)", "1"), ("uniform(sigma=0.25)", "inf")]
)
def test_every_method_takes_every_noise(
    method: str, noise: str, norm: str, digits: Examples, tmp_path: Path
) -> None:
    """360 digits teach 40 others: guessing has 10 %, the bound is 35 %."""
    settings = short(noise, method=method, norm=norm, arch="lenet", samples=2, epochs=4, batch=20)
    fitted = train_run(digits, settings, tmp_path)
    assert fitted.history[-1]["accuracy"] > 0.35
    assert fitted.history[-1]["radius"] > 0
    assert fitted.best is fitted.history[-1]
    classifier = load_classifier("builtin:lenet", weights=tmp_path / WEIGHTS)
    assert classifier.num_classes == 10
    assert json.loads((tmp_path / SETTINGS).read_text())["settings"]["method"] == method


@pytest.mark.slow
@pytest.mark.important
def test_a_deep_lenet_learns_and_opens(digits: Examples, tmp_path: Path) -> None:
    settings = short(arch="deep-lenet", method="smoothadv", samples=2, steps=1, epochs=4, batch=20)
    fitted = train_run(digits, settings, tmp_path)
    assert fitted.history[-1]["accuracy"] > 0.35
    assert float(fitted.state["extra1.0.weight"].abs().max()) > 0
    opened = load_classifier(settings.spec, weights=tmp_path / WEIGHTS)
    same = load_classifier("builtin:lenet", weights=tmp_path / WEIGHTS)
    x = torch.rand(8, 1, 28, 28)
    assert torch.equal(opened.predict(x), same.predict(x))


def test_a_step_against_the_gradient_of_consistency_makes_copies_agree() -> None:
    """By float64 in numpy: the mean divergence of eight copies from their mean falls."""
    now = step(Tuned(samples=8, weight=1e4), batch=30)
    weights = now.scores(torch.eye(6)).T.clone().requires_grad_()
    moved = replace(now, scores=lambda x: x @ weights.T)
    (slope,) = torch.autograd.grad(METHODS["consistency"].loss(moved), weights)

    def apart(weights: torch.Tensor) -> float:
        scores = ((now.inputs + now.noise) @ weights.T).detach().double().numpy()
        p = np.exp(scores - special.logsumexp(scores, axis=-1, keepdims=True))
        mean = p.mean(axis=0)
        return float(np.mean(np.sum(mean * (np.log(mean) - np.log(p)), axis=-1)))

    size = 1e-3
    gain = apart(weights) - apart(weights - size * slope / slope.norm())
    # to first order the step gains its length times the slope of the divergence
    assert gain == pytest.approx(size * float(slope.norm()) / 1e4, rel=0.02)
    assert gain > 0


def test_smoothadv_resumes_to_the_same_bits(digits: Examples, tmp_path: Path) -> None:
    settings = short(method="smoothadv", weight=2.0, arch="lenet", schedule="cosine")
    whole = train_run(digits, settings, tmp_path / "whole")

    def stop(now: Fitted) -> None:
        if len(now.history) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_run(digits, settings, tmp_path / "cut", on_epoch=stop)
    rest = train_run(digits, settings, tmp_path / "cut", resume=True)
    assert all(torch.equal(whole.state[name], rest.state[name]) for name in whole.state)


def test_a_network_is_tuned_further(digits: Examples, tmp_path: Path) -> None:
    """With hardly any learning rate the weights stay where they began."""
    train_run(digits, short(epochs=1), tmp_path / "one")
    begun = str(tmp_path / "one" / WEIGHTS)
    tuned = train_run(digits, short(epochs=1, lr=1e-12, start=begun), tmp_path / "two")
    first = load_file(begun)
    assert all(torch.allclose(first[name], tuned.state[name], atol=1e-7) for name in first)
    with pytest.raises(ModelError, match="does not fit LeNet"):
        train_run(digits, short(arch="lenet", start=begun), tmp_path / "three")


def test_a_training_of_an_older_version_goes_on(digits: Examples, tmp_path: Path) -> None:
    """Settings that came later are written down only where they are used."""
    train_run(digits, short(epochs=1), tmp_path)
    written = json.loads((tmp_path / SETTINGS).read_text())["settings"]
    later = {"method", "schedule", "norm", "samples", "weight", "radius", "steps", "start"}
    assert not later & set(written)
    with pytest.raises(UnicrError, match="schedule"):
        train_run(digits, short(epochs=1, schedule="step"), tmp_path, resume=True)


def test_schedules() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 39)
    for now in range(40):
        rate = SCHEDULES["cosine"](now, 40, 0.1)
        assert rate == pytest.approx(schedule.get_last_lr()[0], abs=1e-9)
        optimizer.step()
        schedule.step()
    dropping = [SCHEDULES["step"](now, 40, 0.1) for now in (0, 19, 20, 29, 30, 35, 36, 39)]
    assert dropping == pytest.approx([0.1, 0.1, 0.01, 0.01, 1e-3, 1e-3, 1e-4, 1e-4])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method": "luck"}, "no method 'luck'; there are augment, consistency, macer, margin"),
        ({"schedule": "flat"}, "no schedule 'flat'; there are one-cycle, cosine, step"),
        ({"samples": 0}, "samples=0"),
        ({"weight": -1.0}, "weight=-1.0"),
        ({"radius": float("nan")}, "radius=nan"),
        ({"steps": 0}, "steps=0"),
        ({"norm": "wide"}, "cannot read the norm 'wide'"),
    ],
)
def test_bad_settings(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UnicrError, match=words):
        short(**changes)


def test_what_cannot_be_trained(digits: Examples, tmp_path: Path) -> None:
    for method in set(METHODS) - {"augment"}:
        with pytest.raises(TrainError, match=f"the method {method} needs a noise"):
            train_run(digits, short(None, method=method), tmp_path / method)
    flat = Examples(torch.zeros(20, 784), torch.arange(20) % 10, 10)
    with pytest.raises(TrainError, match="lenet works on images"):
        train_run(flat, short(arch="lenet"), tmp_path / "flat")
    train_run(digits, short(epochs=1), tmp_path / "mlp")
    with pytest.raises(ModelError, match="not belong to a lenet"):
        load_classifier("builtin:lenet", weights=tmp_path / "mlp" / WEIGHTS)
