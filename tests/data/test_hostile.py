"""Small files that ask for much: memory, time, or a reader that never comes back."""

from __future__ import annotations

import os
import pickle
import resource
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.cli.command import run
from unicr.classifier import load_classifier
from unicr.data import load_dataset
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
    assert "a label of data.csv has 100000 characters" in read_with_little_memory(path)
    path.write_text("a,b\n" + f"1,{'0' * 100_000}1\n" + "1,2\n" * 40_000)
    assert read_with_little_memory(path) == "40001"
    path.write_text("a,b\n" + f"1,{'x' * 100_000}\n" + "1,2\n" * 40_000)
    assert "which is not a number" in read_with_little_memory(path)


def test_a_long_line_of_labels(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((40_001, 2), np.float32))
    labels = tmp_path / "labels.txt"
    labels.write_text("x" * 100_000 + "\n" + "y\n" * 40_000)
    with pytest.raises(DataError, match="has 100000 characters"):
        load_dataset(tmp_path / "x.npy", labels=labels)


def test_parquet_files_that_unpack_to_much(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "data.parquet"
    many = arrow.array(np.zeros(34_000_000, np.float32))
    parquet.write_table(arrow.table({"a": many}), path, compression="zstd")
    assert path.stat().st_size < 1_000_000
    assert "decompression bomb" in read_with_little_memory(path)
    words = arrow.DictionaryArray.from_arrays(np.zeros(50_000, np.int32), ["x" * 100_000])
    table = arrow.table({"a": np.zeros(50_000), "label": words})
    parquet.write_table(table, path, store_schema=False)  # plain texts to whoever reads it
    assert path.stat().st_size < 1_000_000
    assert "a label of data.parquet has 100000 characters" in read_with_little_memory(path)
    parquet.write_table(arrow.table({"a": [[1.0], [2.0]], "b": [1.0, 2.0]}), path)
    with pytest.raises(DataError, match="one value a row"):
        load_dataset(path)


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
    with pytest.raises(DataError, match="column 'a' has 'u' in input 1"):
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
    with pytest.raises(DataError, match="holds no images"):
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


@pytest.mark.parametrize("label", [10**9, 2**31, 2**62])
def test_a_label_beyond_every_class(label: int) -> None:
    model = load_classifier(lambda batch: torch.full((len(batch),), label))
    with pytest.raises(ModelError, match=f"the label {label}"):
        model.votes(torch.zeros(2, 3))
    with pytest.raises(ModelError, match="where there are 10 classes"):
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
