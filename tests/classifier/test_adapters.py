"""Every adapter gives the labels that the model itself gives, on a real small model."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from unicr.classifier import (
    CallableClassifier,
    Classifier,
    ModuleClassifier,
    SklearnClassifier,
    check_fit,
    check_shape,
    load_classifier,
)
from unicr.data import load_dataset
from unicr.errors import ModelError
from unicr.noise import gaussian
from unicr.norms import l2
from unicr.runs import Job

SHAPE = (3, 4, 4)


def network(classes: int = 5) -> nn.Sequential:
    """A small convolutional network whose eval mode differs from its training mode."""
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Flatten(),
        nn.Linear(96, classes),
    )


def batch(n: int = 33) -> torch.Tensor:
    return torch.randn(n, *SHAPE, generator=torch.Generator().manual_seed(1))


def wanted(module: nn.Module, inputs: torch.Tensor) -> list[int]:
    """What the module in eval mode says, computed without the package."""
    with torch.no_grad():
        scores = module.eval()(inputs).numpy()
    return [int(np.argmax(row)) for row in scores]


def check(classifier: Classifier, module: nn.Module, n: int = 33) -> None:
    inputs = batch(n)
    labels = classifier.predict(inputs)
    assert labels.dtype == torch.int64
    assert labels.tolist() == wanted(module, inputs)
    counts = classifier.votes(inputs, 5)
    assert counts.tolist() == [labels.tolist().count(c) for c in range(5)]


def test_a_module_runs_in_eval_mode_and_gets_its_own_modes_back() -> None:
    module = network().train()
    module[1].eval()
    modes = [part.training for part in module.modules()]
    classifier = load_classifier(module)
    inputs = batch()
    labels = classifier.predict(inputs)
    assert [part.training for part in module.modules()] == modes
    assert torch.equal(labels, classifier.predict(inputs))
    assert labels.tolist() == wanted(module, inputs)
    assert classifier.num_classes == 5
    assert classifier.device.type == "cpu"


def test_modes_are_restored_when_the_module_fails() -> None:
    module = network().train()
    with pytest.raises(ModelError, match="Sequential failed"):
        load_classifier(module).predict(torch.zeros(2, 7, 4, 4))
    assert all(part.training for part in module.modules())


@pytest.mark.parametrize("shape", [(9, 1), (9,)])
def test_one_logit_is_a_binary_classifier(shape: tuple[int, ...]) -> None:
    class OneLogit(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.sum((1, 2, 3)).reshape(shape)

    inputs = batch(9)
    classifier = ModuleClassifier(OneLogit())
    expected = [int(one.sum() > 0) for one in inputs]
    assert classifier.predict(inputs).tolist() == expected
    assert classifier.num_classes == 2
    assert len(set(expected)) == 2


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_scores_that_are_not_finite_are_an_error(bad: float) -> None:
    class Broken(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            scores = torch.zeros(len(x), 4)
            scores[len(x) // 2, 1] = bad
            return scores

    with pytest.raises(ModelError, match="not finite"):
        load_classifier(Broken()).predict(batch())


def test_scores_whose_sum_is_not_finite_are_scores() -> None:
    module = nn.Linear(2, 2, bias=False)
    nn.init.eye_(module.weight)
    model, x = load_classifier(module), torch.tensor([[3.0e38, 3.1e38], [1.0, 0.0]])
    assert model.predict(x).tolist() == [1, 0]
    with pytest.raises(ModelError, match="not finite"):
        model.predict(torch.tensor([[torch.inf, -torch.inf], [1.0, 0.0]]))


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (torch.zeros(2, 5), "for 33 inputs"),
        (torch.zeros(33, 5, 2), "for 33 inputs"),
        (torch.zeros(33, 0), "for 33 inputs"),
        (torch.zeros(3, dtype=torch.int64), "labels of shape"),
        (torch.full((33,), -1), "label -1"),
        (torch.ones(33), "one floating-point number for each input"),
        ({"logits": 1}, "returned dict"),
    ],
)
def test_outputs_that_give_no_labels_are_errors(output: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load_classifier(lambda x: output).predict(batch())


def test_a_label_beyond_the_classes_is_an_error() -> None:
    classifier = load_classifier(lambda x: torch.full((len(x),), 7))
    assert classifier.votes(batch(4)).tolist() == [0] * 7 + [4]
    with pytest.raises(ModelError, match="label 7, but there are only 5 classes"):
        classifier.votes(batch(4), 5)


def test_check_shape_names_the_shape() -> None:
    classifier = load_classifier(network())
    check_shape(classifier, batch(1)[0])
    assert classifier.num_classes == 5
    with pytest.raises(ModelError, match=r"inputs of shape \(1, 28, 28\)"):
        check_shape(classifier, torch.zeros(1, 28, 28))


def test_digests_follow_the_weights() -> None:
    first, second = load_classifier(network()), load_classifier(network())
    assert first.digest == second.digest
    assert len(first.digest) == 64
    module = network()
    with torch.no_grad():
        module[5].bias.view(-1)[0].add_(1e-6)  # type: ignore[operator]
    assert load_classifier(module).digest != first.digest
    module = network()
    module[2] = nn.Tanh()
    assert load_classifier(module).digest != first.digest


@pytest.mark.parametrize("dynamic", [True, False])
def test_exported_program(tmp_path: Path, dynamic: bool) -> None:
    module = network().eval()
    shapes = ({0: torch.export.Dim("n")},) if dynamic else None
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(module, (batch(8),), dynamic_shapes=shapes), path)
    classifier = load_classifier(path, trust=path)
    assert classifier.name == str(path)
    for n in (33, 16, 3, 1):
        check(classifier, module, n)


@pytest.mark.parametrize("ending", [".pt", ".ts"])
def test_torchscript(tmp_path: Path, ending: str) -> None:
    module = network().eval()
    path = tmp_path / f"model{ending}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.save(torch.jit.trace(module, batch(2)), path)  # type: ignore[no-untyped-call]
    check(load_classifier(str(path), trust=str(path)), module)


@pytest.mark.parametrize("size", ["n", 8])
@pytest.mark.parametrize("half", [False, True])
def test_onnx(tmp_path: Path, size: str | int, half: bool) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    generator = np.random.default_rng(5)
    weight = generator.normal(size=(48, 5)).astype(np.float16 if half else np.float32)
    kind = onnx.TensorProto.FLOAT16 if half else onnx.TensorProto.FLOAT
    helper = onnx.helper
    graph = helper.make_graph(
        [
            helper.make_node("Flatten", ["x"], ["flat"]),
            helper.make_node("MatMul", ["flat", "w"], ["logits"]),
            helper.make_node("ReduceMean", ["flat"], ["feature"], keepdims=1),
        ],
        "linear",
        [helper.make_tensor_value_info("x", kind, [size, *SHAPE])],
        [
            helper.make_tensor_value_info("feature", kind, None),
            helper.make_tensor_value_info("logits", kind, [size, 5]),
        ],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    classifier = load_classifier(path)
    inputs = batch(19)
    scores = inputs.numpy().astype(weight.dtype).reshape(19, -1) @ weight
    labels = classifier.predict(inputs).numpy()
    two = np.sort(scores.astype(np.float64), axis=1)[:, -2:]
    clear = two[:, 1] - two[:, 0] > (0.05 if half else 1e-4)
    assert clear.sum() > 15
    assert np.array_equal(labels[clear], scores.argmax(1)[clear])
    assert classifier.num_classes == 5
    with pytest.raises(ModelError, match="does not work on inputs of shape"):
        check_shape(classifier, torch.zeros(3, 5, 5))


def test_sklearn_labels_are_places_in_its_classes(tmp_path: Path) -> None:
    joblib = pytest.importorskip("joblib")
    linear = pytest.importorskip("sklearn.linear_model")
    rows = batch(60).flatten(1).numpy()
    words = np.array(["ape", "bee", "cat"])[(rows[:, 0] > 0).astype(int) + (rows[:, 1] > 0)]
    estimator = linear.LogisticRegression().fit(rows, words)
    expected = [sorted(set(words)).index(word) for word in estimator.predict(rows)]
    classifier = load_classifier(estimator)
    assert isinstance(classifier, SklearnClassifier)
    assert classifier.predict(batch(60)).tolist() == expected
    assert classifier.classes == ("ape", "bee", "cat")
    path = tmp_path / "model.joblib"
    joblib.dump(estimator, path)
    with pytest.raises(ModelError, match="trust"):
        load_classifier(path)
    assert load_classifier(path, trust=[path]).predict(batch(60)).tolist() == expected


def test_estimators_without_classes(tmp_path: Path) -> None:
    class Rule:
        def predict(self, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            return (rows[:, 0] > 0).astype(int)

    class Regressor:
        def predict(self, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            return rows[:, 0]

    class Turned(Rule):
        classes_ = np.array([1, 0])

    class Stranger(Rule):
        classes_ = np.array([0, 5])

    inputs = batch(12)
    expected = [int(x.flatten()[0] > 0) for x in inputs]
    assert load_classifier(Rule()).predict(inputs).tolist() == expected
    assert load_classifier(Turned()).predict(inputs).tolist() == [1 - y for y in expected]
    with pytest.raises(ModelError, match="use a classifier"):
        load_classifier(Regressor()).predict(inputs)
    with pytest.raises(ModelError, match="not in its classes_"):
        load_classifier(Stranger()).predict(inputs)


def test_callables_take_and_give_torch_or_numpy() -> None:
    inputs = batch(21)
    expected = wanted(nn.Flatten(), inputs)

    def scores(x: torch.Tensor) -> torch.Tensor:
        return x.flatten(1)

    def labels(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.argmax(x.reshape(len(x), -1), axis=1).astype(np.int32)

    class Marked:
        takes_numpy = True

        def __call__(self, x: Any) -> list[int]:
            assert isinstance(x, np.ndarray)
            return [int(row.argmax()) for row in x]

    for function in (scores, labels, Marked()):
        classifier = CallableClassifier(function)
        assert classifier.predict(inputs).tolist() == expected
        assert len(classifier.digest) == 64
    assert CallableClassifier(len).digest == "unhashable:len"


def test_a_randomised_classifier_is_allowed() -> None:
    generator = torch.Generator().manual_seed(0)

    def coin(x: torch.Tensor) -> torch.Tensor:
        return torch.randint(0, 2, (len(x),), generator=generator)

    counts = load_classifier(coin, num_classes=2).votes(torch.zeros(4000, 2))
    # Five standard deviations are 158: a false alarm in under one of a million.
    assert abs(int(counts[0]) - 2000) < 158
    assert int(counts.sum()) == 4000


SOURCE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(48, 5)

    def forward(self, x):
        return self.linear(x.flatten(1))

def make(width=48):
    return Net()

model = Net()

def rule(x):
    return (x.flatten(1)[:, 0] > 0).long()

number = 3

def broken():
    raise KeyError("no")
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    return path


@pytest.mark.parametrize("ending", [".pt", ".th", ".safetensors"])
@pytest.mark.parametrize("name", ["Net", "make", "model"])
def test_python_file_with_weights(tmp_path: Path, source: Path, name: str, ending: str) -> None:
    from safetensors.torch import save_file

    linear = nn.Linear(48, 5)
    module = nn.Sequential(nn.Flatten(), linear)
    tensors = {"linear.weight": linear.weight.data, "linear.bias": linear.bias.data}
    weights = tmp_path / f"weights{ending}"
    if ending == ".safetensors":
        save_file(tensors, weights)
    elif ending == ".th":
        torch.save(
            {"epoch": 3, "state_dict": {f"module.{k}": v for k, v in tensors.items()}}, weights
        )
    else:
        torch.save(tensors, weights)
    classifier = load_classifier(f"{source}:{name}", weights=weights, trust=weights)
    check(classifier, module)
    assert classifier.digest != load_classifier(f"{source}:{name}").digest


def test_python_file_without_weights(source: Path) -> None:
    inputs = batch()
    rule = load_classifier(f"{source}:rule", num_classes=2)
    assert rule.predict(inputs).tolist() == [int(x.flatten()[0] > 0) for x in inputs]
    assert isinstance(load_classifier(f"{source}:make"), ModuleClassifier)
    with pytest.raises(ModelError, match="is no classifier"):
        load_classifier(f"{source}:number")
    with pytest.raises(ModelError, match="KeyError"):
        load_classifier(f"{source}:broken")


def test_hugging_face_image_classifier(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.ResNetConfig(
        num_channels=3,
        embedding_size=4,
        hidden_sizes=[4, 6],
        depths=[1, 1],
        layer_type="basic",
        num_labels=5,
    )
    model = transformers.ResNetForImageClassification(config).eval()
    model.save_pretrained(tmp_path)
    inputs = torch.randn(9, 3, 16, 16)
    with torch.no_grad():
        expected = model(pixel_values=inputs).logits
    classifier = load_classifier(f"hf:{tmp_path}")
    assert classifier.predict(inputs).tolist() == expected.argmax(1).tolist()
    assert classifier.num_classes == 5
    settings = {"do_normalize": True, "image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.4]}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings))
    mean, std = (torch.tensor(settings[k]).view(1, 3, 1, 1) for k in ("image_mean", "image_std"))
    normalised = load_classifier(f"hf:{tmp_path}")
    assert normalised.predict(inputs * std + mean).tolist() == expected.argmax(1).tolist()
    assert normalised.digest != classifier.digest
    assert "Loading" not in capsys.readouterr().err  # no bar in a pipe
    data = load_dataset((inputs.numpy(), np.zeros(len(inputs), np.int64)))
    job = Job(normalised, data, gaussian(sigma=0.1), norms=(l2,), seed=0)
    fact = "the model normalises its inputs: mean 0.5, 0.4, 0.3, std 0.2, 0.3, 0.4"
    assert fact in list(job.facts())


def test_hub_names_are_read_from_an_earlier_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process of its own, since the hub's library reads where its copies are only once."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.ResNetConfig(
        num_channels=1, embedding_size=4, hidden_sizes=[4], depths=[1], num_labels=3
    )
    place = tmp_path / "models--me--tiny"
    folder = place / "snapshots" / ("a" * 40)
    transformers.ResNetForImageClassification(config).save_pretrained(folder)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text("a" * 40)
    for name, value in {"HF_HUB_CACHE": str(tmp_path), "HF_HUB_OFFLINE": "1"}.items():
        monkeypatch.setenv(name, value)
    code = (
        "import sys\nfrom unicr.classifier import load_classifier\n"
        "from unicr.errors import ModelError\n"
        "print(load_classifier('hub:me/tiny').digest)\n"
        "try:\n    load_classifier('hub:me/other')\nexcept ModelError as error:\n    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    digest, refused = run.stdout.splitlines()
    assert digest == load_classifier(f"hf:{folder}").digest
    assert refused.startswith("hub:me/other cannot be downloaded here")
    with pytest.raises(ModelError, match="ORGANISATION/NAME"):
        load_classifier("hub:../etc")


def test_hugging_face_text_classifier_takes_embeddings(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=50,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        num_labels=3,
    )
    model = transformers.BertForSequenceClassification(config).eval()
    model.save_pretrained(tmp_path)
    inputs = torch.randn(7, 6, 8)
    with torch.no_grad():
        expected = model(inputs_embeds=inputs).logits.argmax(1)
    classifier = load_classifier(f"hf:{tmp_path}")
    assert classifier.predict(inputs).tolist() == expected.tolist()
    images = load_dataset((np.zeros((2, 3, 8, 8), np.float32), np.zeros(2, np.int64)))
    with pytest.raises(
        ModelError, match=r"text classifier takes embeddings of shape \(tokens, 8\)"
    ):
        check_fit(classifier, images)
