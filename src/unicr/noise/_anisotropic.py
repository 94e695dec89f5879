"""Independent coordinates of one shape, each with its own scale: ε_i = s_i·ξ_i.

Weak directions are then real directions, not spectra: the certifier looks at the smallest scales.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from unicr.errors import NoiseError
from unicr.law import Facts
from unicr.law.internal import write_floats
from unicr.noise._base import IID, Data, Draws, Noise
from unicr.values import Array, number

if TYPE_CHECKING:
    import torch

SHORT = 8  # so many scales are written out in the text


class Anisotropic(Noise):
    """The law of (s_1·ξ_1, …, s_d·ξ_d), ξ_i i.i.d. from `base`, `scales` = (s_1, …, s_d).

    `scales` multiply the scale that `base` has already, and may have any shape: it is read in the
    order of the coordinates. The dimension is the number of scales.
    """

    dim: int
    base: IID
    scales: Array

    def __init__(self, base: Noise, scales: Sequence[float] | Array | torch.Tensor) -> None:
        law = getattr(base, "iid", None)
        if law is None:
            raise NoiseError(
                "Anisotropic scales the coordinates of an i.i.d. noise, not "
                f"{getattr(base, 'text', repr(base))}: try noise.gaussian(sigma=1)"
            )
        try:
            values = np.array(scales, dtype=np.float64).ravel()
        except (TypeError, ValueError):
            raise NoiseError(
                f"scales={scales!r} must be numbers, one for each coordinate"
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
        self._put(base=law, scales=values, dim=values.size)

    @property
    def coordinate(self) -> IID:
        return self.base

    @property
    def _text(self) -> str:
        if self.dim <= SHORT:
            listed = ", ".join(number(s) for s in self.scales)
            return f"Anisotropic({self.base.text}, [{listed}])"
        low, high = number(self.scales.min()), number(self.scales.max())
        return f"Anisotropic({self.base.text}, {self.dim} scales from {low} to {high})"

    @property
    def cache_key(self) -> str:
        digest = hashlib.sha256(self.scales.tobytes()).hexdigest()[:32]
        return f"Anisotropic({self.base.cache_key}, {self.dim}, {digest})"

    @property
    def _key(self) -> tuple[Any, ...]:
        return (type(self), self.base, self.scales.tobytes())

    def _data(self) -> Data:
        return {"anisotropic": self.base.to_body(), "scales": write_floats(self.scales)}

    @property
    def facts(self) -> Facts:
        return self.base.facts

    @property
    def sigma(self) -> float:
        return self.base.sigma * math.sqrt(float(np.mean(self.scales**2)))

    def _scaled(self, factor: float) -> Self:
        return type(self)(self.base, self.scales * factor)

    def log_prob(self, z: torch.Tensor) -> torch.Tensor:
        import torch

        flat = z.flatten(1).to(torch.float64) / self._row(z.device)
        return self.base.log_prob(flat) - float(np.sum(np.log(self.scales)))

    def _row(self, device: torch.device) -> torch.Tensor:
        import torch

        return torch.tensor(self.scales, dtype=torch.float64, device=device)

    def _fill(self, out: torch.Tensor, draws: Draws, base: torch.Tensor | None) -> None:
        self.base._fill(out, draws, None)
        out.mul_(self._row(out.device).to(out.dtype))
        if base is not None:
            out.add_(base)
