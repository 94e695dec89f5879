"""The types of arrays that every part shares, and the largest number that is counted exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
LARGEST = 1 << 53  # number of samples: up to here every whole number is a float
