"""A folder full of traps: no code that a run names ever runs, unless the reader names its file."""

from __future__ import annotations

import io
import json
import pickle
import shutil
import sqlite3
import warnings
import zipfile
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.runs.forging import reseal
from unicr.classifier import load_classifier
from unicr.cli import app
from unicr.errors import ModelError, UnicrError

TRAP = """
import pathlib
pathlib.Path({marker!r}).touch()
raise SystemExit(0)
"""
LAW = """
def logpdf(x):
    return -abs(x)
"""


class Trap:
    """A pickle that writes the marker when it is read."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> Any:
        return Path.touch, (self._marker,)


PROGRAMS = ("ts", "torchscript", "pt", "pth", "th", "ckpt", "bin", "safetensors", "pt2")
NAMED = r"--trust (FILE|\S*trap)"


class Writer(nn.Module):
    """A model that makes a file while it answers."""

    def __init__(self, marker: Path) -> None:
        super().__init__()
        self.marker = str(marker)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        made = torch.from_file(self.marker, shared=True, size=1)
        return batch.flatten(1)[:, :10] + 0 * made.sum()


def write_program(file: Path, marker: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        if file.suffix == ".pt2":
            write_two_faced(file, marker)
        else:
            torch.jit.save(torch.jit.script(Writer(marker).eval()), file)


def write_two_faced(file: Path, marker: Path) -> None:
    """A .pt2 with a second list of weights, in capitals, which torch's reader takes for the first.

    The honest list says that nothing is pickled; the other one names a pickle.
    """
    plain, bomb = io.BytesIO(), io.BytesIO()
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10)).eval()
    torch.export.save(torch.export.export(model, (torch.zeros(2, 1, 28, 28),)), plain)
    torch.save(Trap(marker), bomb)
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            if name.endswith("_weights_config.json"):
                head, _, tail = name.rpartition("/")
                weights = json.loads(old.read(name))
                for one in weights["config"].values():
                    one |= {"use_pickle": True, "path_name": "weight_9"}
                new.writestr(f"{head}/{tail.upper()}", json.dumps(weights))
                new.writestr(f"{head}/weight_9", bomb.getvalue())
            new.writestr(name, old.read(name))


def unicr(*words: object) -> object:
    return app([str(word) for word in words], exit_on_error=False, print_error=False)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ordinary run of a builtin model under a noise of the user's own, attacked and guarded."""
    place = tmp_path_factory.mktemp("real")
    (place / "law.py").write_text(LAW)
    unicr("certify", "--model", "builtin:mnist-mlp-0.5", "--data", "builtin:mnist", "--noise",
          f"{place / 'law.py'}:logpdf * 0.3", "--norm", "1", "--n", "200", "--max", "3",
          "--out", place / "run")  # fmt: skip
    unicr("attack", place / "run", "--attack", "gaussian", "--factor", "1", "--samples", "2",
          "--votes", "50", "--effort", "0.1")  # fmt: skip
    np.save(place / "q.npy", np.random.default_rng(0).random((1, 1, 28, 28)).astype(np.float32))
    unicr("guard", place / "run", "--queries", place / "q.npy")
    return place


def test_a_noise_of_ones_own_is_data_for_everybody_else(real: Path, tmp_path: Path) -> None:
    """The auditor has the folder alone: radii, votes, attacks and pages without the density."""
    folder = tmp_path / "received"
    shutil.copytree(real / "run", folder)
    (real / "law.py").rename(real / "gone.py")
    try:
        assert unicr("verify", folder, "--replay", "3") == 0
        unicr("attack", folder, "--attack", "gaussian", "--factor", "1", "--samples", "2",
              "--votes", "50", "--effort", "0.1", "--fresh")  # fmt: skip
        unicr("guard", folder, "--queries", real / "q.npy")
        unicr("report", folder, "-o", tmp_path / "page.html")
        assert "code in a file" not in (tmp_path / "page.html").read_text()
        with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
            stored = db.execute("SELECT value FROM spec WHERE key = 'noise_data'").fetchone()
            data = json.loads(stored[0])
            data["noise"]["times"] = 0.6  # a wider noise makes larger radii
            db.execute("UPDATE spec SET value = ? WHERE key = 'noise_data'", [json.dumps(data)])
        with suppress(UnicrError):
            assert unicr("verify", folder) == 1
    finally:
        (real / "gone.py").rename(real / "law.py")


OWN = ("--model", "builtin:mnist-mlp-0.5", "--data", "builtin:mnist", "--norm", "1",
       "--noise", "laplace(scale=0.3)", "--n", "200", "--max", "3")  # fmt: skip
COMMANDS: list[list[str]] = [
    ["verify"],
    ["verify", "--replay", "2"],
    ["verify", "--data", "builtin:mnist"],
    ["score"],
    ["export", "-o", "out.jsonl"],
    ["export", "-o", "out.tsv"],
    ["export", "-o", "out.parquet"],
    ["report", "-o", "out.html"],
    ["report", "--format", "evidence", "-o", "out.json"],
    ["report", "--format", "cyclonedx", "-o", "out.json"],
    ["attack", "--attack", "gaussian", "--factor", "1", "--samples", "2", "--votes", "50"],
    ["guard"],
    ["guard", "--queries", "q.npy"],
    ["seal"],
    ["optimality", "--noise", "gaussian(sigma=1)"],
    ["check-log", "--noise", "gaussian(sigma=1)", "--n", "1000", "--alpha", "0.001"],
    ["recertify", "--noise", "gaussian(sigma=1)", "--norm", "2", "--dim", "784", "--out", "o.tsv"],
    ["commit", *OWN],
    ["certify", *OWN, "--resume"],
]
PLACES = {"optimality": "--run", "commit": "--out", "certify": "--out"}  # else the first word
TARGETS = ["model", "data", "noise", "rows", "everything"]


def trapped(real: Path, place: Path, target: str, kind: str) -> tuple[Path, Path]:
    """A copy of the run in which these fields name a trap inside the folder; and the marker."""
    marker, folder = place / "marker", place / "run"
    shutil.copytree(real / "run", folder)
    shutil.copyfile(real / "q.npy", place / "q.npy")
    if kind == "py":
        (folder / "trap.py").write_text(TRAP.format(marker=str(marker)))
        spec = f"{folder / 'trap.py'}:law"
    elif kind == "pickled":
        (folder / "trap.pt").write_bytes(pickle.dumps(Trap(marker)))
        spec = str(folder / "trap.pt")
    elif kind in PROGRAMS:
        write_program(folder / f"trap.{kind}", marker)
        spec = str(folder / f"trap.{kind}")
    else:
        (folder / f"trap.{kind}").write_bytes(pickle.dumps(Trap(marker)))
        spec = str(folder / f"trap.{kind}")
    fields = ["model", "data", "noise", "rows"] if target == "everything" else [target]
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        for field in fields:
            if field == "rows":
                db.execute("UPDATE results SET claims = json_set(claims, '$.noise', ?)", (spec,))
                continue
            db.execute("UPDATE spec SET value = ? WHERE key = ?", (json.dumps(spec), field))
            if field == "noise":
                db.execute("UPDATE spec SET value = 'null' WHERE key = 'noise_data'")
    for name, statement in (
        ("guard.sqlite", "UPDATE regions SET noise = ?"),
        ("attacks.sqlite", "UPDATE outcomes SET attack = ?"),
    ):
        with closing(sqlite3.connect(folder / name)) as db, db:
            if target == "everything":
                with suppress(sqlite3.IntegrityError):
                    db.execute(statement, (spec,))
    reseal(folder)  # a broken seal would keep some commands from looking further
    return folder, marker


@pytest.mark.parametrize("kind", ["py", "joblib", "pickled", "pkl"])
@pytest.mark.parametrize("target", TARGETS)
def test_no_command_springs_a_trap(
    real: Path, tmp_path: Path, target: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, marker = trapped(real, tmp_path, target, kind)
    monkeypatch.chdir(tmp_path)
    for words in COMMANDS:
        place = [PLACES[words[0]], str(folder)] if words[0] in PLACES else [str(folder)]
        with suppress(UnicrError, OSError):
            unicr(words[0], *place, *words[1:])
        assert not marker.exists(), f"{target} as {kind}: unicr {' '.join(words)}"


@pytest.mark.parametrize(
    "text",
    [
        "{trap}:x/../good.py:law",
        "{trap}:law * 2",
        "({trap}:law).truncated(3)",
        "good.py:law.{trap}:law",
        "./good.py/../{trap}:law",
    ],
)
def test_trust_in_one_file_is_no_trust_in_another(
    real: Path, tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts that would make a careless reader check one file and load another."""
    monkeypatch.chdir(tmp_path)
    folder, marker = trapped(real, tmp_path, "noise", "py")
    shutil.copyfile(folder / "trap.py", "trap.py")
    Path("good.py").write_text(LAW.replace("logpdf", "law"))
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        noise = json.dumps(text.format(trap="trap.py"))
        db.execute("UPDATE spec SET value = ? WHERE key = 'noise'", (noise,))
    with pytest.raises(UnicrError, match="--trust FILE"):
        unicr("verify", folder, "--trust", "good.py")
    assert not marker.exists()


@pytest.mark.parametrize(
    "arguments", [{"trust": True}, {"device": "cuda"}, {"weights": 5}, {"mean": {}}, {"x": 1}]
)
def test_a_run_cannot_choose_how_it_is_opened(
    real: Path, tmp_path: Path, arguments: dict[str, Any]
) -> None:
    folder, marker = trapped(real, tmp_path, "model", "joblib")
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        value = (json.dumps(arguments),)
        db.execute("UPDATE spec SET value = ? WHERE key = 'loading'", value)
        db.execute("UPDATE spec SET value = ? WHERE key = 'reading'", value)
    for words in (["verify", "--replay", "1"], ["guard"], ["attack", "--attack", "gaussian"]):
        with pytest.raises(UnicrError):
            unicr(words[0], folder, *words[1:])
    assert not marker.exists()


@pytest.mark.parametrize(
    ("target", "words"), [("noise", ["verify"]), ("model", ["verify", "--replay", "1"])]
)
def test_a_trap_that_is_named_is_sprung(
    real: Path, tmp_path: Path, target: str, words: list[str]
) -> None:
    """What the test above does not see can be seen: trust is given to the very file only."""
    folder, marker = trapped(real, tmp_path, target, "py")
    (tmp_path / "other.py").write_text("")
    with pytest.raises(UnicrError, match="--trust FILE"):
        unicr(words[0], folder, *words[1:], "--trust", tmp_path / "other.py")
    assert not marker.exists()
    with suppress(UnicrError, SystemExit):
        unicr(words[0], folder, *words[1:], "--trust", folder / "trap.py")
    assert marker.exists()


@pytest.mark.parametrize("kind", PROGRAMS)
def test_programs_of_torch_do_not_run(real: Path, tmp_path: Path, kind: str) -> None:
    """Neither as the model that a run names, under any ending, nor as one's own without trust."""
    folder, marker = trapped(real, tmp_path, "model", kind)
    spec = folder / f"trap.{kind}"
    words = "weights without their architecture" if kind == "safetensors" else NAMED
    certify = ["certify", "--model", spec, "--data", "builtin:mnist", "--norm", "2", "--n", "100",
               "--noise", "gaussian(sigma=1)", "--max", "1", "--out", tmp_path / "out"]  # fmt: skip
    guard = ["guard", folder, "--queries", tmp_path / "q.npy"]
    for command in (["verify", folder, "--replay", "1"], guard,
                    ["attack", folder, "--attack", "gaussian"], certify,
                    ["verify", folder, "--replay", "1", "--model", spec],
                    ["convert", spec, "-o", tmp_path / "new.onnx"]):  # fmt: skip
        with pytest.raises(UnicrError, match=words):
            unicr(*command)
    with pytest.raises(ModelError, match=words):
        load_classifier(spec)
    assert not marker.exists()
    if kind != "safetensors":  # what the test looks for can be seen
        with suppress(ModelError):
            load_classifier(spec, trust=spec).predict(torch.zeros(2, 1, 28, 28))
        assert marker.exists()


@pytest.mark.parametrize(
    "spec", ["trap.py:model", "trap.py:model.onnx", "builtin:/../trap.py:model", "hf:/../trap.py:x"]
)
def test_a_selector_does_not_run_the_python_that_it_names(
    tmp_path: Path, spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor where the text looks like that of a format without code."""
    monkeypatch.chdir(tmp_path)
    marker = tmp_path / "marker"
    Path("trap.py").write_text(TRAP.format(marker=str(marker)))
    models = [{"spec": "builtin:mnist-mlp-0.5"}, {"spec": spec}, {"spec": "builtin:mnist-mlp-1.0"}]
    values = {"noise": "gaussian(sigma=1)", "choices": ["gaussian(sigma=1)"] * 2, "models": models}
    Path("selector.json").write_text(json.dumps(values))
    with pytest.raises(ModelError):
        load_classifier("selector.json", trust="selector.json")
    with pytest.raises(UnicrError):
        load_classifier(spec) if not spec.startswith("trap") else load_classifier("selector.json")
    assert not marker.exists()


def test_weights_that_a_run_names_are_not_unpickled(real: Path, tmp_path: Path) -> None:
    folder, marker = tmp_path / "run", tmp_path / "marker"
    shutil.copytree(real / "run", folder)
    (folder / "trap.pt").write_bytes(pickle.dumps(Trap(marker)))
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.execute("DELETE FROM sealed")
        for key, value in (
            ("model", "builtin:mlp"),
            ("loading", {"weights": str(folder / "trap.pt")}),
        ):
            db.execute("UPDATE spec SET value = ? WHERE key = ?", (json.dumps(value), key))
    with pytest.raises(UnicrError, match=NAMED):
        unicr("verify", folder, "--replay", "1")
    assert not marker.exists()
