"""What is not loaded, and what the message says; above all, nothing unpickles without trust."""

from __future__ import annotations

import json
import pickle
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from unicr.classifier import load_classifier
from unicr.errors import MissingExtraError, ModelError, SpecError


class Bomb:
    """Unpickling it makes a file: the proof that code ran."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        return make_file, (str(self.mark),)


def make_file(path: str) -> nn.Module:
    Path(path).touch()
    return nn.Flatten()


@pytest.mark.parametrize("ending", [".pkl", ".joblib", ".pickle", ".pt", ".pth", ".th", ".ckpt"])
def test_pickles_are_not_opened_without_trust(tmp_path: Path, ending: str) -> None:
    mark = tmp_path / "ran"
    path = tmp_path / f"model{ending}"
    if ending in (".pkl", ".joblib", ".pickle"):
        path.write_bytes(pickle.dumps(Bomb(mark)))
    else:
        torch.save(Bomb(mark), path)
    with pytest.raises(ModelError, match="trust"):
        load_classifier(path)
    with pytest.raises(ModelError, match="trust"):
        load_classifier(nn.Linear(2, 2), weights=path)
    with pytest.raises(ModelError, match="not a plain state dict"):
        load_classifier(nn.Linear(2, 2), weights=path, trust=path)
    assert not mark.exists()


def test_a_whole_pickled_module_loads_with_trust(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    module = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    torch.save(module, path)
    with pytest.raises(ModelError, match="trust"):
        load_classifier(path)
    inputs = torch.randn(5, 4)
    with pytest.raises(ModelError, match="name the files"):
        load_classifier(path, trust=True)  # type: ignore[arg-type]
    labels = load_classifier(path, trust=path).predict(inputs)
    assert labels.tolist() == module(inputs).argmax(1).tolist()


def exported(path: Path) -> Path:
    module = nn.Linear(4, 3).eval()
    shapes = ({0: torch.export.Dim("n")},)
    program = torch.export.export(module, (torch.zeros(2, 4),), dynamic_shapes=shapes)
    torch.export.save(program, path)
    return path


ENDINGS = (".pt2", ".ts", ".torchscript", ".pt", ".pth", ".th", ".ckpt", ".bin", ".joblib", ".pkl")


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_honest_file_that_can_carry_code_needs_trust_too(tmp_path: Path, ending: str) -> None:
    """Nothing is looked into: the file is refused by what it is, and opened where it is named."""
    path = tmp_path / f"model{ending}"
    module = nn.Sequential(nn.Flatten(), nn.Linear(4, 3)).eval()
    if ending == ".pt2":
        exported(path)
    elif ending in (".joblib", ".pkl"):
        linear = pytest.importorskip("sklearn.linear_model")
        estimator = linear.LogisticRegression().fit(np.eye(4), [0, 1, 2, 0])
        path.write_bytes(pickle.dumps(estimator))
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            torch.jit.save(torch.jit.script(module), path)
    beside = tmp_path / f"other{ending}"
    beside.write_bytes(path.read_bytes())
    for trust in (None, [], beside, [beside, tmp_path]):
        with pytest.raises(ModelError, match=f"--trust {path}.*unicr convert {path}"):
            load_classifier(path, trust=trust)
    link = tmp_path / "link"
    link.symlink_to(path)
    for named in ([str(path)], [beside, path], [link]):
        assert len(load_classifier(path, trust=named).predict(torch.zeros(2, 4))) == 2


@pytest.mark.parametrize("ending", [".pt", ".pth", ".th", ".ckpt", ".bin", ".tar", ""])
def test_weights_in_a_pickle_need_trust(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"weights{ending}"
    torch.save(nn.Linear(4, 3).state_dict(), path)
    with pytest.raises(ModelError, match=rf"--trust {path}.*-o weights\.safetensors"):
        load_classifier(nn.Linear(4, 3), weights=path)
    assert len(load_classifier(nn.Linear(4, 3), weights=path, trust=path).digest) == 64


@pytest.mark.parametrize(
    "name", ["model.pt2", "model.onnx", "model.safetensors", "model.ts", "m.h5"]
)
def test_files_of_another_content_are_named(tmp_path: Path, name: str) -> None:
    if name.endswith("onnx"):
        pytest.importorskip("onnxruntime")
    path = tmp_path / name
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(ModelError, match=name):
        load_classifier(path, trust=path)


def test_missing_files_and_unknown_endings_list_what_works(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no model file .*known forms: \.pt2") as missing:
        load_classifier("none.onnx")
    assert len(str(missing.value)) < 200
    other = tmp_path / "model.h5"
    other.touch()
    with pytest.raises(ModelError, match=r"\.h5 ending is not known; known forms: \.pt2"):
        load_classifier(other)
    with pytest.raises(SpecError, match="no file"):
        load_classifier(f"{tmp_path}/none.py:model")
    with pytest.raises(ModelError, match="no weights file"):
        load_classifier("builtin:resnet20", weights=tmp_path / "none.th")
    with pytest.raises(ModelError, match=r"builtin:mnist-mlp-0\.25"):
        load_classifier("builtin:other")
    with pytest.raises(ModelError, match="needs weights"):
        load_classifier("builtin:resnet20")
    with pytest.raises(ModelError, match="brings its own weights"):
        load_classifier("builtin:mnist-mlp-0.5", weights=other)
    with pytest.raises(ModelError, match="is no classifier"):
        load_classifier(3)
    with pytest.raises(ModelError, match="cannot be used here"):
        load_classifier(nn.Flatten(), device="nowhere")


@pytest.mark.skipif(torch.cuda.is_available(), reason="the device is there")
@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cpu,cuda:1"])
def test_a_device_that_is_not_there_is_told_in_plain_words(device: str) -> None:
    """Torch itself says how it was compiled, in words that name no cure."""
    with pytest.raises(ModelError) as told:
        load_classifier(nn.Flatten(), device=device)
    asked = device.rpartition(",")[2]
    assert str(told.value) == (
        f"device {asked!r} cannot be used here: torch finds no CUDA device on this machine: leave "
        "it out to use the CPU"
    )


def test_weights_must_fit(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    torch.save(nn.Linear(4, 3).state_dict(), path)
    with pytest.raises(ModelError, match="size mismatch"):
        load_classifier(nn.Linear(5, 3), weights=path, trust=path)
    with pytest.raises(ModelError, match=r"the file has no 0\.weight"):
        load_classifier(nn.Sequential(nn.Linear(4, 3)), weights=path, trust=path)
    with pytest.raises(ModelError, match="the model lacks, bias"):
        load_classifier(nn.Linear(4, 3, bias=False), weights=path, trust=path)
    torch.save({"epoch": 3}, path)
    with pytest.raises(ModelError, match="other things than tensors"):
        load_classifier(nn.Linear(4, 3), weights=path, trust=path)
    with pytest.raises(ModelError, match="no torch module"):
        load_classifier(lambda: 3, weights=_empty_weights(tmp_path))


def _empty_weights(folder: Path) -> Path:
    path = folder / "some.pt"
    torch.save({"a": torch.zeros(1)}, path)
    return path


def test_hugging_face_folders_need_safetensors_and_a_classifier(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="nothing is downloaded"):
        load_classifier("hf:google/vit-base")
    with pytest.raises(ModelError, match=r"no config\.json"):
        load_classifier(f"hf:{tmp_path}")
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"architectures": ["BertForMaskedLM"]}))
    (tmp_path / "pytorch_model.bin").touch()
    with pytest.raises(ModelError, match="safe_serialization"):
        load_classifier(f"hf:{tmp_path}")
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(ModelError, match="BertForMaskedLM"):
        load_classifier(f"hf:{tmp_path}")
    for more in (
        {"attn_implementation": "somebody/kernel"},
        {"text_config": {"_attn_implementation": "somebody/kernel:forward"}},
        {"transformers_weights": "below/other.safetensors"},
        {"backbone": "somebody/else", "use_pretrained_backbone": True},
        {"backbone_config": {"backbone": "resnet50", "model_type": "timm_backbone"}},
        {"quantization_config": {"quant_method": "mxfp4"}},
    ):
        config.write_text(json.dumps({"architectures": ["ViTForImageClassification"], **more}))
        with pytest.raises(ModelError, match="fetch as code"):
            load_classifier(f"hf:{tmp_path}")
    config.write_text("{")
    with pytest.raises(ModelError, match="not JSON"):
        load_classifier(f"hf:{tmp_path}")


@pytest.mark.parametrize(("module", "extra"), [("onnxruntime", "onnx"), ("joblib", "sklearn")])
def test_a_missing_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    path = tmp_path / ("model.onnx" if extra == "onnx" else "model.joblib")
    path.touch()
    with pytest.raises(MissingExtraError, match=rf"unicr\[{extra}\]"):
        load_classifier(path, trust=path)
