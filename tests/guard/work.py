"""What other processes do to a shared memory in the tests: insert until done, or until killed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from tests.guard.planted import certificate
from unicr.guard import Memory
from unicr.norms import l2


def insert(file: Path, seed: int, count: int) -> None:
    """Settle random points with random classes and radii; one line for each answer given."""
    rng = np.random.default_rng(seed)
    with Memory(file, norm=l2, shape=(3,), made_for={"model_hash": "m"}) as store:
        for _ in range(count):
            x = rng.random(3).astype(np.float32)
            stream = store.reserve(0.001)
            answer = store.settle(x, certificate(int(rng.integers(3)), rng.random() / 2), stream)
            print(stream, answer.label, *map(float, x), flush=True)


if __name__ == "__main__":
    insert(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
