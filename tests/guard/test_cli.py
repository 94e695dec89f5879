"""`unicr guard` on a small run: planting, answers as JSON lines, the summary, and its errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.guard.planted import certificate
from unicr.classifier import load_classifier
from unicr.cli import app
from unicr.cli.guard import confidence
from unicr.data import load_dataset
from unicr.errors import CertifyError, DataError, RunError
from unicr.noise import gaussian
from unicr.norms import l1, l2
from unicr.runs import Job, Row, Run, certify_run
from unicr.smoothing import Plan

MODEL = """
def band(batch):
    return (batch[:, 0].abs() < 0.3).long()

def other(batch):
    return (batch[:, 0].abs() < 0.4).long()
"""

Command = Callable[..., tuple[int, list[dict[str, Any]], str]]


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run the command; its exit code, its JSON lines and what it said on stderr."""

    def run(*words: object) -> tuple[int, list[dict[str, Any]], str]:
        capsys.readouterr()
        trusted = ["--trust", str(tmp_path / "model.py")]
        code = app(["guard", *map(str, words), *trusted])
        said = capsys.readouterr()
        return code, [json.loads(line) for line in said.out.splitlines()], said.err

    return run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Three inputs certified with one noise: two of class 1, one of class 0."""
    (tmp_path / "model.py").write_text(MODEL)
    np.save(tmp_path / "seeds.npy", np.array([[0.0], [2.0], [0.05]], np.float32))
    job = Job(
        classifier=load_classifier(f"{tmp_path / 'model.py'}:band"),
        data=load_dataset(tmp_path / "seeds.npy"),
        noise=gaussian(sigma=0.1),
        norms=(l2,),
        plan=Plan(n0=50, n=1000),
        data_spec=str(tmp_path / "seeds.npy"),
        seed=0,
    )
    certify_run(job, tmp_path / "run").close()
    return tmp_path / "run"


def test_planting_and_answering(run: Path, tmp_path: Path, command: Command) -> None:
    code, lines, said = command(run, "--seed", "1")
    assert (code, lines) == (0, [])
    assert "3 inputs of the run planted (0 abstained, radius 0), 0 were there" in said
    assert "proved radii" in said
    np.save(tmp_path / "q.npy", np.array([[0.01], [5.0], [np.nan], [5.0], [0.3]], np.float32))
    code, lines, said = command(run, "--queries", tmp_path / "q.npy")
    assert code == 3
    assert [line["idx"] for line in lines] == [0, 1, 2, 3, 4]
    assert [line.get("source") for line in lines] == ["memory", "fresh", None, "memory", "fresh"]
    assert [line["class"] for line in lines] == [1, 0, None, 0, -1]
    assert "not finite" in lines[2]["reason"]
    keys = {"idx", "class", "radius", "source", "region", "scope", "shrunk_from"}
    assert keys <= lines[0].keys()
    assert lines[1]["radius"] == lines[3]["radius"] > 0
    assert lines[4]["radius"] == 0
    assert {line["scope"] for line in lines if "scope" in line} == {"the run's noise"}
    assert "0 inputs of the run planted (0 abstained, radius 0), 3 were there" in said
    assert "4 answers: 2 from memory, 2 new (0 shrunk); 1 abstained, 1 without an answer" in said
    assert "5 regions; failure probabilities add up to 0.005000" in said
    assert "is at least 0.995000" in said
    again = command(run, "--queries", tmp_path / "q.npy", "--max", "2")
    assert [line["source"] for line in again[1]] == ["memory", "memory"]


def test_a_file_with_one_input(run: Path, tmp_path: Path, command: Command) -> None:
    np.save(tmp_path / "one.npy", np.array([2.01], np.float32))
    code, lines, _ = command(run, "--queries", tmp_path / "one.npy", "--memory", tmp_path / "m")
    assert code == 0
    assert [(line["class"], line["region"]) for line in lines] == [(0, 2)]
    assert not (run / "guard.sqlite").exists()
    (tmp_path / "bad.npy").write_text("no array")
    with pytest.raises(DataError, match="cannot read"):
        command(run, "--queries", tmp_path / "bad.npy")


def test_certificates_with_noises_of_their_own_are_shrunk_and_overruled(
    run: Path, tmp_path: Path, command: Command
) -> None:
    np.save(tmp_path / "seeds.npy", np.array([[0.0], [2.0], [0.05], [3.0]], np.float32))
    data = load_dataset(tmp_path / "seeds.npy")
    claims = [(0, 1, 0.25), (1, 0, 1.9), (2, 0, 0.5)]
    with Run(run, create=True) as store:
        for i, label, radius in claims:
            own = certificate(label, radius, noise=f"gaussian(sigma={i + 1})")
            store.add(Row(i, 0, data.digest_of(i), 0.0, own))
    np.save(tmp_path / "q.npy", np.array([[0.1], [2.5]], np.float32))
    _, lines, said = command(run, "--queries", tmp_path / "q.npy")
    assert "1 shrunk to stay clear of another answer, at most (input 1) from 1.9 to 1.7" in said
    assert "1 left out: they lie in a region of another class (inputs 2)" in said
    assert [line["scope"] for line in lines] == ["region 1's noise", "region 2's noise"]
    assert [line["noise"] for line in lines] == ["gaussian(sigma=1)", "gaussian(sigma=2)"]


def test_the_norm_must_be_one_of_the_run(run: Path, tmp_path: Path, command: Command) -> None:
    with pytest.raises(RunError, match="the run has radii in 2, but not in inf"):
        command(run, "--norm", "inf")
    job = Job(
        classifier=load_classifier(f"{tmp_path / 'model.py'}:band"),
        data=load_dataset(tmp_path / "seeds.npy"),
        noise=gaussian(sigma=0.1),
        norms=(l1, l2),
        plan=Plan(n0=50, n=1000),
        data_spec=str(tmp_path / "seeds.npy"),
        searched=True,
        seed=0,
    )
    certify_run(job, tmp_path / "both").close()
    with pytest.raises(RunError, match="several norms \\(1, 2\\)"):
        command(tmp_path / "both")
    file = tmp_path / "memory"
    _, _, said = command(tmp_path / "both", "--norm", "1", "--memory", file)
    assert "regions in l1, searched radii, not proved ones" in said
    with pytest.raises(RunError, match="norm: '1' there, '2' now"):
        command(tmp_path / "both", "--norm", "2", "--memory", file)
    with pytest.raises(RunError, match=r"with other settings \(.*searched: True there, False now"):
        command(run, "--memory", file)


def test_mistakes(run: Path, tmp_path: Path, command: Command) -> None:
    queries = tmp_path / "seeds.npy"
    with pytest.raises(RunError, match="is not a run"):
        command(tmp_path / "nowhere")
    with pytest.raises(CertifyError, match="--max -1"):
        command(run, "--max", "-1")
    with pytest.raises(RunError, match="its hash differs"):
        command(run, "--queries", queries, "--model", f"{tmp_path / 'model.py'}:other")
    np.save(tmp_path / "others.npy", np.array([[7.0], [8.0], [9.0]], np.float32))
    with pytest.raises(RunError, match=r"input 0 of others\.npy is not the input that was"):
        command(run, "--data", tmp_path / "others.npy", "--memory", tmp_path / "new")
    with pytest.raises(RunError, match="another seed than 5"):
        command(run, "--seed", "5")
    Run(tmp_path / "empty", create=True).close()
    with pytest.raises(RunError, match="never started"):
        command(tmp_path / "empty")


def test_a_query_of_another_shape_gets_no_answer(
    run: Path, tmp_path: Path, command: Command
) -> None:
    np.save(tmp_path / "wide.npy", np.zeros((1, 2), np.float32))
    code, lines, _ = command(run, "--queries", tmp_path / "wide.npy")
    assert code == 3
    assert "shape (2,), but the memory holds inputs of shape (1,)" in lines[0]["reason"]


def test_confidence_is_rounded_against_the_guard() -> None:
    assert "add up to 0.033000: " in confidence(0.033)
    assert confidence(0.033).endswith("at least 0.967000")
    assert confidence(1e-9).endswith("at least 0.999999")
    assert confidence(1.0).endswith("not bounded any more")
