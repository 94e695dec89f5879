"""Damaged files of every kind: a dataset or a model, or one line that names the file."""

from __future__ import annotations

import gzip
import io
import logging
import pickle
import struct
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from torch import nn

from tests.cli.command import run
from tests.fuzz.work import at_length, check_answered, damaged, drawn, number, within
from unicr.classifier import load_classifier
from unicr.data import load_dataset
from unicr.errors import DataError, ModelError, UnicrError

IMAGES = ("png", "jpeg", "bmp", "webp", "tiff", "ppm")


def pixels() -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).integers(0, 256, (4, 5, 5), dtype=np.uint8)


def written(write: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        write(file)
    return file.getvalue()


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(4, 3).eval()


@cache
def whole(name: str) -> bytes:
    """The bytes of a file without a fault."""
    images, labels = pixels(), np.arange(4)
    idx = struct.pack(">BBBBIII", 0, 0, 8, 3, *images.shape) + images.tobytes()
    match name:
        case "data.npy":
            return written(lambda file: np.save(file, images))
        case "data.npz":
            return written(lambda file: np.savez(file, x=images, y=labels))
        case "packed.npz":
            return written(lambda file: np.savez_compressed(file, x=images, y=labels))
        case "t10k-images-idx3-ubyte":
            return idx
        case "t10k-images-idx3-ubyte.gz":
            return gzip.compress(idx, mtime=0)
        case "data.csv":
            return b"a,b,label\n1,2,x\n3,4.5,y\n,5,x\n"
        case "test_batch":
            rows = np.zeros((2, 3072), np.uint8)
            return pickle.dumps({b"data": rows, b"labels": [1, 2]}, protocol=2)
        case "test_batch.bin":
            return bytes(2 * 3073)
        case "data.parquet":
            arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
            table = arrow.table({"a": [1.0, 2.0], "label": ["x", "y"]})
            return written(lambda file: parquet.write_table(table, file))
        case "weights.pt":
            return written(lambda file: torch.save(network().state_dict(), file))
        case "weights.safetensors":
            from safetensors.torch import save

            return save(network().state_dict())
        case "model.ts" | "model.pt":
            return written(lambda file: torch.jit.save(torch.jit.script(network()), file))
        case "model.pt2":
            program = torch.export.export(network(), (torch.zeros(2, 4),))
            return written(lambda file: torch.export.save(program, file))
        case "model.onnx":
            return onnx_bytes()
    kind = name.removeprefix("images/image.")
    return written(lambda file: Image.fromarray(images[0]).save(file, kind))


def onnx_bytes() -> bytes:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    weight = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["logits"])],
        "net",
        [helper.make_tensor_value_info("x", kind, ["n", 4])],
        [helper.make_tensor_value_info("logits", kind, ["n", 3])],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    opset = [helper.make_opsetid("", 18)]
    content: bytes = helper.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString()
    return content


def check_words(error: UnicrError, path: Path) -> None:
    text = str(error)
    assert "\n" not in text
    assert len(text) < 1500
    assert path.name in text or path.parent.name in text


DATA = (
    *("data.npy", "data.npz", "packed.npz", "t10k-images-idx3-ubyte", "t10k-images-idx3-ubyte.gz"),
    *("data.csv", "test_batch", "test_batch.bin", "data.parquet"),
    *(f"images/image.{kind}" for kind in IMAGES),
)


def check_data(name: str, data: st.DataObject, tmp_path: Path) -> None:
    """Inputs are float32 of one shape with labels from -1, or the file is refused."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data.draw(damaged(whole(name))))
    with within():
        try:
            dataset = load_dataset(path.parent if name.startswith("images/") else path)
        except DataError as error:
            check_words(error, path)
            return
        for index in range(min(len(dataset), 5)):
            x, label = dataset[index]
            assert x.dtype == torch.float32
            assert tuple(x.shape) == dataset.shape
            assert -1 <= label < (dataset.num_classes or 1)


@pytest.mark.parametrize("name", DATA)
def test_the_whole_file_is_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(whole(name))
    assert len(load_dataset(path.parent if name.startswith("images/") else path)) > 0


def with_data(check: Callable[..., None]) -> Any:
    return given(data=st.data())(check)


test_data = pytest.mark.parametrize("name", DATA)(drawn(60)(with_data(check_data)))
test_data_at_length = pytest.mark.parametrize("name", DATA)(at_length(2000)(with_data(check_data)))

MODELS = (
    *("weights.pt", "weights.safetensors", "model.ts", "model.pt", "model.pt2", "model.onnx"),
)


def check_model(name: str, data: st.DataObject, tmp_path: Path) -> None:
    """A model gives a label for every input, or is refused; its digest follows the bytes."""
    path = tmp_path / name
    content = data.draw(damaged(whole(name)))
    path.write_bytes(content)
    with within():
        try:
            if name.startswith("weights"):
                classifier = load_classifier(nn.Linear(4, 3), weights=path, trust=path)
            else:
                classifier = load_classifier(path, trust=path)
            labels = classifier.predict(torch.zeros(2, 4))
        except ModelError as error:
            check_words(error, path)
            return
    assert labels.shape == (2,)
    if not name.startswith("weights"):
        path.write_bytes(whole(name))
        assert (load_classifier(path, trust=path).digest == classifier.digest) == (
            content == whole(name)
        )


test_models = pytest.mark.parametrize("name", MODELS)(drawn(60)(with_data(check_model)))
test_models_at_length = pytest.mark.parametrize("name", MODELS)(
    at_length(1000)(with_data(check_model))
)


def test_nothing_is_printed_about_a_damaged_model(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Libraries that print or log what they also raise are kept quiet."""
    for name in ("model.pt2", "model.onnx"):
        path = tmp_path / name
        path.write_bytes(whole(name)[:-40] + bytes(40))
        with caplog.at_level(logging.WARNING), pytest.raises(ModelError):
            load_classifier(path, trust=path)
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


def check_certify(data: st.DataObject, tmp_path: Path) -> None:
    """The whole command, with one of its files damaged or its numbers odd."""
    names = {"data": "data.npz", "labels": "labels", "model": "model.ts"}
    which = data.draw(st.sampled_from((*names, "number")))
    rows = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    contents = {
        "data": written(lambda file: np.savez(file, x=rows, y=np.arange(4) % 3)),
        "labels": b"0\n1\n2\n0\n",
        "model": whole("model.ts"),
    }
    for part, name in names.items():
        content = contents[part]
        path = tmp_path / name
        path.write_bytes(data.draw(damaged(content)) if part == which else content)
    option = data.draw(
        st.sampled_from(("n", "n0", "alpha", "batch", "max", "skip", "norm", "seed"))
    )
    odd = [f"--{option}={data.draw(number())}"] if which == "number" else []
    settings = {"n": "100", "n0": "10", "norm": "2", "max": "2"} | (
        {option: odd[0].partition("=")[2]} if odd else {}
    )
    out = tmp_path / f"run{len(list(tmp_path.glob('run*')))}"
    with within():
        done = run(
            *("certify", "--model", tmp_path / "model.ts", "--trust", tmp_path / "model.ts"),
            *("--data", tmp_path / "data.npz"),
            *("--labels", tmp_path / "labels", "--noise", "gaussian(sigma=0.5)", "--out", out),
            *(f"--{name}={value}" for name, value in settings.items()),
        )
        if check_answered(done, 3):
            assert run("verify", out).code == 0


test_certify = drawn(25)(with_data(check_certify))
test_certify_at_length = at_length(500)(with_data(check_certify))
