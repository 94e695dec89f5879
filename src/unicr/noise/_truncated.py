"""A noise conditioned on an interval: the density renormalised, not the samples clipped."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Self

from unicr.errors import NoiseError
from unicr.noise._base import IID
from unicr.noise._density import Tabulated
from unicr.noise._quadrature import TabulatedDensity
from unicr.values import number


class Truncated(Tabulated):
    """`base` given that low ≤ ε ≤ high. Has every moment, whatever the tails of `base`."""

    _base: IID
    _low: float
    _high: float

    def __init__(self, base: IID, low: float, high: float) -> None:
        low, high = float(low), float(high)
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise NoiseError(f"cannot truncate to [{low}, {high}]: give finite ends, low < high")
        mass = float(base.cdf(high) - base.cdf(low))
        mass = max(mass, float(base.sf(low) - base.sf(high)))
        if not mass > 1e-12:
            raise NoiseError(
                f"{base.text} has mass {mass:.3g} on [{low}, {high}]: too little to condition on"
            )
        scale, unit = base.scale, base.unit
        ends = (max(low, base.support[0]) / scale, min(high, base.support[1]) / scale)
        inner = [b for b in unit.breakpoints if ends[0] < b < ends[1]]
        table = TabulatedDensity.build(unit.logpdf, support=ends, points=inner)
        facts = replace(
            base.facts,
            symmetric=base.facts.symmetric and low == -high,
            bounded=True,
            positive=False,
            finite_variance=True,
        )
        super().__init__(table, facts, "", scale)
        self._put(_base=base, _low=low, _high=high)

    @property
    def _text(self) -> str:
        base, low, high = self._base.text, self._low, self._high
        base = f"({base})" if " * " in base else base
        ends = number(high) if low == -high else f"{number(low)}, {number(high)}"
        return f"{base}.truncated({ends})"

    @property
    def _key(self) -> tuple[Any, ...]:
        return (Truncated, self._base, self._low, self._high)

    @property
    def unit(self) -> Self:
        if self._scale == 1.0:
            return self
        low, high = self._low / self._scale, self._high / self._scale
        return self._copy(_base=self._base.unit, _low=low, _high=high, _scale=1.0, _file=None)

    def _scaled(self, factor: float) -> Self:
        return type(self)(self._base.scaled(factor), self._low * factor, self._high * factor)
