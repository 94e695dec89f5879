"""Every claim of a stored certificate, changed one at a time: verify refuses each by itself."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.runs.forging import reseal
from unicr import noise
from unicr.classifier import load_classifier
from unicr.data import Dataset, load_dataset
from unicr.errors import RunError, UnicrError
from unicr.norms import l2, linf, parse_norm
from unicr.radius import certified_radius
from unicr.runs import (
    Job,
    Row,
    Run,
    certify_run,
    compute_detection,
    compute_seals,
    find_difference,
    replay,
    verify,
)
from unicr.runs._commit import digest_of_inputs
from unicr.smoothing import (
    Certificate,
    Counts,
    Curves,
    Plan,
    Request,
    Transcript,
    answer_all,
)
from unicr.smoothing.procedures.two_steps import TwoSteps
from unicr.smoothing.rules import (
    Fixed,
    Pilot,
    Randomised,
    Rule,
    Target,
    ThreeTests,
    Union,
)

LAW, STEP = noise.gaussian(sigma=0.5), "1/16"
PLAN = Plan(n0=40, n=300, alpha=0.001)


def three_parts(batch: torch.Tensor) -> torch.Tensor:
    """Class 1 above zero, class 2 below −1, class 0 between."""
    return (batch[:, 0] > 0).long() + 2 * (batch[:, 0] < -1).long()


def data() -> Dataset:
    """Inputs 0, 2, 4 on the lattice, 1, 3, 5 not."""
    x = np.full((6, 3), 0.625, dtype=np.float32)
    x[1::2] += np.float32(0.011)
    return load_dataset((x, np.ones(6, dtype=np.int64)))


def job(plan: Plan = PLAN) -> Job:
    return Job(
        classifier=load_classifier(three_parts, num_classes=3), data=data(), noise=LAW,
        norms=(l2, linf), plan=plan, nonce="7c" * 32, lattice=STEP,
    )  # fmt: skip


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exact") / "run"
    certify_run(job(), folder).close()
    return folder


@pytest.fixture
def folder(honest: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(honest, tmp_path / "run"))


def told(folder: Path, **more: Any) -> list[tuple[int | None, str]]:
    with Run(folder) as run:
        return [(problem.idx, problem.text) for problem in verify(run, **more)]


def complaints(folder: Path, **more: Any) -> list[str]:
    """Whatever verify says, or in one line why the run cannot be checked."""
    try:
        return [text for _, text in told(folder, **more)]
    except UnicrError as error:
        return [str(error)]


def forge(folder: Path, index: int, change: Callable[[Certificate], Certificate]) -> None:
    """Change one certificate, and seal the run again."""
    with Run(folder, create=True) as run:
        row = list(run.rows())[index]
        assert row.certificate is not None
        run.add(replace(row, certificate=change(row.certificate)))
        run.set_seal()


CURVES = Curves((l2, linf), 3, lattice=noise.Lattice.parse(STEP))


def concluded(c: Certificate, plan: Plan = PLAN, **votes: tuple[int, ...]) -> Certificate:
    """The certificate that follows from other votes: as good a forgery as can be made of them."""

    def answer(ask: Request) -> Counts:
        name = "selection" if ask.purpose == "choose" else "counts"
        return np.asarray(votes.get(name, getattr(c, name)))

    return answer_all(plan.procedure.steps(plan, LAW, CURVES), answer)


def with_votes(c: Certificate, index: int, change: Callable[[list[int]], list[int]]) -> Certificate:
    """Other votes in one answer, and all else as it was."""
    parts = list(c.transcript)
    counts = tuple(change(list(parts[index].counts)))
    parts[index] = replace(parts[index], counts=counts, n=sum(counts))
    return replace(c, transcript=Transcript(tuple(parts)))


def of_radii(**changes: Any) -> Callable[[Certificate], Certificate]:
    """Change the second of two radii."""
    return lambda c: replace(c, radii=(c.radii[0], replace(c.radii[1], **changes)))


def larger(name: str, factor: float = 1.0001) -> Callable[[Certificate], Certificate]:
    def change(c: Certificate) -> Certificate:
        return of_radii(**{name: getattr(c.radii[1], name) * factor})(c)

    return change


FIELDS: dict[str, Callable[[Certificate], Certificate]] = {
    "predict": lambda c: replace(c, predict=2),
    "p_a": lambda c: replace(c, p_a=c.p_a * (1 + 1e-5)),
    "p_b": lambda c: replace(c, p_b=c.p_b * (1 - 1e-4)),
    "n0": lambda c: replace(c, n0=c.n0 + 1),
    "n": lambda c: replace(c, n=c.n + 1),
    "alpha": lambda c: replace(c, alpha=c.alpha / 2),
    "noise": lambda c: replace(c, noise=LAW.text),
    "lattice": lambda c: replace(c, lattice="1/32"),
    "charge": lambda c: replace(c, charge=(c.charge or 0.0) * 0.999),
    "no charge": lambda c: replace(c, charge=None),
    "radius": larger("radius"),
    "proved": larger("proved"),
    "searched": larger("searched"),
    "guarantee": of_radii(guarantee="approximate"),
    "norm": lambda c: replace(c, radii=tuple(
        replace(a, norm=b.norm) for a, b in zip(c.radii, c.radii[::-1], strict=True)
    )),
    "one radius less": lambda c: replace(c, radii=c.radii[:1]),
    "older and larger": lambda c: replace(
        c, radii=(replace(c.radii[0], guarantee="approximate", radius=c.radii[0].radius * 1.001,
                          proved=c.radii[0].proved * 1.001), c.radii[1]),
    ),
    "one vote more": lambda c: with_votes(c, 1, lambda v: [v[0], v[1] + 1, v[2]]),
    "one vote less": lambda c: with_votes(c, 1, lambda v: [v[0] - 1, *v[1:]]),
    "a vote changes sides": lambda c: with_votes(c, 1, lambda v: [v[0] - 1, v[1] + 1, v[2]]),
    "twice the votes": lambda c: with_votes(c, 1, lambda v: [2 * k for k in v]),
    "another class chosen": lambda c: with_votes(c, 0, lambda v: [v[1], v[0], v[2]]),
    "more selection votes": lambda c: with_votes(c, 0, lambda v: [2 * k for k in v]),
    "no votes": lambda c: replace(c, transcript=Transcript()),
    "an answer more": lambda c: replace(
        c, transcript=Transcript((*c.transcript, c.transcript.exchanges[1]))
    ),
}  # fmt: skip


def test_honest_rows_hold_and_their_radii_are_those_of_the_closed_form(honest: Path) -> None:
    assert told(honest) == []
    assert told(honest, data=data()) == []
    with Run(honest) as run:
        rows = [row for row in run.rows() if row.certificate is not None]
    assert len(rows) == 6
    for row in rows:
        c = row.certificate
        assert c is not None
        assert c.predict == 1
        assert c.counts[0] > 5
        for one in c.radii:
            r = certified_radius(LAW, parse_norm(one.norm), 3, p_a=c.p_a).proved
            reduced = noise.Lattice.parse(STEP).reduce(r, parse_norm(one.norm).p, 3)
            assert reduced * (1 - 1e-3) <= one.radius <= reduced * (1 + 1e-12)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("index", [0, 1])
def test_one_changed_claim_is_refused(folder: Path, field: str, index: int) -> None:
    if index == 1 and field == "charge":
        pytest.skip("one is enough")
    forge(folder, index, FIELDS[field])
    found = told(folder)
    assert [idx for idx, _ in found] == [index], found


def test_an_older_proof_is_no_excuse_for_a_larger_radius() -> None:
    """Laplace noise in l2: the proved radius is below the searched one, and may have been lower."""
    plan = Plan(n0=10, n=100)
    steps = plan.procedure.steps(plan, noise.laplace(sigma=1), Curves((l2,), 3072))
    now = answer_all(steps, lambda ask: np.array([0, ask.n]))
    (one,) = now.radii
    assert one.guarantee == "approximate"

    def stored(**changes: Any) -> str | None:
        return find_difference(replace(now, radii=(replace(one, **changes),)), now)

    less, more = 0.9 * one.proved, 0.5 * (one.proved + one.searched)
    assert stored(radius=less, proved=less) is None
    assert stored(radius=more, proved=more) is not None
    assert stored(radius=more, proved=less) is not None
    assert stored(radius=less, proved=more) is not None
    assert stored(radius=less, proved=less, searched=one.searched * 1.01) is not None


RULE_EXAMPLES = {
    "fixed": Fixed(),
    "pilot": Pilot(share=0.05),
    "randomised": Randomised(3),
    "target": Target(0.2),
    "three": ThreeTests(),
    "union": Union(3),
}


def test_every_rule_is_tried_below() -> None:
    assert {*RULE_EXAMPLES, "every"} == set(
        Rule.catalogue
    )  # `every` counts offsets: test_splitting


@pytest.mark.parametrize("rule", RULE_EXAMPLES.values(), ids=RULE_EXAMPLES)
@pytest.mark.parametrize("more", [1, 17])
def test_votes_that_the_rule_did_not_ask_for_are_refused(
    rule: Rule, more: int, tmp_path: Path
) -> None:
    """The best forgery there is: votes of samples that were drawn, and all that follows of them."""
    with certify_run(job(Plan(n0=40, n=300, alpha=0.001, rule=rule)), tmp_path / "run") as run:
        plan = run.spec.plan  # with the run's own key
    before = told(tmp_path / "run")
    assert [text for _, text in before if "union" not in text] == []

    def inflate(c: Certificate) -> Certificate:
        *parts, last = c.transcript
        counts = np.array(last.counts)
        counts[np.argmax(counts)] += more
        asked = replace(last, n=last.n + more, counts=tuple(counts.tolist()))
        radii = CURVES.of(LAW)
        total = sum((np.array(one.counts) for one in parts if one.purpose == "bound"), counts)
        new = TwoSteps().conclude(plan, radii, np.array(parts[0].counts), total)
        return replace(new, transcript=Transcript((*parts, asked)))

    forge(tmp_path / "run", 0, inflate)
    assert [idx for idx, _ in told(tmp_path / "run")] == [*(idx for idx, _ in before), 0]


def test_a_radius_between_grid_points_is_refused(folder: Path) -> None:
    """Made again from its own votes as if the input's grid were all that is meant."""
    forge(folder, 0, lambda c: replace(c, between_points=True))
    assert [idx for idx, _ in told(folder)] == [0]


def change_row(folder: Path, index: int, **changes: Any) -> None:
    with Run(folder, create=True) as run:
        run.add(replace(list(run.rows())[index], **changes))
        run.set_seal()


def test_labels_and_inputs_are_held_against_the_data(folder: Path) -> None:
    change_row(folder, 2, label=0)
    change_row(folder, 3, input_hash="0" * 64)
    ((idx, text),) = told(folder)
    assert idx is None
    assert "not those that the run began with" in text
    with Run(folder, create=True) as run:
        rows = [(row.idx, row.label, row.input_hash) for row in run.rows()]
        run.set_spec(replace(run.spec, inputs=digest_of_inputs(rows)))
        run.set_seal()
    assert told(folder) == []
    assert [idx for idx, _ in told(folder, data=data())] == [None, 2, 3]


def test_missing_and_surplus_rows_are_told(folder: Path) -> None:
    with Run(folder) as run:
        row = list(run.rows())[4]
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.execute("DELETE FROM results WHERE idx = 4")
    reseal(folder)
    ((_, text),) = told(folder)
    assert "1 of 6 inputs have no result (4)" in text
    with Run(folder, create=True) as run:
        run.add(row)
        run.add(replace(row, idx=17))
        run.set_seal()
    ((_, text),) = told(folder)
    assert "1 results are of inputs" in text


SETTINGS = {
    "dim": 4,
    "noise": "gaussian(sigma=0.50)",
    "shape": [1],
    "skip": 2,
    "max": 5,
    "norms": ["2"],
    "lattice": "1/8",
    "data_size": 7,
}


@pytest.mark.parametrize("key", SETTINGS)
def test_settings_that_contradict_the_rows_or_themselves_are_told(folder: Path, key: str) -> None:
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        values = (key, json.dumps(SETTINGS[key]))
        db.execute("INSERT OR REPLACE INTO spec VALUES (?, ?)", values)
    reseal(folder)
    said = complaints(folder, data=None if key != "data_size" else data())
    assert said
    if key == "data_size":
        assert "7 inputs in the run's data, 6 in yours" in said


@pytest.mark.parametrize("change", [{"alpha": 0.01}, {"n": 299}, {"n0": 39}])
def test_a_plan_that_the_rows_do_not_follow_is_told(folder: Path, change: dict[str, Any]) -> None:
    with Run(folder, create=True) as run:
        spec = run.spec
        run.set_spec(replace(spec, plan=replace(spec.plan, **change)))
        run.set_seal()
    assert {idx for idx, _ in told(folder)} == set(range(6))


def test_a_draw_of_ones_own_and_a_union_without_a_search_are_told(tmp_path: Path) -> None:
    for rule, words in ((Randomised(5), "seed"), (Union(2), "union")):
        plan = replace(PLAN, rule=rule)
        folder = tmp_path / rule.name
        certify_run(job(plan), folder).close()
        if rule == Randomised(5):
            assert told(folder) == []
            with Run(folder, create=True) as run:
                run.set_spec(replace(run.spec, plan=plan))
                for row in list(run.rows()):
                    assert row.certificate is not None
                    run.add(replace(row, certificate=concluded(row.certificate, run.spec.plan)))
                run.set_seal()
        ((idx, text),) = told(folder)
        assert idx is None
        assert words in text


def every_value(folder: Path) -> Iterator[tuple[str, str, str]]:
    """(table, where, column) of every value in a run."""
    with closing(sqlite3.connect(folder / "run.sqlite")) as db:
        for table in ("spec", "execution"):
            for (key,) in db.execute(f"SELECT key FROM {table}").fetchall():
                yield table, f"key = '{key}'", "value"
                yield table, f"key = '{key}'", "key"
        columns = [c[1] for c in db.execute("PRAGMA table_info(results)")]
        for column in columns:
            for idx in (0, 5):
                yield "results", f"idx = {idx}", column


def test_the_seal_covers_every_key_and_every_column(folder: Path) -> None:
    before = compute_seals(folder)["run.sqlite"]
    seen = {before}
    changed = list(every_value(folder))
    assert len({where for _, where, _ in changed}) > 20
    for table, where, column in changed:
        with closing(sqlite3.connect(folder / "run.sqlite")) as db:
            (old,) = db.execute(f"SELECT {column} FROM {table} WHERE {where}").fetchone()
            new: object = 1000 + old if isinstance(old, int) else f"{old or ''}!"
            new = math.nextafter(old, math.inf) if isinstance(old, float) else new
            db.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (new,))
            db.commit()
            at = where.replace(str(old), str(new)) if column == "key" else where
            at = f"idx = {new}" if column == "idx" else at
            after = compute_seals(folder)["run.sqlite"]
            assert after not in seen, (table, where, column)
            seen.add(after)
            assert complaints(folder), (table, where, column)
            db.execute(f"UPDATE {table} SET {column} = ? WHERE {at}", (old,))
            db.commit()
        assert compute_seals(folder)["run.sqlite"] == before


def test_a_broken_seal_is_told(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.execute("UPDATE results SET seconds = 9.5 WHERE idx = 1")
    assert told(folder) == [(None, "the run was changed after it was sealed")]


def test_rows_taken_from_a_sealed_run_change_its_seal(folder: Path) -> None:
    before = compute_seals(folder)["run.sqlite"]
    for table, where in (("results", "idx = 0"), ("spec", "key = 'batch'")):
        with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
            db.execute(f"DELETE FROM {table} WHERE {where}")
        after = compute_seals(folder)["run.sqlite"]
        assert after != before
        before = after


def test_nothing_is_added_to_a_run_that_was_changed_after_its_seal(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.execute("UPDATE results SET seconds = 9.5 WHERE idx = 1")
    with pytest.raises(RunError, match="changed after it was sealed"):
        Run(folder, create=True)


def test_replay_tells_selection_counts_and_model_apart(folder: Path) -> None:
    model, inputs = load_classifier(three_parts, num_classes=3), data()
    with Run(folder) as run:
        assert [text for _, text in replay(run, model, inputs, 6)] == [None] * 6
    forge(folder, 0, lambda c: concluded(c, selection=(30, 10, 0)))
    forge(folder, 1, lambda c: concluded(c, counts=(0, PLAN.n, 0)))
    assert told(folder) == []
    with Run(folder) as run:
        found = dict(replay(run, model, inputs, 6))
    assert "[30, 10, 0] stored" in str(found[0])
    assert "[0, 300, 0] stored" in str(found[1])
    assert [found[i] for i in range(2, 6)] == [None] * 4
    other = load_classifier(lambda batch: 1 - three_parts(batch).clamp(max=1), num_classes=3)
    with Run(folder) as run, pytest.raises(RunError, match="its hash differs"):
        list(replay(run, other, inputs, 1))


def test_replay_counts_the_questions(folder: Path) -> None:
    forge(folder, 0, lambda c: replace(c, transcript=Transcript(c.transcript.exchanges[:1])))
    with Run(folder) as run:
        found = dict(replay(run, load_classifier(three_parts, num_classes=3), data(), 6))
    assert "1 questions stored, 2 asked now" in str(found[0])


def test_the_chance_to_catch_a_forger_is_rounded_down() -> None:
    assert compute_detection(6, 2, 1) == 0.33
    assert compute_detection(3, 1, 1) == 0.33
    assert compute_detection(3, 2, 1) == 0.66
    assert compute_detection(200, 1, 1) == 0.0
    assert compute_detection(6, 6, 1) == 1.0


def test_a_row_without_a_certificate_claims_nothing(honest: Path) -> None:
    row = Row(0, 1, "0" * 64, 0.1, None, "reason")
    assert (row.status, row.predict, row.radius("2"), row.correct) == ("failed", -1, 0.0, False)
    with Run(honest) as run:
        kept = next(iter(run.rows()))
    assert kept.proved("2") == kept.radius("2") > 0
