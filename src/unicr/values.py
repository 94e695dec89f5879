"""Small things that every part shares: the type of an array, numbers as text, rounding down."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]


def number(value: float) -> str:
    """The shortest text that reads back as the same float: 1.0 is '1', 0.5 is '0.5'."""
    text = repr(float(value))
    return text.removesuffix(".0")


def round_down(value: float, digits: int = 6) -> str:
    """Decimal text that is never above the value: radii are not rounded up."""
    if math.isinf(value):
        return "inf"
    text = f"{value:.{digits}g}"
    if float(text) <= value:
        return text
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(value)) - digits + 1
    lowered = float(text) - 10.0**exponent
    text = f"{lowered:.{digits}g}"
    return text if float(text) <= value else f"{math.nextafter(value, 0):.17g}"
