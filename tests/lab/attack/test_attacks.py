"""Each attack: within its ball, repeatable, and as strong as a planted classifier lets it be."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Hashable

import numpy as np
import pytest
import torch

from tests.lab.attack.planted import linear_targets, weights
from unicr import noise
from unicr.classifier import load_classifier
from unicr.data import load_dataset
from unicr.errors import MissingExtraError
from unicr.lab.attack import ATTACKS, AttackError, SmoothedModel, Targets, make
from unicr.lab.attack.procedural import _gradient_noise, gabor, perlin
from unicr.norms import Norm, l1, l2, linf

NORMS = [l1, l2, linf]
QUICK = {"square": 0.1, "hopskipjump": 0.3, "wasserstein": 0.3, "procedural": 0.3}
DUAL = {l1: math.inf, l2: 2.0, linf: 1.0}


def mnist(count: int = 3, *, clip: bool = False) -> Targets:
    data = load_dataset("builtin:mnist")
    x = torch.stack([data[i][0] for i in range(count)])
    classifier = load_classifier("builtin:mnist-mlp-0.5")
    law = noise.gaussian(sigma=0.5)
    model = SmoothedModel(classifier, [law] * count, range(count), (1, 28, 28), samples=16)
    classes = torch.tensor([data[i][1] for i in range(count)])
    starts = tuple(data[i][0] for i in range(3, 9))
    return Targets(x, classes, model, seed=1, clip=clip, starts=starts)


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_stays_in_its_ball_and_can_be_repeated(name: str) -> None:
    targets = mnist()
    attack = make(name, QUICK.get(name, 0.5))
    states = generators()
    memory: dict[Hashable, torch.Tensor] = {}
    found = []
    for norm, radius in ((l1, 1.0), (l2, 1.3), (linf, 0.05), (Norm(1.5), 0.5)):
        for factor in (1.0, 3.0):
            bounds = factor * radius * np.array([0.5, 1.0, 2.0])
            moved = attack.perturb(targets, norm, bounds, memory)
            away = (moved.double() - targets.x.double()).flatten(1).numpy()
            lengths = np.array([np.linalg.norm(one, norm.p) for one in away])
            assert (lengths < bounds).all()
            assert (lengths > 0.999 * bounds).all()
            found.append(moved)
    assert generators() == states
    again = attack.perturb(mnist(), l1, np.array([0.5, 1.0, 2.0]))
    assert torch.equal(again, found[0])


def generators() -> tuple[list[int], list[int]]:
    """The states of the global generators that libraries draw from."""
    legacy = np.random.get_state(legacy=False)  # noqa: NPY002
    return torch.get_rng_state().tolist(), legacy["state"]["key"].tolist()


@pytest.mark.parametrize("name", ["apgd", "pgd"])
@pytest.mark.parametrize("norm", NORMS)
def test_gradient_attacks_find_the_worst_direction_of_a_linear_classifier(
    name: str, norm: Norm
) -> None:
    """w·δ over ‖δ‖_p ≤ R is least at −R‖w‖_q with 1/p + 1/q = 1."""
    targets = linear_targets()
    bounds = np.array([0.2, 0.5, 1.0]) * (0.2 if norm == linf else 1.0)
    moved = make(name).perturb(targets, norm, bounds)
    weight = weights(36).double()
    drop = -(moved.double() - targets.x.double()).flatten(1) @ weight
    worst = torch.from_numpy(bounds) * torch.linalg.vector_norm(weight, DUAL[norm])
    assert bool((drop <= worst * (1 + 1e-9)).all())
    assert bool((drop >= 0.95 * worst).all())


def test_hopskipjump_finds_the_normal_of_a_linear_classifier() -> None:
    targets = linear_targets(count=2)
    far = -3.0 * weights(36).view(1, 6, 6) + torch.randn(1, 6, 6, generator=_generator())
    targets = dataclasses.replace(targets, starts=(far,))
    moved = make("hopskipjump", 2.0).perturb(targets, l2, np.ones(2))
    weight = weights(36)
    drop = -((moved - targets.x).flatten(1) @ weight) / weight.norm()
    assert bool((drop > 0.8).all())


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("name", ["square", "procedural", "gaussian"])
def test_a_longer_search_is_never_worse(name: str) -> None:
    """The candidates of a short search come first in a long one of the same seed."""
    targets = linear_targets(count=4, samples=32)
    bounds = np.full(4, 0.5)
    margins = []
    for effort in (0.02, 0.2) if name == "square" else (0.125, 4.0):
        moved = make(name, effort).perturb(targets, l2, bounds)
        with torch.no_grad():
            margins.append(targets.margin(moved - targets.x))
    assert float((margins[1] - margins[0]).max()) < (0.0 if name == "square" else 1e-4)
    assert float((margins[1] - margins[0]).mean()) < 0


def test_wasserstein_lowers_the_margin_more_than_a_random_direction() -> None:
    targets = mnist(2)
    bounds = np.full(2, 4.0)
    found = {}
    for name in ("wasserstein", "gaussian"):
        moved = make(name, 0.5).perturb(targets, l2, bounds)
        with torch.no_grad():
            found[name] = targets.margin(moved - targets.x)
    assert bool((found["wasserstein"] < found["gaussian"]).all())


def test_clipping_keeps_images_valid() -> None:
    targets = mnist(clip=True)
    for name in ("apgd", "gaussian"):
        moved = make(name, 0.3).perturb(targets, l2, np.full(3, 3.0))
        assert float(moved.min()) >= 0
        assert float(moved.max()) <= 1
        assert not torch.equal(moved, targets.x)
        lengths = (moved.double() - targets.x.double()).flatten(1).norm(dim=1)
        assert bool((lengths < 3.0).all())


def test_attacks_by_labels_need_no_torch_module() -> None:
    weight = weights(36).numpy()

    def classify(batch: np.ndarray) -> np.ndarray:
        scores: np.ndarray = batch.reshape(len(batch), -1) @ weight
        return (scores > 0).astype(np.int64)

    classifier = load_classifier(classify, num_classes=2)
    x = torch.from_numpy(weight * 0.05).view(1, 1, 6, 6)
    law = [noise.gaussian(sigma=0.2)]
    model = SmoothedModel(classifier, law, [0], (1, 6, 6), samples=64)
    targets = Targets(x, torch.ones(1, dtype=torch.int64), model)
    for name in ("square", "hopskipjump", "procedural", "gaussian"):
        moved = make(name, 0.3).perturb(targets, l2, np.array([2.0]))
        assert float((moved - x).norm()) == pytest.approx(2.0, rel=1e-4)
    for name in ("apgd", "pgd", "wasserstein"):
        with pytest.raises(AttackError, match="not a torch module: use square, hopskipjump"):
            make(name).perturb(targets, l2, np.array([1.0]))


def test_an_attack_that_finds_nothing_takes_a_random_direction() -> None:
    classifier = load_classifier(constant, num_classes=2)
    model = SmoothedModel(classifier, [noise.gaussian(sigma=0.2)], [0], (1, 6, 6), samples=4)
    targets = Targets(torch.zeros(1, 1, 6, 6), torch.zeros(1, dtype=torch.int64), model)
    moved = make("hopskipjump").perturb(targets, l2, np.array([1.0]))
    assert float(moved.norm()) == pytest.approx(1.0, rel=1e-4)


def constant(batch: torch.Tensor) -> torch.Tensor:
    return torch.zeros(len(batch), dtype=torch.int64)


def test_hopskipjump_ends_when_its_queries_are_spent() -> None:
    targets = linear_targets(count=1)
    attack = dataclasses.replace(make("hopskipjump"), most_queries=80)  # type: ignore[call-arg]
    moved = attack.perturb(targets, l2, np.array([1.0]))
    assert float((moved - targets.x).norm()) == pytest.approx(1.0, rel=1e-4)


def test_patterns_are_what_they_are_called() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        on_the_grid = _gradient_noise(8, 8, 0.5)
        assert float(on_the_grid.abs().max()) < 1e-6
        smooth = _gradient_noise(40, 40, 20.0)
        assert 0.05 < float(smooth.abs().max()) <= math.sqrt(0.5) + 1e-6
        assert float(smooth.diff(dim=0).abs().max()) < 0.2
        for pattern in (perlin, gabor):
            drawn = [pattern(20, 12) for _ in range(4)]
            assert all(one.shape == (20, 12) for one in drawn)
            assert all(0.1 < float(one.abs().max()) <= 1 + 1e-6 for one in drawn)
            assert not torch.equal(drawn[0], drawn[1])


def test_what_cannot_be_attacked_is_refused() -> None:
    targets = linear_targets()
    with pytest.raises(AttackError, match="one finite number above 0 for each input"):
        make("gaussian").perturb(targets, l2, np.array([1.0, 0.0, 1.0]))
    with pytest.raises(AttackError, match="one finite number above 0 for each input"):
        make("gaussian").perturb(targets, l2, np.array([1.0]))
    outside = dataclasses.replace(targets, x=targets.x + 1, clip=True)
    with pytest.raises(AttackError, match=r"some inputs are outside"):
        make("gaussian").perturb(outside, l2, np.ones(3))
    negative = dataclasses.replace(targets, x=targets.x - 5)
    with pytest.raises(AttackError, match="every pixel must be at least 0"):
        make("wasserstein").perturb(negative, l2, np.ones(3))
    law = [noise.gaussian(sigma=0.1)]
    flat = SmoothedModel(load_classifier(constant, num_classes=2), law, [0], (9,), samples=2)
    vector = Targets(torch.zeros(1, 9), torch.zeros(1, dtype=torch.int64), flat)
    for name in ("square", "procedural"):
        with pytest.raises(AttackError, match=r"needs images .* not inputs of shape \(9,\)"):
            make(name).perturb(vector, l2, np.ones(1))


def test_settings_that_make_no_attack_are_refused() -> None:
    with pytest.raises(AttackError, match="no attack 'fgsm'; there are apgd"):
        make("fgsm")
    with pytest.raises(AttackError, match="effort=0 must be above 0"):
        make("apgd", 0)
    with pytest.raises(AttackError, match="gaussian: tries=0 must be above 0"):
        ATTACKS["gaussian"](tries=0)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("name", "module"), [("apgd", "pyautoattack"), ("hopskipjump", "art"), ("pgd", "foolbox")]
)
def test_a_missing_library_names_its_extra(
    name: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"unicr\[attack\]"):
        make(name).perturb(linear_targets(), l2, np.ones(3))
