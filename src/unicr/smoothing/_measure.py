"""What is counted of the noisy copies of an input: classes, the votes of one member, offsets, …

Counts add up over samples, so chunks, workers and the store need not know what they count. What
the counts are worth is said by a procedure (`_procedure.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from unicr.classifier import Classifier
from unicr.extras import torch
from unicr.registry import Catalogue
from unicr.smoothing._named import Registered

if TYPE_CHECKING:
    from unicr.noise import Lattice, Noise

Counts = NDArray[np.int64]


class Measure(Registered, ABC):
    """Subclasses are frozen dataclasses.

    `one_vote_each` says that a copy counts once, so that n copies have n votes in all: that is
    checked of every answer. `noisy` is False for what is counted of the input itself.
    """

    kind = "measure"
    one_vote_each: ClassVar[bool] = True
    noisy: ClassVar[bool] = True

    @abstractmethod
    def count(self, model: Classifier, batch: torch.Tensor, classes: int | None) -> Counts:
        """What a batch of noisy copies counts for; sums over batches must mean the same."""

    def copies(
        self, noise: Noise, lattice: Lattice | None, x: torch.Tensor, key: bytes
    ) -> Callable[[torch.Tensor, int], object] | None:
        """What fills a batch with copies from a number on, None where the noise is sampled."""
        return None


def as_tuple(counts: Counts) -> tuple[int, ...]:
    """Counts as plain whole numbers."""
    return tuple(int(c) for c in counts)


def at(counts: Counts, index: int) -> int:
    """One count; 0 where the counts do not reach that far."""
    return int(counts[index]) if index < len(counts) else 0


def add(a: Counts, b: Counts) -> Counts:
    """Sum of two counts, of which one may be longer."""
    total = np.zeros(max(len(a), len(b)), dtype=np.int64)
    total[: len(a)] += a
    total[: len(b)] += b
    return total


MEASURES: Catalogue[type[Measure]] = Catalogue(
    "unicr.measures", "unicr.smoothing.measures", Measure, classes=True
)
Measure.catalogue = MEASURES
