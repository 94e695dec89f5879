"""Noise φ(‖z‖) conditioned on its length: the second law of certificates from two laws."""

from __future__ import annotations

from typing import Any, Self

from unicr.errors import NoiseError
from unicr.noise._base import Noise
from unicr.noise._spherical import CrossNoise, RadialNoise, SphericalNoise
from unicr.values import Array, number


def within(base: Noise, share: float) -> Within:
    """`base` given that ‖ε‖ ≤ T, where P(‖ε‖ ≤ T) = `share`; in the norm of its density."""
    if not isinstance(base, SphericalNoise | CrossNoise) or isinstance(base, Within):
        raise NoiseError(
            f"{base.text} cannot be kept within a ball: only spherical noise can, and noise of the "
            "l1 length, such as l1_exp"
        )
    return (_WithinBall if isinstance(base, SphericalNoise) else _WithinCross)(base, share)


class Within(RadialNoise):
    """The law that `within` gives. Its text is `NOISE.within(0.5)`."""

    name = "within"
    family = None
    conditioned = True
    formula = "base, given that |z| <= T"
    _base: RadialNoise
    _share: float

    def __init__(self, base: RadialNoise, share: float) -> None:
        if not 0 < share < 1:
            raise NoiseError(f"share={share!r} must lie strictly between 0 and 1")
        ball = float(base.unit._law.ppf(share))
        self._put(dim=base.dim, _base=base, _share=float(share), _numbers={}, _given="scale")
        self._put(_scale=base.scale, _radial_support=(0.0, ball), _proved=base._proved)
        self._put(_sigma=self._scale * self._std)

    def _radial(self, r: Array) -> Array:
        return self._base._radial(r)

    def _drop(self, r: Array, gap: Array) -> Array:
        return self._base._drop(r, gap)

    def _steepness(self, r: Array) -> Array:
        return self._base._steepness(r)

    def _bend(self, low: float, high: float) -> int:
        return self._base._bend(low, high)

    @property
    def _points(self) -> tuple[float, ...]:
        ball = self._radial_support[1]
        return tuple(p for p in self._base.unit._points if p < ball) or (0.9 * ball,)

    @property
    def _text(self) -> str:
        base = self._base.text
        return f"{f'({base})' if ' * ' in base else base}.within({number(self._share)})"

    _data = Noise._data

    @property
    def _key(self) -> tuple[Any, ...]:
        return (Within, self._base, self._share)

    @property
    def unit(self) -> Self:
        return self if self._scale == 1.0 else type(self)(self._base.unit, self._share)

    def _scaled(self, factor: float) -> Self:
        return type(self)(self._base.scaled(factor), self._share)


class _WithinBall(Within, SphericalNoise): ...


class _WithinCross(Within, CrossNoise): ...
