"""`unicr check-log`: what in published logs cannot be as they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from unicr.cli._options import MaybeWhole, Words, count
from unicr.errors import RunError, SpecError, printable
from unicr.text import read_assignment, read_number

if TYPE_CHECKING:
    from unicr.runs.logs import CheckedLog


def check_log(
    logs: list[Path],
    /,
    *,
    noise: str | None = None,
    norm: str = "2",
    dim: Annotated[int | None, count("Number of input coordinates, for norms beyond 2.")] = None,
    n: MaybeWhole = None,
    alpha: float | None = None,
    accuracy: Words = None,
    average: str | None = None,
    json_: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Look for what cannot be true in published logs.

    Exit code 1 with findings. The model is not needed. Example:

    unicr check-log data/certify --noise 'gaussian(sigma={sigma})' --n 100000 --alpha 0.001

    Parameters
    ----------
    logs
        Logs in any form that `unicr recertify` reads, or folders of them at any depth.
    noise
        The noise they were made with; {sigma} stands for the number after sigma_ in a log's path.
    norm
        The norm of their radii.
    n
        With alpha: the votes that bound p_A.
    alpha
        The failure probability of one certificate that is stated (one-sided).
    accuracy
        Certified accuracies that are stated, as printed: 0.5=0.43 1.0=0.22.
    average
        The average certified radius that is stated, as printed.
    json_
        Print all findings, with their inputs, as JSON.
    """
    from unicr.norms import parse_norm
    from unicr.runs.logs import Claim, check_logs, find_logs

    if (n is None) != (alpha is None):
        raise RunError("--n and --alpha belong together: give both, or neither")
    claim = Claim(
        noise=noise,
        norm=parse_norm(norm),
        dim=dim,
        n=n,
        alpha=alpha,
        accuracy=_stated(accuracy),
        average=average,
    )
    checked = check_logs(find_logs(logs), claim)
    print(_as_json(checked) if json_ else _as_table(checked))
    return 1 if any(one.findings for one in checked) else 0


def _stated(texts: Words) -> dict[float, str]:
    found = {}
    for text in texts or []:
        try:
            radius, value = read_assignment(text)
            read_number(value)
            found[read_number(radius)] = value
        except SpecError:
            raise SpecError(f"cannot read --accuracy {text!r}: write RADIUS=ACCURACY") from None
    return found


def _as_table(checked: list[CheckedLog]) -> str:
    from unicr.lab.report.tables import format_table
    from unicr.radius import round_down

    head = ("log", "rows", "accuracy", "average radius", "largest", "findings")
    rows = [
        (
            printable(str(one.path)),
            str(one.rows),
            f"{one.accuracy:.3f}",
            str(round_down(one.average, 4)),
            str(round_down(one.largest, 4)),
            ", ".join(finding.kind for finding in one.findings) or "none",
        )
        for one in checked
    ]
    lines = [
        f"{printable(str(one.path))}: {finding.kind}: {printable(finding.text)}"
        for one in checked
        for finding in one.findings
    ]
    wrong = sum(bool(one.findings) for one in checked)
    return "\n".join(
        [format_table(head, rows), *lines, f"{len(checked)} logs, {wrong} with findings"]
    )


def _as_json(checked: list[CheckedLog]) -> str:
    logs: list[dict[str, Any]] = [
        {
            "log": str(one.path),
            "rows": one.rows,
            "accuracy": one.accuracy,
            "average_radius": one.average,
            "largest_radius": one.largest,
            "findings": [
                {"kind": f.kind, "text": f.text, "inputs": list(f.inputs)} for f in one.findings
            ],
        }
        for one in checked
    ]
    return json.dumps(logs, indent=2)
