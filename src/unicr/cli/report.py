"""`unicr report`: one offline page about one or more runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from unicr.cli._options import Whole


def report(
    runs: list[Path],
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    data: str | None = None,
    images: Annotated[bool, Parameter(negative="--no-images")] = True,
    max_images: Whole = 500,
    trust: Annotated[list[Path] | None, Parameter(negative="")] = None,
) -> None:
    """Write a self-contained HTML report of runs: curves, scores, every input, how to verify.

    Parameters
    ----------
    runs
        Run folders; those on the same inputs are compared.
    output
        The .html file to write. It needs no network and opens from a disk.
    data
        The data, where the one written in the runs is not to be found (for pictures only).
    images
        Show pictures of the inputs and a noisy copy of each.
    max_images
        Draw at most this many inputs of each run, to keep the file small.
    trust
        A file that may run code, where a run names a file.py. May be given several times.
    """
    from unicr.report.html import write_report

    made = write_report(
        runs, output, data=data, images=images, max_images=max_images, trust=trust or ()
    )
    for note in made:
        print(note, file=sys.stderr)
    print(f"written to {output}")
