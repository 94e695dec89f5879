"""Make the curves that come with the package: `python tools/make_curves.py`, an hour of one core.

Takes up where it was stopped: what the file holds already is kept, unless --fresh is given. Steps
are packed, and values rounded down to 32 bits, which can only lower what is read.
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unicr import noise
from unicr.norms import Norm
from unicr.radius import RadiusCurve, _cache
from unicr.radius._curve import UnitCurve
from unicr.radius.bellman import _radius, _sheet
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
# Shapes of searches over β: in ℓ2, where these wait longest. These, and all shapes in LENT_NORMS,
# are made for the largest dimension alone, which lends them to all others.
QUARTERS = (
    *(f"gennorm(beta={k / 4:g}, scale=1)" for k in range(2, 21) if k not in (3, 4, 6, 8, 12)),
    *(f"{mix}(beta={b}, scale=1)" for mix in ("lapgauss", "expmix") for b in (0.25, 0.75)),
)
NORMS = (2.0, math.inf, 1.0)
LENT_NORMS = (1.5,)
DIMENSIONS = (150_528, 3072, 784)
USUAL = _radius.SCALE_RATIO
FINE = 1.25  # between scales of (j) in the largest dimension: closer than users wait for
MANY, FEW = 6, 3  # splits of a cell there, and elsewhere
LARGEST = 2_000_000  # bytes


def down(values: Array) -> NDArray[np.float32]:
    """The next 32-bit number that is not above."""
    near = values.astype(np.float32)
    return np.where(near > values, np.nextafter(near, np.float32(0)), near)


def wanted() -> list[tuple[str, float, int]]:
    """Every curve, the largest dimension first: what is proved there holds in fewer too."""
    usual = [(spec, norm, dim) for norm in NORMS for dim in DIMENSIONS for spec in SHAPES]
    lent = [(spec, norm, DIMENSIONS[0]) for norm in LENT_NORMS for spec in SHAPES]
    return [*usual, *((spec, 2.0, DIMENSIONS[0]) for spec in QUARTERS), *lent]


def made(shape: UnitCurve, kind: str, larger: UnitCurve | None) -> NDArray[Any]:
    """One curve; a proved one has the better of its own steps and those of the larger dimension,
    and for p ≤ 1 these alone: few coordinates are worst there, however many there are.
    """
    if kind == "proved" and larger is not None and shape.question.norm.p <= 1:
        return _cache.pack_steps(*larger.proved)
    alpha, radius = getattr(shape, kind)
    if kind == "searched":
        return np.stack([down(alpha), down(radius)])
    if larger is not None:
        alpha = np.concatenate([alpha, larger.proved[0]])
        radius = np.concatenate([radius, larger.proved[1]])
    return _cache.pack_steps(alpha, radius)


def main() -> None:
    """Add every missing curve, writing the file after each."""
    if "--fresh" in sys.argv:
        FILE.unlink(missing_ok=True)
    known = dict(_cache.load_shipped_curves())
    for spec, norm, dim in wanted():
        shape = RadiusCurve(noise.parse(spec), Norm(norm), dim).unit
        largest = dim == DIMENSIONS[0]
        usual = spec in SHAPES and norm in NORMS
        fine = largest and usual
        _radius.SCALE_RATIO = FINE if fine else USUAL
        _sheet.CURVE_SPLITS = MANY if fine else FEW
        same = None if largest or math.isinf(norm) else DIMENSIONS[0]
        larger = same and RadiusCurve(noise.parse(spec), Norm(norm), same).unit
        for kind in ("proved", "searched") if usual else ("proved",):
            name = _cache.name_curve(f"curve-{kind}", shape.key)
            if name in known or shape.instant(kind):
                continue
            start = time.process_time()
            known[name] = made(shape, kind, larger or None)
            np.savez_compressed(FILE, **known)  # type: ignore[arg-type]
            spent, size = time.process_time() - start, FILE.stat().st_size
            print(f"{spec} l{norm:g} d={dim} {kind}: {spent:.0f} s, {size} bytes", flush=True)
            if size > LARGEST:
                sys.exit("the file is full")


if __name__ == "__main__":
    main()
