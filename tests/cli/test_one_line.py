"""Mistakes that users made at the command line: each ends with one line that says what to do."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from tests.cli.command import run

NOISE = ("--noise", "gaussian(sigma=0.5)")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    np.savez("data.npz", x=x, y=(x[:, 0] > 0).astype(np.int64))
    Path("model.py").write_text("def classify(batch):\n    return (batch[:, 0] > 0).long()\n")
    return tmp_path


def test_a_folder_that_holds_a_run_is_refused_before_the_model_is_opened(here: Path) -> None:
    model = ("--data", "data.npz", *NOISE, "--norm", 2, "--n", 200, "--max", 1, "--out", "run")
    assert run("certify", "--model", "model.py:classify", *model).code == 0
    Path("model.py").write_text("raise SystemError('the model was opened')\n")
    run("certify", "--model", "model.py:classify", *model).check_refused("already contains a run")


def test_too_few_samples_name_the_number_that_is_enough(here: Path) -> None:
    words = ("--model", "model.py:classify", "--data", "data.npz", *NOISE, "--norm", 2)
    asked = ("--n0", 10, "--max", 1, "--alpha", 0.001)
    few = run("certify", *words, *asked, "--n", 5, "--out", "few")
    few.check_refused("even if all of them agree: take 11 or more")  # 0.001^(1/11) = 0.534 > 0.51
    run("certify", *words, *asked, "--n", 10, "--out", "few").check_refused("take 11 or more")
    assert run("certify", *words, *asked, "--n", 11, "--out", "enough").code == 0


def test_a_model_that_is_not_there_takes_one_line(here: Path) -> None:
    done = run("certify", "--model", "nowhere.onnx", "--data", "data.npz", *NOISE, "--norm", 2,
               "--out", "run")  # fmt: skip
    done.check_refused("no model file nowhere.onnx")
    assert len(done.err) < 400


def test_curve_writes_every_norm(here: Path) -> None:
    problem = ("curve", *NOISE, "--norm", 1, 2, "inf", "--dim", 4)
    assert run(*problem, "-o", "curve.csv").code == 0
    with Path("curve.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(dict.fromkeys(row["norm"] for row in rows)) == ["1", "2", "inf"]
    assert run(*problem, "-o", "curve.tex").code == 0
    table = Path("curve.tex").read_text().splitlines()
    assert [line.split(" & ")[1] for line in table if "gaussian" in line] == ["1", "2", "inf"]
    two = next(line for line in table if "& 2 &" in line)
    assert " 0.6406" in two  # read from below 0.640775, sigma times the normal quantile of 0.9
    assert run(*problem, "-o", "curve.svg").code == 0
    drawn = Path("curve.svg").read_text()
    assert sum(f"<!-- {norm} radius, proved -->" in drawn for norm in ("l1", "l2", "linf")) == 3


def test_a_radius_that_only_a_search_found_is_not_called_radius_0(here: Path) -> None:
    Path("joint.py").write_text(
        "import torch\n"
        "from unicr.noise import Joint\n"
        "root = torch.tensor([[1.0, 0.0], [0.8, 0.6]])\n"
        "def logpdf(z):\n"
        "    return -0.5 * (z.double() @ torch.linalg.inv(root.double()).T).square().sum(-1)\n"
        "def sampler(n, generator):\n"
        "    return torch.randn(n, 2, generator=generator) @ root.T\n"
        "law = Joint(logpdf, sampler, dim=2, symmetric=True, positive=True)\n"
    )
    done = run("radius", "--noise", "joint.py:law", "--norm", 2, "--pa", 0.9, "--samples", 2000)
    lines = dict(line.split(maxsplit=1) for line in done.out.splitlines())
    assert lines["radius"].startswith("searched, not proved")
    assert float(lines["searched"].split()[0]) > 0
    assert "with probability 0.999" in lines["confident"]
