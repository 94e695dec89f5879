"""`unicr paper`: make the paper's tables and figures again, item by item."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from unicr.errors import SpecError
from unicr.text import read_assignment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unicr_paper import Mode, Request

FAILED, MISSING = 3, 4  # exit codes: an item failed; one was skipped because its data is not there
VARIABLE = "UNICR_PAPER_DATA"
SEED = "Random seed; the same seed gives the same tables. Certificates from a seed are experiments."


def paper(
    names: list[str] | None = None,
    /,
    *,
    quick: bool = False,
    full: bool = False,
    out: Annotated[Path, Parameter(name=["--out", "-o"])] = Path("paper-results"),
    data_dir: Path | None = None,
    fresh: bool = False,
    seed: Annotated[int, Parameter(help=SEED)] = 0,
    workers: int = 0,
    set_: Annotated[list[str] | None, Parameter(name="--set", consume_multiple=False)] = None,
) -> int:
    """Make the tables and figures of the UniCR paper again.

    Without a name the command lists all items. Items that are done are skipped. Exit code 3 if an
    item failed, 4 if one was skipped because its data is missing. Example:

    unicr paper formulas noises --quick

    Parameters
    ----------
    names
        Items, or ALL, or list.
    quick
        Small sizes: minutes for all.
    full
        The paper's numbers of images and samples.
    out
        Each item writes CSV, PNG, SVG, comparison.txt and item.json into a folder here.
    data_dir
        The folder of datasets and weights; $UNICR_PAPER_DATA or ./data if left out.
    fresh
        Repeat items that are done.
    workers
        Processes for certification runs; 0 runs everything in this one.
    set_
        Something that an item asks for, as NAME=VALUE; may be given several times.
    """
    from unicr_paper import ITEMS, Request, check_options, choose

    if quick and full:
        raise SpecError("give one of --quick and --full")
    mode: Mode = "quick" if quick else "full" if full else "default"
    options = _options(set_ or [])
    check_options(options, ITEMS)
    data = data_dir or Path(os.environ.get(VARIABLE) or "data")
    request = Request(
        out=out, data=data, mode=mode, seed=seed, workers=workers, again=fresh, options=options
    )
    if not names or [name.lower() for name in names] == ["list"]:
        _print_list(request)
        return 0
    choose(names, ITEMS)
    return _run(names, request)


def _options(given: Sequence[str]) -> dict[str, str]:
    options = {}
    for text in given:
        try:
            name, value = read_assignment(text)
        except SpecError:
            raise SpecError(f"--set {text!r}: write NAME=VALUE") from None
        options[name] = value
    return options


def _print_list(request: Request) -> None:
    from unicr.lab.report.tables import format_table
    from unicr_paper import ITEMS, state_of

    rows = [
        (item.name, item.source, item.title, state_of(item, request)) for item in ITEMS.values()
    ]
    print(format_table(("item", "in the paper", "what", "state"), rows))


def _run(names: Sequence[str], request: Request) -> int:
    from unicr_paper import ITEMS, choose, run_items

    def log(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    states, items = set(), choose(names, ITEMS)
    try:
        for i, outcome in enumerate(run_items(items, request, log=log), 1):
            states.add(outcome.state)
            print(f"{outcome.name}: {outcome.state}, {outcome.text}", flush=True)
            if len(items) > 1:
                log(f"{i} of {len(items)} items")
    except KeyboardInterrupt:
        log("what is done stays: the same command goes on, without --fresh")
        raise
    if "failed" in states:
        return FAILED
    return MISSING if "missing data" in states else 0
