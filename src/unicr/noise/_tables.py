"""The inverse-CDF table of a 1-D law, built once per shape and kept in memory."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from unicr.noise._sampling import InverseTable

if TYPE_CHECKING:
    from unicr.noise._base import IID
    from unicr.values import Array


class Law(Protocol):
    """What a table needs to know of a 1-D distribution."""

    @property
    def breakpoints(self) -> tuple[float, ...]: ...
    def pdf(self, x: ArrayLike) -> Array: ...
    def cdf(self, x: ArrayLike) -> Array: ...
    def sf(self, x: ArrayLike) -> Array: ...
    def ppf(self, u: ArrayLike) -> Array: ...
    def isf(self, u: ArrayLike) -> Array: ...


def build_table(law: Law) -> InverseTable:
    """The table of any 1-D law, split where its density is not smooth."""
    at = np.asarray(law.cdf(np.asarray(law.breakpoints, dtype=np.float64)))
    breaks = sorted({float(u) for u in at if 0.0 < u < 1.0})
    return InverseTable.build(law.ppf, law.isf, law.cdf, law.sf, breaks=breaks)


@lru_cache(maxsize=256)
def table_of(unit: IID) -> InverseTable:
    """The table of an i.i.d. noise at unit scale."""
    return build_table(unit)
