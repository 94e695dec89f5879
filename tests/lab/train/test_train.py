"""Training with noise: it learns, it resumes to the same bits, and it refuses what cannot work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from unicr.classifier import load_classifier
from unicr.cli import app
from unicr.data import load_dataset
from unicr.errors import DataError, ModelError, RunError, UnicrError
from unicr.lab.train import (
    DivergedError,
    Examples,
    Fitted,
    TrainError,
    Training,
    examples_of,
    train_run,
)
from unicr.lab.train._folder import CHECKPOINT, SETTINGS, WEIGHTS
from unicr.lab.train._schedule import one_cycle
from unicr.lab.train._trainer import Trainer
from unicr.noise import gaussian, parse
from unicr.norms import l2
from unicr.smoothing import lattice_for

FACTORY = """
from torch import nn

def small():
    return nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.Linear(784, 10))

def narrow():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 3))

def broken():
    raise OSError("no such layer")

def text():
    return "a network"
"""


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def digits() -> Examples:
    return examples_of(load_dataset("builtin:mnist"), 800)


def short(**changes: object) -> Training:
    settings = Training("gaussian(sigma=0.25)", epochs=4, batch=64, val_share=0.1)
    return replace(settings, **changes)  # type: ignore[arg-type]


def test_split_inputs_are_held_out_as_they_are_learned() -> None:
    """Each of 64 pixels tells 0 from 1 with chance 1/3.4; intervals seen twice would all be 1/2."""
    generator = torch.Generator().manual_seed(3)
    labels = torch.randint(2, (400,), generator=generator)
    images = labels.view(-1, 1, 1, 1).expand(-1, 1, 8, 8).float()
    settings = short(noise="splitting(scale=1.7)", arch="mlp", norm="1", batch=20, lr=0.01)
    trainer = Trainer(Examples(images, labels, 2), settings)
    assert trainer.run().best["accuracy"] > 0.9
    assert trainer.fitted.best["radius"] > 1.0


def interrupted(
    examples: Examples, settings: Training, folder: Path, after: int
) -> pytest.ExceptionInfo[KeyboardInterrupt]:
    """Train until `after` epochs are checkpointed, and stop as Ctrl-C does."""

    def stop(now: Fitted) -> None:
        if len(now.history) == after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        train_run(examples, settings, folder, on_epoch=stop)
    return caught


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / WEIGHTS)


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


def test_a_network_learns_digits_under_noise(digits: Examples, tmp_path: Path) -> None:
    """800 digits teach the rest of the 1,000: guessing gives 10 % ± 2 %, the bound is 75 %."""
    train_run(digits, short(epochs=8), tmp_path)
    classifier = load_classifier("builtin:mlp", weights=tmp_path / WEIGHTS)
    data = load_dataset("builtin:mnist")
    unseen = torch.stack([data[i][0] for i in range(800, 1000)])
    truth = torch.tensor([data[i][1] for i in range(800, 1000)])
    noise = 0.25 * torch.randn(unseen.shape, generator=torch.Generator().manual_seed(3))
    right = (classifier.predict(unseen + noise) == truth).float().mean()
    assert float(right) > 0.75
    assert classifier.num_classes == 10
    record = json.loads((tmp_path / SETTINGS).read_text())
    assert record["done"]
    assert len(record["history"]) == 8
    assert record["settings"]["noise"] == "gaussian(sigma=0.25)"
    assert not (tmp_path / CHECKPOINT).exists()


def test_noise_in_training_helps_under_noise(digits: Examples, tmp_path: Path) -> None:
    noisy = parse("gennorm(beta=0.5, sigma=1)").sample(len(digits), (1, 28, 28), seed=5)
    inputs = digits.batch(torch.arange(len(digits))) + noisy
    accuracy = {}
    for noise in (None, "gennorm(beta=0.5, sigma=1)"):
        folder = tmp_path / str(noise is None)
        train_run(digits, short(noise=noise, epochs=15), folder)
        classifier = load_classifier("builtin:mlp", weights=folder / WEIGHTS)
        accuracy[noise] = float((classifier.predict(inputs) == digits.labels).float().mean())
    assert accuracy["gennorm(beta=0.5, sigma=1)"] > accuracy[None] + 0.05


@pytest.mark.parametrize("arch", ["mlp", "factory"])
def test_resumed_is_uninterrupted_bit_for_bit(arch: str, digits: Examples, tmp_path: Path) -> None:
    if arch == "factory":
        (tmp_path / "net.py").write_text(FACTORY)
        arch = f"{tmp_path / 'net.py'}:small"
    settings = short(arch=arch)
    whole = train_run(digits, settings, tmp_path / "whole")
    interrupted(digits, settings, tmp_path / "cut", after=2)
    torch.manual_seed(99)
    rest = train_run(digits, settings, tmp_path / "cut", resume=True)
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "cut"))
    losses = [[e["loss"] for e in fitted.history] for fitted in (whole, rest)]
    assert losses[0] == losses[1]
    again = train_run(digits, settings, tmp_path / "cut", resume=True)
    assert same(again.state, whole.state)


LOOP = """
import sys, torch
from pathlib import Path
torch.set_num_threads(1)
from unicr.data import load_dataset
from unicr.lab.train import Training, examples_of, train_run
settings = Training("gaussian(sigma=0.25)", epochs=40, batch=64, val_share=0.1)
train_run(examples_of(load_dataset("builtin:mnist"), 800), settings, Path(sys.argv[1]), resume=True)
"""


@pytest.mark.important
@pytest.mark.slow
def test_kill_9_and_resume(digits: Examples, tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", LOOP, str(tmp_path / "killed")])
    record = tmp_path / "killed" / SETTINGS
    while process.poll() is None:
        if record.is_file() and len(json.loads(record.read_text())["history"]) >= 3:
            os.kill(process.pid, signal.SIGKILL)
            break
        time.sleep(0.01)
    assert process.wait() == -signal.SIGKILL
    settings = short(epochs=40)
    train_run(digits, settings, tmp_path / "killed", resume=True)
    train_run(digits, settings, tmp_path / "whole")
    assert same(weights(tmp_path / "killed"), weights(tmp_path / "whole"))
    assert not list((tmp_path / "killed").glob("checkpoint*"))


def test_the_learning_rate_is_torch_s_one_cycle() -> None:
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=0.01, total_steps=90, cycle_momentum=False, final_div_factor=1e12
    )
    for step in range(90):
        assert one_cycle(step, 90, 0.01) == pytest.approx(schedule.get_last_lr()[0], abs=1e-12)
        optimizer.step()
        if step < 89:
            schedule.step()


def test_early_stopping_keeps_the_best_epoch(digits: Examples, tmp_path: Path) -> None:
    """Random labels cannot be learnt: the accuracy on held-out ones soon stops rising."""
    labels = torch.randint(0, 2, (800,), generator=torch.Generator().manual_seed(0))
    noise = Examples(digits.inputs, labels, 2)
    fitted = train_run(noise, short(epochs=30, patience=2), tmp_path)
    accuracies = [e["accuracy"] for e in fitted.history]
    best = accuracies.index(max(accuracies))
    assert len(accuracies) == best + 1 + 2 < 30
    assert fitted.best["epoch"] == best + 1
    reached: list[dict[str, torch.Tensor]] = []
    train_run(
        noise,
        short(epochs=30, patience=2),
        tmp_path / "watched",
        on_epoch=lambda now: reached.append(weights(tmp_path / "watched")),
    )
    assert same(reached[best], weights(tmp_path))


def test_weights_tell_the_sizes_of_a_network(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (40, 2, 8, 8)).astype(np.float32) / 255
    data = examples_of(load_dataset((images, np.arange(40) % 3)))
    assert data.inputs.dtype == torch.uint8
    assert torch.equal(data.batch(torch.arange(40)), torch.from_numpy(images))
    for arch in ("mlp", "resnet8"):
        train_run(data, short(arch=arch, epochs=1, batch=16), tmp_path / arch)
        classifier = load_classifier(f"builtin:{arch}", weights=tmp_path / arch / WEIGHTS)
        assert classifier.num_classes == 3
        assert classifier.predict(torch.zeros(5, 2, 8, 8)).shape == (5,)
    with pytest.raises(ModelError, match="has 3 classes, not 7"):
        load_classifier("builtin:mlp", weights=tmp_path / "mlp" / WEIGHTS, num_classes=7)
    with pytest.raises(ModelError, match="not belong to an mlp"):
        load_classifier("builtin:mlp", weights=tmp_path / "resnet8" / WEIGHTS)
    with pytest.raises(ModelError, match="does not fit"):
        load_classifier("builtin:resnet20", weights=tmp_path / "resnet8" / WEIGHTS)
    flat = examples_of(load_dataset((images.reshape(40, -1), np.arange(40) % 3)))
    with pytest.raises(TrainError, match="works on images"):
        train_run(flat, short(arch="resnet8"), tmp_path / "flat")


def test_training_draws_other_noise_than_certification(
    digits: Examples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Certificates need votes independent of the weights: no stream may be used for both."""
    from unicr import SmoothedClassifier
    from unicr.classifier import load_classifier
    from unicr.noise import Noise
    from unicr.noise.internal import LatticeNoise

    seeds: set[object] = set()
    keys: set[object] = set()

    def watching(kind: type, name: str, word: str, used: set[object]) -> None:
        original = getattr(kind, name)

        def watched(*args: object, **kwargs: object) -> object:
            used.add(kwargs[word])
            return original(*args, **kwargs)

        monkeypatch.setattr(kind, name, watched)

    watching(Noise, "sample", "seed", seeds)
    watching(LatticeNoise, "copies", "key", keys)
    train_run(digits, short(epochs=1, seed=7), tmp_path)
    assert all(isinstance(seed, int) and seed > 2**32 for seed in seeds)
    trained, evaluated = set(seeds), set(keys)
    assert len(trained) == 1
    assert len(evaluated) > 2  # validation, and the estimated radius of each input
    model = load_classifier("builtin:mlp", weights=tmp_path / "model.safetensors")
    x = digits.batch(torch.arange(1))[0]
    for lattice in ("auto", None):
        seeds.clear()
        keys.clear()
        smoothed = SmoothedClassifier(model, gaussian(sigma=0.25), seed=7, lattice=lattice)
        smoothed.certify(x, n0=10, n=50)
        assert seeds | keys
        assert not seeds & trained
        assert not keys & evaluated


def test_diverging_stops_and_keeps_the_last_good_epoch(digits: Examples, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "import torch\n"
        "class Late(torch.nn.Linear):\n"
        "    passes = 0\n"
        "    def forward(self, x):\n"
        "        self.passes += self.training\n"
        "        y = super().forward(x.flatten(1))\n"
        "        return y * float('nan') if self.passes > 30 else y\n"
        "def net():\n"
        "    return Late(784, 10)\n"
    )
    settings = short(arch=f"{tmp_path / 'net.py'}:net")
    with pytest.raises(DivergedError, match=r"diverged in epoch 3.*lower learning rate than 0.002"):
        train_run(digits, settings, tmp_path / "out")
    record = json.loads((tmp_path / "out" / SETTINGS).read_text())
    assert "diverged" in record["failed"]
    assert len(record["history"]) == 2
    assert all(bool(torch.isfinite(w).all()) for w in weights(tmp_path / "out").values())
    assert (tmp_path / "out" / CHECKPOINT).is_file()


def test_resuming_with_other_settings_names_them(digits: Examples, tmp_path: Path) -> None:
    interrupted(digits, short(), tmp_path, after=1)
    with pytest.raises(RunError, match="already contains a training: use --resume"):
        train_run(digits, short(), tmp_path)
    with pytest.raises(RunError, match=r"lr: 0.002 there, 0.01 now; seed: 0 there, 5 now"):
        train_run(digits, short(lr=0.01, seed=5), tmp_path, resume=True)
    other = examples_of(load_dataset("builtin:mnist"), 700)
    with pytest.raises(RunError, match=r"data: .*inputs: 800 there, 700 now"):
        train_run(other, short(), tmp_path, resume=True)
    (tmp_path / CHECKPOINT).write_bytes(b"half a file")
    with pytest.raises(RunError, match=r"cannot read .*checkpoint.pt"):
        train_run(digits, short(), tmp_path, resume=True)
    (tmp_path / SETTINGS).write_text("{")
    with pytest.raises(RunError, match=r"cannot read .*train.json"):
        train_run(digits, short(), tmp_path, resume=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot create the folder"):
        train_run(digits, short(), tmp_path / "file" / "out")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epochs": 0}, "epochs=0"),
        ({"lr": 0.0}, "lr=0.0"),
        ({"lr": float("nan")}, "lr=nan"),
        ({"batch": 1}, "batch=1"),
        ({"val_share": 1.0}, "val_share=1.0"),
        ({"patience": 0}, "patience=0"),
        ({"patience": 2, "val_share": 0.0}, "needs validation inputs"),
        ({"mean": (0.5,)}, "belong together"),
        ({"noise": "gausian(sigma=1)"}, "did you mean gaussian"),
    ],
)
def test_bad_settings(changes: dict[str, object], words: str) -> None:
    with pytest.raises(UnicrError, match=words):
        short(**changes)


def test_bad_architectures(digits: Examples, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(FACTORY)
    file = tmp_path / "net.py"
    for arch, words in (
        ("resnet21", "no architecture 'resnet21'; there are mlp, lenet, deep-lenet, resnet8"),
        (f"{file}:narrow", r"returned \(2, 3\) for 2 inputs of 10 classes"),
        (f"{file}:broken", "failed: OSError: no such layer"),
        (f"{file}:text", "returned str, but a torch module"),
    ):
        with pytest.raises(TrainError, match=words):
            train_run(digits, short(arch=arch), tmp_path / "out")
    with pytest.raises(TrainError, match="have 2 values"):
        train_run(digits, short(mean=(0.1, 0.2), std=(1.0, 1.0)), tmp_path / "out")
    with pytest.raises(TrainError, match="less than one input"):
        train_run(digits, short(val_share=0.0001), tmp_path / "out")
    wide = Examples(torch.zeros(20, 5, 5), torch.arange(20) % 10, 10)
    with pytest.raises(TrainError, match=r"does not work on inputs of shape \(5, 5\)"):
        train_run(wide, short(arch=f"{file}:small"), tmp_path / "out")


def test_bad_data() -> None:
    x = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    with pytest.raises(DataError, match="6 of 6 inputs of arrays have no label"):
        examples_of(load_dataset(x))
    with pytest.raises(DataError, match="have the same label"):
        examples_of(load_dataset((x, np.zeros(6, np.int64))))
    x[2, 1] = np.nan
    with pytest.raises(DataError, match="not finite"):
        examples_of(load_dataset((x, np.arange(6) % 2)))
    with pytest.raises(TrainError, match="max=0"):
        examples_of(load_dataset((x, np.arange(6) % 2)), 0)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fixed = ["train", "--data", "builtin:mnist", "--max", "300", "--epochs", "2", "--batch", "64"]
    out = tmp_path / "out"
    arguments = [*fixed, "--noise", "none", "--out", str(out), "--mean", "0.13", "--std", "0.31"]
    app(arguments)
    printed = capsys.readouterr()
    assert "2 epochs" in printed.out
    assert "under noise" not in printed.out
    assert f"--model builtin:mlp --weights {out / WEIGHTS} --mean 0.13 --std 0.31" in printed.err
    app([*arguments, "--resume"])
    classifier = load_classifier("builtin:mlp", weights=out / WEIGHTS, mean=0.13, std=0.31)
    data = load_dataset("builtin:mnist")
    seen = torch.stack([data[i][0] for i in range(300)])
    truth = torch.tensor([data[i][1] for i in range(300)])
    assert float((classifier.predict(seen) == truth).float().mean()) > 0.5
    with pytest.raises(UnicrError, match="seed: 0 there, 3 now"):
        app([*arguments, "--resume", "--seed", "3"])


def test_held_out_inputs_get_the_noise_that_certificates_have(tmp_path: Path) -> None:
    """Evaluation draws on the inputs' lattice, each sample addressable by its number."""
    x = (np.arange(40 * 16).reshape(40, 16) % 256 / 255).astype(np.float32)
    examples = examples_of(load_dataset((x, np.arange(40) % 2)))
    trainer = Trainer(examples, Training("gaussian(sigma=0.5)", epochs=1, val_share=0.5))
    rows = trainer.held_out
    noisy = trainer._noisy(rows, "validation", 0, 0)
    lattice = lattice_for([torch.from_numpy(x)], gaussian(sigma=0.5), [l2])
    assert lattice.holds(noisy.numpy())
    assert torch.equal(trainer._noisy(rows[7:], "validation", 0, 7), noisy[7:])
    assert not torch.equal(trainer._noisy(rows, "validation", 1, 0), noisy)
    assert 0.4 < (noisy - torch.from_numpy(x)[rows]).std() < 0.6


def test_bf16_trains_the_same_network_in_fewer_bits(digits: Examples) -> None:
    """Weights stay float32 and come near those of the full precision, not to them."""
    whole = Trainer(digits, short(epochs=1, arch="lenet")).run()
    few = Trainer(digits, short(epochs=1, arch="lenet", precision="bf16")).run()
    assert {tensor.dtype for tensor in few.state.values() if tensor.is_floating_point()} == {
        torch.float32
    }
    off = abs(few.history[0]["loss"] / whole.history[0]["loss"] - 1)
    assert 0 < off < 0.05
    with pytest.raises(TrainError, match="precision='fp16' must be bf16, or left out"):
        Training("gaussian(sigma=0.25)", precision="fp16")  # type: ignore[arg-type]
