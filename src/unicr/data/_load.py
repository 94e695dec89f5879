"""Which reader is for which dataset: `load_dataset` decides by type, name and folder content."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from unicr.data._arrays import read_labels, read_npy, read_npz
from unicr.data._cifar import find_batches, is_python_batch, read_batches
from unicr.data._dataset import Dataset, from_arrays
from unicr.data._fetch import ARCHIVES, data_folder
from unicr.data._idx import SPLITS, find_idx, is_idx, read_idx
from unicr.data._images import find_images, read_images
from unicr.data._table import read_csv, read_parquet
from unicr.data._torch import from_items
from unicr.errors import DataError

BUILTIN = {"builtin:mnist": "mnist_test_1000.npz"}
KNOWN = (
    ".npz, .npy, .csv, .parquet, idx files (…images-idx3-ubyte[.gz]), CIFAR-10 batches "
    "(test_batch, test_batch.bin), a folder with any of these or with images, "
    "builtin:mnist, or the name of a fetched dataset (mnist, fashion-mnist, cifar10)"
)


def builtin_file(name: str) -> Path:
    """A file that comes with the package."""
    return Path(str(files("unicr.data") / "builtin" / name))


def load_dataset(
    spec: Any,
    *,
    labels: Any = None,
    split: str = "test",
    label_column: str | None = None,
) -> Dataset:
    """The dataset that `spec` names: a path, `builtin:mnist`, arrays, or a torch Dataset.

    `labels` is an array, or a file (.npy, idx, or text with one label per line), where they are
    not with the inputs; `split` chooses "test" or "train" where a folder or file has both;
    `label_column` names a table's label. See the messages of `DataError` for what is accepted.
    """
    if split not in SPLITS:
        raise DataError(f"split {split!r} is not one of {', '.join(SPLITS)}")
    if isinstance(spec, Dataset):
        return spec
    if isinstance(spec, str | Path):
        return _from_path(spec, labels, split, label_column)
    if isinstance(spec, tuple) and len(spec) == 2 and all(hasattr(a, "shape") for a in spec):
        return from_arrays(*spec, name="arrays", source="arrays in memory")
    if hasattr(spec, "shape"):
        return from_arrays(spec, labels, name="arrays", source="an array in memory")
    if hasattr(spec, "__getitem__") and hasattr(spec, "__len__"):
        return from_items(spec, type(spec).__name__)
    raise DataError(
        f"{type(spec).__name__} is no dataset: give a path, arrays, or an object with "
        "__len__ and __getitem__"
    )


def _from_path(spec: str | Path, labels: Any, split: str, label_column: str | None) -> Dataset:
    if isinstance(spec, str) and spec.startswith("builtin:"):
        if spec not in BUILTIN:
            raise DataError(f"no {spec}: the package carries {', '.join(BUILTIN)}")
        return read_npz(builtin_file(BUILTIN[spec]), None, split)
    path = Path(spec).expanduser()
    if not path.exists() and str(spec) in ARCHIVES:
        path = data_folder(str(spec))
        if not path.is_dir():
            raise DataError(f"{spec} is not on this machine yet: run `unicr data fetch {spec}`")
    if not path.exists():
        raise DataError(f"no file or folder {spec}; known forms: {KNOWN}")
    given = Path(labels) if isinstance(labels, str | Path) else None
    if given is not None and not given.is_file():
        raise DataError(f"no labels file {given}")
    dataset = _read(path, given, split, label_column)
    if labels is not None and given is None:
        dataset = dataset.labelled(labels)
    return dataset


def _read(path: Path, labels: Path | None, split: str, label_column: str | None) -> Dataset:
    if path.is_dir():
        return _folder(path, labels, split)
    if is_idx(path):
        return read_idx(path, labels)
    if is_python_batch(path) or path.suffix == ".bin":
        return read_batches([path], path.name)
    match path.suffix.lower():
        case ".npz":
            return read_npz(path, labels, split)
        case ".npy":
            return read_npy(path, labels)
        case ".csv":
            table = read_csv(path, label_column)
        case ".parquet" | ".pq":
            table = read_parquet(path, label_column)
        case ending:
            raise DataError(f"{path}: {ending or 'no'} ending is not known; known forms: {KNOWN}")
    return table if labels is None else table.labelled(read_labels(labels))


def _folder(path: Path, labels: Path | None, split: str) -> Dataset:
    images = find_idx(path, split)
    if images is not None:
        return read_idx(images, labels)
    batches = find_batches(path, split)
    if batches:
        return read_batches(batches, f"cifar10-{split}")
    files = find_images(path)
    if not files:
        raise DataError(f"{path} holds no images, idx files or CIFAR-10 batches of {split} data")
    dataset = read_images(path, files)
    return dataset if labels is None else dataset.labelled(read_labels(labels))
