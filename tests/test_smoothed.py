"""The smoothed classifier in Python: what it takes, what it refuses, and that it is `certify`."""

from __future__ import annotations

import importlib.util
import itertools
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
from torch.utils.data import DataLoader, TensorDataset

from tests.cli.command import run as run_command
from unicr import SmoothedClassifier, load_dataset, load_run, noise, replay
from unicr.classifier import Normalised, load_classifier
from unicr.errors import CertifyError, RunError, SpecError, UnicrError
from unicr.runs import Trusted
from unicr.smoothing import Certificate, Certificates

TEXT = "gaussian(sigma=0.5)"
MODEL = "builtin:mnist-mlp-0.5"
FEW: dict[str, Any] = {"n0": 20, "n": 200}


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    """Six digits as bytes, channels last, and their labels."""
    data = load_dataset("builtin:mnist")[:6]
    pairs = [data[i] for i in range(6)]
    images = np.stack([(x[0].numpy() * 255).round().astype(np.uint8)[..., None] for x, _ in pairs])
    return images, np.array([label for _, label in pairs])


@pytest.fixture
def smoothed() -> SmoothedClassifier:
    return SmoothedClassifier(MODEL, TEXT, seed=0)


def test_a_noise_may_be_text(smoothed: SmoothedClassifier) -> None:
    assert smoothed.noise == noise.gaussian(sigma=0.5)
    with pytest.raises(SpecError):
        SmoothedClassifier(MODEL, "gaussian(sigma=0.5")


def test_mean_and_std_belong_to_the_model() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 3))
    smoothed = SmoothedClassifier(model, TEXT, mean=[0.4, 0.5, 0.6], std=0.25, seed=0)
    by_hand = Normalised(load_classifier(model), [0.4, 0.5, 0.6], 0.25)
    x = torch.rand(3, 2, 2, generator=torch.Generator().manual_seed(1))
    assert smoothed.classifier.digest == by_hand.digest
    again = SmoothedClassifier(by_hand, TEXT, seed=0)
    assert smoothed.certify(x, **FEW) == again.certify(x, **FEW)


def test_bytes_are_scaled_in_every_layout(
    smoothed: SmoothedClassifier, digits: tuple[np.ndarray, np.ndarray]
) -> None:
    """Bytes taken as 0 … 255 gave other classes: 0 3 3 for 3 8 8."""
    images, _ = digits
    floats = torch.from_numpy(images[..., 0].astype(np.float32) / np.float32(255))[:, None]
    wanted = list(smoothed.certify(floats, **FEW))
    for stack in (images, torch.from_numpy(images), images.transpose(0, 3, 1, 2), images[..., 0]):
        assert list(smoothed.certify(stack, **FEW)) == wanted
    for one in (images[0], torch.from_numpy(images[0]).permute(2, 0, 1), images[0, ..., 0]):
        assert smoothed.certify(one, **FEW) == wanted[0]
        assert smoothed.predict(one, n=200) == wanted[0].predict


def test_every_kind_of_dataset_gives_the_same(
    smoothed: SmoothedClassifier, digits: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    images, labels = digits
    floats = torch.from_numpy(images.transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255))
    np.savez(tmp_path / "digits.npz", images=images, labels=labels)
    torch_data = TensorDataset(floats, torch.from_numpy(labels))
    pairs = zip(images, labels, strict=True)
    rows = [{"image": image, "label": int(label)} for image, label in pairs]
    kinds: list[Any] = [
        (floats, labels),
        (images, labels.tolist()),
        torch_data,
        DataLoader(torch_data, batch_size=4),
        [(x, int(y)) for x, y in zip(floats, labels, strict=True)],
        rows,
        load_dataset("builtin:mnist")[:6],
        tmp_path / "digits.npz",
    ]
    wanted = smoothed.certify(floats, labels=labels, **FEW)
    assert wanted.labels == tuple(labels)
    for kind in kinds:
        found = smoothed.certify(kind, **FEW)
        assert isinstance(found, Certificates)
        assert list(found) == list(wanted), type(kind)
        assert found.labels == tuple(labels), type(kind)


def test_plain_lists_are_inputs_too(smoothed: SmoothedClassifier) -> None:
    x = torch.zeros(1, 28, 28)
    assert smoothed.certify(x.tolist(), **FEW) == smoothed.certify(x, **FEW)
    assert len(smoothed.certify([x, x], **FEW)) == 2


def test_scores_are_counted_by_hand(
    smoothed: SmoothedClassifier, digits: tuple[np.ndarray, np.ndarray]
) -> None:
    images, labels = digits
    wrong = labels.copy()
    wrong[0] = (wrong[0] + 1) % 10
    found = smoothed.certify((images, wrong), [2, "inf"], **FEW)
    radii = [c.radius("inf") for c in found]
    right = [c.predict == y for c, y in zip(found, wrong, strict=True)]
    for radius in (0.0, sorted(radii)[2], sorted(radii)[2] + 1e-9):
        hits = [ok and r >= radius for ok, r in zip(right, radii, strict=True)]
        assert found.accuracy(radius, "inf") == sum(hits) / 6
    counted = [c.radius(2) if ok else 0 for c, ok in zip(found, right, strict=True)]
    assert found.average_radius == pytest.approx(sum(counted) / 6, rel=1e-12)
    assert found.to_dict()["label"] == wrong.tolist()
    assert found[1:3].labels == tuple(wrong[1:3])
    unlabelled = smoothed.certify(images, **FEW)
    with pytest.raises(CertifyError, match="labels="):
        unlabelled.accuracy(0.5)


def test_an_input_without_a_label_is_never_right() -> None:
    """An abstention is −1 and so is a missing label: the two do not make a hit."""

    def coin(batch: torch.Tensor) -> torch.Tensor:
        return (batch[:, 0] > 0).long()

    smoothed = SmoothedClassifier(coin, TEXT, num_classes=2, input_shape=(2,), seed=0)
    found = smoothed.certify((torch.tensor([[0.0, 0.0], [9.0, 0.0]]), [-1, 1]), **FEW)
    assert found.predict.tolist() == [-1, 1]
    assert found.accuracy(0) == 0.5


@pytest.mark.parametrize("copies", [1, 2])
def test_too_few_samples_are_refused_with_the_least_number(
    smoothed: SmoothedClassifier, copies: int
) -> None:
    """Unanimous votes give p_A = α^(1/n), which is above 0.51 from n = 11 on."""
    seven = load_dataset("builtin:mnist")[0][0]
    x = seven if copies == 1 else torch.stack([seven] * copies)
    for n in (1, 5, 10):
        with pytest.raises(CertifyError, match=rf"n={n} samples at .* take 11 or more"):
            smoothed.certify(x, n=n)
    found = smoothed.certify(x, n=11)
    (best,) = {one.p_a for one in ([found] if isinstance(found, Certificate) else found)}
    assert best == pytest.approx(0.001 ** (1 / 11))


def test_an_array_of_bytes_and_one_of_floats_are_told_apart() -> None:
    """Bytes may have channels last; floats of the same shape are what they are."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 6, 2))
    smoothed = SmoothedClassifier(model, TEXT, seed=0)
    one = np.zeros((8, 6, 3), np.uint8)
    assert isinstance(smoothed.certify(one, **FEW), Certificate)
    assert isinstance(smoothed.certify(one.astype(np.float32), **FEW), Certificate)
    conv = nn.Sequential(nn.Conv2d(3, 2, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    smoothed = SmoothedClassifier(conv, TEXT, seed=0)
    assert isinstance(smoothed.certify(one, **FEW), Certificate)
    with pytest.raises(UnicrError, match="does not work on inputs of shape"):
        smoothed.certify(one.astype(np.float32), **FEW)


def test_the_plot_falls_where_accuracy_does(
    smoothed: SmoothedClassifier, digits: tuple[np.ndarray, np.ndarray]
) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    found = smoothed.certify(digits, **FEW)
    (line,) = found.plot().lines
    x, y = line.get_data()
    for radius in np.linspace(0, max(x) * 0.999, 17):
        drawn = y[np.searchsorted(x, radius, side="left")]  # steps of kind "pre"
        assert drawn == found.accuracy(float(radius))


def test_a_saved_run_is_what_the_command_makes(
    smoothed: SmoothedClassifier, digits: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    images, labels = digits
    np.savez(tmp_path / "digits.npz", images=images, labels=labels)
    found = smoothed.certify(tmp_path / "digits.npz", [1, 2], **FEW)
    found.save(tmp_path / "saved")
    done = run_command(
        *("certify", "--model", MODEL, "--data", tmp_path / "digits.npz", "--noise", TEXT),
        *("--norm", "1", "2", "--n0", "20", "--n", "200", "--seed", "0"),
        *("--out", tmp_path / "command"),
    )
    assert done.code in (0, None, "no exit"), done.err
    with load_run(tmp_path / "saved") as ours, load_run(tmp_path / "command") as theirs:
        assert [row.certificate for row in ours.rows()] == [r.certificate for r in theirs.rows()]
    checked = run_command("verify", tmp_path / "saved", "--replay", "2")
    assert checked.code in (0, None, "no exit"), checked.out + checked.err
    with pytest.raises(CertifyError, match="not empty"):
        found.save(tmp_path / "saved")
    with pytest.raises(CertifyError, match="only a part of a run"):
        found[:2].save(tmp_path / "part")


def test_a_run_from_a_nonce_verifies(digits: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    np.savez(tmp_path / "digits.npz", images=digits[0], labels=digits[1])
    found = SmoothedClassifier(MODEL, TEXT).certify(tmp_path / "digits.npz", **FEW)
    found.save(tmp_path / "saved")
    checked = run_command("verify", tmp_path / "saved", "--replay", "3")
    assert checked.code in (0, None, "no exit"), checked.out + checked.err


def test_an_interrupted_run_continues_in_its_folder(
    digits: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    images, labels = digits
    calls = 0

    def model(batch: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return (batch.flatten(1).mean(1) > 0.1).long()

    smoothed = SmoothedClassifier(model, TEXT, num_classes=2, seed=0)
    first = smoothed.certify((images, labels > 4), folder=tmp_path / "run", **FEW)
    before = calls
    again = smoothed.certify((images, labels > 4), folder=tmp_path / "run", **FEW)
    assert list(again) == list(first)
    assert calls - before < before / 2  # checks before the run, no votes


def test_inputs_beyond_the_bounds_are_refused(digits: tuple[np.ndarray, np.ndarray]) -> None:
    smoothed = SmoothedClassifier(MODEL, TEXT, bounds=(0, 1), seed=0)
    x = torch.full((1, 28, 28), 0.5)
    assert isinstance(smoothed.certify(x, **FEW), Certificate)
    x[0, 3, 3] = 1.0001
    with pytest.raises(CertifyError, match="outside bounds"):
        smoothed.certify(x, **FEW)
    with pytest.raises(UnicrError, match="outside bounds"):
        smoothed.certify((torch.stack([x, x]), [0, 1]), **FEW)
    with pytest.raises(CertifyError, match="low below high"):
        SmoothedClassifier(MODEL, TEXT, bounds=(1, 0))


def test_what_looks_wrong_is_a_warning_that_names_the_cure(
    smoothed: SmoothedClassifier, digits: tuple[np.ndarray, np.ndarray]
) -> None:
    images, labels = digits
    floats = torch.from_numpy(images.transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255))
    with pytest.warns(UserWarning, match="mean"):
        smoothed.certify(((floats - 0.13) / 0.31, labels), **FEW)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        smoothed.certify((floats, labels), **FEW)
        smoothed.certify(floats, **FEW)  # without labels there is nothing to warn of


def test_noise_that_spoils_the_model_is_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    """A value of 0.6 or 0.4 tells the class; under noise of sigma 20 nothing does."""
    x = torch.where(torch.arange(32)[:, None] % 4 == 0, 0.6, 0.4).expand(32, 2)
    labels = (x[:, 0] > 0.5).long()

    def model(batch: torch.Tensor) -> torch.Tensor:
        other = (batch.abs() > 1).any(1)
        return torch.where(other, 3, (batch[:, 0] > 0.5).long())

    loud = SmoothedClassifier(model, "gaussian(sigma=20)", num_classes=4, seed=0)
    with pytest.warns(UserWarning, match="use a smaller sigma") as told:
        loud.certify((x, labels), **FEW)
    assert "100% without noise, 0% with one draw" in str(told[0].message)
    quiet = SmoothedClassifier(model, "gaussian(sigma=0.01)", num_classes=4, seed=0)
    quiet.certify((x, labels), **FEW)
    assert len(recwarn) == 0


def test_colour_channels_at_the_end_are_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    def model(batch: torch.Tensor) -> torch.Tensor:
        return (batch.mean((1, 2, 3)) > 0.5).long()

    smoothed = SmoothedClassifier(model, "gaussian(sigma=0.25)", num_classes=2, seed=0)
    smoothed.certify(torch.rand(2, 3, 8, 8), **FEW)
    smoothed.certify(torch.rand(2, 4, 4, 4), **FEW)
    assert len(recwarn) == 0
    with pytest.warns(UserWarning, match="moveaxis"):
        smoothed.certify(torch.rand(2, 8, 8, 3), **FEW)


def test_classes_name_the_outputs(digits: tuple[np.ndarray, np.ndarray]) -> None:
    names = [f"digit {i}" for i in range(10)]
    smoothed = SmoothedClassifier(MODEL, TEXT, classes=names, seed=0)
    found = smoothed.certify((digits[0], [names[i] for i in digits[1]]), **FEW)
    assert found.labels == tuple(digits[1])
    assert found.to_dict()["class"] == [names[p] if p >= 0 else None for p in found.predict]


def test_failures_name_the_input(tmp_path: Path) -> None:
    def model(batch: torch.Tensor) -> torch.Tensor:
        return batch[:, :2] / (batch.abs().amax() < 5).float()

    smoothed = SmoothedClassifier(model, TEXT, num_classes=2, input_shape=(4,), seed=0)
    inputs, folder = torch.tensor([[0.0] * 4, [9.0] * 4, [1.0] * 4]), tmp_path / "run"
    for _ in range(2):  # the second call finds the failure in the folder
        with pytest.raises(CertifyError, match="input 1: "):
            smoothed.certify((inputs, [0, 0, 0]), folder=folder, **FEW)


def test_a_time_budget_chooses_the_number_of_votes(smoothed: SmoothedClassifier) -> None:
    """Votes that all agree are decided within any budget; a coin is not."""
    x = load_dataset("builtin:mnist")[0][0]
    assert smoothed.predict(x, seconds=0.2) == 7

    def coin(batch: torch.Tensor) -> torch.Tensor:
        return (batch[:, 0] > 0).long()

    fair = SmoothedClassifier(coin, TEXT, num_classes=2, input_shape=(4,), seed=0)
    assert fair.predict(torch.zeros(4), seconds=0.05, alpha=1e-7) == -1
    with pytest.raises(CertifyError, match="seconds"):
        smoothed.predict(x, seconds=0)


def test_a_time_budget_uses_each_sample_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All votes of a prediction are those of samples 0 … n − 1 of its stream."""
    asked: list[tuple[int, int]] = []
    ticks = itertools.count(0.0, 0.125)  # the first votes take a quarter of the time, anywhere
    monkeypatch.setattr("unicr.smoothed.time.perf_counter", lambda: next(ticks))

    class Spy(SmoothedClassifier):
        def votes(self, x, n, *, start, **more):  # type: ignore[no-untyped-def]
            asked.append((start, n))
            return super().votes(x, n, start=start, **more)

    smoothed = Spy(MODEL, TEXT, seed=0)
    smoothed.predict(load_dataset("builtin:mnist")[0][0], seconds=0.5)
    assert asked == [(0, 64), (64, 3 * 64)]


def test_the_service_answers(tmp_path: Path) -> None:
    """examples/serve.py, asked as an ASGI server asks it."""
    import asyncio

    path = Path(__file__).parents[1] / "examples" / "serve.py"
    spec = importlib.util.spec_from_file_location("serve", path)
    assert spec is not None
    assert spec.loader is not None
    serve = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(serve)

    def ask(route: str, body: bytes) -> tuple[int, dict[str, Any]]:
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        scope = {"type": "http", "path": route, "method": "POST"}
        asyncio.run(serve.app(scope, receive, send))
        return sent[0]["status"], json.loads(sent[1]["body"])

    x = load_dataset("builtin:mnist")[0][0]
    asked = {"x": x.flatten().tolist(), "n": 1000}
    assert ask("/predict", json.dumps(asked).encode()) == (200, {"class": 7, "alpha": 0.001})
    status, answer = ask("/certify", json.dumps(asked).encode())
    assert (status, answer["class"]) == (200, 7)
    assert 0.5 < answer["radius"] < 1.2316  # the most that 1,000 votes can give
    flat = {"x": [0.5] * 784, "n": 200}
    status, answer = ask("/certify", json.dumps(flat).encode())
    assert status == 200
    assert ask("/predict", b"{")[0] == 400
    assert ask("/predict", json.dumps({"x": [2.0] * 784}).encode())[0] == 400
    assert ask("/nothing", b"")[0] == 404


def test_a_saved_keras_model_is_certified(tmp_path: Path) -> None:
    """In a process of its own: Keras chooses its backend when it is imported."""
    if importlib.util.find_spec("keras") is None:
        pytest.skip("keras is not installed")
    code = """
import os, sys
os.environ["KERAS_BACKEND"] = "torch"
import keras, numpy as np, torch
from unicr import SmoothedClassifier
keras.utils.set_random_seed(0)
network = keras.Sequential([keras.layers.Input((4, 4, 1)), keras.layers.Flatten(),
                            keras.layers.Dense(3)])
network.save("model.keras")
model = keras.saving.load_model("model.keras")
def scores(batch):
    images = batch.permute(0, 2, 3, 1)
    return torch.as_tensor(model.predict(images.numpy(), verbose=0))
smoothed = SmoothedClassifier(scores, "gaussian(sigma=0.25)", num_classes=3, seed=0)
x = torch.rand(1, 4, 4, generator=torch.Generator().manual_seed(0))
print(smoothed.certify(x, n0=50, n=500).predict, int(np.argmax(network(x.permute(1, 2, 0)[None]
      .numpy()).detach().numpy())))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    smoothed_class, plain_class = done.stdout.split()[-2:]
    assert smoothed_class in (plain_class, "-1")


def test_a_saved_run_is_the_same_table_again(tmp_path: Path) -> None:
    digits = load_dataset("builtin:mnist")[:4]
    smoothed = SmoothedClassifier("builtin:mnist-mlp-0.5", "gaussian(sigma=0.5)", seed=0)
    results = smoothed.certify(digits, norm=[2, 1], n=200)
    results.save(tmp_path / "run")
    again = load_run(tmp_path / "run").certificates()
    assert again.to_csv() == results.to_csv()
    assert again.accuracy(0.3) == results.accuracy(0.3) > 0
    again.save(tmp_path / "copy")
    (tmp_path / "file").touch()
    with pytest.raises(CertifyError, match="is a file: choose a folder"):
        again.save(tmp_path / "file")


def test_a_model_in_python_is_replayed_in_python(tmp_path: Path) -> None:
    digits = load_dataset("builtin:mnist")[:3]
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10))
    smoothed = SmoothedClassifier(module, "gaussian(sigma=0.5)", seed=0)
    smoothed.certify(digits, n=100, folder=tmp_path / "run")
    with load_run(tmp_path / "run") as run:
        found = list(replay(run, smoothed.classifier, digits, 3))
        with pytest.raises(RunError, match=r"an object in Python .Sequential., which no file"):
            Trusted().open_model(run.spec)
    assert sorted(found) == [(0, None), (1, None), (2, None)]


def test_numbers_of_numpy_are_numbers() -> None:
    smoothed = SmoothedClassifier("builtin:mnist-mlp-0.5", "gaussian(sigma=0.5)", seed=0)
    x, _ = load_dataset("builtin:mnist")[0]
    n: Any = np.int64(200)
    norm: Any = np.int64(2)
    several = smoothed.certify(x, norm=norm, n=n)
    assert several.radius(2) == smoothed.certify(x, norm=2, n=200).radius(2)
    with pytest.raises(CertifyError, match="labels go into labels="):
        smoothed.certify(x, np.array([7, 2]))
    with pytest.raises(CertifyError, match="both must be whole numbers"):
        smoothed.certify(x, n=True)


def test_a_noise_is_a_noise_or_a_text() -> None:
    with pytest.raises(CertifyError, match=r"noise=0\.25: give a noise or its text"):
        SmoothedClassifier("builtin:mnist-mlp-0.5", 0.25)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="unknown noise 'normal': did you mean gaussian"):
        SmoothedClassifier("builtin:mnist-mlp-0.5", "normal(sigma=1)")


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("named", [{}, {"name": "my mix"}])
def test_a_density_of_a_notebook_certifies_many_inputs(
    cut: bool, named: dict[str, Any], tmp_path: Path
) -> None:
    """The run holds it as a table, so that nobody needs the function that it was made from."""
    law = noise.from_density(lambda x: -0.5 * (x / 0.5) ** 2, sigma=0.5, **named)
    law = law.truncated(2) if cut else law
    digits = load_dataset("builtin:mnist")[:2]
    smoothed = SmoothedClassifier(MODEL, law, seed=0)
    results = smoothed.certify(digits, norm="inf", n=200)
    results.save(tmp_path / "run")
    checked = run_command("verify", tmp_path / "run")
    assert checked.code in (0, None, "no exit"), checked.out + checked.err
    with load_run(tmp_path / "run") as run:
        assert [*replay(run, smoothed.classifier, digits, 2)] == [(0, None), (1, None)]
    if not cut:
        normal = SmoothedClassifier(MODEL, "gaussian(sigma=0.5)", seed=0)
        near = normal.certify(digits, norm="inf", n=200).radius()
        assert results.radius() == pytest.approx(near, rel=0.2)


@pytest.mark.parametrize("name", ["laplace mix", "my Gaussian mix"])
def test_a_density_named_like_another_noise_is_refused_at_once(name: str) -> None:
    """A run that nobody could read again was made without a word."""
    law = noise.from_density(lambda x: -0.5 * (x / 0.5) ** 2, name=name)
    smoothed = SmoothedClassifier(MODEL, law, seed=0)
    with pytest.raises(UnicrError, match=name):
        smoothed.certify(load_dataset("builtin:mnist")[:2], norm="inf", n=200)
