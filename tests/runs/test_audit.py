"""Edited runs: every change is seen by the seal, and by recomputation wherever that can be."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runs.forging import reseal
from unicr.cli import app
from unicr.errors import RunError, UnicrError
from unicr.noise import parse
from unicr.runs import NO_TRUST, Run, Trusted, compute_detection, compute_seals, replay, verify
from unicr.runs._commit import digest_of_inputs
from unicr.runs._verify import find_difference
from unicr.smoothing import Certificate, Counts, NormRadius, Plan, Request, answer_all, recompute
from unicr.smoothing.rules import Randomised

MODEL, DATA = "builtin:mnist-mlp-0.5", "builtin:mnist"
COUNT = 6
# Columns that nothing but the seal or the data can hold, and those that take the model as well.
NEEDS_DATA = {("spec", "data_size")}
NEEDS_MODEL = {
    *(("spec", key) for key in ("nonce", "batch", "model_digests", "classes", "searched")),
    *(("spec", key) for key in ("nonce_origin", "require", "split", "shape")),
    ("spec", "model_hash"),
    ("about", "guard_seed"),
    ("regions", "class"),
    ("regions", "certified"),
    ("regions", "point"),
    ("regions", "noise"),
    ("regions", "guarantee"),
    ("draws", "stream"),
    ("regions", "stream"),
}
NEEDS_SEAL = {
    ("results", "seconds"),
    ("results", "reason"),
    *(("spec", key) for key in ("model", "data", "loading", "reading")),
    *(("execution", key) for key in ("workers", "device", "unicr", "versions", "date")),
    *(("execution", f"no {key}") for key in ("workers", "device", "unicr", "versions", "date")),
    ("outcomes", "length"),
    *((table, "no ") for table in ("outcomes", "regions", "draws")),  # the last may never have been
    ("settings", "value"),  # of an attack: what it did, not what came out
    ("about", "format"),
}


def unicr(*words: object) -> object:
    return app([str(word) for word in words], exit_on_error=False, print_error=False)


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with attacks and a guard's memory beside it."""
    place = tmp_path_factory.mktemp("audit")
    folder = place / "run"
    common = ["--model", MODEL, "--data", DATA, "--norm", "2", "inf", "--n", "300", "--max", COUNT]
    unicr("certify", *common, "--noise", "gaussian(sigma=0.5)", "--out", folder)
    unicr("attack", folder, "--attack", "gaussian", "--factor", "1", "--samples", "4",
          "--votes", "50", "--effort", "0.2")  # fmt: skip
    rng = np.random.default_rng(0)
    np.save(place / "queries.npy", rng.random((3, 1, 28, 28)).astype(np.float32))
    unicr("guard", folder, "--norm", "2", "--queries", place / "queries.npy")
    return folder


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a noise for each input."""
    folder = tmp_path_factory.mktemp("audit") / "run"
    common = ["--model", MODEL, "--data", DATA, "--norm", "2", "--n", "300", "--max", COUNT]
    unicr("i-opt", *common, "--init", "gaussian(sigma=0.5)", "--family", "gaussian", "--n0", "50",
          "--range", "sigma=0.25:1:2", "--out", folder)  # fmt: skip
    return folder


def test_honest_folders_hold(certified: Path, searched: Path, capsys: Any) -> None:
    capsys.readouterr()
    assert (
        unicr(
            "verify", certified, "--replay", "2", "--seal", compute_seals(certified)["run.sqlite"]
        )
        == 0
    )
    said = capsys.readouterr().out
    assert "6 certificates recomputed from their votes: all hold\n" in said
    assert "attacks.sqlite checked: no problems" in said
    assert "guard.sqlite checked: no problems" in said
    assert "2 of 6 inputs sampled again: the same votes" in said
    assert "this replay would detect 1 forged row with 33 % probability or more" in said
    assert unicr("verify", searched, "--replay", "100") == 0
    assert "6 of 6 inputs sampled again: the same votes" in capsys.readouterr().out
    with pytest.raises(RunError, match="--replay -1"):
        unicr("verify", searched, "--replay", "-1")


def mutated(value: Any, rng: random.Random) -> Any:
    """Another value of the same kind; one leaf of a JSON text."""
    if isinstance(value, bool):
        return not value
    if value is None:
        return rng.choice([1, "gaussian(sigma=9)"])
    if isinstance(value, int):
        return value + rng.choice([1, -1, 7])
    if isinstance(value, float):
        return value * rng.choice([1.001, 0.9, 3.0]) + rng.choice([0, 0.01])
    if isinstance(value, bytes):
        at = rng.randrange(len(value) // 4) * 4
        return value[:at] + np.float32(rng.random()).tobytes() + value[at + 4 :]
    if isinstance(value, list) and value:
        at = rng.randrange(len(value))
        return [*value[:at], mutated(value[at], rng), *value[at + 1 :]]
    if isinstance(value, dict) and value:
        key = rng.choice(sorted(value))
        return {**value, key: mutated(value[key], rng)}
    if isinstance(value, str):
        try:
            whole = json.loads(value)
        except ValueError:
            return {"2": "inf", "inf": "2", "certified": "abstained"}.get(value, value + "1")
        return value + "1" if isinstance(whole, int) else json.dumps(mutated(whole, rng))
    return [1]


def edit(folder: Path, rng: random.Random) -> tuple[str, str] | None:
    """One field of one row, or a whole row; which, or None where nothing came out changed."""
    name = rng.choice([p.name for p in sorted(folder.glob("*.sqlite"))])
    before = compute_seals(folder)[name]
    with closing(sqlite3.connect(folder / name)) as db, db:
        db.row_factory = sqlite3.Row
        tables = [t for (t,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = rng.choice([t for t in sorted(tables) if t != "sealed"])
        row = dict(rng.choice(db.execute(f"SELECT * FROM {table}").fetchall()))
        keys = [c["name"] for c in db.execute(f"PRAGMA table_info({table})") if c["pk"]]
        where = " AND ".join(f"{key} = ?" for key in keys)
        at = [row[key] for key in keys]
        if rng.random() < 0.08:
            db.execute(f"DELETE FROM {table} WHERE {where}", at)
            field = "no "
        else:
            field = rng.choice(list(row))
            if table in ("spec", "execution", "about", "settings"):
                field = "value"
            try:
                change = f"UPDATE {table} SET {field} = ? WHERE {where}"
                db.execute(change, [mutated(row[field], rng), *at])
            except sqlite3.IntegrityError:
                return None
    if compute_seals(folder)[name] == before:
        return None
    if table in ("spec", "execution", "about"):
        field = f"{'no ' if field == 'no ' else ''}{row['key']}"
    return table, field


def change_setting(folder: Path, key: str, value: object) -> None:
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.execute("UPDATE spec SET value = ? WHERE key = ?", (json.dumps(value), key))
    reseal(folder)


def rejected(*words: object) -> bool:
    try:
        return unicr("verify", *words) != 0
    except UnicrError:
        return True


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("kind", ["certified", "searched"])
def test_two_hundred_edits(
    kind: str, part: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """25 edits in each of 8 parts, each a copy of a real folder with one thing changed."""
    real: Path = request.getfixturevalue(kind)
    known = [word for seal in compute_seals(real).values() for word in ("--seal", seal)]
    rng = random.Random(1000 * part + len(kind))
    done = 0
    while done < 25:
        folder = tmp_path / str(done)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(real, folder)
        changed = edit(folder, rng)
        if changed is None:
            continue
        done += 1
        assert rejected(folder), f"the stored seal missed {changed}"
        reseal(folder)
        assert rejected(folder, *known), f"the seal missed {changed}"
        if changed in NEEDS_SEAL:
            continue
        if changed in NEEDS_DATA:
            assert rejected(folder, "--data", DATA), f"the data did not show {changed}"
        elif changed in NEEDS_MODEL:
            again = rejected(folder, "--replay", COUNT, "--model", MODEL, "--data", DATA)
            assert again or changed[0] in ("draws", "regions"), f"the model did not show {changed}"
        else:
            assert rejected(folder), f"recomputation did not show {changed}"


FORGERIES = [
    ("UPDATE results SET claims = replace(replace(replace(claims, '\"norm\": \"2\"', 'X'), "
     "'\"norm\": \"inf\"', '\"norm\": \"2\"'), 'X', '\"norm\": \"inf\"')", "norms"),
    ("DELETE FROM results WHERE idx IN (1, 3)", "2 of 6 inputs have no result"),
    ("UPDATE results SET reason = 'no memory' WHERE idx = 2", "or both"),
    ("UPDATE results SET claims = NULL WHERE idx = 2", "cannot be read"),
    ("UPDATE spec SET value = '[28, 28]' WHERE key = 'shape'", ""),
    ("UPDATE spec SET value = '[1, 14, 28]' WHERE key = 'shape'", "p_A"),
    ("UPDATE spec SET value = '5' WHERE key = 'max'", "leave out"),
    ("UPDATE spec SET value = '2' WHERE key = 'skip'", "have no result"),
    ("UPDATE spec SET value = '[\"2\"]' WHERE key = 'norms'", "norms"),
    ("UPDATE results SET claims = json_set(claims, '$.noise', 'gaussian(sigma=5)')", "noise"),
    ("UPDATE results SET idx = 10000 WHERE idx = 5", "leave out"),
    ("UPDATE results SET claims = json_set(claims, '$.radii', json('[]'))", "norms"),
    ("UPDATE results SET claims = json_set(claims, '$.n', 301)", "n 301 stored, 300"),
    ("UPDATE results SET claims = json_set(claims, '$.p_a', 1)", "cannot be read"),
    ("UPDATE results SET claims = json_set(claims, '$.between_points', json('true'))",
     "between_points"),
    ("UPDATE results SET claims = json_set(claims, '$.boast', 1)", "boast"),
    ("UPDATE results SET transcript = json_set(transcript, '$[1].counts', json('[\"many\"]'))",
     "no counts"),
    ("UPDATE results SET transcript = json_set(transcript, '$[1].counts', json('[600]'))",
     "600 votes where 300"),
    ("UPDATE results SET transcript = json_set(transcript, '$[1].n', 600)", "votes before ask"),
    ("UPDATE results SET transcript = json_set(transcript, '$[1].start', 0)", "votes before ask"),
    ("UPDATE results SET transcript = json_remove(transcript, '$[1]')", "no answer is stored"),
    ("UPDATE results SET transcript = json_insert(transcript, '$[#]', "
     "json_extract(transcript, '$[1]'))", "nobody asked for"),
    ("DELETE FROM spec WHERE key = 'plan'", ""),
    ("UPDATE results SET seconds = 'long'", "seconds"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "words"), FORGERIES)
def test_forgeries_of_the_review_are_told_without_model_or_seal(
    certified: Path, tmp_path: Path, change: str, words: str, capsys: Any
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    shutil.copyfile(certified / "run.sqlite", folder / "run.sqlite")
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        assert db.execute(change).rowcount > 0
    reseal(folder)
    capsys.readouterr()
    if words:
        assert unicr("verify", folder) == 1
        assert words in capsys.readouterr().out
    elif "shape" in change:  # the same numbers in another shape: the data tells
        with pytest.raises(RunError, match="shape"):
            unicr("verify", folder, "--data", DATA)
    else:
        with pytest.raises(RunError, match="no plan"):
            unicr("verify", folder)


def test_a_label_changed_to_the_prediction_is_seen_with_the_data(
    certified: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(certified, folder)
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.execute("UPDATE results SET label = (label + 1) % 10 WHERE idx = 0")
    reseal(folder)
    with Run(folder) as run:
        assert ["labels or hashes" in p.text for p in verify(run)] == [True]
        rows = [(row.idx, row.label, row.input_hash) for row in run.rows()]
    change_setting(folder, "inputs", digest_of_inputs(rows))
    with Run(folder) as run:
        assert list(verify(run)) == []
        data = Trusted().open_data(run.spec)
        told = [(p.idx, "inputs" in p.text or "label" in p.text) for p in verify(run, data=data)]
        assert told == [(None, True), (0, True)]


def test_an_outcome_that_is_missing_among_others_is_seen(certified: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(certified, folder)
    with closing(sqlite3.connect(folder / "attacks.sqlite")) as db, db:
        db.execute("DELETE FROM outcomes WHERE idx = 2")
    reseal(folder)
    assert unicr("verify", folder) == 1


def test_a_noise_outside_the_lattice_is_seen(searched: Path, tmp_path: Path, capsys: Any) -> None:
    folder = tmp_path / "run"
    shutil.copytree(searched, folder)
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.execute(
            "UPDATE results SET claims = json_set(claims, '$.noise', 'gaussian(sigma=0.6)') "
            "WHERE idx = 3"
        )
    reseal(folder)
    capsys.readouterr()
    assert unicr("verify", folder) == 1
    assert "input 3: noise 'gaussian(sigma=0.6)' stored" in capsys.readouterr().out


def test_votes_forged_with_all_that_follows_are_caught_by_replay(
    certified: Path, tmp_path: Path
) -> None:
    """A whole certificate under other votes: only the model can tell, and it does."""
    folder = tmp_path / "run"
    shutil.copytree(certified, folder)
    with Run(folder, create=True) as run:
        rows = list(run.rows())
        best = max(rows, key=lambda row: row.radius("2"))
        for row in rows:
            run.add(type(row)(row.idx, row.label, row.input_hash, 0.1, best.certificate))
        run.set_seal()
    with Run(folder) as run:
        assert list(verify(run)) == []
        assert list(verify(run, data=Trusted().open_data(run.spec))) == []
        model, data = NO_TRUST.open_model(run.spec), NO_TRUST.open_data(run.spec)
        found = [idx for idx, text in replay(run, model, data, COUNT) if text is not None]
        same = [row.idx for row in rows if row.certificate == best.certificate]
        assert len(found) == COUNT - len(same)


def test_rows_to_replay_cannot_be_foreseen(certified: Path) -> None:
    from unicr.classifier import load_classifier
    from unicr.data import load_dataset

    model, data = load_classifier(MODEL), load_dataset(DATA)
    with Run(certified) as run:
        drawn = {next(iter(replay(run, model, data, 1)))[0] for _ in range(40)}
    assert len(drawn) > 2  # P(all 40 draws of 6 within two rows) < 15 · 3^-40


def test_the_statement_is_hypergeometric() -> None:
    from scipy import stats

    assert compute_detection(60, 12, 6) == 0.75
    for total, replayed, forged in ((60, 12, 6), (1000, 30, 100), (10, 10, 1), (7, 3, 1)):
        missed = stats.hypergeom.pmf(0, total, forged, replayed)
        detected = compute_detection(total, replayed, forged)
        assert 1 - missed - 0.0101 < detected <= 1 - missed + 1e-12


MEMORY = [
    ("UPDATE regions SET certified = 2.0, reach = 2.0 WHERE stream >= 4294967296", "no votes"),
    ("UPDATE regions SET noise = 'gaussian(sigma=9)' WHERE stream >= 4294967296", "no votes give"),
    ("DELETE FROM draws WHERE stream = 4294967296", "counted"),
    ("DELETE FROM draws", "counted"),
    ("UPDATE regions SET class = (class + 1) % 10 WHERE number = 1", "in the run"),
    ("UPDATE regions SET reach = reach / 2 WHERE number = 2", "reach"),
    ("UPDATE regions SET reach = 'wide'", ""),
    ("UPDATE regions SET class = 'cat'", ""),
    ("UPDATE regions SET point = zeroblob(7)", ""),
    ("UPDATE draws SET alpha = 'small'", "alpha"),
    ("UPDATE draws SET alpha = 1e-9", "alpha"),
    ("DELETE FROM about WHERE key = 'norm'", "norm"),
    ("UPDATE about SET value = '\"inf\"' WHERE key = 'norm'", ""),
    ("DELETE FROM about WHERE key = 'guard_seed'", "seed"),
]


@pytest.mark.parametrize(("change", "words"), MEMORY)
def test_forgeries_of_a_memory_are_told_without_the_model(
    certified: Path, tmp_path: Path, change: str, words: str, capsys: Any
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(certified, folder)
    with closing(sqlite3.connect(folder / "guard.sqlite")) as db, db:
        assert db.execute(change).rowcount > 0
    reseal(folder)
    capsys.readouterr()
    assert unicr("verify", folder) == 1
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("guard")]
    assert words in said[0]
    assert not said[-1].endswith("no problems")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE about SET value = '12345' WHERE key = 'guard_seed'",
        "UPDATE regions SET class = (class + 1) % 10 WHERE stream >= 4294967296 AND class >= 0",
        "UPDATE regions SET guarantee = 'proved beyond doubt' WHERE stream >= 4294967296",
    ],
)
def test_forgeries_of_a_memory_are_told_with_the_model(
    certified: Path, tmp_path: Path, change: str
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(certified, folder)
    with closing(sqlite3.connect(folder / "guard.sqlite")) as db, db:
        assert db.execute(change).rowcount > 0
    reseal(folder)
    assert unicr("verify", folder, "--replay", "10") == 1


def test_an_input_marked_as_failed_is_tried_again(certified: Path, tmp_path: Path) -> None:
    """A forger drops what looks bad: with a reason and without votes, only the model tells."""
    folder = tmp_path / "run"
    folder.mkdir()
    shutil.copyfile(certified / "run.sqlite", folder / "run.sqlite")
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.execute(
            "UPDATE results SET reason = 'no memory', claims = NULL, transcript = NULL "
            "WHERE idx = 2"
        )
    reseal(folder)
    assert unicr("verify", folder) == 0
    assert unicr("verify", folder, "--replay", "100") == 1


def test_votes_of_a_search_under_another_noise_of_the_lattice_are_caught_by_replay(
    searched: Path, tmp_path: Path
) -> None:
    """The same votes, said to be of the widest noise, with all that follows from them."""
    folder = tmp_path / "run"
    shutil.copytree(searched, folder)
    with Run(folder) as run:
        plan, curves = run.spec.plan, run.spec.curves
        first = parse(run.spec.noise.text)
        rows = [row for row in run.rows() if row.certificate is not None]
    forged = []
    for row in rows:
        assert row.certificate is not None
        steps = plan.procedure.steps(plan, first, curves)
        best = max(row.certificate.counts) * 100 // plan.n

        def answer(asked: Request, best: int = best) -> Counts:
            """As if wider noise had as many votes: the search goes there."""
            return np.array([asked.n * best // 100, asked.n - asked.n * best // 100])

        forged.append(answer_all(steps, answer))
    with Run(folder, create=True) as run:
        for row, certificate in zip(rows, forged, strict=True):
            run.add(type(row)(row.idx, row.label, row.input_hash, 0.1, certificate))
        run.set_seal()
    changed = sum(a.certificate != b for a, b in zip(rows, forged, strict=True))
    assert changed > 0
    assert unicr("verify", folder) == 0
    assert unicr("verify", folder, "--replay", "100") == 1


def test_nobody_chooses_the_draw_of_the_randomised_bound(tmp_path: Path) -> None:
    """A draw of 0.05 would err with twenty times alpha: it comes from the nonce, and is checked."""
    words = ["--model", "builtin:mnist-mlp-0.5", "--data", "builtin:mnist", "--norm", "2"]
    words += ["--noise", "gaussian(sigma=0.5)", "--n", "200", "--max", "2"]
    for name, rule in (("a", "randomised"), ("b", "randomised(seed=7)")):
        unicr("certify", *words, "--rule", rule, "--out", tmp_path / name)
    with Run(tmp_path / "a") as one, Run(tmp_path / "b") as other:
        assert len({one.spec.plan, other.spec.plan, Plan(n=200, rule=Randomised(7))}) == 3
    assert unicr("verify", tmp_path / "b", "--replay", "2") == 0
    unicr("certify", *words, "--rule", "randomised", "--out", tmp_path / "a", "--resume")
    assert unicr("verify", tmp_path / "a", "--replay", "3") == 0
    with Run(tmp_path / "b", create=True) as run:
        lucky = replace(run.spec, plan=replace(run.spec.plan, rule=Randomised(7)))
        rows, law = list(run.rows()), lucky.noise
        run.set_spec(lucky)
        for row in rows:
            c = row.certificate
            assert c is not None
            steps = lucky.plan.procedure.steps(lucky.plan, law, lucky.curves)
            forged = recompute(steps, c.transcript)
            run.add(type(row)(row.idx, row.label, row.input_hash, row.seconds, forged))
        run.set_seal()
    assert unicr("verify", tmp_path / "b") == 1


def _claimed(proved: float, guarantee: str = "approximate", searched: float = 0.5) -> Certificate:
    radius = NormRadius("2", proved, proved, searched, guarantee)
    return Certificate(0, 0.9, 0.1, 10, 100, 0.001, (radius,))


def test_a_radius_of_an_older_weaker_proof_holds_and_a_larger_one_does_not() -> None:
    today, exact = _claimed(0.49), _claimed(0.5, "exact")
    assert find_difference(_claimed(0.48), today) is None
    assert find_difference(_claimed(0.48), exact) is None  # a theorem that is exact came later
    assert "0.491" in str(find_difference(_claimed(0.491), today))
    # a true radius has one value
    assert find_difference(_claimed(0.48, "exact"), exact) is not None
    assert find_difference(_claimed(0.5, "approximate"), exact) is not None  # and says so
    assert find_difference(_claimed(0.48, searched=0.51), today) is not None


def test_the_score_of_an_interrupted_run_says_so(
    certified: Path, tmp_path: Path, capsys: Any
) -> None:
    folder = Path(shutil.copytree(certified, tmp_path / "run"))
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.execute("DELETE FROM results WHERE idx >= 2")
    reseal(folder)
    capsys.readouterr()
    assert unicr("score", folder) == 0
    assert "the first 6 of 1000 inputs (interrupted: 2 of 6 are done)" in capsys.readouterr().err
