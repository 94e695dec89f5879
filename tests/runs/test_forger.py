"""A forger who changes a run and seals it again, and a grinder who draws until lucky.

The auditor has the model and the data, was told the commitment before the run and gave the nonce
(or was told the seed). Whatever a reader is shown must be refused where it was changed.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.runs.forging import reseal
from tests.runs.test_audit import mutated
from unicr import noise
from unicr.classifier import Classifier, Selective, load_classifier
from unicr.data import Dataset, load_dataset
from unicr.errors import UNREADABLE, RunError, UnicrError
from unicr.i_opt import Axis, Grid, IOpt, i_opt_run
from unicr.norms import Norm, l1, l2, linf
from unicr.runs import (
    Job,
    Run,
    certify_run,
    read_commitment,
    replay,
    scores_of,
    table,
    verify,
    write_commitment,
)
from unicr.smoothing import Plan, VoteCounter, stream_key
from unicr.smoothing.procedures import Offsets, Selector, TwoLawVotes
from unicr.smoothing.rules import Pilot, Randomised, Target, ThreeTests

NONCE = "3e" * 32
DIM = 4
PLAN = Plan(n0=40, n=300)
UNSEEN = {"seconds", "reason", "version"}  # held by the seal alone, as docs/howto-audit.md says


def two_sides(batch: torch.Tensor) -> torch.Tensor:
    """Class 1 where the first number is above zero, class 2 far below, class 0 between."""
    first = batch.flatten(1)[:, 0]
    return (first > 0).long() + 2 * (first < -1.5).long()


@cache
def model() -> Classifier:
    return load_classifier(two_sides, num_classes=3, classes=("left", "right", "far"))


@cache
def data() -> Dataset:
    """Six inputs near the boundaries, so that no vote is unanimous; labels are words."""
    x = np.random.default_rng(4).normal(size=(12, DIM)).astype(np.float32)
    x[:, 0] = np.linspace(-0.4, 0.5, 12)
    return load_dataset(x, labels=["left" if one < 0 else "right" for one in x[:, 0]])


@cache
def images() -> Dataset:
    """The same as bytes, for noise that counts every offset."""
    x = np.random.default_rng(4).integers(90, 160, size=(6, 1, 2, 2)).astype(np.uint8)
    return load_dataset((x, np.ones(6, dtype=np.int64)))


@cache
def bright() -> Classifier:
    return load_classifier(lambda batch: (batch.flatten(1)[:, 0] > 0.4).long(), num_classes=2)


def job(plan: Plan = PLAN, **changes: Any) -> Job:
    settings: dict[str, Any] = {
        "classifier": model(),
        "data": data(),
        "noise": noise.gaussian(sigma=0.5),
        "norms": (l2, linf),
        "plan": plan,
        "skip": 2,
        "limit": 5,
        **changes,
    }
    return Job(**settings)


def committed(folder: Path) -> None:
    asked = job(nonce=NONCE, require=("accuracy(2, 0.1) >= 0.2",))
    write_commitment(asked, folder)
    certify_run(job(nonce=NONCE), folder).close()


def searched(folder: Path, norms: tuple[Norm, ...] = (l2,)) -> None:
    axes = (Axis("sigma", 0.25, 1, 2.0),)
    settings = IOpt(Grid.around(noise.gaussian(sigma=0.5), "gaussian", axes))
    i_opt_run(job(norms=norms), settings, folder)


def run_of(**changes: Any) -> Callable[[Path], None]:
    return lambda folder: certify_run(job(**changes), folder).close()


@cache
def gaps() -> Dataset:
    """Inputs of which one is not finite, so that it fails, and some have no label."""
    x = np.stack([data()[i][0].numpy() for i in range(12)])
    x[4, 2] = np.nan
    return load_dataset(x, labels=["left", "", "right"] * 4)


def of_a_density(folder: Path) -> None:
    """A law that only a file gives, in the run as a table."""
    code = folder.parent / "law.py"
    code.write_text("from scipy import stats\nlaw = stats.logistic(scale=0.25).logpdf\n")
    law = noise.parse(f"{code}:law")
    certify_run(job(noise=law, norms=(l1,)), folder).close()


SMALL, LARGE = noise.gaussian(sigma=0.4), noise.gaussian(sigma=0.8)
CHOICE = Selector(noise.gaussian(sigma=0.6), (SMALL, LARGE))


@cache
def selective() -> Classifier:
    """Two classifiers, and what says which of them answers."""
    far = load_classifier(lambda batch: (batch[:, 1] > 0.3).long(), num_classes=2)
    return Selective(far, (model(), model()))


ROUND = noise.spherical_gg(k=1, sigma=0.5, dim=DIM)
SPLIT = {"classifier": bright, "data": images, "noise": noise.splitting(scale=64 / 255), "skip": 1}
KINDS: dict[str, Callable[[Path], object]] = {
    "fixed": run_of(),
    "committed": committed,
    "seed": run_of(seed=5),
    "real": run_of(lattice=None, norms=(l2,)),
    "laplace": run_of(noise=noise.laplace(sigma=0.5), norms=(l1,), searched=True),
    "randomised": run_of(plan=replace(PLAN, rule=Randomised())),
    "target": run_of(plan=replace(PLAN, rule=Target(0.05))),
    "pilot": run_of(plan=replace(PLAN, rule=Pilot(0.01))),
    "three": run_of(plan=replace(PLAN, rule=ThreeTests())),
    "i_opt": searched,
    "keep": lambda folder: i_opt_run(
        job(norms=(linf,)),
        IOpt(
            Grid.around(noise.gaussian(sigma=0.5), "gaussian", (Axis("sigma", 0.25, 1, 2.0),)),
            keep=True,
        ),
        folder,
    ),
    "failures": lambda folder: certify_run(job(data=gaps()), folder).close(),
    "density": of_a_density,
    "selector": lambda folder: certify_run(
        job(CHOICE.fit(PLAN), classifier=selective(), noise=CHOICE.noise, norms=(l2,)), folder
    ).close(),
    "two_laws": run_of(plan=TwoLawVotes(0.5).fit(PLAN), noise=ROUND, norms=(l2,)),
    "offsets": lambda folder: certify_run(
        job(
            plan=Offsets().fit(Plan(n=300)),
            norms=(l1,),
            **{k: v() if callable(v) else v for k, v in SPLIT.items()},
        ),
        folder,
    ).close(),
}  # fmt: skip


@dataclass(frozen=True)
class Auditor:
    """What was told before: commitment, and nonce or seed."""

    classifier: Classifier
    data: Dataset
    commitment: str
    nonce: str | None
    seed: int | None

    def accepts(self, folder: Path) -> bool:
        """Whether nothing is found, every input sampled again."""
        try:
            with Run(folder) as run:
                spec = run.spec
                told = (spec.commitment, spec.nonce, spec.seed)
                if told != (self.commitment, self.nonce, self.seed):
                    return False
                if list(verify(run, data=self.data, model=self.classifier)):
                    return False
                again = replay(run, self.classifier, self.data, len(self.data))
                return all(text is None for _, text in again)
        except UnicrError:
            return False


def shown(folder: Path) -> object:
    """All that a reader is shown of a run: certificates, settings, scores."""
    try:
        with Run(folder) as run:
            spec, rows = run.spec, list(run.rows())
            lines = [{k: v for k, v in one.items() if k not in UNSEEN} for one in table(run)]
            scores = [
                (s.certified_accuracy(0.1), s.average_radius, s.accuracy_bound(0.0, 0.001))
                for s in (scores_of(rows, p, "", spec.plan.alpha) for p in spec.norm_texts)
            ] if spec.plan.alpha else []  # fmt: skip
            about = (spec.decides, spec.norm_texts, spec.inputs_text, spec.draw_text)
            return json.dumps([lines, about, scores], default=str)
    except (UnicrError, *UNREADABLE) as error:
        return str(error)


@cache
def folder_of(kind: str, place: Path) -> Path:
    KINDS[kind](place / kind)
    return place / kind


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kinds")


PARTS: dict[str, Callable[[], tuple[Classifier, Dataset]]] = {
    "offsets": lambda: (bright(), images()),
    "failures": lambda: (model(), gaps()),
    "selector": lambda: (selective(), data()),
}


def auditor_of(kind: str, folder: Path) -> Auditor:
    with Run(folder) as run:
        spec = run.spec
    which = PARTS.get(kind, lambda: (model(), data()))()
    return Auditor(*which, spec.commitment, spec.nonce, spec.seed)


def edit(folder: Path, rng: random.Random) -> str:
    """Change, remove or double something in the settings or the results."""
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.row_factory = sqlite3.Row
        name = rng.choice(["spec", "results", "results"])
        row = dict(rng.choice(db.execute(f"SELECT * FROM {name}").fetchall()))
        key = "key" if name == "spec" else "idx"
        field = "value" if name == "spec" else rng.choice(sorted(row))
        if rng.random() < 0.06:
            db.execute(f"DELETE FROM {name} WHERE {key} = ?", (row[key],))
            return f"{name} {row[key]} is gone"
        try:
            change = f"UPDATE {name} SET {field} = ? WHERE {key} = ?"
            db.execute(change, (mutated(row[field], rng), row[key]))
        except sqlite3.IntegrityError:
            return "nothing"
        return f"{name} {row[key]} {field}"


def try_edits(kind: str, place: Path, tmp_path: Path, count: int, seed: int) -> None:
    real = folder_of(kind, place)
    auditor = auditor_of(kind, real)
    before = shown(real)
    assert auditor.accepts(real)
    rng = random.Random(f"{kind} {seed}")
    for number in range(count):
        folder = tmp_path / str(number)
        shutil.copytree(real, folder)
        changed = edit(folder, rng)
        reseal(folder)
        if shown(folder) != before:
            assert not auditor.accepts(folder), f"{kind}: {changed} was accepted"
        shutil.rmtree(folder)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "two_laws"])  # slow curves
def test_no_edit_that_a_reader_could_see_is_accepted(
    kind: str, place: Path, tmp_path: Path
) -> None:
    try_edits(kind, place, tmp_path, 6, 0)


@pytest.mark.slow
@pytest.mark.important
@pytest.mark.parametrize("kind", KINDS)
def test_four_hundred_edits(kind: str, place: Path, tmp_path: Path) -> None:
    """25 in each of 16 kinds of run: 400."""
    try_edits(kind, place, tmp_path, 25, 1)


def cut_short(kind: str, place: Path, folder: Path) -> Path:
    """A run that was killed before its last input."""
    shutil.copytree(folder_of(kind, place), folder)
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.execute("DELETE FROM sealed")
        db.execute("DELETE FROM results WHERE idx = (SELECT MAX(idx) FROM results)")
    return folder


def try_to_finish(kind: str, place: Path, tmp_path: Path, count: int) -> None:
    """An auditor accepts no run that was cut short, whatever is changed in it and then sealed."""
    real = cut_short(kind, place, tmp_path / "cut")
    auditor, rng = auditor_of(kind, real), random.Random(f"{kind} cut")
    assert not auditor.accepts(real)
    for number in range(count):
        folder = Path(shutil.copytree(real, tmp_path / str(number)))
        changed = [edit(folder, rng) for _ in range(number % 3)]
        reseal(folder)
        assert not auditor.accepts(folder), f"{kind}: {changed} was accepted"
        shutil.rmtree(folder)


@pytest.mark.parametrize("kind", ["fixed", "committed", "i_opt", "selector"])
def test_no_edit_finishes_a_run_that_was_cut_short(kind: str, place: Path, tmp_path: Path) -> None:
    try_to_finish(kind, place, tmp_path, 4)


@pytest.mark.slow
@pytest.mark.important
@pytest.mark.parametrize("kind", KINDS)
def test_no_edit_finishes_any_run_that_was_cut_short(
    kind: str, place: Path, tmp_path: Path
) -> None:
    try_to_finish(kind, place, tmp_path, 12)


def test_a_row_with_a_negative_number_is_told(place: Path, tmp_path: Path) -> None:
    """Found by the forger: the data was asked for it, and raised."""
    folder = Path(shutil.copytree(folder_of("fixed", place), tmp_path / "run"))
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.execute("UPDATE results SET idx = -2 WHERE idx = 8")
    reseal(folder)
    with Run(folder) as run:
        texts = [one.text for one in verify(run, data=data(), model=model())]
    assert "the data has 12 inputs only" in texts


INFORMED = {
    "classes swapped": (
        'UPDATE spec SET value = \'["right", "left", "far"]\' WHERE key = \'classes\''
    ),
    "another split": "UPDATE spec SET value = '\"train\"' WHERE key = 'split'",
    "searched": "UPDATE spec SET value = 'true' WHERE key = 'searched'",
    "another batch": "UPDATE spec SET value = '8' WHERE key = 'batch'",
    "another part of the model": (
        "UPDATE spec SET value = '{\"model\": \"00\"}' WHERE key = 'model_digests'"
    ),
    "a radius higher by 1e-9": (
        "UPDATE results SET claims = json_set(claims, '$.radii[0].radius', "
        "json_extract(claims, '$.radii[0].radius') * (1 + 1e-9)) "
        "WHERE json_extract(claims, '$.radii[0].radius') > 0"
    ),
    "a lower max without the last row": (
        "UPDATE spec SET value = '4' WHERE key = 'max'; DELETE FROM results WHERE idx = 8"
    ),
    "a nonce said to be given": "UPDATE spec SET value = '\"given\"' WHERE key = 'nonce_origin'",
    "a requirement made afterwards": (
        "UPDATE spec SET value = '[\"accuracy(2, 0.1) >= 0.1\"]' WHERE key = 'require'"
    ),
    "a norm less": (
        "UPDATE spec SET value = '[\"2\"]' WHERE key = 'norms'; "
        "UPDATE results SET claims = json_remove(claims, '$.radii[1]')"
    ),
}


@pytest.mark.parametrize("name", INFORMED)
def test_the_fields_of_the_review(name: str, place: Path, tmp_path: Path) -> None:
    real = folder_of("fixed", place)
    folder = Path(shutil.copytree(real, tmp_path / "run"))
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.executescript(INFORMED[name])
    reseal(folder)
    assert shown(folder) != shown(real)
    assert not auditor_of("fixed", real).accepts(folder)
    if name in ("classes swapped", "another part of the model"):  # also who was told nothing
        assert not auditor_of("fixed", folder).accepts(folder)


def test_a_removed_seal_of_a_finished_run_is_refused(place: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folder_of("fixed", place), tmp_path / "run"))
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.execute("DELETE FROM sealed")
    with Run(folder) as run:
        assert ["there is no seal" in one.text for one in verify(run)] == [True]
        run_rows = len(list(run.rows()))
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.execute("DELETE FROM results WHERE idx = 8")  # interrupted: no seal is due
    with Run(folder) as run:
        assert ["have no result" in one.text for one in verify(run)] == [True]
        assert len(list(run.rows())) == run_rows - 1


def test_commands_refuse_a_broken_seal_and_show_it_marked(
    place: Path, tmp_path: Path, capsys: Any
) -> None:
    from unicr.cli import app

    folder = Path(shutil.copytree(folder_of("fixed", place), tmp_path / "run"))
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.execute("UPDATE results SET seconds = 9.0")
    out = str(tmp_path / "x.jsonl")
    for words in (["score", str(folder)], ["export", str(folder), "-o", out],
                  ["report", str(folder), "-o", str(tmp_path / "x.html")]):  # fmt: skip
        with pytest.raises(RunError, match="changed after it was sealed"):
            app(words, exit_on_error=False, print_error=False)
    capsys.readouterr()
    app(["score", str(folder), "--force"], exit_on_error=False, print_error=False)
    told = capsys.readouterr()
    assert "SEAL BROKEN" in told.out
    assert "the first 5 of one in 2 of 12 inputs; noise from nonce" in told.err
    app(["export", str(folder), "-o", out, "--force"], exit_on_error=False, print_error=False)
    assert "SEAL BROKEN" in capsys.readouterr().err


# The grinder


def test_a_thousand_tries_after_the_commitment_gain_nothing() -> None:
    """All that may still be chosen leaves the key as it is; all else is another commitment."""
    base = job(nonce=NONCE).spec
    key, rng = stream_key(base.commitment, NONCE), random.Random(1)
    keys, commitments = set(), set()
    for number in range(500):
        word = hashlib.sha256(rng.randbytes(8)).hexdigest()[: rng.randrange(1, 40)]
        free: dict[str, Any] = {
            "model": word, "data": word + ".npz", "loading": {"weights": word},
            "reading": {"labels": word},
        }  # fmt: skip
        name = rng.choice(sorted(free))
        tried = replace(base, **{name: free[name]})
        keys.add(stream_key(tried.commitment, NONCE))
        law = noise.gaussian(sigma=0.5 * (1 + (number + 1) * 2.0**-50))
        decided: dict[str, Any] = {
            "noise": law, "batch": number + 2, "skip": number + 3, "max": number + 6,
            "inputs": hashlib.sha256(word.encode()).hexdigest(), "classes": (word, "b"),
            "plan": replace(PLAN, n=301 + number), "require": (f"accuracy(2, 0.{number}1) >= 0.5",),
        }  # fmt: skip
        name = rng.choice(sorted(decided))
        commitments.add(replace(base, **{name: decided[name]}).commitment)
    assert keys == {key}
    assert base.commitment not in commitments
    assert noise.parse("gaussian(sigma=.5)") == noise.parse("gaussian(sigma=5e-1)")


def test_another_run_than_the_committed_one_is_not_made(tmp_path: Path) -> None:
    write_commitment(job(nonce=NONCE), tmp_path)
    found = read_commitment(tmp_path)
    assert found is not None
    content = (tmp_path / "commitment.json").read_bytes()
    assert found[0] == hashlib.sha256(content).hexdigest()
    with pytest.raises(RunError, match="give --nonce"):
        certify_run(job(), tmp_path)
    for changed in ({"noise": noise.gaussian(sigma=0.5000001)}, {"limit": 4}, {"norms": (l2,)}):
        with pytest.raises(RunError, match=r"not the one that .* commits to"):
            certify_run(job(nonce=NONCE, **changed), tmp_path)
    with pytest.raises(RunError, match="made only once"):
        write_commitment(job(nonce=NONCE), tmp_path)
    certify_run(job(nonce=NONCE), tmp_path).close()
    with Run(tmp_path) as run:
        assert list(verify(run)) == []
        assert run.spec.commitment == found[0]
    (tmp_path / "commitment.json").write_bytes(content.replace(b'"skip":2', b'"skip":3'))
    with Run(tmp_path) as run:
        assert any("commits to another run" in one.text for one in verify(run))


def test_a_commitment_has_the_layout_of_passes_that_was_measured(tmp_path: Path) -> None:
    """Found by reading: a network for which channels-last is faster could not be run after."""
    write_commitment(job(nonce=NONCE, batch=64, channels_last=True), tmp_path)
    certify_run(job(nonce=NONCE), tmp_path).close()
    with Run(tmp_path) as run:
        assert (run.spec.batch, run.spec.channels_last) == (64, True)


@pytest.mark.usefixtures("one_thread")
def test_drawing_again_pays_where_the_nonce_is_the_authors_and_only_there() -> None:
    """200 tries with nonces of one's own move the votes by about 2.7 standard deviations; with the
    nonce given after the commitment every try has the same votes.
    """

    def votes(nonce: str) -> int:
        g = VoteCounter(
            model(), noise.gaussian(sigma=0.5), num_classes=3, nonce=nonce, batch=200,
            commitment=job(nonce=NONCE).spec.commitment,
        )  # fmt: skip
        return int(g.votes(torch.full((DIM,), 0.1), 200, start=0)[1])

    own = [votes(hashlib.sha256(str(i).encode()).hexdigest()) for i in range(200)]
    given = {votes(NONCE) for _ in range(20)}
    mean = 200 * 0.5792597  # Φ(0.1/0.5)
    # P(no one of 200 beyond two standard deviations) < 0.98^200 < 0.02; seeds are fixed
    assert max(own) > mean + 2 * np.sqrt(mean * 0.42)
    assert len(given) == 1
