"""What an adapter is: how it knows its models, and how it makes a classifier of one.

A new kind of model is one new file in `adapters/` that holds an `Adapter`, or an entry point of
another distribution; nothing else changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unicr.classifier._base import Classifier
from unicr.extras import torch
from unicr.registry import Catalogue


@dataclass(frozen=True)
class ModelAsked:
    """A model to load: its text, or the object it is, and what the user said about it.

    `weights` is a file for an architecture, `device` is None where an object may stay where it is,
    `trust` are the files that may run their author's code, `normalised` says that the user gave
    mean and std.
    """

    spec: str | None
    thing: Any = None
    weights: Path | None = None
    device: torch.device | None = None
    trust: tuple[Path, ...] = ()
    num_classes: int | None = None
    normalised: bool = False

    @property
    def path(self) -> Path:
        """The file or folder that the text names, without a prefix such as hf:."""
        assert self.spec is not None
        return Path(self.spec.removeprefix("hf:")).expanduser()

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return self.spec if self.spec is not None else type(self.thing).__name__


@dataclass(frozen=True)
class Adapter:
    """One kind of model. The first adapter, by `rank`, that takes a model loads it.

    `forms` is how users write it, for messages; `takes_weights` allows a file of weights beside
    it. What `load` raises becomes a ModelError that names the model.
    """

    forms: str
    takes: Callable[[ModelAsked], bool]
    load: Callable[[ModelAsked], Classifier]
    takes_weights: bool = False
    rank: int = 0


def with_ending(*endings: str) -> Callable[[ModelAsked], bool]:
    """The `takes` of a kind that is known by the ending of its files."""
    return lambda asked: (
        asked.thing is None and asked.path.suffix.lower() in endings and asked.path.is_file()
    )


def with_prefix(prefix: str) -> Callable[[ModelAsked], bool]:
    """The `takes` of a kind that is known by the beginning of its text."""
    return lambda asked: asked.thing is None and (asked.spec or "").startswith(prefix)


ADAPTERS: Catalogue[Adapter] = Catalogue(
    "unicr.adapters", "unicr.classifier.adapters", Adapter, sort=lambda adapter: adapter.rank
)
"""Every adapter, in the order in which they are asked."""
