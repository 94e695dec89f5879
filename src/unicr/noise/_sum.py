"""Sums of independent noises: what is proved for one part is proved for the sum.

The other parts are a random map after the first, which helps nobody who tests
(docs/theory.md#theorem-p). So a part may be anything that does not know the input.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any, Self

from unicr.errors import NoiseError
from unicr.law import Facts
from unicr.noise._base import Data, Draws, Noise
from unicr.sample import derive

if TYPE_CHECKING:
    import torch

SAMPLES = 4096  # for the mean of a part that nobody knows
ORIGINS = ("declared", "checked", "table", "analytic")  # of facts, the least sure first


class Sum(Noise):
    """The sum ε_1 + ε_2 + … of independent noises.

    Radii are those of the best of its `certifying` parts: those with independent coordinates that
    are alike, or where there is none, those whose density looks at a norm alone.
    """

    has_density = False

    def __init__(self, *parts: Noise) -> None:
        flat: list[Noise] = []
        for part in parts:
            if not isinstance(part, Noise):
                raise NoiseError(f"a sum is made of noises, but {part!r:.80} is none")
            flat += part.parts or (part,)
        if len(flat) < 2:
            raise NoiseError(
                "a sum needs at least two parts, for example laplace and gaussian noise"
            )
        dims = {part.dim for part in flat if part.dim is not None}
        if len(dims) > 1:
            raise NoiseError(
                "the parts of a sum must have one dimension, not "
                f"{' and '.join(map(str, sorted(dims)))}"
            )
        normal = [part for part in flat if part.iid is not None and part.iid.normal_sigma]
        if len(normal) == len(flat):
            size = math.hypot(*(part.sigma for part in flat))
            raise NoiseError(
                f"a sum of Gaussian noises is gaussian(sigma={size:.9g}): use that, because it "
                "certifies more than its parts"
            )
        in_threads = all(part.in_threads for part in flat)
        vars(self).update(parts=tuple(flat), dim=next(iter(dims), None), in_threads=in_threads)
        if not self.certifying:
            raise NoiseError(
                f"{self.text} cannot be certified: at least one part must have independent "
                "coordinates of the same law, or a density that depends on a norm alone"
            )

    @property
    def certifying(self) -> tuple[Noise, ...]:
        even = tuple(part for part in self.parts if part.iid is not None)
        return even or tuple(part for part in self.parts if part.radial is not None)

    @property
    def _text(self) -> str:
        return f"sum({', '.join(part.text for part in self.parts)})"

    @property
    def cache_key(self) -> str:
        return f"sum({', '.join(part.cache_key for part in self.parts)})"

    @property
    def _key(self) -> tuple[Any, ...]:
        return (type(self), self.parts)

    def _data(self) -> Data:
        return {"sum": [part.to_body() for part in self.parts]}

    @property
    def facts(self) -> Facts:
        every = [part.facts for part in self.parts]
        sources = {facts.source for facts in every}
        # a convolution of log-concave densities is log-concave, and one positive part makes a sum
        # positive
        concave = all(facts.log_concave for facts in every)
        return Facts(
            symmetric=all(facts.symmetric for facts in every),
            log_concave=concave,
            unimodal=concave,
            bounded=all(facts.bounded for facts in every),
            finite_variance=all(facts.finite_variance for facts in every),
            positive=any(facts.positive for facts in every),
            source=next(word for word in ORIGINS if word in sources),
        )

    @property
    def sigma(self) -> float:
        sizes = [part.sigma for part in self.parts]
        if not all(map(math.isfinite, sizes)):
            return math.inf
        if all(part.facts.symmetric for part in self.parts):
            return math.hypot(*sizes)
        if all(part.iid is not None for part in self.parts):
            means = [part.iid.mean for part in self.parts if part.iid is not None]
            cross = sum(a * b for a, b in combinations(means, 2))
            return math.sqrt(math.fsum(size**2 for size in sizes) + 2 * cross)
        z = self.sample(SAMPLES, seed=1)
        return float(z.square().mean().sqrt())

    def _scale_by(self, factor: float) -> Self:
        return type(self)(*(part.scaled(factor) for part in self.parts))

    def log_prob(self, z: torch.Tensor) -> torch.Tensor:
        raise NoiseError(f"the density of {self.text} is not known, only those of its parts")

    def _fill(self, out: torch.Tensor, draws: Draws, base: torch.Tensor | None) -> None:
        import torch

        more = torch.empty_like(out)
        for i, part in enumerate(self.parts):
            part._fill(more if i else out, Draws(part_key(draws.key, i), draws.start), None)
            if i:
                out.add_(more)
        if base is not None:
            out.add_(base)

    def check_agreement(self) -> None:
        for part in self.parts:
            part.check_agreement()

    def check_input(self, x: torch.Tensor) -> None:
        for part in self.parts:
            part.check_input(x)


def part_key(key: bytes, part: int) -> bytes:
    """The key of one part: parts are independent."""
    return derive(key, "part of a sum", part)
