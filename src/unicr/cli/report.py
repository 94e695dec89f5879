"""`unicr report`: one offline page about one or more runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from unicr.cli._options import Out, TrustedFiles, Whole


def report(
    runs: list[Path],
    /,
    *,
    out: Out,
    data: str | None = None,
    images: Annotated[bool, Parameter(negative="--no-images")] = True,
    max_images: Whole = 500,
    trust: TrustedFiles = None,
) -> None:
    """Write one offline HTML page about runs.

    Curves, scores, every input, and how to verify. Example: unicr report my-run -o report.html

    Parameters
    ----------
    runs
        Run folders; those on the same inputs are compared.
    out
        The .html file to write. It needs no network and opens from a disk.
    data
        The data, where the one written in the runs is not to be found (for pictures only).
    images
        Show pictures of the inputs and a noisy copy of each.
    max_images
        Draw at most this many inputs of each run, to keep the file small.
    """
    from unicr.lab.report.html import write_report

    made = write_report(
        runs, out, data=data, images=images, max_images=max_images, trust=trust or ()
    )
    for note in made:
        print(note, file=sys.stderr)
    print(f"written to {out}")
