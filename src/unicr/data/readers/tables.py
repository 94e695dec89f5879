"""CSV and Parquet tables: one row is one input, one column may be the label.

The label column is the one asked for, or one named label, target, class or y. An empty cell is
NaN, so that its row is never certified.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unicr.data._dataset import Dataset, from_arrays
from unicr.data._reader import DataAsked, Reader, with_ending
from unicr.errors import DataError, foreign, listed
from unicr.extras import require

LABEL_COLUMNS = ("label", "labels", "target", "class", "y")


def read_csv(asked: DataAsked) -> Dataset:
    """A CSV file with a header line."""
    path = asked.path
    with (
        foreign(DataError, f"{path} is not a CSV table"),
        path.open(newline="", encoding="utf-8-sig") as file,
    ):
        rows = [row for row in csv.reader(file) if row]
    if len(rows) < 2:
        raise DataError(f"{path} has no rows: a header line and one line per input are needed")
    header = [name.strip() for name in rows[0]]
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(header):
            raise DataError(
                f"{path}, row {number}: {len(row)} cells where the header has {len(header)}; "
                "cells are separated by commas"
            )
    if len(set(header)) != len(header):
        raise DataError(f"{path} has two columns of the same name")
    columns = zip(*rows[1:], strict=True)
    words = {
        name: np.array([cell.strip() for cell in cells])
        for name, cells in zip(header, columns, strict=True)
    }
    return _dataset(asked, words)


def read_parquet(asked: DataAsked) -> Dataset:
    """A Parquet file (needs the extra `table`)."""
    parquet = require("pyarrow.parquet", "table")
    with foreign(DataError, f"{asked.path} is not a Parquet table"):
        table = parquet.read_table(asked.path)
        columns = [column.to_numpy() for column in table.columns]
    if len(set(table.column_names)) != len(columns):
        raise DataError(f"{asked.path} has two columns of the same name")
    return _dataset(asked, dict(zip(table.column_names, columns, strict=True)))


def _dataset(asked: DataAsked, columns: dict[str, NDArray[Any]]) -> Dataset:
    path, wanted = asked.path, asked.label_column
    if wanted is not None and wanted not in columns:
        raise DataError(f"{path} has no column {wanted!r}; it has {listed(columns)}")
    label = wanted or next((name for name in columns if name.lower() in LABEL_COLUMNS), None)
    features = [_numbers(path, name, v) for name, v in columns.items() if name != label]
    if not features:
        raise DataError(f"{path} has no column but the label")
    labels = None if label is None else columns[label]
    return from_arrays(np.column_stack(features), labels, name=path.name, source=str(path))


def _numbers(path: Path, name: str, values: NDArray[Any]) -> NDArray[np.float64]:
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    numbers = np.empty(len(values))
    for row, value in enumerate(values):
        text = "" if value is None else str(value)
        try:
            numbers[row] = float(text) if text else np.nan
        except ValueError:
            raise DataError(
                f"{path}: column {name!r} has {text!r} in input {row}, which is not a number; "
                "encode it or name it as the label column"
            ) from None
    return numbers


READERS = (
    Reader(".csv", with_ending(".csv"), read_csv),
    Reader(".parquet", with_ending(".parquet", ".pq"), read_parquet),
)
