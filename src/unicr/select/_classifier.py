"""The deployable predictor g(x) = g_{s(x)}(x): its answer depends on the input alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from unicr.classifier import Classifier, Selective, load_classifier
from unicr.classifier.internal import Trust
from unicr.errors import CertifyError
from unicr.extras import torch
from unicr.noise import Lattice, Noise
from unicr.norms import Norm
from unicr.select._file import file_of, load_selector
from unicr.smoothing import (
    ABSTAIN,
    AUTO,
    Counts,
    Curves,
    Plan,
    VoteCounter,
    answer_all,
    clear_winner,
    find_finest,
    lower_bound,
    read_norms,
)
from unicr.smoothing.procedures import MemberVotes, SelectiveCertificate, Selector
from unicr.tables import to_html

Query = Norm | float | str | Iterable[Norm | float | str]


class SelectiveClassifier:
    """A classifier that chooses its noise for each input by a selector.

    The selector h gives the number of a choice. s(x) is the median of h(x + η), where η is `noise`.
    g(x) is the most probable class of the chosen classifier under its noise, one of `choices`.
    There is one classifier for each choice, or one for all; models are anything that
    `load_classifier` takes. Answers do not depend on earlier queries, and a certificate holds for
    every input in its ball. `seed`, `nonce` and `lattice` are as in `VoteCounter`; all members
    share one lattice.
    """

    def __init__(
        self,
        selector: Classifier | Any,
        noise: Noise,
        models: Any,
        choices: Sequence[Noise],
        *,
        seed: int | None = None,
        nonce: str | None = None,
        lattice: Lattice | str | None = AUTO,
        batch: int | None = None,
        channels_last: bool | None = None,
        **settings: Any,
    ) -> None:
        several = list(models) if isinstance(models, list | tuple) else [models] * len(choices)
        if len(several) != len(choices):
            raise CertifyError(
                f"there are {len(several)} models for {len(choices)} noises: give one model for "
                "each noise"
            )
        members = [load_classifier(model) for model in several]
        self.settings = Selector(noise, tuple(choices), **settings)
        self.model = Selective(load_classifier(selector), members)
        self._smoothed = VoteCounter(
            self.model,
            find_finest(self.settings.laws),
            batch=batch,
            channels_last=channels_last,
            seed=seed,
            nonce=nonce,
            lattice=lattice,
        )

    def __repr__(self) -> str:
        return f"SelectiveClassifier({self.model.name!r}, {len(self.settings.choices)} noises)"

    def _repr_html_(self) -> str:
        rows = zip(self.settings.laws, self.model.members, strict=True)  # the first: the selector
        return to_html([{"model": member.name, "noise": repr(law)} for law, member in rows])

    @classmethod
    def load(cls, path: str | Path, *, trust: Trust = None, **settings: Any) -> SelectiveClassifier:
        """The predictor of a folder that `unicr select` made."""
        file = file_of(Path(path))
        model = cast("Selective", load_classifier(str(file), trust=trust))
        stored, members = load_selector(file), model.members
        return cls(members[0], stored.noise, members[1:], stored.choices, **settings)

    def certify(
        self,
        x: torch.Tensor,
        norm: Query = 2,
        *,
        n0: int = 100,
        n: int = 100_000,
        alpha: float = 0.001,
        plan: Plan | None = None,
        searched: bool = False,
        input_index: int = 0,
    ) -> SelectiveCertificate:
        """With probability ≥ 1 − α: g(x + δ) = g(x) for every ‖δ‖_p below the radius.

        n is for the chosen classifier, and the most for each test beside it; most need far fewer.

        See docs/theory.md#the-selector.
        """
        plan = plan or Plan(n0=n0, n=n, alpha=alpha)
        plan = self.settings.fit(plan)
        plan.check_samples()
        x, norms = torch.as_tensor(x), read_norms(norm)
        lattice = self._smoothed.lattice_of(x, norms)
        curves = Curves(norms, x.numel(), searched=searched, lattice=lattice)
        steps = self.settings.steps(plan, self.settings.noise, curves)
        certificate = answer_all(steps, lambda asked: self._smoothed.answer(asked, x, input_index))
        return replace(cast("SelectiveCertificate", certificate), seed=self._smoothed.seed)

    def predict(
        self, x: torch.Tensor, *, n: int = 1000, alpha: float = 0.001, input_index: int = 0
    ) -> int:
        """g(x), or −1 if the votes do not show it: wrong with probability at most α.

        Half of α is for the choices that n votes of h leave possible (one, as a rule), half for
        the classifiers of these, n votes each: all must clearly give one class.

        See docs/theory.md#the-selector.
        """
        sides = self.class_votes(x, n, alpha / 4, input_index)
        labels = {clear_winner(votes, alpha / (2 * len(sides))) for votes in sides}
        return labels.pop() if len(labels) == 1 else ABSTAIN

    def class_votes(self, x: torch.Tensor, n: int, level: float, input_index: int) -> list[Counts]:
        """n votes of each classifier that the selector may choose at x, by n votes of its own.

        s(x) is another one with probability at most `level` for either end: then a share of at most
        ½ would have seemed larger (for the choices beyond are nested, one such test is all).

        See docs/theory.md#the-selector.
        """
        chosen = self._votes(x, 0, n, 0, input_index)
        end = len(self.settings.choices) - 1

        def more_than_half(first: int, last: int) -> bool:
            return lower_bound(int(chosen[first : last + 1].sum()), n, level) > 0.5

        first = max(k for k in range(end + 1) if k == 0 or more_than_half(k, end))
        last = min(k for k in range(end + 1) if k == end or more_than_half(0, k))
        members = range(1 + first, 2 + last)
        return [self._votes(x, k, n, k * n, input_index) for k in members]

    def _votes(self, x: torch.Tensor, member: int, n: int, start: int, index: int) -> Counts:
        law = self.settings.laws[member]
        measure = MemberVotes(member)
        return self._smoothed.votes(
            x, n, start=start, input_index=index, noise=law, measure=measure
        )
