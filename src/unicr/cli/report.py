"""`unicr report`: one offline page about one or more runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from unicr.cli._parameters import Force, Out, Repeated, command
from unicr.errors import RunError


@command
def report(
    runs: list[Path],
    /,
    *,
    out: Out,
    format_: Annotated[
        Literal["html", "evidence", "cyclonedx"], Parameter(name="--format")
    ] = "html",
    data: str | None = None,
    images: Annotated[bool, Parameter(negative="--no-images")] = True,
    max_images: int = 500,
    trust: Annotated[list[Path] | None, Repeated] = None,
    force: Force = False,
) -> int:
    """Write one offline HTML page about runs.

    The page shows scores, curves, every input, and how to verify the runs. Example: unicr report
    my-run -o report.html

    --format evidence writes a statement about one run for an auditor's files. It has a verdict on
    each requirement that was set before the noise was known (`unicr commit --require`). --format
    cyclonedx writes the same facts as a bill of materials with a model card. Exit code 1 if a
    requirement is not met.

    Parameters
    ----------
    runs
        Run folders. Runs on the same inputs are compared.
    out
        The .html file to write. It works without a network. Evidence can also be .json
        (docs/evidence.schema.json is the schema).
    format_
        html: the page about runs. evidence: the statement about one run, as a page or as JSON.
        cyclonedx: the same facts as CycloneDX 1.6 (JSON).
    data
        Where the data is now, if the path in the runs is out of date. Used for pictures only.
    images
        Show pictures of the inputs and a noisy copy of each.
    max_images
        Draw at most this many inputs of each run, to keep the file small.
    trust
        Allow this file to run code: the file.py of a noise that a run names. May be given several
        times.
    """
    if format_ != "html":
        return write_evidence(runs, out, force, as_bill=format_ == "cyclonedx")
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


def write_evidence(runs: list[Path], out: Path, force: bool, *, as_bill: bool = False) -> int:
    """The evidence about one run, as .json or as a page; 1 if its verdict is "fail".

    `as_bill` writes it as CycloneDX has it.
    """
    from unicr.folder import replace_file
    from unicr.runs import Run, cyclonedx, evidence, evidence_page

    if len(runs) != 1:
        raise RunError("evidence is about one run: give exactly one folder")
    if out.suffix.lower() not in (".json", *(() if as_bill else (".html", ".htm"))):
        kinds = "CycloneDX is a .json file" if as_bill else "evidence is a .json or a .html file"
        raise RunError(f"cannot write {out.name}: {kinds}")
    with Run(runs[0]) as run:
        facts = evidence(run, force=force)
    as_json = out.suffix.lower() == ".json"
    plain = cyclonedx(facts) if as_bill else facts
    text = json.dumps(plain, indent=1, allow_nan=False) + "\n" if as_json else evidence_page(facts)
    with replace_file(out) as file:
        file.write_text(text, encoding="utf-8")
    for one in facts["requirements"]:
        if one["reached"] is None:
            print(f"{one['requirement']}: {one['verdict']}")
        else:
            print(f"{one['requirement']}: {one['verdict']}, {one['reached']:.4g} holds at "
                  f"confidence {one['confidence']:.1%}")  # fmt: skip
    print(f"verdict: {facts['verdict']}; written to {out}")
    return 1 if facts["verdict"] == "fail" else 0
