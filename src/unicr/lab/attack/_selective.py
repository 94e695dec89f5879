"""A selector and its classifiers as attacks see them together, and the judge of such a predictor.

An attack may move the input to where the selector chooses another classifier, or to where the
chosen one errs: p(class) = Σ_k w_k p_k(class), with w_k how much the selector leans to choice k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from unicr.classifier import Classifier, Selective
from unicr.lab.attack._settings import AttackError
from unicr.select import SelectiveClassifier, Selector
from unicr.smoothing import Counts, SmoothedModel

SHARP = 4.0  # the selector's shares to this power: nearly all or nothing, with a gradient
EXCLUDED = 1e-6  # a choice counts as impossible at x + δ where this is the chance of an error


class SelectiveModel(SmoothedModel):
    """Log-probabilities of the whole predictor; each member sees its own noise."""

    def __init__(
        self,
        classifier: Selective,
        selector: Selector,
        indices: Sequence[int],
        shape: tuple[int, ...],
        *,
        num_classes: int,
        **settings: Any,
    ) -> None:
        torch.nn.Module.__init__(self)
        laws, members = (selector.noise, *selector.choices), classifier.members
        sizes = [len(selector.choices), *[num_classes] * len(selector.choices)]
        self.parts = tuple(
            SmoothedModel(
                member, [law] * len(indices), indices, shape, num_classes=size, **settings
            )
            for member, law, size in zip(members, laws, sizes, strict=True)
        )
        self.name, self.device, self.num_classes = classifier.name, classifier.device, num_classes
        self.samples = settings.get("samples", 32)

    @property
    def differentiable(self) -> bool:
        """Whether gradients reach the input through every member."""
        return all(part.differentiable for part in self.parts)

    def forward(self, x: torch.Tensor, rows: torch.Tensor | None = None) -> torch.Tensor:
        """log p(x) of the mixture."""
        selector, *others = self.parts
        lean = torch.log_softmax(SHARP * selector(x, rows), 1)
        each = torch.stack([part(x, rows) for part in others], 1)
        return torch.logsumexp(lean[:, :, None] + each, 1)

    def votes(self, x: torch.Tensor, rows: torch.Tensor | None = None) -> torch.Tensor:
        """Votes of the classifier that most samples of the selector choose (their median)."""
        selector, *others = self.parts
        total = selector.votes(x, rows).cumsum(1)
        chosen = (2 * total >= self.samples).float().argmax(1)
        each = torch.stack([part.votes(x, rows) for part in others], 1)
        return each[torch.arange(len(x)), chosen]


def selective_judge(
    classifier: Classifier, selector: Selector, **settings: Any
) -> Callable[[torch.Tensor, int, int, int], Counts]:
    """Votes that speak about the predictor's class at a moved input: (x, n, input, class) → counts.

    Of the choices that the selector may have there, the one that is kindest to the certified class:
    a change is only seen where it is sure.
    """
    if not isinstance(classifier, Selective):
        raise AttackError(f"{classifier.name} is not a selector: make one with `unicr select`")
    first_model, *others = classifier.members
    predictor = SelectiveClassifier(
        first_model, selector.noise, others, selector.choices, **settings
    )

    def counts(x: torch.Tensor, n: int, index: int, certified: int) -> Counts:
        sides = predictor.class_votes(x, n, EXCLUDED, index)
        return max(sides, key=lambda votes: _lead(votes, certified))

    return counts


def _lead(counts: Counts, certified: int) -> int:
    others = np.delete(counts, certified)
    return int(counts[certified]) - int(others.max(initial=0))
