"""CSV and Parquet tables: one row is one input, one column may be the label.

The label column is the one asked for, or one named label, target, class or y. An empty cell is
NaN, so that its row is never certified.
"""

from __future__ import annotations

import csv
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unicr.data._dataset import Dataset, from_arrays
from unicr.data._pages import unpacked_size
from unicr.data._reader import DataAsked, Reader, with_ending
from unicr.errors import DataError, foreign, listed
from unicr.extras import require
from unicr.files import check_size

LABEL_COLUMNS = ("label", "labels", "target", "class", "y")


def read_csv(asked: DataAsked) -> Dataset:
    """A CSV file with a header line; cells become numbers as they are read, eight bytes each."""
    path = asked.path
    labels: list[str] = []
    values = array("d")
    with (
        foreign(DataError, f"{path} is not a CSV table"),
        path.open(newline="", encoding="utf-8-sig") as file,
    ):
        table = (row for row in csv.reader(file) if row)
        header = [name.strip() for name in next(table, [])]
        label = _label_column(asked, header)
        for number, row in enumerate(table, start=2):
            if len(row) != len(header):
                raise DataError(
                    f"{path}, row {number}: {len(row)} cells, but the header has {len(header)}; "
                    "cells must be separated by commas"
                )
            for name, cell in zip(header, row, strict=True):
                if name == label:
                    labels.append(cell.strip())
                else:
                    values.append(_number(path, name, cell.strip(), number - 2))
    width = len(header) - (label is not None)
    if not values or not width:
        raise DataError(f"{path} has no rows: it needs a header line and one line for each input")
    inputs = np.frombuffer(values, np.float64).reshape(-1, width)
    given = labels if label is not None else None
    features = [name for name in header if name != label]
    return from_arrays(inputs, given, name=path.name, source=str(path), features=features)


def read_parquet(asked: DataAsked) -> Dataset:
    """A Parquet file (needs the extra `table`).

    Its size in memory is known before a value is read. Texts stay in their dictionary, once each,
    since a long one may stand for millions of rows in a small file.
    """
    path = asked.path
    parquet, arrow = require("pyarrow.parquet", "table"), require("pyarrow", "table")
    with foreign(DataError, f"{path} is not a Parquet table"):
        about = parquet.ParquetFile(path)
        schema, rows = about.schema_arrow, about.metadata.num_rows
        label = _label_column(asked, schema.names)
        for one in schema:
            if arrow.types.is_nested(one.type):
                raise DataError(
                    f"{path}: column {one.name!r} has values of type {one.type}, but one number or "
                    "word for each row is needed"
                )
        groups = (about.metadata.row_group(i) for i in range(about.metadata.num_row_groups))
        unpacked = sum(group.total_byte_size for group in groups)
        unpacked = max(unpacked, unpacked_size(path.read_bytes(), about.metadata))
        size = max(unpacked, 8 * rows * len(schema.names))
        check_size(path, size, path.stat().st_size, DataError)
        texts = [one.name for one in schema if arrow.types.is_string(one.type)]
        table = parquet.read_table(path, read_dictionary=texts)
        columns = []
        labels: Any = None
        for name in schema.names:
            column = table.column(name).combine_chunks()
            if name == label:
                labels = _words(column) if hasattr(column, "dictionary") else column.to_numpy(False)
            elif hasattr(column, "dictionary"):
                columns.append(_text_numbers(path, name, column))
            else:
                columns.append(_numbers(path, name, column.to_numpy(zero_copy_only=False)))
    if not rows:
        raise DataError(f"{path} has no rows")
    features = [name for name in schema.names if name != label]
    inputs = np.column_stack(columns)
    return from_arrays(inputs, labels, name=path.name, source=str(path), features=features)


def _words(column: Any) -> list[str | None]:
    """The texts of a column, each object once."""
    known = column.dictionary.to_pylist()
    return [None if place is None else known[place] for place in column.indices.to_pylist()]


def _text_numbers(path: Path, name: str, column: Any) -> NDArray[np.float64]:
    """The numbers that the texts of a column are; NaN where there is none."""
    known = column.dictionary.to_pylist()
    places = column.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)
    first = {int(place): row for row, place in reversed(list(enumerate(places)))}
    used = [text if i in first else "" for i, text in enumerate(known)]
    numbers = [_number(path, name, text or "", first.get(i, 0)) for i, text in enumerate(used)]
    return np.array([*numbers, np.nan])[places]


def _label_column(asked: DataAsked, names: Sequence[str]) -> str | None:
    """The column of the labels, after a look at the names of all."""
    path, wanted = asked.path, asked.label_column
    if len(set(names)) != len(names):
        raise DataError(f"{path} has two columns with the same name")
    if wanted is not None and wanted not in names:
        raise DataError(f"{path} has no column {wanted!r}; its columns are {listed(names)}")
    label = wanted or next((name for name in names if name.lower() in LABEL_COLUMNS), None)
    if label is not None and len(names) == 1:
        raise DataError(f"{path} has no column beside the label")
    return label


def _numbers(path: Path, name: str, values: NDArray[Any]) -> NDArray[np.float64]:
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    texts = ("" if value is None else str(value) for value in values)
    return np.array([_number(path, name, text, row) for row, text in enumerate(texts)])


def _number(path: Path, name: str, text: str, row: int) -> float:
    try:
        return float(text) if text else np.nan
    except ValueError:
        shown = text if len(text) <= 60 else text[:59] + "…"
        raise DataError(
            f"{path}: column {name!r} has the value {shown!r} in input {row}, which is not a "
            "number: encode the column as numbers, or name it as the label column"
        ) from None


READERS = (
    Reader(".csv", with_ending(".csv"), read_csv),
    Reader(".parquet", with_ending(".parquet", ".pq"), read_parquet),
)
