"""`unicr report`: one offline page about one or more runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from unicr.cli._options import Force, Out, TrustedFiles, Whole
from unicr.errors import RunError


def report(
    runs: list[Path],
    /,
    *,
    out: Out,
    format_: Annotated[Literal["html", "evidence"], Parameter(name="--format")] = "html",
    data: str | None = None,
    images: Annotated[bool, Parameter(negative="--no-images")] = True,
    max_images: Whole = 500,
    trust: TrustedFiles = None,
    force: Force = False,
) -> int:
    """Write one offline HTML page about runs.

    Curves, scores, every input, and how to verify. Example: unicr report my-run -o report.html

    With --format evidence: what an auditor files about one run, with a verdict about what was
    required before its noise was known (`unicr commit --require`). Exit code 1 if it fails.

    Parameters
    ----------
    runs
        Run folders; those on the same inputs are compared.
    out
        The .html file to write. It needs no network and opens from a disk. Evidence may also be
        .json, by the schema docs/evidence.schema.json.
    format_
        html: the page about runs. evidence: the facts of one run, as a plain page or as JSON.
    data
        The data, where the one written in the runs is not to be found (for pictures only).
    images
        Show pictures of the inputs and a noisy copy of each.
    max_images
        Draw at most this many inputs of each run, to keep the file small.
    """
    if format_ == "evidence":
        return write_evidence(runs, out, force)
    from unicr.lab.report.html import write_report

    made = write_report(
        runs,
        out,
        data=data,
        images=images,
        max_images=max_images,
        trust=trust or (),
        force=force,
    )
    for note in made:
        print(note, file=sys.stderr)
    print(f"written to {out}")
    return 0


def write_evidence(runs: list[Path], out: Path, force: bool) -> int:
    """The evidence about one run, as .json or as a page; 1 where its verdict is "fail"."""
    from unicr.folder import replace_file
    from unicr.runs import Run, evidence, evidence_page

    if len(runs) != 1:
        raise RunError("evidence is about one run: give one folder")
    if out.suffix.lower() not in (".json", ".html", ".htm"):
        raise RunError(f"cannot write {out.name}: evidence is a .json or a .html file")
    with Run(runs[0]) as run:
        facts = evidence(run, force=force)
    as_json = out.suffix.lower() == ".json"
    text = json.dumps(facts, indent=1, allow_nan=False) + "\n" if as_json else evidence_page(facts)
    with replace_file(out) as file:
        file.write_text(text, encoding="utf-8")
    for one in facts["requirements"]:
        print(f"{one['requirement']}: {one['verdict']}, {one['reached']:.4g} holds at confidence "
              f"{one['confidence']:.1%}")  # fmt: skip
    print(f"verdict: {facts['verdict']}; written to {out}")
    return 1 if facts["verdict"] == "fail" else 0
