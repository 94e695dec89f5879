"""The guard's look-up against one pass over all regions: digits moved by a little noise."""

from __future__ import annotations

import time

import numpy as np

from unicr.data import load_dataset
from unicr.guard import Metric
from unicr.guard._table import Table
from unicr.norms import l1, l2

REGIONS, QUERIES = 50_000, 10


def main() -> None:
    data, rng = load_dataset("builtin:mnist"), np.random.default_rng(0)
    digits = np.stack([data.read(i)[0].ravel() for i in range(len(data))])
    table = Table(digits.shape[1])
    for _ in range(REGIONS):
        point = digits[rng.integers(len(digits))] + rng.normal(0, 0.05, digits.shape[1])
        table.append(point.astype(np.float32), abs(rng.normal(1.2, 0.6)), 0)
    regions = table.snapshot()
    points = [table.points[i] + np.float32(0.01) for i in rng.integers(REGIONS, size=QUERIES)]
    for norm in (l2, l1):
        spent = []
        for look_up in (
            lambda x, norm=norm: regions.list_holding(Metric(norm), x.astype(np.float64)),
            lambda x, norm=norm: np.linalg.norm(regions.points - x, ord=norm.p, axis=1),
        ):
            begin = time.process_time()
            for point in points:
                look_up(point)
            spent.append(1e3 * (time.process_time() - begin) / QUERIES)
        print(f"{REGIONS} regions, l{norm.text}: {spent[0]:.1f} ms, {spent[1] / spent[0]:.1f} x")


if __name__ == "__main__":
    main()
