"""python -m tests.mutants [--only ID …] [--jobs N]: which slips do the tests notice?"""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor

from tests.mutants.slips import (
    PASSED,
    Slip,
    SlipError,
    copied,
    every_test_of,
    load,
    run_tests,
    try_slip,
)


def verdict(slip: Slip) -> str:
    """One word for a slip."""
    try:
        return try_slip(slip)
    except SlipError as error:
        return f"ERROR {error}"


def passes(chosen: list[Slip]) -> bool:
    """Whether the tests pass without any slip; if not, nothing can be learnt from them."""
    with copied() as copy:
        code, said = run_tests(copy, every_test_of(chosen), shared=True)
    if code != PASSED:
        print(f"{said[-3000:]}\nthe tests fail without a slip")
    return code == PASSED


def main() -> int:
    """Try slips and print what became of each; 1 where one survives that should not."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", nargs="*", help="slips by id, or by the beginning of their ids")
    parser.add_argument("--jobs", type=int, default=1, help="how many at once")
    given = parser.parse_args()
    chosen = [slip for slip in load() if not given.only or slip.id.startswith(tuple(given.only))]
    if not passes(chosen):
        return 1
    counts: dict[str, int] = {}
    bad = 0
    with ThreadPoolExecutor(given.jobs) as pool:
        for slip, found in zip(chosen, pool.map(verdict, chosen), strict=True):
            counts[found.split()[0]] = counts.get(found.split()[0], 0) + 1
            wanted = "survived" if slip.survives else "killed"
            bad += found != wanted
            print(
                f"{found:9}{'' if found == wanted else '  <-- not expected'}  {slip.id}", flush=True
            )
    print(", ".join(f"{count} {word}" for word, count in sorted(counts.items())))
    return int(bad > 0)


if __name__ == "__main__":
    raise SystemExit(main())
