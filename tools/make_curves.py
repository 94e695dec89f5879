"""Make the curves that come with the package: `python tools/make_curves.py`, hours of one core.

Takes up where it was stopped: what the file holds already is kept, unless --fresh is given. Values
are rounded down to 32 bits, which can only lower what is read.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unicr import noise
from unicr.norms import Norm
from unicr.radius import RadiusCurve, _cache
from unicr.radius.internal import shape_of
from unicr.values import Array

FILE = Path(_cache.__file__).parent / "shipped.npz"
SHAPES = (
    "laplace(scale=1)",
    "gennorm(beta=1.5, scale=1)",
    "gennorm(beta=3, scale=1)",
    "sech(scale=1)",
    "gennorm(beta=0.75, scale=1)",
    "lapgauss(beta=0.5, scale=1)",
    "expmix(beta=0.5, scale=1)",
    "cauchy(scale=1)",
    "pareto(beta=3, scale=1)",
)
NORMS = (2.0, float("inf"), 1.0)
DIMENSIONS = (784, 3072, 150_528)
APART = 8e-4  # between the radii of neighbouring steps
LARGEST = 1_000_000  # bytes


def down(values: Array) -> NDArray[np.float32]:
    """The next 32-bit number that is not above."""
    near = values.astype(np.float32)
    return np.where(near > values, np.nextafter(near, np.float32(0)), near)


def thinned(alpha: Array, radius: Array) -> NDArray[np.float32]:
    """Steps that are worth keeping, the last one too."""
    keep, last = [], 0.0
    for i, r in enumerate(radius):
        if r > last * (1 + APART) or i + 1 == len(radius):
            keep.append(i)
            last = float(r)
    return np.stack([down(alpha[keep]), down(radius[keep])])


def main() -> None:
    """Add every missing curve, writing the file after each."""
    known = {} if "--fresh" in sys.argv else dict(_cache.shipped())
    for dim in DIMENSIONS:
        for norm in NORMS:
            for spec in SHAPES:
                law = noise.parse(spec)
                shape = shape_of(RadiusCurve(law, Norm(norm), dim))
                for kind in ("proved", "searched"):
                    name = _cache.name_of(f"curve-{kind}", shape.key)
                    if name in known or shape.instant(kind):
                        continue
                    start = time.process_time()
                    known[name] = thinned(*getattr(shape, kind))
                    np.savez_compressed(FILE, **known)  # type: ignore[arg-type]
                    spent, size = time.process_time() - start, FILE.stat().st_size
                    print(
                        f"{spec} l{norm:g} d={dim} {kind}: {spent:.0f} s, {size} bytes", flush=True
                    )
                    if size > LARGEST:
                        sys.exit("the file is full")


if __name__ == "__main__":
    main()
