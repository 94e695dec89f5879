"""`unicr check-log`: what in published logs cannot be as they say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from unicr.cli._parameters import Json, Unasked, command, read_as, spread
from unicr.errors import RunError, SpecError, printable
from unicr.norms import Norm, parse_norm
from unicr.runs.logs import Claim, check_logs, find_logs
from unicr.text import read_assignment, read_number

if TYPE_CHECKING:
    from unicr.runs.logs import CheckedLog


@dataclass(frozen=True)
class ClaimOptions(Claim):
    """A claim, whose accuracies are given as texts."""

    accuracy: Annotated[Mapping[float, str], Unasked] = field(default_factory=dict)


spread(ClaimOptions)
read_as(Norm, parse_norm)
CLAIM = ClaimOptions()


@command
def check_log(
    logs: list[Path],
    /,
    *,
    claim: ClaimOptions = CLAIM,
    stated: Annotated[list[str] | None, Parameter(name="--accuracy")] = None,
    json_: Json = False,
) -> int:
    """Find contradictions in published logs.

    Exit code 1 if it finds any. The model is not needed. Example:

    unicr check-log data/certify --noise 'gaussian(sigma={sigma})' --n 100000 --alpha 0.001

    Parameters
    ----------
    logs
        Logs in any form that `unicr recertify` reads, or folders of them at any depth.
    stated
        The stated certified accuracies, as printed: 0.5=0.43 1.0=0.22.
    json_
        Print all findings, with their inputs, as JSON.
    """
    if (claim.n is None) != (claim.alpha is None):
        raise RunError("give --n and --alpha together, or neither")
    checked = check_logs(find_logs(logs), replace(claim, accuracy=read_accuracies(stated)))
    print(_as_json(checked) if json_ else _as_table(checked))
    return 1 if any(one.findings for one in checked) else 0


def read_accuracies(texts: list[str] | None) -> dict[float, str]:
    """RADIUS=ACCURACY texts, the accuracy as it is printed."""
    accuracies = {}
    for text in texts or []:
        try:
            radius, value = read_assignment(text)
            read_number(value)
            accuracies[read_number(radius)] = value
        except SpecError:
            raise SpecError(
                f"cannot read --accuracy {text!r}: write it as RADIUS=ACCURACY"
            ) from None
    return accuracies


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
