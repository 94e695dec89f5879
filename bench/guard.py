"""The guard's look-up with trees against a scan of all regions: digits moved by a little noise."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from unicr.data import load_dataset
from unicr.guard import Metric
from unicr.guard._table import Table
from unicr.norms import l1, l2

REGIONS, QUERIES = 200_000, 10


def main() -> None:
    data, rng = load_dataset("builtin:mnist"), np.random.default_rng(0)
    digits = np.stack([data.read(i)[0].ravel() for i in range(len(data))])
    table = Table(digits.shape[1])
    for _ in range(REGIONS):
        point = digits[rng.integers(len(digits))] + rng.normal(0, 0.05, digits.shape[1])
        table.append(point.astype(np.float32), abs(rng.normal(1.2, 0.6)), 0)
    begin = time.process_time()
    trees = table.snapshot()
    print(f"{REGIONS} regions: trees built in {time.process_time() - begin:.1f} s")
    for norm in (l2, l1):
        spent = []
        points = [table.points[i] + 0.01 for i in rng.integers(REGIONS, size=QUERIES)]
        for regions in (trees, replace(trees, blocks=())):
            begin = time.process_time()
            for point in points:
                regions.holding(Metric(norm), point.astype(np.float64))
            spent.append(time.process_time() - begin)
        fast, scan = (1e3 * one / QUERIES for one in spent)
        print(f"l{norm.text}: {fast:.1f} ms by trees, {scan:.0f} by scanning, {scan / fast:.0f} x")


if __name__ == "__main__":
    main()
