"""Small things that every part shares: the type of an array, numbers as text, rounding down."""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Context, Decimal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
LARGEST = 1 << 53  # number of samples: up to here every whole number is a float


def number(value: float) -> str:
    """The shortest text that reads back as the same float: 1.0 is '1', 0.5 is '0.5'."""
    text = repr(float(value))
    return text.removesuffix(".0")


def round_down(value: float, digits: int = 6) -> str:
    """Decimal text that is never above the value: radii are not rounded up."""
    if not math.isfinite(value):
        return str(value)
    text = f"{value:.{digits}g}"
    if float(text) <= value:
        return text
    # It was rounded up: the multiple of one unit of the last digit just below, in exact decimals.
    # Its float is not above the value either, and is written with the same digits.
    exact = Decimal(value)
    unit = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    lowered = exact.quantize(unit, rounding=ROUND_FLOOR, context=Context(prec=digits + 2))
    return f"{float(lowered):.{digits}g}"
