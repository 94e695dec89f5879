"""Which reader is for which dataset: `load_dataset` decides by type, name and folder content."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args

from unicr.data._dataset import Dataset, from_arrays, from_batches, from_items
from unicr.data._fetch import ARCHIVES, data_folder
from unicr.data._labels import read_labels
from unicr.data._reader import READERS, DataAsked
from unicr.errors import DataError, foreign

BUILTIN = {"builtin:mnist": "mnist_test_1000.npz"}
Split = Literal["test", "train"]
SPLITS = get_args(Split)


@dataclass(frozen=True)
class DataOptions:
    """How a dataset is read: the options of `load_dataset`.

    Parameters
    ----------
    labels
        A file of labels, if the data has none: .npy, idx, or text with one label per line.
    split
        Read the test or the train part, if the data has both.
    label_column
        The column of the labels, if the data is a table.
    """

    labels: Path | None = None
    split: Split | None = None
    label_column: str | None = None

    def load(self, spec: str, *, split: Split = "test") -> Dataset:
        """The dataset that `spec` names; `split` is the part to read where these name none."""
        return load_dataset(spec, **{**vars(self), "split": self.split or split})


def load_dataset(
    spec: Any, *, labels: Any = None, split: str = "test", label_column: str | None = None
) -> Dataset:
    """Load a dataset: a path, `builtin:mnist`, arrays, a pair (inputs, labels), a torch Dataset or
    DataLoader, or a Hugging Face dataset.

    `labels` gives the labels if the inputs come without them: an array, or a file (.npy, idx, or
    text with one label per line). `split` is "test" or "train", if a folder or file has both.
    `label_column` is the column of the labels in a table.
    """
    if split not in SPLITS:
        raise DataError(f"split={split!r} must be one of {', '.join(SPLITS)}")
    if not isinstance(spec, str | Path):
        data = _from_object(spec)
        return data if labels is None else data.labelled(labels)
    path = _find_files(spec)
    given = Path(labels).expanduser() if isinstance(labels, str | Path) else None
    if given is not None and not given.is_file():
        raise DataError(f"there is no labels file {given}")
    asked = DataAsked(path, split, label_column, given)
    reader = next((reader for reader in READERS.values() if reader.takes(asked)), None)
    if reader is None:
        ending = path.suffix.lower() or "no"
        raise DataError(
            f"{path} has the ending {ending}, which is not known; known forms: {_known()}"
        )
    with foreign(DataError, f"{path} cannot be read"):
        data = reader.read(asked)
    if labels is None:
        return data
    return data.labelled(labels if given is None else read_labels(given))


def _from_object(spec: Any) -> Dataset:
    """The dataset that arrays, or a collection of inputs, are."""
    if isinstance(spec, Dataset):
        return spec
    if isinstance(spec, tuple) and len(spec) == 2 and hasattr(spec[0], "shape"):
        return from_arrays(*spec, name="arrays", source="arrays in memory")
    if hasattr(spec, "shape"):
        return from_arrays(spec, name="arrays", source="an array in memory")
    if hasattr(spec, "__getitem__") and hasattr(spec, "__len__"):
        return from_items(spec, type(spec).__name__)
    if hasattr(spec, "dataset") and hasattr(spec, "__iter__"):  # a torch DataLoader
        return from_batches(spec, type(spec).__name__)
    raise DataError(
        f"{type(spec).__name__} is not a dataset: give a path, arrays, or an object with __len__ "
        "and __getitem__"
    )


def _find_files(spec: str | Path) -> Path:
    """Where the files of a path, of a dataset of the package or of a fetched one are."""
    if isinstance(spec, str) and spec.startswith("builtin:"):
        if spec not in BUILTIN:
            raise DataError(
                f"there is no dataset {spec}; the package contains {', '.join(BUILTIN)}"
            )
        return Path(str(files("unicr.data") / "builtin" / BUILTIN[spec]))
    path = Path(spec).expanduser()
    if not path.exists() and str(spec) in ARCHIVES:
        path = data_folder(str(spec))
        if not path.is_dir():
            raise DataError(f"{spec} is not on this machine yet: run `unicr data fetch {spec}`")
    if not path.exists():
        raise DataError(f"there is no file or folder {spec}; known forms: {_known()}")
    if not (path.is_file() or path.is_dir()):  # reading a pipe may never end
        raise DataError(f"{path} is neither a file nor a folder")
    return path


def _known() -> str:
    forms = (*(reader.forms for reader in READERS.values()), "a folder with any of these", *BUILTIN)
    return ", ".join(forms) + f", or the name of a fetched dataset ({', '.join(ARCHIVES)})"
