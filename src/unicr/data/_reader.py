"""What a reader of data is: how it knows its files, and how it makes a dataset of them.

A new form of data is one new file in `readers/` that holds a `Reader`, or an entry point of another
distribution; nothing else changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from unicr.data._dataset import Dataset
from unicr.registry import Catalogue


@dataclass(frozen=True)
class DataAsked:
    """A file or folder to read, and what the user said about it.

    `labels` is a file of labels that will replace the data's own.
    """

    path: Path
    split: str = "test"
    label_column: str | None = None
    labels: Path | None = None


@dataclass(frozen=True)
class Reader:
    """One form of data. The first reader, by `rank`, that takes a path reads it.

    `forms` is how users write it, for messages; `takes` knows it by its name, a folder by what is
    in it. What `read` raises becomes a DataError that names the path.
    """

    forms: str
    takes: Callable[[DataAsked], bool]
    read: Callable[[DataAsked], Dataset]
    rank: int = 0


def with_ending(*endings: str) -> Callable[[DataAsked], bool]:
    """The `takes` of a form that is known by the ending of its files."""
    return lambda asked: asked.path.suffix.lower() in endings and not asked.path.is_dir()


READERS: Catalogue[Reader] = Catalogue(
    "unicr.readers", "unicr.data.readers", Reader, sort=lambda reader: reader.rank
)
"""Every reader, in the order in which they are asked."""
