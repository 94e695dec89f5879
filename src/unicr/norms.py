"""ℓp norms for every real p > 0 and ∞, as small values (a quasi-norm below 1)."""

from __future__ import annotations

import math
import numbers
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from unicr.errors import SpecError
from unicr.text import number, read_number


@dataclass(frozen=True, order=True)
class Norm:
    """‖x‖_p = (Σ|x_i|^p)^(1/p), and max|x_i| for p = ∞."""

    p: float

    def __post_init__(self) -> None:
        if isinstance(self.p, bool) or not isinstance(self.p, numbers.Real) or not self.p > 0:
            raise SpecError(f"the norm p={self.p!r} must be a number above 0, or inf")
        object.__setattr__(self, "p", float(self.p))

    def __call__(self, x: Any) -> float:
        """The norm of one array or tensor, all axes together, in float64."""
        values = np.abs(np.asarray(x, dtype=np.float64)).ravel()
        top = float(np.max(values, initial=0.0))
        if math.isinf(self.p) or top == 0:
            return top
        return top * float(np.sum((values / top) ** self.p) ** (1 / self.p))

    @property
    def text(self) -> str:
        """What the command line takes: '1', '2', 'inf', '0.5'."""
        return number(self.p)

    def __str__(self) -> str:
        return "linf" if math.isinf(self.p) else f"l{self.text}"


l1, l2, linf = Norm(1.0), Norm(2.0), Norm(math.inf)


def parse_norm(value: str | float | Norm) -> Norm:
    """The norm that `1`, `2`, `inf`, `0.5`, `L2`, `Linf`, `l_1` … name."""
    if isinstance(value, Norm):
        return value
    if isinstance(value, str):
        text = re.sub(r"^[lLℓ]_?", "", value.strip())
        text = "inf" if text.lower() in ("∞", "infinity", "inf", "oo") else text
        try:
            value = read_number(text)
        except SpecError:
            raise SpecError(
                f"cannot read the norm {value!r}: write 1, 2, inf, 0.5, L2 or Linf"
            ) from None
    return Norm(value)
