"""The trade-off function of i.i.d. noise when given numbers of coordinates move by given shifts."""

from __future__ import annotations

from collections.abc import Iterable

from unicr.noise import IID
from unicr.tradeoff._base import TradeOff
from unicr.tradeoff._closed import ClosedForm
from unicr.tradeoff._compose import compose
from unicr.tradeoff._ratio import ratio_law


def shifted(
    noise: IID,
    shifts: Iterable[tuple[float, int]],
    *,
    spread: float = 2e-5,
    closed: bool = True,
) -> TradeOff:
    """T for a perturbation with `count` coordinates equal to `shift`, for each (shift, count).

    One coordinate of a log-concave noise is the closed form, exact; anything else is composed and
    is a lower bound, within about `spread` of the truth in the radius. `closed=False` composes all.
    """
    unit, scale = noise.unit, noise.scale
    moved = [(shift / scale, count) for shift, count in shifts if shift != 0 and count > 0]
    if closed and unit.facts.log_concave and sum(count for _, count in moved) == 1:
        return ClosedForm(unit, moved[0][0])
    return compose([(ratio_law(unit, shift, spread), count) for shift, count in moved])
