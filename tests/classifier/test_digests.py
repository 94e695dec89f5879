"""A digest changes with every byte that decides what a classifier does, and with nothing else."""

from __future__ import annotations

import functools
import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from unicr.classifier import CallableClassifier, Classifier, Denoised, load_classifier
from unicr.errors import ModelError


def onnx_model(folder: Path, seed: int, locations: tuple[str, str] = ("a.bin", "b.bin")) -> Path:
    """Two layers whose weights lie in other files, one of them inside the branch of an If."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    generator = np.random.default_rng(seed)

    def outside(name: str, location: str, shape: tuple[int, int]) -> Any:
        values = generator.normal(size=shape).astype(np.float32)
        tensor = onnx.numpy_helper.from_array(values, name)
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        file = folder / location
        file.parent.mkdir(parents=True, exist_ok=True)
        start = file.stat().st_size if file.exists() else 0
        with file.open("ab") as out:
            out.write(values.tobytes())
        for key, value in (("location", location), ("offset", start), ("length", values.nbytes)):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(value)
        return tensor

    def branch(name: str, tensor: Any) -> Any:
        node = helper.make_node("Identity", [tensor.name], [name])
        return helper.make_graph(
            [node], name, [], [helper.make_tensor_value_info(name, kind, [6, 3])], [tensor]
        )

    then = branch("then", outside("v", locations[1], (6, 3)))
    otherwise = branch("else", onnx.numpy_helper.from_array(np.zeros((6, 3), np.float32), "z"))
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["hidden"]),
            helper.make_node("If", ["yes"], ["u"], then_branch=then, else_branch=otherwise),
            helper.make_node("MatMul", ["hidden", "u"], ["logits"]),
        ],
        "net",
        [helper.make_tensor_value_info("x", kind, ["n", 4])],
        [helper.make_tensor_value_info("logits", kind, ["n", 3])],
        [
            outside("w", locations[0], (4, 6)),
            onnx.numpy_helper.from_array(np.array(True), "yes"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_the_digest_of_an_onnx_file_is_of_its_outside_weights_too(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    one, two = onnx_model(first, 1), onnx_model(second, 2)
    assert one.read_bytes() == two.read_bytes()
    classifiers = load_classifier(one), load_classifier(two)
    inputs = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
    assert not torch.equal(*(c.predict(inputs) for c in classifiers))
    assert classifiers[0].digest != classifiers[1].digest
    before = classifiers[0].digest
    (first / "model.onnx.data").write_bytes(b"not a part of it")
    assert load_classifier(one).digest == before
    for name in ("a.bin", "b.bin"):
        content = (first / name).read_bytes()
        (first / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        assert load_classifier(one).digest != before
        (first / name).write_bytes(content)
    assert load_classifier(one).digest == before


def test_bytes_cannot_move_from_one_weight_file_to_another(tmp_path: Path) -> None:
    path = onnx_model(tmp_path, 1)
    before = load_classifier(path).digest
    first, second = tmp_path / "a.bin", tmp_path / "b.bin"
    content = second.read_bytes()
    first.write_bytes(first.read_bytes() + content[:4])
    second.write_bytes(content[4:] + content[:4])
    assert load_classifier(path).digest != before


def test_outside_weights_in_a_folder_below_and_under_the_usual_name(tmp_path: Path) -> None:
    path = onnx_model(tmp_path, 1, ("model.onnx.data", "deep/er/b.bin"))
    before = load_classifier(path).digest
    file = tmp_path / "deep/er/b.bin"
    file.write_bytes(bytes(file.stat().st_size))
    assert load_classifier(path).digest != before


@pytest.mark.parametrize("location", ["../b.bin", "deep/../../b.bin", "{folder}/b.bin"])
def test_outside_weights_stay_in_the_models_folder(tmp_path: Path, location: str) -> None:
    folder = tmp_path / "model"
    (folder / "deep").mkdir(parents=True)
    path = onnx_model(folder, 1, ("a.bin", location.format(folder=tmp_path)))
    with pytest.raises(ModelError, match=r"outside its folder|not a usable ONNX file"):
        load_classifier(path)


def test_outside_weights_that_are_missing_are_an_error(tmp_path: Path) -> None:
    path = onnx_model(tmp_path, 1)
    (tmp_path / "b.bin").unlink()
    with pytest.raises(ModelError, match=r"b\.bin"):
        load_classifier(path)


def hf_folder(folder: Path, shard_size: str = "1KB") -> Path:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.ResNetConfig(
        num_channels=3, embedding_size=4, hidden_sizes=[4, 6], depths=[1, 1], num_labels=5
    )
    model = transformers.ResNetForImageClassification(config)
    model.save_pretrained(folder, max_shard_size=shard_size)
    return folder


def test_the_digest_of_a_hugging_face_folder_is_of_its_index_and_shards(tmp_path: Path) -> None:
    folder = hf_folder(tmp_path / "whole")
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    shards = sorted(set(index["weight_map"].values()))
    assert len(shards) > 1
    before = load_classifier(f"hf:{folder}").digest
    (folder / "README.md").write_text("no part of the function")
    assert load_classifier(f"hf:{folder}").digest == before
    moved = tmp_path / "moved"
    shutil.copytree(folder, moved)
    (moved / "deep").mkdir()
    (moved / shards[0]).rename(moved / "deep" / shards[0])
    index["weight_map"] = {
        name: f"deep/{file}" if file == shards[0] else file
        for name, file in index["weight_map"].items()
    }
    (moved / "model.safetensors.index.json").write_text(json.dumps(index))
    classifier = load_classifier(f"hf:{moved}")
    assert classifier.digest != before
    file = moved / "deep" / shards[0]
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert load_classifier(f"hf:{moved}").digest != classifier.digest


def test_a_hugging_face_folder_reads_nothing_outside_itself(tmp_path: Path) -> None:
    folder = hf_folder(tmp_path / "model")
    file = folder / "model.safetensors.index.json"
    index = json.loads(file.read_text())
    shard = next(iter(index["weight_map"].values()))
    (folder / shard).rename(tmp_path / shard)
    index["weight_map"] = {
        name: f"../{one}" if one == shard else one for name, one in index["weight_map"].items()
    }
    file.write_text(json.dumps(index))
    with pytest.raises(ModelError, match="outside its folder"):
        load_classifier(f"hf:{folder}")
    other = hf_folder(tmp_path / "other", "1GB")
    (other / "adapter_config.json").write_text('{"base_model_name_or_path": "/somewhere"}')
    with pytest.raises(ModelError, match="adapter"):
        load_classifier(f"hf:{other}")


@pytest.mark.parametrize("ending", [".pt2", ".ts", ".pt", ".safetensors"])
def test_the_digest_of_a_file_is_of_all_its_bytes(tmp_path: Path, ending: str) -> None:
    """Two files that differ in one weight, in the last place."""

    def saved(name: str, change: float) -> Classifier:
        from safetensors.torch import save_file

        torch.manual_seed(0)
        module = nn.Linear(4, 3).eval()
        with torch.no_grad():
            module.bias[0] += change
        path = tmp_path / f"{name}{ending}"
        match ending:
            case ".pt2":
                torch.export.save(torch.export.export(module, (torch.zeros(2, 4),)), path)
            case ".ts":
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DeprecationWarning)
                    torch.jit.save(torch.jit.script(module), path)
            case ".pt":
                torch.save(module.state_dict(), path)
            case _:
                save_file(module.state_dict(), path)
        if ending in (".pt", ".safetensors"):
            return load_classifier(nn.Linear(4, 3), weights=path, trust=path)
        return load_classifier(path, trust=path)

    digests = [saved("same", 0.0).digest, saved("same", 0.0).digest, saved("same", 1e-6).digest]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    "other",
    [
        nn.Sequential(nn.LeakyReLU(0.2), nn.Linear(3, 3)),
        nn.Sequential(nn.LeakyReLU(0.1), nn.Linear(3, 3), nn.Flatten()),
    ],
)
def test_the_digest_of_a_module_is_of_its_settings(other: nn.Module, tmp_path: Path) -> None:
    module = nn.Sequential(nn.LeakyReLU(0.1), nn.Linear(3, 3))
    other[1].load_state_dict(module[1].state_dict())  # type: ignore[index]
    assert load_classifier(module).digest != load_classifier(other).digest
    weights = tmp_path / "weights.pt"
    torch.save(module.state_dict(), weights)
    loaded = [
        load_classifier(one, weights=weights, trust=weights).digest for one in (module, other)
    ]
    assert loaded[0] != loaded[1]
    before = load_classifier(module).digest
    assert load_classifier(module.train()).digest == load_classifier(module.eval()).digest == before


SOURCE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        return {sign}self.linear(x)
"""


def test_the_digest_of_a_python_file_is_of_its_source(tmp_path: Path) -> None:
    digests = []
    for name, sign in (("a", ""), ("b", "-")):
        path = tmp_path / name / "net.py"
        path.parent.mkdir()
        path.write_text(SOURCE.format(sign=sign))
        digests.append(load_classifier(f"{path}:Net").digest)
    assert digests[0] != digests[1]


def test_the_digest_of_a_callable_is_of_what_it_carries() -> None:
    def at_least(threshold: float) -> Any:
        return lambda x: (x.flatten(1)[:, 0] > threshold).long()

    def above(threshold: float, x: torch.Tensor) -> torch.Tensor:
        return (x.flatten(1)[:, 0] > threshold).long()

    class Rule:
        def __init__(self, threshold: float) -> None:
            self.threshold = threshold

        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return above(self.threshold, x)

    makers = (at_least, lambda t: functools.partial(above, t), Rule)
    for make in makers:
        one, same, other = (CallableClassifier(make(t)).digest for t in (0.5, 0.5, 0.6))
        assert one == same != other
    module = nn.Linear(2, 2)
    before = CallableClassifier(lambda x: module(x)).digest
    with torch.no_grad():
        module.bias.zero_()
    assert CallableClassifier(lambda x: module(x)).digest != before
    generator = (i for i in range(9))
    assert CallableClassifier(lambda x: next(generator)).digest.startswith("unhashable:")


def test_what_stands_in_front_of_a_model_has_its_own_digest() -> None:
    module = nn.Linear(4, 3)
    plain = load_classifier(module)
    assert plain.digests == {"model": plain.digest}
    normalised = load_classifier(module, mean=0.5, std=0.25)
    assert normalised.digests["model"] == plain.digest
    assert set(normalised.digests) == {"model", "preprocessing"}
    assert (
        normalised.digests["preprocessing"]
        != (load_classifier(module, mean=0.5, std=0.5).digests["preprocessing"])
    )
    both = Denoised(nn.Hardtanh(0, 1), normalised)
    assert set(both.digests) == {"model", "preprocessing", "denoiser"}
    assert both.digests["model"] == plain.digest
    assert len({plain.digest, normalised.digest, both.digest}) == 3
