"""What a selector is: its own noise, and the noises that it chooses between, in order.

s(x) is the median of h(x + η) over the numbered choices: with two choices the more probable one.
The median of an ordered list moves from one choice to its neighbour, so that "one of these two"
can be certified where neither alone can.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unicr.classifier.internal import SELECTOR_FILE, read_selector
from unicr.errors import CertifyError, UnicrError
from unicr.noise import Lattice, Noise, parse
from unicr.noise.internal import check_parses
from unicr.norms import Norm
from unicr.smoothing import Plan, Radii, size_of
from unicr.smoothing.measures import MemberVotes
from unicr.smoothing.rules import Union

SHARE = 0.1  # of α, for all that backs the first classifier up


@dataclass(frozen=True)
class Selector:
    """`noise` is η, `choices` are the noises of the classifiers 0, 1, …, usually by their size.

    `share` of α pays for the selector (and for further classifiers where it stays undecided), the
    rest for the classifier that it chooses. That one takes n votes at every input, so all that is
    taken from its α is lost in its radius; the selector stops where its radius suffices, and less α
    costs it only some more votes, as log(1/α): hence a small share. `votes` is the most that each
    such test takes, n where it is None.
    """

    noise: Noise
    choices: tuple[Noise, ...]
    share: float = SHARE
    votes: int | None = None

    def __post_init__(self) -> None:
        if len(self.choices) < 2:
            raise CertifyError(f"{len(self.choices)} noise to choose from: at least two are needed")
        if not 0 < self.share < 1:
            raise CertifyError(f"share={self.share!r} of alpha must lie strictly between 0 and 1")
        if self.votes is not None and self.votes < 1:
            raise CertifyError(f"votes={self.votes}: at least one")

    @property
    def noises(self) -> frozenset[str]:
        """The texts of all noises that it may choose, and of its own."""
        return frozenset(one.text for one in self.laws)

    def plan(self, n0: int, n: int, alpha: float, plan: Plan | None = None) -> Plan:
        """The plan of the certificates: that of a run, counting the votes of members."""
        plan = plan or Plan()
        if isinstance(plan.rule, Union):
            raise CertifyError("a union bound over noises is for I-OPT: a selector needs none")
        return Plan(n0=n0, n=n, alpha=alpha, rule=plan.rule, measure=MemberVotes())

    @property
    def laws(self) -> tuple[Noise, ...]:
        """The noise of each member: of the selector, then of each classifier."""
        return (self.noise, *self.choices)

    @property
    def finest(self) -> Noise:
        """The smallest noise: the one lattice of all members is that of this one."""
        return min(self.laws, key=size_of)

    def radii(
        self, norms: tuple[Norm, ...], dim: int, searched: bool, lattice: Lattice | None = None
    ) -> tuple[Radii, ...]:
        """What votes are worth: of the selector, then of each classifier."""
        return tuple(
            Radii(law, norms, dim, searched=searched, lattice=lattice) for law in self.laws
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest of a run."""
        return {
            "noise": check_parses(self.noise),
            "choices": [check_parses(one) for one in self.choices],
            "share": self.share,
            "votes": self.votes,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], law: Callable[[str], Noise] = parse) -> Selector:
        """The inverse of `to_dict`; `law` reads a noise, and may refuse one that is code."""
        try:
            texts = [values["noise"], *values["choices"]]
            share, votes = values["share"], values["votes"]
            if not all(isinstance(one, str) for one in texts) or not isinstance(share, float):
                raise ValueError("texts of noises and a share are needed")
            if not (votes is None or type(votes) is int) or not math.isfinite(share):
                raise ValueError(f"votes={votes!r}, share={share!r}")
            own, *choices = [law(text) for text in texts]
            found = cls(own, tuple(choices), share, votes)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, UnicrError):
                raise
            raise CertifyError(f"the selector {dict(values)!r} cannot be read: {error!r}") from None
        if found.to_dict() != dict(values):
            raise CertifyError(f"the selector {dict(values)!r} says something else than it is")
        return found

    @classmethod
    def load(cls, path: Path, **settings: Any) -> Selector:
        """The noises of a selector.json, or of the folder that holds one."""
        values = read_selector(file_of(path))
        own, *choices = [parse(text) for text in (values["noise"], *values["choices"])]
        return cls(own, tuple(choices), **settings)


def file_of(path: Path) -> Path:
    """The selector.json that a path names, as a file or by its folder."""
    path = path.expanduser()
    return path / SELECTOR_FILE if path.is_dir() else path
