"""A selector with the classifiers that it chooses between, as one model: `DIR/selector.json`.

Which noise belongs to which of them is the business of `unicr.select`; here they are members of one
classifier with one digest, so that runs, workers and auditors load and compare them together.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unicr.classifier._base import Classifier
from unicr.classifier._digest import check_inside
from unicr.classifier._load import Adapter, ModelAsked
from unicr.errors import ModelError
from unicr.extras import torch
from unicr.files import combine_digests, is_among
from unicr.text import split_reference

FILE = "selector.json"
LOADING = frozenset({"spec", "weights", "mean", "std", "num_classes"})


class Selective(Classifier):
    """`members[0]` gives each input the number k of a choice, `members[1 + k]` then its label."""

    def __init__(
        self, selector: Classifier, choices: Sequence[Classifier], name: str = "selective"
    ) -> None:
        members = (selector, *choices)
        if len(choices) < 2:
            raise ModelError(f"{name}: a selector needs at least two classifiers to choose from")
        if selector.num_classes not in (None, len(choices)):
            raise ModelError(
                f"{name}: the selector {selector.name} has {selector.num_classes} outputs, but "
                f"there are {len(choices)} classifiers to choose from"
            )
        sizes = {one.num_classes for one in choices if one.num_classes is not None}
        if len(sizes) > 1 or len({one.classes for one in choices}) > 1:
            raise ModelError(
                f"{name}: its classifiers have different numbers of classes ({sorted(sizes)})"
            )
        super().__init__(
            name=name,
            digest=combine_digests("selective", *(one.digest for one in members)),
            device=selector.device,
            num_classes=next(iter(sizes), None),
            classes=choices[0].classes,
        )
        self.members = members

    def predict(self, batch: torch.Tensor) -> torch.Tensor:
        chosen = self.members[0].predict(batch)
        labels = torch.zeros_like(chosen)
        for k, member in enumerate(self.members[1:]):
            if bool((mine := chosen == k).any()):
                labels[mine] = member.predict(batch[mine])
        return labels

    @property
    def has_convolutions(self) -> bool:
        return any(one.has_convolutions for one in self.members)

    def replica(self) -> Selective | None:
        twins = [one.replica() for one in self.members]
        if any(one is None for one in twins):
            return None
        twin = copy.copy(self)
        twin.members = tuple(one for one in twins if one is not None)
        return twin


def read(path: Path) -> dict[str, Any]:
    """What a selector.json says: `noise`, `choices` and `models`, each of the right type."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        texts, models = [values["noise"], *values["choices"]], values["models"]
        right = all(isinstance(text, str) for text in texts) and len(texts) == len(models) > 2
        right &= all(isinstance(one, dict) and isinstance(one["spec"], str) for one in models)
        right &= all(set(one) <= LOADING for one in models)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelError(f"cannot read the selector {path}: {error!r}") from None
    if not right:
        raise ModelError(
            f"cannot read the selector {path}: it must name a noise and a model for itself and for "
            "each choice"
        )
    return dict(values)


def load(asked: ModelAsked) -> Classifier:
    """All members. Weights lie beside the file; Python files that it names need the user's trust.

    Files of models that can carry code are refused by their own adapters.
    """
    from unicr.classifier._load import load_classifier, names_python

    path = asked.path
    members = []
    for one in read(path)["models"]:
        spec = one["spec"]
        if names_python(spec) and not is_among(code := split_reference(spec)[0], asked.trust):
            raise ModelError(
                f"{path} names the model {spec}, which can run code: if you trust it, name its "
                f"file (--trust {code})"
            )
        if spec.startswith("hub:"):
            raise ModelError(
                f"{path} names the model {spec}, which is not on this machine: save it in a folder "
                "and name that as hf:DIR"
            )
        if "weights" in one:
            check_inside(path, path.parent, str(one["weights"]))
            one = {**one, "weights": path.parent / str(one["weights"])}
        members.append(load_classifier(**one, device=asked.device, trust=asked.trust))
    return Selective(members[0], members[1:], name=str(asked.spec))


def _is_selector(asked: ModelAsked) -> bool:
    return asked.thing is None and asked.path.name == FILE and asked.path.is_file()


ADAPTERS = (Adapter(FILE, lambda asked: _is_selector(asked), load, rank=-1),)
