"""python -m tests.mutants [--only ID …] [--jobs N] [--find TEST …]: do tests notice the slips?"""

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


def verdict(slip: Slip, tests: tuple[str, ...]) -> tuple[str, str]:
    """One word for a slip, and the test that notices it."""
    try:
        return try_slip(slip, tests)
    except SlipError as error:
        return "ERROR", str(error)


def passes(tests: tuple[str, ...]) -> bool:
    """Whether the tests pass without any slip; if not, nothing can be learnt from them."""
    with copied() as copy:
        code, said = run_tests(copy, tests, shared=True)
    if code != PASSED:
        print(f"{said[-3000:]}\nthe tests fail without a slip")
    return code == PASSED


def main() -> int:
    """Try slips and print what became of each; 1 where one survives that should not."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", nargs="*", help="slips by id, or by the beginning of their ids")
    parser.add_argument("--jobs", type=int, default=1, help="how many at once")
    parser.add_argument(
        "--find", nargs="*", default=[], help="files of tests to try instead of `killed_by`"
    )
    given = parser.parse_args()
    chosen = [slip for slip in load() if not given.only or slip.id.startswith(tuple(given.only))]
    tests = tuple(given.find)
    if not passes(tests or every_test_of(chosen)):
        return 1
    counts: dict[str, int] = {}
    bad = 0
    with ThreadPoolExecutor(given.jobs) as pool:
        tried = pool.map(lambda slip: verdict(slip, tests), chosen)
        for slip, (word, test) in zip(chosen, tried, strict=True):
            counts[word] = counts.get(word, 0) + 1
            expected = word == ("killed" if slip.survives is None else "survived")
            bad += not expected
            mark = "" if expected else "  <-- not expected"
            print(
                f"{word:9}{mark}  {slip.id}  {test if tests or word == 'ERROR' else ''}", flush=True
            )
    print(", ".join(f"{count} {word}" for word, count in sorted(counts.items())))
    return int(bad > 0)


if __name__ == "__main__":
    raise SystemExit(main())
