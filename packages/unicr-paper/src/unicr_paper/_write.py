"""From a result to files: CSV, PNG, SVG, a comparison, and last `item.json`, which says it is done.

A process killed at any moment leaves a finished item or an unfinished one.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unicr.folder import Folder, write_json
from unicr.lab.report.plots import figures
from unicr_paper._item import Item, Output, Table

RECORD = "item.json"
COMPARISON = "comparison.txt"


def read_record(folder: Path) -> dict[str, Any] | None:
    """What `item.json` says, or None if it is absent, damaged, or a file of it is gone."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(record, dict) or not isinstance(record.get("files"), list):
        return None
    return record if all((folder / name).is_file() for name in record["files"]) else None


def write_result(item: Item, result: Output, home: Folder, record: Mapping[str, Any]) -> list[str]:
    """Put everything into the folder and give the names of the files, `item.json` not counted."""
    old = read_record(home.path)
    with home.replace_files(remove=old["files"] if old else ()) as fresh:
        _write_files(item, result, fresh)
        names = sorted(path.name for path in fresh.iterdir())
        write_json(fresh / RECORD, {**record, "files": names})
    return names


def _write_files(item: Item, result: Output, folder: Path) -> None:
    for name, table in result.tables.items():
        _write_table(table, folder / f"{name}.csv")
    for name, figure in result.figures.items():
        size = {"width": figure.width, "height": figure.height}
        paths = [folder / f"{name}.png", folder / f"{name}.svg"]
        with figures(paths[0], figure.rows, figure.columns, also=paths[1:], **size) as axes:
            figure.draw(list(axes))
    lines = [f"{item.title} ({item.source} of the paper)", "", *result.comparison]
    if result.remarks:
        lines += ["", *(f"Note: {remark}" for remark in result.remarks)]
    (folder / COMPARISON).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_table(table: Table, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.columns)
        for row in table.rows:
            if len(row) != len(table.columns):
                raise ValueError(f"{path.name}: row {row!r} does not fit {table.columns!r}")
            writer.writerow(_cell(value) for value in row)


def _cell(value: Any) -> Any:
    """Numbers of numpy as plain ones, so that 0.1 is written as 0.1 in full precision."""
    return value.item() if hasattr(value, "item") else value
