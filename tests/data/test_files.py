"""The published formats and tables, written here byte by byte and read back."""

from __future__ import annotations

import gzip
import pickle
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from unicr.data import load_dataset
from unicr.errors import DataError, MissingExtraError


def pixels(*shape: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def idx(array: NDArray[np.uint8]) -> bytes:
    head = struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.tobytes()


def same(given: torch.Tensor, raw: NDArray[np.uint8]) -> bool:
    return bool((given.numpy() == raw.astype(np.float32) / np.float32(255)).all())


@pytest.mark.parametrize("packed", [False, True])
def test_idx_files(tmp_path: Path, packed: bool) -> None:
    ending = ".gz" if packed else ""
    sets = {"t10k": pixels(6, 28, 28), "train": pixels(9, 28, 28, seed=1)}
    for split, images in sets.items():
        labels = (np.arange(len(images)) % 10).astype(np.uint8)
        for name, array in (("images-idx3", images), ("labels-idx1", labels)):
            content = gzip.compress(idx(array)) if packed else idx(array)
            (tmp_path / f"{split}-{name}-ubyte{ending}").write_bytes(content)
    test = load_dataset(tmp_path)
    assert (len(test), test.shape) == (6, (1, 28, 28))
    assert same(test[4][0], sets["t10k"][4][None])
    assert test[4][1] == 4
    assert len(load_dataset(tmp_path, split="train")) == 9
    assert len(load_dataset(tmp_path / f"train-images-idx3-ubyte{ending}")) == 9


def test_bad_idx_files(tmp_path: Path) -> None:
    path = tmp_path / "t10k-images-idx3-ubyte"
    for content, message in (
        (idx(pixels(6, 28, 28))[:-1], "cut short"),
        (b"\0\0\x08\x03\0\0", "cut short"),
        (b"hello", "not an idx file"),
        (gzip.compress(idx(pixels(6, 28, 28)))[:-20], "cannot be read"),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=message):
            load_dataset(path)
    path.write_bytes(idx(pixels(6, 28, 28)))
    assert load_dataset(path)[0][1] == -1


def old_batch(rows: NDArray[np.uint8], labels: list[int]) -> bytes:
    """A batch as Python 2 pickled it, opcode by opcode."""

    def text(word: bytes) -> bytes:
        return b"U" + bytes([len(word)]) + word

    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85U\x01btR"
        b"(K\x01(K" + bytes([len(rows)]) + b"M\x00\x0ct"
        b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        b"\x89T" + struct.pack("<i", rows.size) + rows.tobytes() + b"tb"
    )
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(b"labels") + numbers + b"u."


def test_cifar_batches(tmp_path: Path) -> None:
    images, labels = pixels(4, 3, 32, 32), [3, 8, 0, 9]
    rows = images.reshape(4, 3072)
    old, new, binary = (tmp_path / name for name in ("old", "new", "binary"))
    for folder in (old, new, binary):
        folder.mkdir()
    (old / "test_batch").write_bytes(old_batch(rows, labels))
    (new / "cifar-10-batches-py").mkdir()
    content = {b"data": rows, b"labels": labels, b"batch_label": b"testing batch 1 of 1"}
    (new / "cifar-10-batches-py" / "test_batch").write_bytes(pickle.dumps(content, protocol=2))
    records = np.column_stack([np.array(labels, np.uint8), rows])
    (binary / "test_batch.bin").write_bytes(records.tobytes())
    for place in (old, old / "test_batch", new, binary, binary / "test_batch.bin"):
        data = load_dataset(place)
        assert (len(data), data.shape, data.num_classes) == (4, (3, 32, 32), 10)
        assert [data[i][1] for i in range(4)] == labels
        assert same(data[2][0], images[2])
        assert data.classes is not None
        assert data.classes[3] == "cat"
    for i in (1, 2, 3):
        (binary / f"data_batch_{i}.bin").write_bytes(records[:i].tobytes())
    assert len(load_dataset(binary, split="train")) == 6


def test_cifar_batches_cannot_run_code(tmp_path: Path) -> None:
    mark = tmp_path / "ran"

    class Bomb:
        def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
            return Path.touch, (mark,)

    path = tmp_path / "test_batch"
    path.write_bytes(pickle.dumps({b"data": Bomb(), b"labels": [1]}))
    with pytest.raises(DataError, match="it asks for"):
        load_dataset(path)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("test_batch", pickle.dumps({b"labels": [1]}), "has no 'data'"),
        ("test_batch", b"nothing", "is no CIFAR-10 batch"),
        ("test_batch.bin", b"\0" * 3072, "not a multiple of the record size"),
        ("test_batch.bin", b"\x0a" + b"\0" * 3072, "has the label 10"),
    ],
)
def test_bad_cifar_batches(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        load_dataset(path)


def test_image_folder(tmp_path: Path) -> None:
    red = pixels(8, 9, 3)
    for word in ("dog", "cat"):
        (tmp_path / word).mkdir()
        Image.fromarray(red).save(tmp_path / word / "b.png")
        Image.fromarray(red[:, :, 0]).save(tmp_path / word / "a.png")
    Image.fromarray(red).save(tmp_path / "dog" / "c.jpg")
    (tmp_path / "dog" / "notes.txt").touch()
    Image.fromarray(red).save(tmp_path / "cat" / "a.png")
    data = load_dataset(tmp_path)
    assert (len(data), data.shape, data.classes) == (5, (3, 8, 9), ("cat", "dog"))
    assert [data[i][1] for i in range(5)] == [0, 0, 1, 1, 1]
    assert same(data[1][0], np.moveaxis(red, -1, 0))
    assert same(data[2][0], np.stack([red[:, :, 0]] * 3))


def test_flat_image_folder_and_grey_images(tmp_path: Path) -> None:
    grey = pixels(5, 6)
    Image.fromarray(grey).save(tmp_path / "0.png")
    Image.fromarray(np.arange(30, dtype=np.uint16).reshape(5, 6) * 2000).save(tmp_path / "1.png")
    data = load_dataset(tmp_path)
    assert (data.shape, data.num_classes, data[0][1]) == ((1, 5, 6), None, -1)
    assert same(data[0][0], grey[None])
    assert data[1][0].flatten()[3] == np.float32(6000) / np.float32(65535)
    assert load_dataset(tmp_path, labels=[1, 0])[0][1] == 1


def test_bad_image_folders(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="contains no images"):
        load_dataset(tmp_path)
    Image.fromarray(pixels(5, 6)).save(tmp_path / "0.png")
    Image.fromarray(pixels(7, 6)).save(tmp_path / "1.png")
    (tmp_path / "2.png").write_bytes(b"no image")
    data = load_dataset(tmp_path)
    with pytest.raises(DataError, match=r"has shape \(1, 7, 6\)"):
        data[1]
    with pytest.raises(DataError, match=r"2\.png is not a readable image"):
        data[2]


TABLE = "a,b,label,c\n1,2.5,yes,3\n4,,no,6\n7,8e2,yes,nan\n"


def test_csv_tables(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    data = load_dataset(path)
    assert (len(data), data.shape, data.classes) == (3, (3,), ("no", "yes"))
    assert data[0][0].tolist() == [1, 2.5, 3]
    assert [data[i][1] for i in range(3)] == [1, 0, 1]
    assert [data.finite(i) for i in range(3)] == [True, False, False]
    path.write_text("a,b,kind\n1,2,10\n3,4,2\n5,6,\n")
    assert load_dataset(path)[0][0].tolist() == [1, 2, 10]
    kinds = load_dataset(path, label_column="kind")
    assert [kinds[i][1] for i in range(3)] == [10, 2, -1]


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        (TABLE, "z", "no column 'z'; its columns are a, b, label, c"),
        (TABLE, "a", "column 'label' has the value 'yes' in input 0"),
        ("a,b\n", None, "has no rows"),
        ("a,b\n1,2,3\n", None, "row 2: 3 cells"),
        ("a,a\n1,2\n", None, "two columns with the same name"),
        ("label\n1\n", None, "no column beside the label"),
    ],
)
def test_bad_csv_tables(tmp_path: Path, text: str, column: str | None, message: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        load_dataset(path, label_column=column)


def test_parquet_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "table.parquet"
    columns = {"a": [1.5, None, 3.5], "b": [1, 2, 3], "target": ["x", "y", "x"]}
    parquet.write_table(arrow.table(columns), path)
    data = load_dataset(path)
    assert data[2][0].tolist() == [3.5, 3]
    assert [data[i][1] for i in range(3)] == [0, 1, 0]
    assert not data.finite(1)
    (tmp_path / "bad.parquet").write_bytes(b"none")
    with pytest.raises(DataError, match="not a Parquet table"):
        load_dataset(tmp_path / "bad.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"unicr\[table\]"):
        load_dataset(path)
