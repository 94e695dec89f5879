"""Evidence about a run: by its schema, with numbers computed here again, and a verdict."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import numpy as np
import pytest
import torch
from scipy import stats

from tests.docs.pages import ROOT
from unicr.classifier import load_classifier
from unicr.cli import app
from unicr.data import load_dataset
from unicr.errors import RunError
from unicr.noise import gaussian
from unicr.norms import l2, linf
from unicr.runs import Job, Requirement, Run, certify_run, evidence, write_commitment
from unicr.smoothing import Plan

NONCE = "61" * 32
SCHEMA = json.loads((ROOT / "docs/evidence.schema.json").read_text())


def above(batch: torch.Tensor) -> torch.Tensor:
    return (batch[:, 0] > 0).long()


def made(folder: Path, *require: str) -> Path:
    """40 inputs at distances of 0.05 … 2 from the boundary, all right."""
    x = np.zeros((40, 3), dtype=np.float32)
    x[:, 0] = np.linspace(0.05, 2, 40) * np.tile([1, -1], 20)
    job = Job(
        load_classifier(above, num_classes=2),
        load_dataset((x, (x[:, 0] > 0).astype(np.int64))),
        gaussian(sigma=0.5),
        norms=(l2, linf),
        plan=Plan(n0=50, n=1000, alpha=0.001),
        nonce=NONCE,
        limit=30,
        require=require,
    )
    write_commitment(job, folder)
    certify_run(job, folder).close()
    return folder


def test_the_facts_are_those_of_the_run(tmp_path: Path) -> None:
    folder = made(tmp_path / "run", "accuracy(2, 0.5) >= 0.5", "accuracy(inf, 0.2) >= 0.5")
    with Run(folder) as run:
        facts = evidence(run)
        rows, spec = list(run.rows()), run.spec
    jsonschema.validate(json.loads(json.dumps(facts)), SCHEMA)
    assert facts["verdict"] == "pass"
    reached = np.mean([row.correct and row.radius("2") >= 0.5 for row in rows])
    # wrong certificates that 30 inputs at alpha may have, but for one time in a thousand
    wrong = stats.binom.isf(0.001, 30, 0.001)
    assert facts["requirements"][0]["reached"] == pytest.approx(reached - wrong / 30)
    assert facts["randomness"]["commitment"] == spec.commitment
    assert facts["randomness"]["nonce"] == NONCE
    assert facts["inputs"]["excluded"] == 10
    assert facts["sampling"]["alpha_of_all_inputs"] == pytest.approx(0.03)
    right = sum(row.correct for row in rows)
    first = facts["metrics"][0]["accuracy"][0]
    interval = stats.beta.ppf([0.025, 0.975], [right, right + 1], [31 - right, 30 - right])
    low, high = np.asarray(interval).tolist()
    assert first["interval"] == pytest.approx([low, 1.0 if right == 30 else high])
    assert facts["metrics"][0]["accuracy_by_class"]["0"]["inputs"] == 15
    assert facts["signatures"] == dict.fromkeys(facts["signatures"], False)


def test_a_requirement_that_is_not_met_fails(tmp_path: Path, capsys: Any) -> None:
    folder = made(tmp_path / "run", "accuracy(2, 0.5) >= 0.99")
    out = tmp_path / "evidence.json"
    words = ["report", str(folder), "--format", "evidence", "-o"]
    assert app([*words, str(out)], exit_on_error=False, print_error=False) == 1
    assert "verdict: fail" in capsys.readouterr().out
    jsonschema.validate(json.loads(out.read_text()), SCHEMA)
    page = tmp_path / "evidence.html"
    assert app([*words, str(page)], exit_on_error=False, print_error=False) == 1
    assert "accuracy(2, 0.5) &gt;= 0.99" in page.read_text()
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.execute("UPDATE spec SET value = '[]' WHERE key = 'require'")
    with pytest.raises(RunError, match="changed after it was sealed"):
        app([*words, str(out)], exit_on_error=False, print_error=False)


@pytest.mark.parametrize(
    "text",
    ["", "accuracy(2) >= 0.5", "accuracy(2, x) >= 0.5", "accuracy(2, 0.5) > 0.5",
     "accuracy(2, 0.5) >= 1.5", "accuracy(2, -1) >= 0.5", "accuracy(2, inf) >= 0.5"],
)  # fmt: skip
def test_requirements_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(RunError) as caught:
        Requirement.parse(text)
    assert "\n" not in str(caught.value)


def test_a_requirement_is_written_in_one_way() -> None:
    assert Requirement.parse(" accuracy( 2.0 ,.5)>=7e-1").text == "accuracy(2, 0.5) >= 0.7"
