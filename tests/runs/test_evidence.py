"""Evidence about a run: by its schema, with numbers computed here again, and a verdict."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import torch
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from scipy import stats

from tests.docs.pages import ROOT
from tests.runs.forging import reseal
from unicr.classifier import load_classifier
from unicr.cli import app
from unicr.data import load_dataset
from unicr.errors import CertifyError, RunError
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
    assert facts["verifier"]["determinism"].startswith("non-deterministic")
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
    nobody = {"about_this_run": True, "signer": None, "dated": None}
    assert facts["signatures"] == {"commitment.json": nobody}


def test_cyclonedx_is_valid_by_its_own_library_and_says_the_same(
    tmp_path: Path, capsys: Any
) -> None:
    folder, out = made(tmp_path / "run", "accuracy(2, 0.5) >= 0.5"), tmp_path / "bill.json"
    words = ["report", str(folder), "--format", "cyclonedx", "-o"]
    assert app([*words, str(out)], exit_on_error=False, print_error=False) == 0
    assert "verdict: pass" in capsys.readouterr().out
    text = out.read_text()
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    assert validator.validate_str(text) is None
    assert validator.validate_str(text.replace('"performanceMetrics"', '"metrics"')) is not None
    (model,) = json.loads(text)["components"]
    card = model["modelCard"]
    metrics = {one["type"]: one for one in card["quantitativeAnalysis"]["performanceMetrics"]}
    with Run(folder) as run:
        facts = evidence(run)
    first = facts["metrics"][0]["accuracy"][0]
    shown = metrics["certified accuracy at l2 radius 0.0"]
    assert float(shown["value"]) == first["certified"]
    assert [float(v) for v in shown["confidenceInterval"].values()] == first["interval"]
    assert metrics["required: accuracy(2, 0.5) >= 0.5"]["value"] == "pass"
    facts_of = {one["name"]: one["value"] for one in card["properties"]}
    assert facts_of["unicr:randomness:nonce"] == NONCE
    assert facts_of["unicr:digests:model"] == facts["digests"]["model"]
    with pytest.raises(RunError, match=r"CycloneDX is a \.json file"):
        app([*words, str(tmp_path / "bill.html")], exit_on_error=False, print_error=False)


def test_searched_radii_hold_at_no_confidence(tmp_path: Path) -> None:
    """Radii as a search gives them, twice as large as what is proved."""
    folder = made(tmp_path / "run", "accuracy(2, 1) >= 0.5")
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.execute("UPDATE spec SET value = 'true' WHERE key = 'searched'")
        for field in ("radius", "searched"):
            db.execute(
                f"UPDATE results SET claims = json_set(claims, '$.radii[0].{field}', "
                "2 * json_extract(claims, '$.radii[0].proved'))"
            )
    reseal(folder)
    with Run(folder) as run:
        facts, rows = evidence(run), list(run.rows())
    claimed = np.mean([row.correct and row.radius("2") >= 1 for row in rows])
    proved = np.mean([row.correct and row.proved("2") >= 1 for row in rows])
    assert claimed > 0.5 > proved
    assert facts["requirements"][0]["reached"] <= proved
    assert facts["verdict"] == "fail"
    assert facts["radii"] == "searched, not proved"


def test_without_labels_there_is_no_accuracy(tmp_path: Path) -> None:
    """The radii of all certified inputs are told, and a requirement is not met."""
    folder = made(tmp_path / "run", "accuracy(2, 0) >= 0.0")
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.execute("UPDATE results SET label = -1")
    reseal(folder)
    with Run(folder) as run:
        facts, rows = evidence(run), list(run.rows())
    jsonschema.validate(json.loads(json.dumps(facts)), SCHEMA)
    assert facts["requirements"][0]["reached"] is None
    assert facts["verdict"] == "fail"
    for one in facts["metrics"]:
        mean = np.mean([row.proved(one["norm"]) for row in rows])
        assert mean > 0
        assert one["average_radius"] == pytest.approx(mean)
        assert one["accuracy"] == []
        assert one["accuracy_by_class"] == {}


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--require", "accuracy(1, 0) >= 0"], "needs radii in l1"),
     (["--require", "accuracy(2, 0.1) >= 0.1", "--searched"], "needs proved radii"),
     (["--require", "accuracy(2, 99) >= 0.1"], "can never be met")],
)  # fmt: skip
def test_what_can_never_be_shown_is_not_committed_to(
    tmp_path: Path, options: list[str], words: str
) -> None:
    commit = ["commit", "--model", "builtin:mnist-mlp-0.5", "--data", "builtin:mnist", "--norm",
              "2", "--noise", "gaussian(sigma=0.5)", "--n", "100", "--max", "1"]  # fmt: skip
    with pytest.raises(CertifyError, match=words):
        app([*commit, "--out", str(tmp_path), *options], exit_on_error=False, print_error=False)
    assert not list(tmp_path.iterdir())


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


def test_two_classes_of_one_name_are_two_classes(tmp_path: Path) -> None:
    """The second would take the place of the first: the class that is right less often."""
    folder = made(tmp_path / "run")
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.execute("UPDATE spec SET value = '[\"cat\", \"cat\"]' WHERE key = 'classes'")
    reseal(folder)
    with Run(folder) as run:
        found = evidence(run)["metrics"][0]["accuracy_by_class"]
    assert {name: one["inputs"] for name, one in found.items()} == {"0 cat": 15, "1 cat": 15}


@pytest.mark.parametrize(
    ("require", "all_norms", "verdict"),
    [
        (["accuracy(1, 0.5) >= 0.9"], ["2", "inf"], "fail"),
        (["accuracy(2, 0) >= 0", "accuracy(1, 0.5) >= 0.9"], ["2", "inf"], "fail"),
        (["accuracy(2, 0) >= 0", "accuracy(1, 0) >= 0"], ["1", "2"], "in the run of that norm"),
        (["accuracy(2, 0) >= 0"], ["1", "2"], "pass"),
    ],
)
def test_what_is_required_in_another_norm_does_not_pass_here(
    tmp_path: Path, require: list[str], all_norms: list[str], verdict: str
) -> None:
    folder = made(tmp_path / "run")
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        for key, value in (("require", require), ("all_norms", all_norms)):
            db.execute("UPDATE spec SET value = ? WHERE key = ?", (json.dumps(value), key))
    reseal(folder)
    with Run(folder) as run:
        facts = evidence(run)
    assert facts["verdict"] == verdict
    jsonschema.validate(json.loads(json.dumps(facts)), SCHEMA)
