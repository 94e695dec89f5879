"""Runs: resumable, independent of workers and batches, honest about failures, re-checkable."""

import json
import math
import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from unicr import noise
from unicr.classifier import load_classifier
from unicr.data import Dataset, load_dataset
from unicr.errors import CertifyError, ModelError, RunError
from unicr.lab.report.tables import score_table, summary
from unicr.progress import listen
from unicr.runs import (
    Job,
    Run,
    Trusted,
    certify_run,
    export,
    load_run,
    load_scores,
    replay,
    verify,
)
from unicr.smoothing import Plan, read_norms
from unicr.smoothing.rules import Pilot, Target, ThreeTests

LAW = noise.gaussian(sigma=0.5)


def tiny_data(count: int = 12) -> Dataset:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, 6)).astype(np.float32)
    return load_dataset((x, (x[:, 0] > 0).astype(np.int64)))


def first_coordinate(batch: torch.Tensor) -> torch.Tensor:
    return (batch[:, 0] > 0).long()


def job(**changes: object) -> Job:
    settings: dict[str, object] = {
        "seed": 0,
        "classifier": load_classifier(first_coordinate, num_classes=2),
        "data": tiny_data(),
        "noise": LAW,
        "norms": read_norms([2, "inf"]),
        "plan": Plan(n=400),
        **changes,
    }
    return Job(**settings)  # type: ignore[arg-type]


def test_a_nonce_that_is_not_the_runs_is_refused(tmp_path: Path) -> None:
    """Resuming took the stored nonce without a word: who gives one from outside must be told."""
    mine, other = "1f" * 32, "2e" * 32
    certify_run(job(seed=None, nonce=mine, limit=2), tmp_path).close()
    for again in (job(seed=None, nonce=mine, limit=2), job(seed=None, limit=2)):
        with certify_run(again, tmp_path, resume=True) as run:
            assert (run.spec.nonce, run.spec.nonce_origin) == (mine, "given")
    with pytest.raises(RunError, match="the commitment has the number of inputs"):
        certify_run(job(seed=None, limit=4), tmp_path, resume=True)
    with pytest.raises(CertifyError, match=f"--nonce {other} is not .* nonce {mine}"):
        certify_run(job(seed=None, nonce=other, limit=5), tmp_path, resume=True)
    with pytest.raises(CertifyError, match="64 hexadecimal"):
        job(seed=None, nonce="")  # --nonce "$BEACON" where the variable is empty
    certify_run(job(limit=2), tmp_path / "seeded").close()
    with pytest.raises(CertifyError, match="started with seed 0"):
        certify_run(job(seed=None, nonce=mine, limit=3), tmp_path / "seeded", resume=True)


def test_scores_of_the_default_grid_say_nothing_of_it(tmp_path: Path) -> None:
    """Radii hold for every change, so neither the summary nor the scores name a grid."""
    x = np.full((4, 6), 51 / 255, dtype=np.float32)
    data = load_dataset((x, np.ones(4, dtype=np.int64)))
    with certify_run(job(data=data, norms=read_norms([1, 2])), tmp_path / "own") as run:
        rows = list(run.rows())
    groups = load_scores([tmp_path / "own"], None)
    for text in (summary(rows, ["1", "2"]), score_table(groups, None, "table")):
        assert "grid" not in text
        assert "lattice" not in text


def table(folder: Path) -> list[tuple[object, ...]]:
    """Every stored column but the times."""
    with sqlite3.connect(folder / "run.sqlite") as db:
        columns = [c[1] for c in db.execute("PRAGMA table_info(results)") if c[1] != "seconds"]
        rows = list(db.execute(f"SELECT {', '.join(columns)} FROM results ORDER BY idx"))
    db.close()
    return rows


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE spec SET value = '1' WHERE key = 'format'",
        "DELETE FROM spec WHERE key = 'format'",
    ],
)
def test_a_run_of_another_format_is_refused_in_one_line(tmp_path: Path, change: str) -> None:
    folder = tmp_path / "run"
    certify_run(job(), folder).close()
    with sqlite3.connect(folder / "run.sqlite") as db:
        db.execute("DELETE FROM sealed")
        assert db.execute(change).rowcount == 1
    db.close()
    with (
        Run(folder) as store,
        pytest.raises(RunError, match=r"format .*use the version that wrote"),
    ):
        list(verify(store))
    with pytest.raises(RunError, match=r"format .*use the version that wrote"):
        certify_run(job(), folder, resume=True)


def test_a_run_stores_what_it_found(tmp_path: Path) -> None:
    with certify_run(job(), tmp_path / "run") as store:
        rows = list(store.rows())
        spec = store.spec
    assert [row.idx for row in rows] == list(range(12))
    assert {row.status for row in rows} <= {"certified", "abstained"}
    for row in rows:
        c = row.certificate
        assert c is not None
        assert sum(c.counts) == 400
        assert sum(c.selection) == 100
        assert c.radius("inf") == pytest.approx(c.radius(2) / math.sqrt(6), rel=1e-3)
        if row.predict >= 0:
            assert c.radius(2) <= 0.5 * stats.norm.ppf(max(c.counts) / 400 - 1e-12) + 1e-9
    assert spec.noise.text == "gaussian(sigma=0.5)"
    assert spec.norm_texts == ("2", "inf")
    assert spec.plan.alpha == 0.001
    assert len({row.input_hash for row in rows}) == 12


@pytest.mark.parametrize("changes", [{"batch": 7}, {"batch": 333}])
def test_batch_size_changes_nothing(tmp_path: Path, changes: dict[str, object]) -> None:
    certify_run(job(), tmp_path / "a").close()
    certify_run(job(**changes), tmp_path / "b").close()
    assert table(tmp_path / "a") == table(tmp_path / "b")


MODEL = """
import torch

def classify(batch):
    return (batch[:, 0] > 0).long()

def slow(batch):
    import time
    time.sleep(0.01)
    return (batch[:, 0] > 0).long()
"""


def test_workers_change_nothing(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(MODEL)
    arguments: dict[str, Any] = {"spec": f"{file}:classify", "num_classes": 2}
    alone = job(classifier=load_classifier(**arguments), model_arguments=arguments)
    shared = job(classifier=load_classifier(**arguments), model_arguments=arguments, workers=2)
    certify_run(alone, tmp_path / "a").close()
    certify_run(shared, tmp_path / "b").close()
    assert table(tmp_path / "a") == table(tmp_path / "b")


def test_skip_and_max(tmp_path: Path) -> None:
    with certify_run(job(skip=3, limit=2), tmp_path / "run") as store:
        assert sorted(store.done()) == [0, 3]


def test_resume_completes_an_interrupted_run(tmp_path: Path) -> None:
    certify_run(job(), tmp_path / "whole").close()

    class Stop(Exception):
        pass

    seen = 0

    def stop_after_five(_: object) -> None:
        nonlocal seen
        seen += 1
        if seen == 5:
            raise Stop

    with pytest.raises(Stop):
        certify_run(job(), tmp_path / "part", on_result=stop_after_five)
    assert len(table(tmp_path / "part")) == 5
    certify_run(job(batch=50), tmp_path / "part", resume=True).close()
    assert table(tmp_path / "part") == table(tmp_path / "whole")


def test_a_run_tells_how_far_it_is(tmp_path: Path) -> None:
    """Inside an input too, with the accuracy so far; a resumed run goes on where it was."""
    told: list[tuple[str, float, float | None, str]] = []
    with listen(lambda *words: told.append(words)):
        certify_run(job(limit=4), tmp_path).close()
        first, half = told[-1], told[0]
        told.clear()
        certify_run(job(limit=6), tmp_path, resume=True).close()
    with load_run(tmp_path) as run:
        correct = [row.correct for row in run.rows()]
    accuracy, later = sum(correct[:4]) / 4, sum(correct[4:]) / 2
    assert first == ("certifying", 4, 4, f"certified accuracy so far {accuracy:.1%}")
    assert 0 < half[1] < 1
    assert 4 < told[0][1] < 5
    assert told[-1] == ("certifying", 6, 6, f"certified accuracy so far {later:.1%}")


def test_kill_nine_loses_only_what_was_in_flight(tmp_path: Path) -> None:
    """A real process, killed without warning; resumed, it equals an undisturbed run."""
    model, data = tmp_path / "model.py", tmp_path / "data.npz"
    model.write_text(MODEL)
    x = np.random.default_rng(0).normal(size=(16, 6)).astype(np.float32)
    np.savez(data, x=x, y=(x[:, 0] > 0).astype(np.int64))
    command = [
        *(sys.executable, "-m", "unicr", "certify", "--model", f"{model}:slow"),
        *("--data", str(data), "--noise", "gaussian(sigma=0.5)", "--norm", "2"),
        *("--n", "2000", "--batch", "100", "--seed", "0"),
    ]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = subprocess.Popen(
        [*command, "--out", str(killed)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        time.sleep(0.05)
        try:
            if len(table(killed)) >= 3:
                break
        except sqlite3.Error:
            continue
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = table(killed)
    assert 3 <= len(before) < 16
    done = subprocess.run(
        [*command, "--out", str(killed), "--resume"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    subprocess.run([*command, "--out", str(whole)], capture_output=True, check=True)
    assert table(killed) == table(whole)
    assert table(killed)[: len(before)] == before


def test_of_several_that_resume_one_writes_and_the_others_say_so(tmp_path: Path) -> None:
    """Two processes come while a third is at its first input; both leave, and change nothing."""
    model, data, out = tmp_path / "model.py", tmp_path / "data.npz", tmp_path / "run"
    model.write_text(MODEL)
    x = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
    np.savez(data, x=x, y=(x[:, 0] > 0).astype(np.int64))
    command = [
        *(sys.executable, "-m", "unicr", "certify", "--model", f"{model}:classify"),
        *("--data", str(data), "--noise", "gaussian(sigma=0.5)", "--norm", "2", "--n", "500"),
        *("--seed", "0", "--resume", "--out", str(out)),
    ]
    others: list[subprocess.CompletedProcess[str]] = []

    def come(_: object) -> None:
        if not others:
            both = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
            for one in both:
                _, said = one.communicate()
                others.append(subprocess.CompletedProcess(command, one.returncode, "", said))

    arguments: dict[str, Any] = {"spec": f"{model}:classify"}
    mine = job(
        classifier=load_classifier(**arguments),
        data=load_dataset(str(data)),
        norms=read_norms([2]),
        noise=noise.gaussian(sigma=0.5),
        plan=Plan(n=500),
        model_arguments=arguments,
    )
    with certify_run(mine, out, on_result=come) as run:
        seal = run.stored_seal()
    assert [other.returncode for other in others] == [2, 2]
    for other in others:
        last = other.stderr.splitlines()[-1]
        assert f"run.sqlite is being written to by another process ({os.getpid()})" in last
    certify_run(mine, tmp_path / "alone").close()
    assert table(out) == table(tmp_path / "alone")
    with Run(out) as run:
        assert run.stored_seal() == run.seal() == seal


def test_resuming_with_other_settings_is_refused_and_says_which(tmp_path: Path) -> None:
    certify_run(job(), tmp_path / "run").close()
    with pytest.raises(RunError, match="--resume"):
        certify_run(job(), tmp_path / "run")
    with pytest.raises(RunError, match=r"noise: 'gaussian\(sigma=0.5\)' there"):
        certify_run(job(noise=noise.gaussian(sigma=1)), tmp_path / "run", resume=True)
    with pytest.raises(RunError, match=r"plan:.*seed:"):
        certify_run(job(plan=Plan(n=500), seed=3), tmp_path / "run", resume=True)
    assert len(table(tmp_path / "run")) == 12


def test_failures_are_recorded_and_the_run_goes_on(tmp_path: Path) -> None:
    """A model that raises on some inputs, NaN logits, and an input that is not finite."""
    x = np.zeros((4, 6), dtype=np.float32)
    x[:, 0] = [5, -5, 5, np.nan]
    x[:, 1] = [0, 1000, 2000, 0]

    def moody(batch: torch.Tensor) -> torch.Tensor:
        level = float(batch[:, 1].mean())
        if len(batch) > 2 and 500 < level < 1500:
            raise RuntimeError("out of memory on this batch")
        if len(batch) > 2 and level > 1500:
            return torch.full((len(batch), 2), math.nan)
        return first_coordinate(batch)

    failing = job(
        classifier=load_classifier(moody, num_classes=2),
        data=load_dataset((x, np.array([1, 0, 1, 0]))),
    )
    with certify_run(failing, tmp_path / "run") as store:
        rows = list(store.rows())
    assert [row.status for row in rows] == ["certified", "failed", "failed", "failed"]
    assert "out of memory" in (rows[1].reason or "")
    assert "finite" in (rows[2].reason or "")
    assert "not finite" in (rows[3].reason or "")
    assert rows[1].radius("2") == 0
    assert not rows[1].correct


def test_a_full_disk_is_recorded_as_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite refuses one write as it does on a full disk; the input is kept as failed."""
    original = Run.add
    refused: list[int] = []

    def add(self: Run, row) -> None:  # type: ignore[no-untyped-def]
        if row.idx == 2 and not refused:
            refused.append(row.idx)
            raise RunError("cannot write run.sqlite: database or disk is full")
        original(self, row)

    monkeypatch.setattr(Run, "add", add)
    with certify_run(job(), tmp_path / "run") as store:
        rows = list(store.rows())
    assert [row.idx for row in rows if row.status == "failed"] == [2]
    assert "disk is full" in (rows[2].reason or "")
    assert len(rows) == 12


def test_a_real_size_limit_is_a_clear_error_and_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    certify_run(job(limit=3), folder).close()
    store = Run(folder, create=True)
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count={pages}")
    row = next(iter(store.rows()))
    long = type(row)(99, 0, "x" * 100_000, 0.0, row.certificate)
    with pytest.raises(RunError, match="full"):
        store.add(long)
    assert len(list(store.rows())) == 3
    store.close()


@pytest.mark.parametrize("n", [1, 9, 10])
def test_settings_that_can_certify_nothing_are_refused(tmp_path: Path, n: int) -> None:
    """The classic: at α = 0.001 even ten unanimous votes give p_A = α^(1/10) = 0.501."""
    with pytest.raises(CertifyError, match=rf"n={n} samples at alpha=0\.001 can certify nothing"):
        certify_run(job(plan=Plan(n=n)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_model_that_does_not_fit_the_data_is_refused_at_once(tmp_path: Path) -> None:
    linear = load_classifier(torch.nn.Linear(5, 2))
    with pytest.raises(ModelError, match="shape"):
        certify_run(job(classifier=linear), tmp_path / "run")


@pytest.mark.parametrize(
    "changes", [{"skip": 0}, {"limit": 0}, {"workers": -1}, {"batch": 0}], ids=str
)
def test_bad_settings(changes: dict[str, int]) -> None:
    with pytest.raises(CertifyError):
        job(**changes)


def test_folders_that_are_no_runs(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="not a run"):
        Run(tmp_path)
    (tmp_path / "run.sqlite").write_bytes(b"this is not a database, however long it may be")
    with pytest.raises(RunError, match="cannot"):
        Run(tmp_path)


# verification ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "plan",
    [
        Plan(n=400),
        Plan(n=400, rule=ThreeTests()),
        Plan(n=400, rule=Pilot(0.05)),
        Plan(n=400, rule=Target(0.2)),
    ],
    ids=lambda plan: plan.rule.text,
)
def test_honest_runs_verify(tmp_path: Path, plan: Plan) -> None:
    with certify_run(job(plan=plan), tmp_path / "run") as store:
        assert list(verify(store)) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("transcript = json_set(transcript, '$[1].counts', json('[0, 400]'))", "p_A"),
        ("transcript = json_set(transcript, '$[1].counts', json('[10, 500]'))", "510 votes"),
        ("transcript = json_set(transcript, '$[0].counts', json('[1, 1]'))", "2 votes"),
        ("claims = json_set(claims, '$.p_a', 0.99999)", "p_A"),
        ("claims = json_set(claims, '$.predict', 0)", "class 0 stored, 1"),
        ("claims = json_set(claims, '$.alpha', 0.5)", "alpha"),
        ("claims = json_set(claims, '$.n0', 99)", "n0 99"),
        ("claims = json_set(claims, '$.charge', 0.0)", "charge"),
        ("claims = replace(claims, '\"radius\": 0.', '\"radius\": 9.')", "radius"),
        ("claims = replace(claims, 'exact', 'approximate')", "guarantee"),
        ("claims = replace(claims, 'closed form', 'outward rounding')", "grade"),
    ],
)
def test_tampering_is_found(tmp_path: Path, change: str, words: str) -> None:
    x = np.zeros((6, 6), dtype=np.float32)
    x[:, 0] = [0.7, 0.8, 0.9, 0.75, 0.85, 0.65]
    data = load_dataset((x, np.ones(6, dtype=np.int64)))
    certify_run(job(data=data), tmp_path / "run").close()
    with sqlite3.connect(tmp_path / "run" / "run.sqlite") as db:
        assert db.execute(f"UPDATE results SET {change} WHERE idx = 3").rowcount == 1
    db.close()
    with Run(tmp_path / "run") as store:
        problems = list(verify(store))
    assert [p.idx for p in problems] == [None, 3]
    assert words in problems[1].text


def test_replay_reproduces_votes_and_notices_other_models(tmp_path: Path) -> None:
    one = job()
    with certify_run(one, tmp_path / "run") as store:
        assert [text for _, text in replay(store, one.classifier, one.data, 5)] == [None] * 5
        flipped = load_classifier(torch.nn.Linear(6, 2))
        with pytest.raises(RunError, match="hash"):
            list(replay(store, flipped, one.data, 1))
        other = load_dataset((np.ones((12, 6), dtype=np.float32), np.zeros(12, dtype=np.int64)))
        texts = [text for _, text in replay(store, one.classifier, other, 2)]
        assert all("input is another one" in (text or "") for text in texts)


# export ------------------------------------------------------------------------------------------


def test_exports_have_the_names_that_the_data_has(tmp_path: Path) -> None:
    names = ("left", "right")
    named = replace(tiny_data(), classes=names)
    with certify_run(job(data=named, limit=2), tmp_path / "run") as run:
        for record, row in zip(run.plain_rows(), run.rows(), strict=True):
            assert record["label_name"] == names[row.label]
        export(run, tmp_path / "run.jsonl")
        lines = (tmp_path / "run.jsonl").read_text().splitlines()
        for line, row in zip(lines, run.rows(), strict=True):
            predicted = names[row.predict] if row.predict >= 0 else None
            assert json.loads(line)["class"] == predicted


def test_a_new_column_is_one_line_and_stands_in_every_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One entry of the list of columns, and CSV, LaTeX, frames, JSON lines, Parquet and the page
    have it.
    """
    from unicr.lab.report.html import _data
    from unicr.runs import COLUMNS, Column, _export

    even = Column("even", lambda source: source.row.idx % 2 == 0, title="Even number")
    for module in (_export, _data):
        monkeypatch.setattr(module, "COLUMNS", (*COLUMNS, even))
    with certify_run(job(limit=3), tmp_path / "run") as run:
        for end in ("csv", "tex", "jsonl", "parquet"):
            export(run, tmp_path / f"run.{end}")
        assert run.to_dict()["even"] == [True, False, True]
    head, *lines = (tmp_path / "run.csv").read_text().splitlines()
    assert head.endswith(",even")
    assert [line.rsplit(",", 1)[1] for line in lines] == ["True", "False", "True"]
    assert "& even " in (tmp_path / "run.tex").read_text()
    records = map(json.loads, (tmp_path / "run.jsonl").read_text().splitlines())
    assert [record["even"] for record in records] == [True, False, True]
    parquet = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / "run.parquet")
    assert parquet.column("even").to_pylist() == [True, False, True]
    page = _data.collect([tmp_path / "run"], trusted=Trusted(), max_images=0)
    shown = dict(page["runs"][0]["rows"]["more"])
    assert shown["Even number"] == ["True", "False", "True"]
    assert len(shown["Input hash"][0]) == 64


def test_a_run_of_a_model_that_looks_at_its_batch_is_refused(tmp_path: Path) -> None:
    def above(batch: torch.Tensor) -> torch.Tensor:
        return (batch[:, 0] > batch[:, 0].mean()).long()

    looking = load_classifier(above, num_classes=2)
    with pytest.raises(
        CertifyError, match="no function of its input: pass every input by itself with --batch 1"
    ):
        certify_run(job(classifier=looking), tmp_path / "run")
    with certify_run(job(classifier=looking, batch=1, limit=2), tmp_path / "run") as run:
        assert {row.status for row in run.rows()} <= {"certified", "abstained"}


def test_exports(tmp_path: Path) -> None:
    store = certify_run(job(), tmp_path / "run")
    export(store, tmp_path / "run.tsv", "2")
    lines = (tmp_path / "run.tsv").read_text().splitlines()
    assert lines[0].split("\t") == [
        "idx",
        "label",
        "predict",
        "radius",
        "correct",
        "time",
        "proved",
        "norm",
    ]
    for line, row in zip(lines[1:], store.rows(), strict=True):
        assert float(line.split("\t")[3]) <= row.radius("2")
        assert float(line.split("\t")[3]) >= row.radius("2") - 1.1e-6
    export(store, tmp_path / "run.jsonl")
    records = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    needed = {"idx", "input_hash", "model_hash", "noise", "n0", "n", "counts", "alpha", "seed"}
    assert needed | {"version", "radii"} <= set(records[0])
    export(store, tmp_path / "run.parquet")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = parquet.read_table(tmp_path / "run.parquet").column_names
    assert {"radius_l2", "radius_linf", "proved_l2", "guarantee_linf"} <= set(columns)
    with pytest.raises(RunError, match="choose one with --norm"):
        export(store, tmp_path / "x.tsv")
    with pytest.raises(RunError, match="but not in 1"):
        export(store, tmp_path / "x.tsv", "1")
    with pytest.raises(RunError, match="ending"):
        export(store, tmp_path / "x.doc")
    store.close()
