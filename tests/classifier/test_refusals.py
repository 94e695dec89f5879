"""What is not loaded, and what the message says; above all, nothing unpickles without trust."""

from __future__ import annotations

import json
import pickle
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
    with pytest.raises(ModelError):
        load_classifier(nn.Linear(2, 2), weights=path)
    assert not mark.exists()


def test_a_whole_pickled_module_loads_with_trust(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    module = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    torch.save(module, path)
    with pytest.raises(ModelError, match="trust"):
        load_classifier(path)
    inputs = torch.randn(5, 4)
    labels = load_classifier(path, trust=True).predict(inputs)
    assert labels.tolist() == module(inputs).argmax(1).tolist()


def exported(path: Path) -> Path:
    module = nn.Linear(4, 3).eval()
    shapes = ({0: torch.export.Dim("n")},)
    program = torch.export.export(module, (torch.zeros(2, 4),), dynamic_shapes=shapes)
    torch.export.save(program, path)
    return path


def rewritten(path: Path, part: str, change: Callable[[bytes], bytes]) -> Path:
    """The archive with one part changed."""
    target = path.with_name("changed.pt2")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        assert any(name.endswith(part) for name in old.namelist())
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, change(content) if name.endswith(part) else content)
    return target


def replaced(old: str, new: str) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        assert old.encode() in content
        return content.replace(old.encode(), new.encode())

    return change


@pytest.mark.parametrize(
    ("part", "old", "new"),
    [
        ("model_weights_config.json", '"use_pickle": false', '"use_pickle": true'),
        ("models/model.json", "torch.ops.aten.linear.default", "torch.os.system"),
        ("models/model.json", "torch.ops.aten.linear.default", "torch.ops.load_library"),
        ("models/model.json", '"expr_str": "', '"expr_str": "exec(chr(49))+'),
        ("models/model.json", "{", "{{"),
        (
            "model_constants_config.json",
            '"config": {}',
            '"config": {"c": {"path_name": "opaque_obj_0", "use_pickle": false}}',
        ),
    ],
)
def test_a_pt2_file_that_could_run_code_needs_trust(
    tmp_path: Path, part: str, old: str, new: str
) -> None:
    path = exported(tmp_path / "model.pt2")
    load_classifier(path)
    with pytest.raises(ModelError, match="--trust"):
        load_classifier(rewritten(path, part, replaced(old, new)))


def test_a_pickle_among_the_sample_inputs_of_a_pt2_file_is_not_opened(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    bomb = tmp_path / "bomb"
    torch.save(Bomb(mark), bomb)
    path = exported(tmp_path / "model.pt2")
    bad = rewritten(path, "sample_inputs/model.pt", lambda _: bomb.read_bytes())
    with pytest.raises(ModelError, match="carries a pickle"):
        load_classifier(bad)
    assert not mark.exists()


def test_an_old_pt2_form_needs_trust(tmp_path: Path) -> None:
    path = tmp_path / "old.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("version", "8.1")
        archive.writestr("serialized_exported_program.json", "{}")
    with pytest.raises(ModelError, match="old form"):
        load_classifier(path)


@pytest.mark.parametrize(
    "name", ["model.pt2", "model.onnx", "model.safetensors", "model.ts", "m.h5"]
)
def test_files_of_another_content_are_named(tmp_path: Path, name: str) -> None:
    if name.endswith("onnx"):
        pytest.importorskip("onnxruntime")
    path = tmp_path / name
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(ModelError, match=name):
        load_classifier(path)


def test_missing_files_and_unknown_endings_list_what_works(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no model file .*known forms: \.pt2"):
        load_classifier(tmp_path / "none.onnx")
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


def test_weights_must_fit(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    torch.save(nn.Linear(4, 3).state_dict(), path)
    with pytest.raises(ModelError, match="size mismatch"):
        load_classifier(nn.Linear(5, 3), weights=path)
    with pytest.raises(ModelError, match=r"the file has no 0\.weight"):
        load_classifier(nn.Sequential(nn.Linear(4, 3)), weights=path)
    with pytest.raises(ModelError, match="the model lacks, bias"):
        load_classifier(nn.Linear(4, 3, bias=False), weights=path)
    torch.save({"epoch": 3}, path)
    with pytest.raises(ModelError, match="other things than tensors"):
        load_classifier(nn.Linear(4, 3), weights=path)
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
        load_classifier(path, trust=True)
