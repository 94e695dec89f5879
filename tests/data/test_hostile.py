"""Small files that ask for much: memory, time, or a reader that never comes back."""

from __future__ import annotations

import io
import os
import pickle
import resource
import sqlite3
import struct
import subprocess
import sys
import zipfile
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
import torch
from pyarrow import parquet

from tests.cli.command import run
from tests.fuzz.work import memory_of
from unicr.classifier import load_classifier
from unicr.data import load_dataset
from unicr.data._pages import unpacked_size
from unicr.errors import DataError, ModelError

MEMORY = 1 << 31  # bytes that a reader of these files may have, torch not loaded


def read_with_little_memory(path: Path, column: str = "") -> str:
    """What reading a dataset prints where memory is short: its size, or the reason why not."""
    code = (
        "import sys\n"
        "from unicr.data import load_dataset\n"
        "from unicr.errors import DataError\n"
        "try:\n"
        "    print(len(load_dataset(sys.argv[1], label_column=sys.argv[2] or None)))\n"
        "except DataError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), column],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-500:]
    return done.stdout.strip()


def test_a_long_cell_in_a_csv_file(tmp_path: Path) -> None:
    """One label of 100,000 characters, 40,000 rows: as an array of texts that is 16 GB."""
    path = tmp_path / "data.csv"
    path.write_text("a,label\n" + f"1,{'x' * 100_000}\n" + "1,y\n" * 40_000)
    assert "a label of data.csv is too long (100000 characters)" in read_with_little_memory(path)
    path.write_text("a,b\n" + f"1,{'0' * 100_000}1\n" + "1,2\n" * 40_000)
    assert read_with_little_memory(path) == "40001"
    path.write_text("a,b\n" + f"1,{'x' * 100_000}\n" + "1,2\n" * 40_000)
    assert "which is not a number" in read_with_little_memory(path)


def test_a_long_line_of_labels(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((40_001, 2), np.float32))
    labels = tmp_path / "labels.txt"
    labels.write_text("x" * 100_000 + "\n" + "y\n" * 40_000)
    with pytest.raises(DataError, match="100000 characters"):
        load_dataset(tmp_path / "x.npy", labels=labels)


def test_parquet_files_that_unpack_to_much(tmp_path: Path) -> None:
    arrow = pyarrow
    path = tmp_path / "data.parquet"
    many = arrow.array(np.zeros(34_000_000, np.float32))
    parquet.write_table(arrow.table({"a": many}), path, compression="zstd")
    assert path.stat().st_size < 1_000_000
    assert "decompression bomb" in read_with_little_memory(path)
    words = arrow.DictionaryArray.from_arrays(np.zeros(50_000, np.int32), ["x" * 100_000])
    table = arrow.table({"a": np.zeros(50_000), "label": words})
    parquet.write_table(table, path, store_schema=False)  # plain texts to whoever reads it
    assert path.stat().st_size < 1_000_000
    reason = read_with_little_memory(path)
    assert "a label of data.parquet is too long (100000 characters)" in reason
    parquet.write_table(arrow.table({"a": [[1.0], [2.0]], "b": [1.0, 2.0]}), path)
    with pytest.raises(DataError, match="for each row is needed"):
        load_dataset(path)


def test_a_parquet_file_that_lies_about_its_size(tmp_path: Path) -> None:
    """19 kB whose footer speaks of 100 bytes, and whose one page unpacks to 300 MB."""
    path = tmp_path / "data.parquet"
    table = pyarrow.table({"a": [1.0], "s": ["0" * 300_000_000]})
    parquet.write_table(table, path, compression="zstd", use_dictionary=False,
                        write_statistics=False)  # fmt: skip
    group = parquet.ParquetFile(path).metadata.row_group(0)
    content = path.read_bytes()
    for said in (group.total_byte_size, group.column(1).total_uncompressed_size):
        digits = [(said * 2 >> 7 * i) & 127 for i in range(5)]
        old = bytes([*(d | 128 for d in digits[:-1]), digits[-1]])
        assert content.count(old) == 1
        content = content.replace(old, bytes([200 | 128, 129, 128, 128, 0]))  # 100, in five bytes
    path.write_bytes(content)
    assert parquet.ParquetFile(path).metadata.row_group(0).total_byte_size == 100
    assert "a decompression bomb" in read_with_little_memory(path)


def test_texts_by_prefixes_in_a_parquet_file(tmp_path: Path) -> None:
    """3,000 texts of 300,000 characters each, as 300,000 characters and 3,000 numbers."""
    path = tmp_path / "data.parquet"
    table = pyarrow.table({"a": [1.0] * 9, "label": ["x" * 300_000 + str(i) for i in range(9)]})
    parquet.write_table(table, path, use_dictionary=False,
                        column_encoding={"label": "DELTA_BYTE_ARRAY"})  # fmt: skip
    with pytest.raises(DataError, match="stores texts by prefixes"):
        load_dataset(path)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd"])
def test_pages_of_honest_parquet_files_are_counted(
    tmp_path: Path, version: str, compression: str
) -> None:
    path = tmp_path / "data.parquet"
    rows = np.random.default_rng(0).normal(size=(5000, 2))
    table = pyarrow.table({"a": rows[:, 0], "b": rows[:, 1], "label": ["cat", "dog"] * 2500})
    parquet.write_table(table, path, compression=compression, data_page_version=version,
                        data_page_size=4096, row_group_size=2000)  # fmt: skip
    found = load_dataset(path)
    assert (len(found), found[4999][1]) == (5000, 1)
    metadata = parquet.ParquetFile(path).metadata
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    heads = sum(one.total_byte_size for one in groups) - unpacked_size(path.read_bytes(), metadata)
    assert 0 < heads < 100 * 5000 * 8 * 2 / 4096  # what the headers themselves take


def test_texts_of_numbers_in_a_parquet_file(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "data.parquet"
    columns = {"a": ["1", None, "3.5", "1"], "b": [1, 2, 3, 4], "label": ["y", "x", None, "y"]}
    parquet.write_table(arrow.table(columns), path)
    data = load_dataset(path)
    assert [data[i][0].tolist() for i in (0, 2, 3)] == [[1, 1], [3.5, 3], [1, 4]]
    assert bool(data[1][0][0].isnan())
    assert [data[i][1] for i in range(4)] == [1, 0, -1, 1]
    assert data.classes == ("x", "y")
    parquet.write_table(arrow.table({"a": ["1", "u"], "b": [1, 2]}), path)
    with pytest.raises(DataError, match="column 'a' has the value 'u' in input 1"):
        load_dataset(path)


@pytest.mark.parametrize(
    "name",
    ["data.csv", "data.npz", "data.parquet", "test_batch", "a/i.png", "t10k-images-idx3-ubyte"],
)
def test_pipes_are_not_read(tmp_path: Path, name: str) -> None:
    pipe = tmp_path / "data" / name
    pipe.parent.mkdir(parents=True)
    os.mkfifo(pipe)
    with pytest.raises(DataError):
        load_dataset(pipe)
    with pytest.raises(DataError, match="contains no images"):
        load_dataset(tmp_path / "data")


@pytest.mark.parametrize("name", ["model.onnx", "selector.json", "model.pt", "hf"])
def test_models_that_are_pipes_are_not_read(tmp_path: Path, name: str) -> None:
    pipe = tmp_path / name
    if name == "hf":
        (tmp_path / "config.json").write_text("{}")
        pipe = tmp_path / "model.safetensors"
    os.mkfifo(pipe)
    with pytest.raises(ModelError):
        load_classifier(f"hf:{tmp_path}" if name == "hf" else str(pipe), trust=pipe)


def test_an_array_that_a_batch_of_cifar_only_announces(tmp_path: Path) -> None:
    """The pickle of an array of 2^40 bytes with no bytes behind it."""

    class Announced:
        def __reduce__(self) -> tuple[Any, ...]:
            rebuild = np.zeros(1).__reduce__()[0]
            return rebuild, (np.ndarray, (1 << 40,), b"b")

    (tmp_path / "test_batch").write_bytes(pickle.dumps({b"data": Announced(), b"labels": []}))
    with pytest.raises(DataError, match="of another class or shape"):
        load_dataset(tmp_path / "test_batch")


def text_of(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def batch(data: bytes, labels: bytes = b"](K\x01e") -> bytes:
    """A pickle of {"data": …, "labels": [1]} with any operations for its values."""
    return b"\x80\x02}(" + text_of("data") + data + text_of("labels") + labels + b"u."


def nested(width: int, depth: int) -> list[Any]:
    """A list that holds one list so many times, which does the same: small as a pickle."""
    found: list[Any] = [1] * width
    for _ in range(depth):
        found = [found] * width
    return found


MANY = b"J" + struct.pack("<i", 3072 * 600_000)  # numbers of 1.8 GB
HOSTILE = {
    "it numbers a value": b"\x80\x02}r" + struct.pack("<I", 1 << 28) + b".",
    "takes no arguments": batch(b"cnumpy\nndarray\n(" + MANY + b"U\x02u1tR"),
    "_Array.. takes no": batch(
        b"cnumpy\nndarray\n((" + MANY + b"tU\x02u1C\x01xK\x00(K\x00ttR"
    ),
    "its data are not an array of bytes": pickle.dumps(
        {"data": nested(12, 8), "labels": [1]}
    ),
    "its labels are not a list of whole numbers": pickle.dumps(
        {"data": np.zeros(3072, np.uint8), "labels": nested(30, 6)}
    ),
    "it asks for the encoding": batch(
        b"c_codecs\nencode\n(" + text_of("\xe9" * 9_000) + text_of("punycode") + b"tR"
    ),
    "it has values of type S200000000": batch(
        b"cnumpy\ndtype\n(" + text_of("S200000000") + b"\x89\x88tR"
    ),
    "it would change a function": batch(b"cnumpy\ndtype\n(N}" + text_of("_make") + b"K\x00stb"),
}  # fmt: skip


@pytest.mark.parametrize("words", HOSTILE)
def test_a_batch_of_cifar_that_asks_for_more_than_it_holds(tmp_path: Path, words: str) -> None:
    """The first of these had nine bytes and took four gigabytes."""
    (tmp_path / "test_batch").write_bytes(HOSTILE[words])
    with memory_of(300), pytest.raises(DataError, match=words):
        load_dataset(tmp_path / "test_batch")


@pytest.mark.parametrize("protocol", range(5))
def test_honest_batches_of_cifar_of_every_age_are_read(tmp_path: Path, protocol: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (3, 3072), dtype=np.uint8)
    for columns in (pixels, np.asfortranarray(pixels)):
        content = {b"data": columns, b"labels": [3, 0, 9], b"batch_label": b"testing batch 1 of 1"}
        (tmp_path / "test_batch").write_bytes(pickle.dumps(content, protocol))
        found = load_dataset(tmp_path / "test_batch")
        assert [found[i][1] for i in range(3)] == [3, 0, 9]
        want = torch.from_numpy(pixels[1].reshape(3, 32, 32)).float() / 255
        assert torch.equal(found[1][0], want)


def test_an_image_that_unpacks_to_thousands_of_times_its_size(tmp_path: Path) -> None:
    """A black picture of 9,400 × 9,400: 260 kB that took 2.8 GB."""

    def chunk(name: bytes, content: bytes) -> bytes:
        sizes = struct.pack(">I", len(content)), struct.pack(">I", zlib.crc32(name + content))
        return sizes[0] + name + content + sizes[1]

    packed, row = zlib.compressobj(9), bytes(1 + 3 * 9400)
    content = b"".join([*(packed.compress(row) for _ in range(9400)), packed.flush()])
    head = struct.pack(">IIBBBBB", 9400, 9400, 8, 2, 0, 0, 0)
    (tmp_path / "a.png").write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", content) + chunk(b"IEND", b"")
    )
    with memory_of(300), pytest.raises(DataError, match="a decompression bomb"):
        load_dataset(tmp_path)


@pytest.mark.parametrize("label", [10**9, 2**31, 2**62])
def test_a_label_beyond_every_class(label: int) -> None:
    model = load_classifier(lambda batch: torch.full((len(batch),), label))
    with pytest.raises(ModelError, match=f"the label {label}"):
        model.votes(torch.zeros(2, 3))
    with pytest.raises(ModelError, match="there are only 10 classes"):
        model.votes(torch.zeros(2, 3), 10)


@pytest.mark.parametrize("column", ["claims", "transcript", "input_hash", "reason"])
def test_a_run_that_lacks_a_column(tmp_path: Path, column: str) -> None:
    folder = tmp_path / "run"
    asked = ["--model", "builtin:mnist-mlp-0.5", "--data", "builtin:mnist", "--norm", "2"]
    noise = ["--noise", "gaussian(sigma=0.5)", "--n", 100, "--max", 1, "--out", folder]
    assert run("certify", *asked, *noise).code == 0
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.execute("DELETE FROM sealed")
        db.execute(f"ALTER TABLE results DROP COLUMN {column}")
    for words in (["verify", folder], ["score", folder], ["export", folder, "-o", "x.jsonl"]):
        run(*words).check_refused(f"the table results has no column {column}")


def test_an_image_that_is_a_program_is_not_run(tmp_path: Path) -> None:
    """PostScript under another name: Pillow would hand it to Ghostscript."""
    (tmp_path / "data").mkdir()
    program = "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n"
    for ending in ("png", "jpg", "tif"):
        (tmp_path / "data" / f"i.{ending}").write_text(program)
    with pytest.raises(DataError, match="cannot identify image file"):
        load_dataset(tmp_path / "data")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("second", ["x.npy", "X.npy"])
def test_two_arrays_of_one_name(tmp_path: Path, second: str) -> None:
    """One reader takes the first, another the last."""
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        for name, value in (("x.npy", 0.0), (second, 1.0)):
            content = io.BytesIO()
            np.save(content, np.full((2, 3), value, np.float32))
            archive.writestr(name, content.getvalue())
    with pytest.raises(DataError, match="two arrays with the same name"):
        load_dataset(tmp_path / "a.npz")
