"""Fewer bits: another classifier with a digest of its own, which runs write down and replay."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.cli.command import run as unicr
from unicr.classifier import load_classifier
from unicr.data import load_dataset
from unicr.errors import ModelError, RunError
from unicr.noise import gaussian
from unicr.norms import l2
from unicr.runs import Job, Run, Trusted
from unicr.smoothing import SmoothedModule
from unicr.smoothing._smoothed import VoteCounter

BUILTIN = "builtin:mnist-mlp-0.5"


def test_it_computes_as_autocast_does() -> None:
    torch.manual_seed(3)
    module = torch.nn.Sequential(torch.nn.Linear(20, 50), torch.nn.ReLU(), torch.nn.Linear(50, 9))
    batch = torch.randn(400, 20)
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        wanted = module(batch).argmax(1)
    found = load_classifier(module, precision="bf16")
    assert torch.equal(found.predict(batch), wanted)
    assert not torch.equal(load_classifier(module).predict(batch), wanted)


def test_it_is_another_model_of_the_same_file() -> None:
    plain, fewer = load_classifier(BUILTIN), load_classifier(BUILTIN, precision="bf16")
    assert len({plain.digest, fewer.digest, load_classifier(BUILTIN, precision="fp16").digest}) == 3
    assert fewer.digests == {"model": plain.digest, "precision": "bf16"}
    shifted = load_classifier(BUILTIN, precision="bf16", mean=0.1, std=0.3)
    assert shifted.digests["model"] == plain.digest
    assert shifted.digest != fewer.digest


def test_a_normalised_model_passes_it_on() -> None:
    late = load_classifier(BUILTIN, mean=0.1, std=0.3).at_precision("bf16")
    assert late.digest == load_classifier(BUILTIN, mean=0.1, std=0.3, precision="bf16").digest


@pytest.mark.parametrize("mean", [None, 0.1])
def test_speed_is_compared_with_the_same_model_in_its_own_bits(mean: float | None) -> None:
    std = None if mean is None else 0.3
    fewer = load_classifier(BUILTIN, mean=mean, std=std, precision="bf16")
    plain, other = load_classifier(BUILTIN, mean=mean, std=std), fewer.at_own_precision()
    batch = torch.rand(500, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    assert torch.equal(other.predict(batch), plain.predict(batch))
    assert other.digest == ""


@pytest.mark.parametrize(("share", "warned"), [(0.5, False), (1.5, True)])
def test_bits_that_take_longer_are_told(
    share: float, warned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VoteCounter, "compare_time", lambda self, other, x: share)
    np.savez(tmp_path / "d.npz", x=np.zeros((1, 1, 28, 28), np.float32), y=np.zeros(1, int))
    job = Job(
        load_classifier(BUILTIN, precision="bf16"),
        load_dataset(tmp_path / "d.npz"),
        gaussian(sigma=0.5),
        norms=(l2,),
        model_arguments={"precision": "bf16"},
    )
    texts = [text for text in job.warnings() if "--precision" in text]
    assert ["1.50 x" in text for text in texts] == [True] * warned


def test_gradients_go_through_it() -> None:
    smoothed = SmoothedModule(
        load_classifier(BUILTIN, precision="bf16"), gaussian(sigma=0.5), samples=2
    )
    x = torch.rand(1, 1, 28, 28, requires_grad=True)
    out = smoothed(x)
    out[0, 3].backward()
    assert out.dtype == torch.float32
    assert x.grad is not None
    assert float(x.grad.abs().sum()) > 0


@pytest.mark.parametrize(("model", "precision"), [(lambda x: x, "bf16"), (BUILTIN, "int8")])
def test_what_cannot_be_is_refused(model: object, precision: str) -> None:
    with pytest.raises(ModelError, match="precision"):
        load_classifier(model, precision=precision)


def test_a_run_replays_with_it_and_refuses_another(tmp_path: Path) -> None:
    inputs = tmp_path / "d.npz"
    rng = np.random.default_rng(0)
    np.savez(inputs, x=rng.random((2, 1, 28, 28), dtype=np.float32), y=np.array([1, 2]))
    words = ["certify", "--model", BUILTIN, "--data", str(inputs), "--noise", "gaussian(sigma=0.5)"]
    run = tmp_path / "run"
    words += ["--norm", "2", "--n0", "10", "--n", "60", "--precision", "bf16", "--verbose"]
    done = unicr(*words, "--out", str(run))
    assert done.code == 0
    told = r"^with --precision a pass takes \d+\.\d\d x the time of one without it$"
    assert len(re.findall(told, done.err, re.MULTILINE)) == 1
    assert unicr("verify", str(run), "--replay", "2").code == 0
    with Run(run) as opened, pytest.raises(RunError, match="--precision"):
        Trusted(model=BUILTIN).open_model(opened.spec)
