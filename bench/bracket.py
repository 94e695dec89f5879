"""How tight the proofs are: proved / searched, rounded down, where no theorem is exact.

By default in dimension 3072 at four p_A; with UNICR_BENCH=full the whole grid (hours of one core).
What UNICR_BENCH_KEEP names is a file that keeps every value as it is made, so that an interrupted
grid goes on; remove it when the numerics have changed.
"""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path

from bench.radius import FAMILIES
from unicr import noise
from unicr.norms import Norm
from unicr.radius import Question, certified_radius
from unicr.radius.internal import find_exact_bound

NORMS = (0.5, 1.0, 1.3, 1.5, 1.7, 2.0, 2.5, 3.0, 8.0, math.inf)
FULL = os.environ.get("UNICR_BENCH") == "full"
KEEP = os.environ.get("UNICR_BENCH_KEEP")
PROBABILITIES = (
    (0.55, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 0.9999) if FULL else (0.55, 0.9, 0.99, 0.9999)
)
DIMENSIONS = (3072, 784, 150_528, 2, 3, 10, 100) if FULL else (3072,)


def main() -> None:
    """One line for every family, norm and dimension; `exact` where a theorem says so."""
    kept = _kept()
    print("\nproved / searched at p_A =", *PROBABILITIES, "(bars: .985 log-concave, .97 others)")
    for dim in DIMENSIONS:
        for spec in FAMILIES:
            one = noise.parse(spec)
            for p in NORMS:
                start = time.process_time()
                cells = "exact"
                if find_exact_bound(Question(one, Norm(p), dim)) is None:
                    keys = [f"{spec} l{p:g} d={dim} p_A={p_a}" for p_a in PROBABILITIES]
                    for key, p_a in zip(keys, PROBABILITIES, strict=True):
                        if key not in kept:
                            kept[key] = _ratio(one, p, dim, p_a)
                            _keep(key, kept[key])
                    cells = " ".join(f"{math.floor(1000 * kept[key]) / 1000:.3f}" for key in keys)
                spent = time.process_time() - start
                print(f"  d={dim:<7} {spec:<30} l{p:<4g} {cells}   {spent:.0f} s", flush=True)


def _ratio(one: noise.Noise, p: float, dim: int, p_a: float) -> float:
    result = certified_radius(one, p, dim, p_a=p_a)
    return result.proved / result.searched


def _kept() -> dict[str, float]:
    """What earlier runs have left, a line each."""
    if KEEP is None or not Path(KEEP).is_file():
        return {}
    lines = Path(KEEP).read_text(encoding="utf-8").splitlines()
    return dict(json.loads(line) for line in lines)


def _keep(key: str, value: float) -> None:
    if KEEP is not None:
        with Path(KEEP).open("a", encoding="utf-8") as file:
            file.write(json.dumps([key, value]) + "\n")
