"""Votes on a device that is not the processor: what moves between the two, and that votes agree.

No GPU is needed: a stand-in device keeps its tensors in the processor's memory, and every way by
which a value goes from one to the other is seen and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from unicr import SmoothedClassifier
from unicr.classifier import Classifier, load_classifier
from unicr.classifier.internal import labels_of
from unicr.errors import ModelError
from unicr.noise import Noise, gaussian, gennorm, laplace

AWAY = torch.device("meta")  # a device that every torch knows, and that holds no values itself
# what makes the processor wait for a value, beside copies
WAITS = {"_local_scalar_dense", "nonzero", "equal", "is_nonzero", "masked_select", "item"}


class Away(torch.Tensor):
    """A tensor of the stand-in device; `here` is where its values really are."""

    here: torch.Tensor

    @staticmethod
    def __new__(cls, here: torch.Tensor) -> Away:
        made: Away = torch.Tensor._make_wrapper_subclass(
            cls, here.shape, strides=here.stride(), dtype=here.dtype, device=AWAY
        )
        made.here = here
        return made

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        raise AssertionError(f"{func} outside of the stand-in device")


class StandIn(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Runs operations on the stand-in device, and lists what crosses over and what waits."""

    def __init__(self, doubles: bool = True) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.crossings: list[str] = []
        self.doubles = doubles

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = func.overloadpacket.__name__
        flat, _ = tree_flatten((args, kwargs))
        tensors = [one for one in flat if isinstance(one, torch.Tensor)]
        away = [one for one in tensors if isinstance(one, Away)]
        to = kwargs.get("device")
        target = bool(away) if to is None else torch.device(to).type == AWAY.type
        if to is not None and target:
            kwargs["device"] = torch.device("cpu")
        if name in ("_to_copy", "copy_") and len(tensors) > 0:
            source = tensors[-1] if name == "copy_" else tensors[0]
            into = isinstance(tensors[0], Away) if name == "copy_" else target
            if isinstance(source, Away) != into:
                self.crossings.append(f"{name} {'to' if into else 'from'} the device")
        elif away and (name in WAITS or self._picks_by_mask(name, flat)):
            self.crossings.append(name)
        elif away and any(not isinstance(one, Away) and one.ndim for one in tensors):
            raise AssertionError(f"{name} of tensors in two places")
        given = tree_map(lambda one: one.here if isinstance(one, Away) else one, (args, kwargs))
        out = func(*given[0], **given[1])
        if not target:
            return out
        known = {id(one.here): one for one in away}  # what works in place gives back its argument

        def wrap(one: Any) -> Any:
            if not isinstance(one, torch.Tensor):
                return one
            if not self.doubles and one.dtype == torch.float64:
                raise TypeError(f"{name}: this device has no float64")
            return known[id(one)] if id(one) in known else Away(one)

        return tree_map(wrap, out)

    @staticmethod
    def _picks_by_mask(name: str, flat: list[Any]) -> bool:
        where = flat[1:]  # after the tensor that is looked into
        masks = any(isinstance(one, torch.Tensor) and one.dtype == torch.bool for one in where)
        return name in ("index", "index_put_") and masks


class Network(Classifier):
    """A linear network whose weights are on the stand-in device."""

    def __init__(self, weights: torch.Tensor) -> None:
        super().__init__(name="net", digest="0" * 64, device=AWAY, num_classes=weights.shape[1])
        self._weights = weights

    def predict(self, batch: torch.Tensor) -> torch.Tensor:
        return labels_of(batch.flatten(1) @ self._weights, len(batch), self.name)

    def predict_unchecked(self, batch: torch.Tensor) -> torch.Tensor:
        return self._labels_unchecked(batch.flatten(1) @ self._weights, len(batch))


class Slow(Network):
    """The same, and it looks at its labels in every pass."""

    def predict_unchecked(self, batch: torch.Tensor) -> torch.Tensor:
        return self.predict(batch)


WEIGHTS = torch.from_numpy(np.random.default_rng(3).normal(size=(48, 5)).astype(np.float32))
X = torch.from_numpy(np.random.default_rng(4).random((3, 4, 4), dtype=np.float32))


@contextmanager
def on_stand_in(
    kind: type[Network], law: Noise, doubles: bool = True
) -> Iterator[tuple[SmoothedClassifier, StandIn]]:
    with StandIn(doubles) as seen:
        model = kind(WEIGHTS.to(AWAY))
        yield SmoothedClassifier(model, law, seed=1, batch=50), seen


def count_crossings(kind: type[Network], law: Noise, passes: int) -> int:
    with on_stand_in(kind, law) as (smoothed, seen):
        smoothed.votes(X, 50, start=0)  # what is done once: tables sent, the model looked at
        seen.crossings.clear()
        smoothed.votes(X, 50 * passes, start=1000)
        return len(seen.crossings)


# gennorm of a small beta has heavy tails, where the processor draws most
LAWS = [gaussian(sigma=0.5), laplace(sigma=0.5), gennorm(beta=0.25, scale=0.001)]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.text)
def test_votes_of_the_device_are_those_of_the_processor(law: Noise) -> None:
    here = load_classifier(lambda batch: batch.flatten(1) @ WEIGHTS)
    expected = SmoothedClassifier(here, law, seed=1, batch=50).votes(X, 500, start=7)
    with on_stand_in(Network, law) as (smoothed, _):
        assert smoothed.votes(X, 500, start=7).tolist() == expected.tolist()
    assert (expected > 0).sum() > 1


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.text)
def test_no_pass_moves_anything_between_device_and_processor(law: Noise) -> None:
    """Key, row, the list of draws that the processor makes, these draws, and the counts."""
    few, many = (count_crossings(Network, law, passes) for passes in (1, 9))
    assert few == many == 5


def test_a_copy_in_every_pass_is_seen() -> None:
    few, many = (count_crossings(Slow, LAWS[0], passes) for passes in (1, 9))
    assert many - few >= 8


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.text)
def test_a_device_without_doubles_gets_its_noise_and_is_not_waited_for(
    law: Noise, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Apple's: the right votes, one copy to the device in a pass, one back for all of them."""
    here = load_classifier(lambda batch: batch.flatten(1) @ WEIGHTS)
    expected = SmoothedClassifier(here, law, seed=1, batch=50).votes(X, 450, start=1000)
    with pytest.raises(TypeError, match="no float64"), on_stand_in(Network, law, False) as (g, _):
        g.votes(X, 50, start=0)  # taken for a device that has them
    monkeypatch.setattr("unicr.sample._fill.NO_DOUBLES", (AWAY.type,))
    monkeypatch.setattr("unicr.classifier._base.SHORT_INTEGERS", (AWAY.type,))
    with on_stand_in(Network, law, False) as (g, seen):
        g.votes(X, 50, start=0)
        seen.crossings.clear()
        assert g.votes(X, 450, start=1000).tolist() == expected.tolist()
    assert seen.crossings == ["copy_ to the device"] * 9 + ["_to_copy from the device"]


@pytest.mark.parametrize("held", [1, 120, 1 << 16])
def test_labels_that_wait_are_copies_and_all_are_counted(
    held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model may write its labels to the same memory each time; 500 of them wait for a while."""
    fresh = load_classifier(lambda batch: (batch.flatten(1) @ WEIGHTS).argmax(1))
    expected = SmoothedClassifier(fresh, LAWS[0], seed=1, batch=50).votes(X, 500, start=0)
    monkeypatch.setattr("unicr.classifier._base.MOST_HELD", held)
    memory = torch.zeros(50, dtype=torch.int64)

    def label(batch: torch.Tensor) -> torch.Tensor:
        memory[: len(batch)] = (batch.flatten(1) @ WEIGHTS).argmax(1)
        return memory[: len(batch)]

    again = SmoothedClassifier(
        load_classifier(label), LAWS[0], seed=1, batch=50, num_classes=len(expected)
    )
    assert again.votes(X, 500, start=0).tolist() == expected.tolist()
    assert (expected > 0).sum() > 1


def test_scores_that_are_not_finite_are_found_when_votes_are_read() -> None:
    with StandIn():
        model = Network((WEIGHTS * torch.tensor([1, 1, 1, 1, torch.inf])).to(AWAY))
        with pytest.raises(ModelError, match="not finite"):
            SmoothedClassifier(model, LAWS[0], seed=1, batch=50).votes(X, 500, start=0)


def test_labels_beyond_the_classes_are_found_when_votes_are_read() -> None:
    with StandIn():
        model = Network(WEIGHTS.to(AWAY))
        with pytest.raises(ModelError, match="returned the label 4, but there are only 4 classes"):
            SmoothedClassifier(model, LAWS[0], seed=1, batch=50, num_classes=4).votes(
                X, 500, start=0
            )


def test_an_input_in_float64_is_moved_to_the_grid_as_it_is() -> None:
    """An input half way between two float32 numbers, with noise far smaller than their distance.

    The model sees either of them half of the time; were the input rounded to float32 before, it
    would see one of them only. 1,000 fair votes leave (400, 600) with probability below 1e-9.
    """
    below = 2.0**-10
    x = torch.full((1,), below + 2.0**-34, dtype=torch.float64)
    smoothed = SmoothedClassifier(
        lambda batch: (batch[:, 0] > below).long(),
        gaussian(sigma=2.0**-36),
        num_classes=2,
        seed=1,
        lattice="2^-45",
    )
    assert min(smoothed.votes(x, 1000, start=0).tolist()) > 400
    assert smoothed.votes(x.to(torch.float32), 1000, start=0).tolist() == [1000, 0]
