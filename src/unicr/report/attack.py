"""The defence study for people: one row per attack, one column per multiple of the radius."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from rich import progress as rich_progress
from rich.console import Console

from unicr.attack import Defence, Left, Task

if TYPE_CHECKING:
    from types import TracebackType

COLUMNS = ("attack", "norm", "factor", "inputs", "held", "accuracy", "low", "high")
VERDICTS = ("kept", "undecided", "changed", "missed")


class Progress:
    """A bar that counts attacked groups of inputs; silent when not a terminal."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._bar = rich_progress.Progress(
            rich_progress.TextColumn("{task.description}"),
            rich_progress.TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("attacking", total=None)
        self._attacked = 0

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def add(self, task: Task) -> None:
        """Count one finished task."""
        self._attacked += len(task.aims) * len(task.goals)
        text = f"{task.attack.name}: {self._attacked} perturbed inputs judged"
        self._bar.update(self._task, description=text)


def defence_table(
    found: Sequence[Defence], form: Literal["markdown", "csv", "json"] = "markdown"
) -> str:
    """The summaries as one table per norm (markdown), one flat table (csv) or a list (json)."""
    if form == "json":
        return json.dumps([one.to_dict() for one in found], indent=1)
    return _csv(found) if form == "csv" else _markdown(found)


def _csv(found: Sequence[Defence]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow((*COLUMNS, *VERDICTS))
    for one in found:
        missed = " ".join(map(str, one.missed))
        values = [getattr(one, name) for name in (*COLUMNS, *VERDICTS[:-1])]
        writer.writerow([*values, missed])
    return file.getvalue().rstrip("\n")


def _markdown(found: Sequence[Defence]) -> str:
    """Attacks down, multiples of the radius across: the paper's table, once per norm."""
    blocks = []
    for norm in dict.fromkeys(one.norm for one in found):
        here = [one for one in found if one.norm == norm]
        factors = sorted({one.factor for one in here})
        lines = [f"**l{norm}**: defence accuracy (95 % interval), significant changes", ""]
        lines.append("| attack | inputs | " + " | ".join(f"{f:g} R" for f in factors) + " |")
        lines.append("|---" * (len(factors) + 2) + "|")
        for name in dict.fromkeys(one.attack for one in here):
            cells = {one.factor: one for one in here if one.attack == name}
            inputs = max(one.inputs for one in cells.values())
            shown = [_cell(cells.get(factor)) for factor in factors]
            lines.append(f"| {name} | {inputs} | " + " | ".join(shown) + " |")
        blocks.append("\n".join(lines))
    within = [one for one in found if one.factor <= 1]
    missed = sum(one.changed for one in within)
    total = sum(one.inputs for one in within)
    blocks.append(f"within the radius: {missed} significant changes of class in {total} attacks")
    return "\n\n".join(blocks)


def _cell(one: Defence | None) -> str:
    if one is None:
        return "-"
    high = math.ceil(one.high * 1000 - 1e-9) / 10
    return f"{_floor(one.accuracy)} ({_floor(one.low)} … {high:.1f}), {one.changed}"


def _floor(share: float) -> str:
    """Percent with one decimal, cut and never rounded up: 100.0 means all of them."""
    return f"{math.floor(share * 1000 + 1e-9) / 10:.1f}"


def left_out(left: Left) -> str:
    """One line on the inputs that were not attacked."""
    return (
        f"not attacked: {left.abstained} abstained, {left.failed} failed, {left.without_radius} "
        "without a finite radius above 0"
    )
