"""What is asked (`Question`) and what is known (`Evidence`): read and checked once, then passed on.

Everything in this package takes these two values. A theorem is matched against a question alone,
so that what it learns about the noise serves every evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from unicr.errors import RadiusError
from unicr.noise import Noise
from unicr.noise.internal import plainest
from unicr.norms import Norm, parse_norm

LARGEST_DIM = 1 << 53  # beyond, a float no longer counts coordinates one by one


@dataclass(frozen=True, init=False)
class Question:
    """The question for a radius: how far may an input move in this norm and dimension under this
    noise?"""

    noise: Noise
    norm: Norm
    dim: int

    def __init__(self, noise: Noise, norm: Norm | float | str, dim: int | None = None) -> None:
        """Read the norm and check the dimension, a whole number ≥ 1 that the noise can have; it may
        be left out where the noise has one.
        """
        if dim is None:
            dim = noise.dim
        if dim is None:
            raise RadiusError(f"{noise.text} works in any dimension: give it by --dim or dim=")
        if isinstance(dim, bool) or not 1 <= dim <= LARGEST_DIM or int(dim) != dim:
            raise RadiusError(f"dim={str(dim)[:30]} must be a whole number from 1 to 2^53")
        if noise.dim is not None and dim != noise.dim:
            raise RadiusError(f"{noise.text} has dimension {noise.dim}, not {dim}")
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "norm", parse_norm(norm))
        object.__setattr__(self, "dim", int(dim))

    @property
    def unit(self) -> Question:
        """The same question at unit scale: R(s·μ) = s·R(μ) (docs/theory.md#certifies)."""
        return replace(self, noise=self.noise.unit)

    def in_norm(self, p: float) -> Question:
        """The same question in another norm."""
        return Question(self.noise, Norm(p), self.dim)


def simplify_question(question: Question, *, plain: bool) -> Question:
    """The same question about the simplest form of the noise: equal scales are one scale; with
    `plain`, also under the plainest name.
    """
    noise, scales = question.noise, question.noise.scales
    if scales is not None and noise.coordinate is not None and np.ptp(scales) == 0:
        noise = noise.coordinate * float(scales[0])
    noise = plainest(noise) if plain else noise
    return replace(question, noise=noise)


class SecondLaw(NamedTuple):
    """A bound from votes under noise restricted to a ball: `q_a` bounds the top class's probability
    there from below.

    The ball, in the norm of the noise's density, holds `share` of the noise.

    See docs/theory.md#two-laws.
    """

    q_a: float
    share: float


@dataclass(frozen=True, init=False)
class Evidence:
    """Bounds of probabilities: `p_a` for the top class from below, `p_b` for every other class from
    above.

    P(f = c) ≤ 1 − p_A for every other class c, so `p_b` is at most 1 − `p_a`, and that where it is
    not given (the binary case). `second` holds what votes under a second law prove, in the binary
    case only. See docs/theory.md#certifies.
    """

    p_a: float
    p_b: float
    second: SecondLaw | None

    def __init__(
        self, p_a: float, p_b: float | None = None, second: SecondLaw | None = None
    ) -> None:
        """Raise RadiusError, naming the value, where one is not a probability."""
        for name, value in (("p_a", p_a), ("p_b", p_b), ("q_a", second and second.q_a)):
            if value is not None:
                _check_probability(name, value)
        if second is not None:
            if not 0 < second.share < 1:
                raise RadiusError(f"share={second.share!r} must lie strictly between 0 and 1")
            if p_b is not None and p_b < 1.0 - p_a:
                raise RadiusError(
                    f"p_b={p_b!r}: with votes under two laws, p_b must be 1 − p_a (leave it out)"
                )
        rest = 1.0 - p_a
        object.__setattr__(self, "p_a", float(p_a))
        object.__setattr__(self, "p_b", rest if p_b is None else min(float(p_b), rest))
        object.__setattr__(self, "second", second)

    @property
    def abstains(self) -> bool:
        """Whether nothing is certified: the top class may not be the top one."""
        return self.p_a <= self.p_b

    @property
    def binary(self) -> bool:
        """Whether p_B = 1 − p_A."""
        return self.p_b >= 1.0 - self.p_a

    @property
    def first(self) -> Evidence:
        """What is known from the noise itself, without the second law."""
        return self if self.second is None else replace_second(self, None)


def replace_second(evidence: Evidence, second: SecondLaw | None) -> Evidence:
    """The same probabilities under the noise, with another second law."""
    return Evidence(evidence.p_a, None if second else evidence.p_b, second)


def _check_probability(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise RadiusError(f"{name}={value!r} must be a probability between 0 and 1")
