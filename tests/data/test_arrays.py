"""Arrays in memory and in NumPy files: shapes, exact values, labels and digests."""

from __future__ import annotations

import hashlib
import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from unicr.data import Dataset, load_dataset
from unicr.errors import DataError


def pixels(*shape: int) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def test_bytes_become_the_float32_nearest_to_k_over_255() -> None:
    data = load_dataset(np.arange(256, dtype=np.uint8).reshape(1, 16, 16))
    values = data[0][0].flatten()
    assert values.dtype == torch.float32
    for k, value in enumerate(values.tolist()):
        exact = Fraction(k, 255)
        error = abs(Fraction(value) - exact)
        for other in (np.nextafter(np.float32(value), np.float32(s)) for s in (-1, 2)):
            assert error <= abs(Fraction(float(other)) - exact)
        assert round(value * 255) == k


@pytest.mark.parametrize(
    ("shape", "becomes"),
    [
        ((28, 28), (1, 28, 28)),
        ((32, 32, 3), (3, 32, 32)),
        ((9, 7, 1), (1, 9, 7)),
        ((3, 32, 32), (3, 32, 32)),
        ((3, 8, 3), (3, 8, 3)),
        ((17,), (17,)),
    ],
)
def test_byte_images_are_channels_first(shape: tuple[int, ...], becomes: tuple[int, ...]) -> None:
    raw = pixels(4, *shape)
    data = load_dataset(raw)
    assert data.shape == becomes
    assert data[2][0].shape == becomes
    if shape == (32, 32, 3):
        assert data[2][0][1, 5, 6] == np.float32(raw[2, 5, 6, 1]) / np.float32(255)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int64, np.bool_])
def test_other_numbers_are_kept(kind: type[np.generic]) -> None:
    raw = np.arange(12).reshape(2, 6).astype(kind)
    data = load_dataset(raw)
    assert data.shape == (6,)
    assert data[1][0].tolist() == raw[1].astype(np.float64).tolist()
    assert data[1][1] == -1
    assert data.num_classes is None


def test_float_images_keep_their_layout() -> None:
    assert load_dataset(np.zeros((2, 8, 8, 3), np.float32)).shape == (8, 8, 3)


def test_torch_arrays_with_labels() -> None:
    data = load_dataset((torch.ones(3, 4), torch.tensor([2, 0, 1])))
    assert [data[i][1] for i in range(3)] == [2, 0, 1]
    assert data.num_classes == 3
    assert load_dataset(data) is data


def test_not_finite_values_are_kept_and_told() -> None:
    raw = np.zeros((4, 3))
    raw[1, 0], raw[2, 1], raw[3, 2] = np.nan, np.inf, 1e300
    data = load_dataset(raw)
    assert [data.finite(i) for i in range(4)] == [True, False, False, False]
    assert torch.isnan(data[1][0][0])


def test_the_digest_is_of_shape_and_bytes() -> None:
    raw = np.linspace(0, 1, 12, dtype=np.float32).reshape(2, 6)
    data = load_dataset(raw)
    packed = struct.pack("<6f", *raw[1].tolist())
    assert data.digest_of(1) == hashlib.sha256(b"6:" + packed).hexdigest()
    assert data.digest_of(0) != data.digest_of(1)
    assert load_dataset(raw.reshape(2, 2, 3)).digest_of(1) != data.digest_of(1)


def test_indices_have_bounds() -> None:
    data = load_dataset(np.zeros((3, 2)))
    assert len(data) == 3
    for index in (3, -1):
        with pytest.raises(IndexError, match=rf"has no input {index}: .*0 … 2"):
            data[index]


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ("images", "labels"),
        ("x", "y"),
        ("X", "Y"),
        ("x_test", "y_test"),
        ("data", "labels"),
        ("data", "targets"),
        ("arr_0", "arr_1"),
    ],
)
def test_npz_names(tmp_path: Path, x: str, y: str) -> None:
    path = tmp_path / "set.npz"
    raw = pixels(5, 28, 28)
    np.savez(path, **{x: raw, y: np.array([[4], [3], [2], [1], [0]])})  # type: ignore[arg-type]
    data = load_dataset(path)
    assert data.shape == (1, 28, 28)
    assert [data[i][1] for i in range(5)] == [4, 3, 2, 1, 0]
    assert data.name == "set.npz"
    assert x in data.source


def test_npz_splits_and_one_unnamed_array(tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    sets: dict[str, Any] = {"x_train": pixels(3, 2), "y_train": [0, 1, 2], "x_test": pixels(2, 2)}
    np.savez(path, **sets, y_test=[1, 1])
    assert (len(load_dataset(path)), len(load_dataset(path, split="train"))) == (2, 3)
    np.savez(path, anything=pixels(4, 3))
    assert len(load_dataset(path)) == 4


def test_npy_with_labels_beside_or_given(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", pixels(3, 5))
    assert load_dataset(tmp_path / "x.npy")[0][1] == -1
    np.save(tmp_path / "y.npy", np.array([1, 0, 1]))
    assert load_dataset(tmp_path / "x.npy")[0][1] == 1
    np.save(tmp_path / "other.npy", np.array([5, 6, 7]))
    assert load_dataset(tmp_path / "x.npy", labels=tmp_path / "other.npy")[2][1] == 7
    assert load_dataset(tmp_path / "x.npy", labels=[3, 3, 4])[2][1] == 4
    (tmp_path / "names.txt").write_text("bee\nape\nbee\n")
    named = load_dataset(tmp_path / "x.npy", labels=str(tmp_path / "names.txt"))
    assert [named[i][1] for i in range(3)] == [1, 0, 1]
    assert named.classes == ("ape", "bee")
    (tmp_path / "names.txt").write_text("10\n9\n2\n")
    assert load_dataset(tmp_path / "x.npy", labels=tmp_path / "names.txt")[0][1] == 10


def test_plain_numbers_are_places_among_names() -> None:
    """A folder of Hugging Face calls its classes LABEL_0 …; the data has 0, 1, 2."""
    data = load_dataset(np.zeros((3, 4)), labels=[0, 2, 1])
    named = data.aligned(("LABEL_0", "LABEL_1", "LABEL_2", "LABEL_3"))
    assert [named[i][1] for i in range(3)] == [0, 2, 1]
    assert named.classes is not None
    with pytest.raises(DataError, match="has 2 classes"):
        data.aligned(("cat", "dog"))


def test_labels_follow_a_classifier_s_classes() -> None:
    words = load_dataset(np.zeros((3, 2)), labels=np.array(["b", "a", "c"]))
    assert [words[i][1] for i in range(3)] == [1, 0, 2]
    turned = words.aligned(("c", "b", "a"))
    assert [turned[i][1] for i in range(3)] == [1, 2, 0]
    numbers = load_dataset(np.zeros((3, 2)), labels=np.array([1, 2, -1]))
    assert [numbers.aligned((1, 2))[i][1] for i in range(3)] == [0, 1, -1]
    with pytest.raises(DataError, match=r"label 'c', but the classifier has the classes a, b"):
        words.aligned(("a", "b"))


@pytest.mark.parametrize(
    ("inputs", "labels", "message"),
    [
        (np.zeros((0, 3)), None, "at least one"),
        (np.zeros(3), None, "at least one"),
        (np.array([["a"]]), None, "but numbers are needed"),
        (np.zeros((3, 2)), np.zeros((3, 10)), "one-hot"),
        (np.zeros((3, 2)), np.zeros(2), "3 inputs but 2 labels"),
        (np.zeros((3, 2)), np.array([0.5, 1, 2]), "must be whole numbers"),
        (np.zeros((3, 2)), np.array([0, 1, -7]), "contain -7"),
        (np.zeros((3, 2)), np.array([1j, 0, 0]), "numbers or words"),
    ],
)
def test_bad_arrays(inputs: Any, labels: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_dataset(inputs, labels=labels)


def test_bad_files_are_named(tmp_path: Path) -> None:
    for name in ("a.npz", "a.npy"):
        path = tmp_path / name
        path.write_bytes(b"no array")
        with pytest.raises(DataError, match=rf"{name} cannot be read"):
            load_dataset(path)
    objects = tmp_path / "objects.npy"
    np.save(objects, np.array([{}, {}]), allow_pickle=True)
    with pytest.raises(DataError, match="cannot be read"):
        load_dataset(objects)
    np.savez(tmp_path / "b.npz", one=np.zeros(2), two=np.zeros(2))
    with pytest.raises(DataError, match=r"contains one, two, but an array with .*: images"):
        load_dataset(tmp_path / "b.npz")
    with pytest.raises(DataError, match=r"no file or folder .*known forms: \.npz"):
        load_dataset(tmp_path / "none.npz")
    (tmp_path / "a.h5").touch()
    with pytest.raises(DataError, match=r"the ending \.h5, which is not known"):
        load_dataset(tmp_path / "a.h5")
    with pytest.raises(DataError, match="no labels file"):
        load_dataset(tmp_path / "b.npz", labels=tmp_path / "none.npy")
    with pytest.raises(DataError, match="split='dev'"):
        load_dataset(tmp_path / "b.npz", split="dev")
    with pytest.raises(DataError, match="builtin:mnist"):
        load_dataset("builtin:other")
    with pytest.raises(DataError, match="int is not a dataset"):
        load_dataset(3)


class Squares(torch.utils.data.Dataset[tuple[torch.Tensor, int]]):
    classes = ("even", "odd")

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.full((2, 3), float(index**2)), index % 2


def test_torch_datasets() -> None:
    data = load_dataset(Squares())
    assert isinstance(data, Dataset)
    assert (len(data), data.shape, data.num_classes) == (4, (2, 3), 2)
    assert data[3][0].tolist() == [[9.0] * 3] * 2
    assert data[3][1] == 1
    assert data.source.endswith("Squares")
    assert load_dataset([np.zeros(3), np.ones(3)])[1][1] == -1
    with pytest.raises(DataError, match="is empty"):
        load_dataset([])
    with pytest.raises(DataError, match="not an array"):
        load_dataset(["a", "b"])
    with pytest.raises(DataError, match="must have the same shape"):
        load_dataset([np.zeros(3), np.ones(4)])[1]


def test_the_packaged_images_are_mnist() -> None:
    data = load_dataset("builtin:mnist")
    assert (len(data), data.shape, data.num_classes) == (1000, (1, 28, 28), 10)
    assert [data[i][1] for i in range(5)] == [7, 2, 1, 0, 4]
    assert all(data.finite(i) for i in range(1000))
    assert float(data[0][0].max()) <= 1
