"""The defence study for people: one row per attack, one column per multiple of the radius."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unicr.errors import RunError
from unicr.lab.attack import AttackStore, Defence, Skipped, Task, defences
from unicr.lab.report.tables import Form, as_csv, as_json, format_table, title
from unicr.progress import Bar


class AttackBar(Bar):
    """Counts the perturbed inputs that were judged."""

    def __init__(self) -> None:
        super().__init__("attacking", 0)
        self._judged = 0

    def plan(self, tasks: Sequence[Task]) -> None:
        """The attacks to make."""
        self.expect(sum(len(task.aims) * len(task.goals) for task in tasks))
        self.update("attacking", done=0)

    def add(self, task: Task) -> None:
        """Count one finished task."""
        self._judged += len(task.aims) * len(task.goals)
        self.update(f"{task.attack.name}: perturbed inputs judged", done=self._judged)


def defence_table(results: Sequence[Defence], form: Form = "table") -> str:
    """The summaries as one table per norm, one flat table (csv) or a list (json)."""
    if form in ("table", "markdown"):
        return _by_norm(results, form)
    records = [defence.to_dict() for defence in results]
    if form == "json":
        return as_json(records)
    return as_csv(
        [{**record, "missed": " ".join(map(str, record["missed"]))} for record in records]
    )


def _by_norm(results: Sequence[Defence], form: Form) -> str:
    """Attacks down, multiples of the radius across: the paper's table, once per norm."""
    blocks = []
    for norm in dict.fromkeys(defence.norm for defence in results):
        here = [defence for defence in results if defence.norm == norm]
        factors = sorted({defence.factor for defence in here})
        rows = []
        for name in dict.fromkeys(defence.attack for defence in here):
            cells = {defence.factor: defence for defence in here if defence.attack == name}
            inputs = max(defence.inputs for defence in cells.values())
            rows.append([name, str(inputs), *(_cell(cells.get(factor)) for factor in factors)])
        table = format_table(["attack", "inputs", *(f"{f:g} R" for f in factors)], rows, form)
        words = "defence accuracy in % (95 % interval), significant changes of class"
        blocks.append(f"{title(f'l{norm}', form)}: {words}\n\n{table}")
    within = [defence for defence in results if defence.factor <= 1]
    missed = sum(defence.changed for defence in within)
    total = sum(defence.inputs for defence in within)
    blocks.append(f"within the radius: {missed} significant changes of class in {total} attacks")
    return "\n\n".join(blocks)


def _cell(defence: Defence | None) -> str:
    return "-" if defence is None else f"{defence_text(defence)}, {defence.changed}"


def defence_text(defence: Defence) -> str:
    """The share that held in percent, with its interval."""
    high = math.ceil(defence.high * 1000 - 1e-9) / 10
    return f"{_floor(defence.accuracy)} ({_floor(defence.low)} … {high:.1f})"


def _floor(share: float) -> str:
    """Percent with one decimal, cut and never rounded up: 100.0 means all of them."""
    return f"{math.floor(share * 1000 + 1e-9) / 10:.1f}"


def attack_records(folder: Path, notes: list[str]) -> list[dict[str, Any]]:
    """How the attacks fared that were made on a run; `notes` gets why they cannot be read."""
    if not (folder / "attacks.sqlite").is_file():
        return []
    try:
        with AttackStore(folder, create=False) as store:
            if store.stored_seal() not in (None, store.seal()):
                raise RunError("the results were changed after they were sealed")
            results = defences(store.outcomes())
    except RunError as error:
        notes.append(f"no attacks are shown: {error}")
        return []
    return [{**defence.to_dict(), "text": defence_text(defence)} for defence in results]


def describe_skipped(skipped: Skipped) -> str:
    """One line on the inputs that were not attacked."""
    return (
        f"not attacked: {skipped.abstained} abstained, {skipped.failed} failed, "
        f"{skipped.without_radius} without a finite radius above 0"
    )
