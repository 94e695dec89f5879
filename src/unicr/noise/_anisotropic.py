"""Independent coordinates of one shape, stretched: ε = Bξ with a scale per coordinate or a matrix.

What is certified for ξ in a ball is certified for ε in the ball's image, an ellipsoid for ℓ2
(docs/theory.md#theorem-p).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from unicr.errors import NoiseError
from unicr.law import Facts
from unicr.law.internal import write_floats
from unicr.noise._base import IID, Data, Draws, Noise, bracket
from unicr.noise._frame import Frame, Matrix, Scales
from unicr.text import number
from unicr.values import Array

if TYPE_CHECKING:
    import torch

# so many numbers are written out: `noise.parse` reads texts of at most 5000 characters
WRITTEN = 128


class Anisotropic(Noise):
    """The law of Bξ, ξ i.i.d. from `base`: B = diag(`scales`), or the `matrix` B.

    `scales` multiply the scale of `base`. They can have any shape, and are read in the order of the
    coordinates. The dimension is the number of scales or rows. A matrix is rounded to 26 bits in
    each row, which makes samples on a lattice exact. The certificate is about the rounded matrix
    (`noise.frame.matrix`).
    """

    dim: int
    base: IID
    scales: Array | None
    frame: Frame
    entries: Array
    """The scales, or the matrix as it is used."""

    def __init__(
        self,
        base: Noise,
        scales: Sequence[float] | Array | torch.Tensor | None = None,
        *,
        matrix: Sequence[Sequence[float]] | Array | torch.Tensor | None = None,
    ) -> None:
        law = getattr(base, "iid", None)
        if law is None:
            raise NoiseError(
                "Anisotropic needs an i.i.d. noise to scale, not "
                f"{getattr(base, 'text', repr(base))}: try noise.gaussian(sigma=1)"
            )
        if (scales is None) == (matrix is None):
            raise NoiseError("give Anisotropic either scales or matrix=, not both and not neither")
        frame: Frame
        if matrix is not None:
            frame = stretch = Matrix(matrix)
            values, entries = None, stretch.matrix
        else:
            values = entries = _read_scales(scales)
            frame = Scales(values)
        vars(self).update(base=law, scales=values, entries=entries, frame=frame, dim=frame.dim)

    @property
    def core(self) -> IID:
        return self.base

    @property
    def certifying(self) -> tuple[Noise, ...]:
        return (self.base,)

    @property
    def coordinate(self) -> IID | None:
        return None if self.scales is None else self.base

    @property
    def _text(self) -> str:
        values = self.entries
        if values.size <= WRITTEN:
            word = "matrix" if self.scales is None else "scales"
            return f"{bracket(self.base.text)}.{word}({', '.join(map(number, values.ravel()))})"
        if self.scales is None:
            about = f"a matrix {self.frame.digest[:16]} with {self.dim} rows"
        else:
            low, high = number(values.min()), number(values.max())
            about = f"{self.dim} scales from {low} to {high}"
        return f"Anisotropic({self.base.text}, {about})"

    @property
    def cache_key(self) -> str:
        return f"Anisotropic({self.base.cache_key}, {self.dim}, {self.frame.digest[:32]})"

    @property
    def _key(self) -> tuple[Any, ...]:
        return (type(self), self.base, self.frame.digest)

    def _data(self) -> Data:
        kind = "matrix" if self.scales is None else "scales"
        return {"anisotropic": self.base.to_body(), kind: write_floats(self.entries.ravel())}

    @property
    def facts(self) -> Facts:
        facts = self.base.facts
        if self.scales is None:
            # a linear image of a symmetric, log-concave or positive density is one
            return replace(facts, unimodal=facts.log_concave)
        return facts

    @property
    def sigma(self) -> float:
        if self.scales is not None:
            return self.base.sigma * math.sqrt(float(np.mean(self.scales**2)))
        size, mean = self.base.sigma, self.base.mean
        if not math.isfinite(size):
            return size
        spread = (size**2 - mean**2) * float(np.sum(self.entries**2))
        drift = mean**2 * float(np.sum(self.entries.sum(1) ** 2))
        return math.sqrt((spread + drift) / self.dim)

    def _scale_by(self, factor: float) -> Self:
        if self.scales is None:
            return type(self)(self.base.scaled(factor), matrix=self.entries)
        return type(self)(self.base, self.scales * factor)

    def log_prob(self, z: torch.Tensor) -> torch.Tensor:
        import torch

        flat = z.flatten(1).to(torch.float64)
        if self.scales is not None:
            flat = flat / torch.tensor(self.scales, device=z.device)
            return self.base.log_prob(flat) - math.fsum(np.log(self.scales))
        flat = torch.linalg.solve(torch.tensor(self.entries, device=z.device), flat.T).T
        return self.base.log_prob(flat) - self.frame.log_det

    def _fill(self, out: torch.Tensor, draws: Draws, base: torch.Tensor | None) -> None:
        self.base._fill(out, draws, None)
        out.copy_(self.frame.push(out))
        if base is not None:
            out.add_(base)


def _read_scales(scales: Any) -> Array:
    try:
        values = np.array(scales, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        raise NoiseError(
            f"scales={scales!r} must be a list of numbers, one for each coordinate"
        ) from None
    if values.size == 0:
        raise NoiseError("scales is empty: give one number above 0 for each coordinate")
    bad = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
    if bad.size:
        first = int(bad[0])
        raise NoiseError(
            f"scales[{first}]={values[first]!r}: every scale must be a finite number above 0"
        )
    values.flags.writeable = False
    return values
