"""`unicr convert`: what can carry code becomes a file that cannot, with the same labels."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.cli.command import run
from unicr.classifier import convert_model, load_classifier
from unicr.errors import ModelError

SHAPE = (3, 8, 8)


def network() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(1), nn.Linear(144, 5)
    ).eval()


def inputs(n: int = 64) -> torch.Tensor:
    return torch.randn(n, *SHAPE, generator=torch.Generator().manual_seed(1))


def save(kind: str, path: Path) -> Path:
    module, file = network(), path / f"model{kind.removeprefix('fixed')}"
    if kind.endswith(".pt2"):
        shapes = None if kind.startswith("fixed") else ({0: torch.export.Dim("n")},)
        program = torch.export.export(module, (torch.zeros(2, *SHAPE),), dynamic_shapes=shapes)
        torch.export.save(program, file)
    elif kind == ".ts":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            torch.jit.save(torch.jit.script(module), file)
    else:
        torch.save(module, file)
    return file


@pytest.mark.parametrize("kind", [".pt2", "fixed.pt2", ".ts", ".pt"])
def test_programs_become_onnx(tmp_path: Path, kind: str) -> None:
    for name in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(name)
    file, out = save(kind, tmp_path), tmp_path / "model.onnx"
    shape = [] if kind.endswith(".pt2") else ["--shape", *SHAPE]
    run("convert", file, "-o", out, *shape).check_refused("--trust")
    if shape:
        run("convert", file, "--trust", file, "-o", out).check_refused("--shape 3 32 32")
    done = run("convert", file, "--trust", file, "-o", out, *shape)
    assert done.code == 0, done
    assert "same label" in done.out
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([file.name, "model.onnx"])
    labels = load_classifier(out).predict(inputs())
    assert labels.tolist() == network()(inputs()).argmax(1).tolist()
    assert len(set(labels.tolist())) > 2


def test_an_estimator_becomes_onnx(tmp_path: Path) -> None:
    joblib = pytest.importorskip("joblib")
    pytest.importorskip("skl2onnx")
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows = np.random.default_rng(0).normal(size=(90, 6)).astype(np.float32)
    words = np.array(["ape", "bee", "cat"])[(rows[:, 0] > 0).astype(int) + (rows[:, 1] > 0)]
    estimator: Any = make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, words)
    file, out = tmp_path / "model.joblib", tmp_path / "model.onnx"
    joblib.dump(estimator, file)
    assert "same label" in convert_model(str(file), out, trust=file)
    labels = load_classifier(out).predict(torch.from_numpy(rows))
    expected = [sorted(set(words)).index(word) for word in estimator.predict(rows)]
    assert labels.tolist() == expected


def test_pickled_weights_become_safetensors(tmp_path: Path) -> None:
    module, file, out = network(), tmp_path / "w.th", tmp_path / "w.safetensors"
    torch.save({"state_dict": {f"module.{k}": v for k, v in module.state_dict().items()}}, file)
    run("convert", file, "-o", out).check_refused("--trust")
    assert run("convert", file, "--trust", file, "-o", out).code == 0
    labels = load_classifier(network(), weights=out).predict(inputs())
    assert labels.tolist() == module(inputs()).argmax(1).tolist()


def test_what_cannot_be_converted_is_named(tmp_path: Path) -> None:
    file = save(".pt", tmp_path)
    with pytest.raises(ModelError, match=r"written as \.onnx, weights as \.safetensors"):
        convert_model(str(file), tmp_path / "model.pt2", trust=file)
    with pytest.raises(ModelError, match="no folder"):
        convert_model(str(file), tmp_path / "none" / "m.onnx", trust=file, shape=SHAPE)
    with pytest.raises(ModelError, match="must be at least 1"):
        convert_model(str(file), tmp_path / "m.onnx", trust=file, shape=(3, 0))
    with pytest.raises(ModelError, match="not a plain state dict"):
        convert_model(str(file), tmp_path / "m.safetensors", trust=file)
    (tmp_path / "f.py").write_text(
        "def f(batch):\n    return (batch.flatten(1)[:, 0] > 0).long()\n"
    )
    with pytest.raises(ModelError, match="a torch model or a scikit-learn estimator"):
        convert_model(f"{tmp_path}/f.py:f", tmp_path / "m.onnx", shape=SHAPE)
    assert not list(tmp_path.glob("*.onnx"))
