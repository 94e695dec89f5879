"""Runs that meet trouble: failures done again, more inputs, read-only places, dead workers."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from unicr.classifier import load_classifier
from unicr.cli import app
from unicr.data import load_dataset
from unicr.errors import RunError
from unicr.noise import gaussian
from unicr.runs import Job, Run, certify_run, execute, load_scores, verify
from unicr.smoothing import Plan, read_norms

trouble: dict[str, BaseException] = {}


def moody(batch: torch.Tensor) -> torch.Tensor:
    """Fails on every second input in the way that `trouble` says."""
    if len(batch) > 2 and trouble and float(batch[:, 1].mean()) > 500:
        raise trouble["now"]
    return (batch[:, 0] > 0).long()


def job(count: int = 6, **changes: Any) -> Job:
    x = np.random.default_rng(0).normal(size=(count, 4)).astype(np.float32)
    x[1::2, 1] = 1000
    settings: dict[str, Any] = {
        "seed": 0,
        "classifier": load_classifier(moody, num_classes=2),
        "data": load_dataset((x, (x[:, 0] > 0).astype(np.int64))),
        "noise": gaussian(sigma=0.5),
        "norms": read_norms([2]),
        "plan": Plan(n=200),
        **changes,
    }
    return Job(**settings)


def states(folder: Path) -> list[str]:
    with Run(folder) as run:
        return [row.status for row in run.rows()]


@pytest.mark.parametrize(
    ("error", "environment"),
    [
        (MemoryError("no room"), True),
        (OSError(28, "No space left on device"), True),
        (torch.cuda.OutOfMemoryError("CUDA out of memory"), True),
        (RuntimeError("the model does not like it"), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_failures_of_the_environment_are_done_again(
    tmp_path: Path, error: BaseException, environment: bool
) -> None:
    trouble["now"] = error
    certify_run(job(), tmp_path / "run").close()
    assert states(tmp_path / "run").count("failed") == 3
    trouble.clear()
    certify_run(job(), tmp_path / "run", resume=True).close()
    assert states(tmp_path / "run").count("failed") == (0 if environment else 3)
    certify_run(job(), tmp_path / "run", retry_failed=True).close()
    assert "failed" not in states(tmp_path / "run")
    with Run(tmp_path / "run") as run:
        assert list(verify(run)) == []


def test_a_larger_max_goes_on_and_a_smaller_one_is_refused(tmp_path: Path) -> None:
    certify_run(job(limit=2), tmp_path / "run").close()
    certify_run(job(limit=4), tmp_path / "run", resume=True).close()
    assert len(states(tmp_path / "run")) == 4
    with pytest.raises(RunError, match="max: 4 there, 3 now"):
        certify_run(job(limit=3), tmp_path / "run", resume=True)
    certify_run(job(), tmp_path / "run", resume=True).close()
    with Run(tmp_path / "run") as run:
        assert run.spec.max is None
        assert list(verify(run)) == []
    with pytest.raises(RunError, match="max: None there, 4 now"):
        certify_run(job(limit=4), tmp_path / "run", resume=True)


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\x00", b"no database" * 99])
def test_files_that_are_no_runs(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run.sqlite").write_bytes(content)
    with pytest.raises(RunError, match=r"is empty|cannot open|has no table"):
        Run(tmp_path)
    for words in (["verify"], ["score"], ["seal"], ["export", "-o", "x.tsv"]):
        with pytest.raises(RunError):
            app([words[0], str(tmp_path), *words[1:]], exit_on_error=False, print_error=False)
    assert [path.name for path in tmp_path.iterdir()] == ["run.sqlite"]


def listing(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {p.name: (p.stat().st_mtime_ns, p.read_bytes()) for p in folder.iterdir()}


def read_all(folder: Path, out: Path) -> None:
    """Everything that only reads a run."""
    assert app(["verify", str(folder)], exit_on_error=False, print_error=False) == 0
    load_scores([folder], None)
    for end in ("tsv", "jsonl"):
        app(["export", str(folder), "-o", str(out / f"run.{end}")], exit_on_error=False)
    app(["seal", str(folder)], exit_on_error=False)


def test_reading_leaves_a_folder_as_it_is(tmp_path: Path) -> None:
    certify_run(job(), tmp_path / "run").close()
    before = listing(tmp_path / "run")
    read_all(tmp_path / "run", tmp_path)
    assert listing(tmp_path / "run") == before


@contextmanager
def somebody_else() -> Iterator[None]:
    """Without the rights of root, which may write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("killed", [False, True])
def test_a_run_without_write_permission_is_read(tmp_path: Path, killed: bool) -> None:
    """Also one whose writer was killed, so that its log holds what its file does not."""
    certify_run(job(), tmp_path / "run").close()
    read_all(tmp_path / "run", tmp_path)  # everything is imported before the rights go
    place = Path(tempfile.mkdtemp())
    try:
        place.chmod(0o755)
        folder, out = place / "run", place / "out"
        folder.mkdir()
        out.mkdir(mode=0o777)
        out.chmod(0o777)
        if killed:
            with Run(tmp_path / "run", create=True) as writer:
                writer.add(next(iter(writer.rows())))
                writer.set_seal()
                for file in (tmp_path / "run").iterdir():
                    if not file.name.endswith("-shm"):
                        shutil.copyfile(file, folder / file.name)
            assert (folder / "run.sqlite-wal").stat().st_size > 0
        else:
            shutil.copyfile(tmp_path / "run/run.sqlite", folder / "run.sqlite")
        folder.chmod(0o555)
        before = listing(folder)
        with somebody_else():
            with pytest.raises(OSError, match="denied"):
                (folder / "x").touch()
            read_all(folder, out)
            with pytest.raises(RunError, match=r"cannot (open|write)"):
                certify_run(job(), folder, resume=True)
            with pytest.raises(RunError, match="cannot write"):
                app(["export", str(folder), "-o", str(folder / "x.tsv")], exit_on_error=False)
        assert listing(folder) == before
    finally:
        shutil.rmtree(place)


@pytest.mark.slow
@pytest.mark.important
def test_a_worker_killed_by_one_input_costs_that_input_only(tmp_path: Path) -> None:
    """Three workers die of it, then it is marked; the others are done, and --resume tries again."""
    flag, file = tmp_path / "deadly", tmp_path / "model.py"
    flag.touch()
    file.write_text(
        "import os\n"
        "def classify(batch):\n"
        "    deadly = len(batch) > 2 and float(batch[:, 1].mean()) > 500\n"
        f"    if deadly and os.path.exists({str(flag)!r}):\n"
        "        os._exit(1)\n"
        "    return (batch[:, 0] > 0).long()\n"
    )
    x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    x[2, 1] = 1000
    arguments: dict[str, Any] = {"spec": f"{file}:classify", "num_classes": 2}
    settings: dict[str, Any] = {
        "classifier": load_classifier(**arguments),
        "data": load_dataset((x, (x[:, 0] > 0).astype(np.int64))),
        "model_arguments": arguments,
    }
    certify_run(job(**settings, workers=2), tmp_path / "run").close()
    with Run(tmp_path / "run") as run:
        rows = list(run.rows())
    assert [row.idx for row in rows if row.status == "failed"] == [2]
    assert rows[2].reason == "environment: 3 workers died of this task"
    flag.unlink()
    certify_run(job(**settings), tmp_path / "run", resume=True).close()
    certify_run(job(**settings), tmp_path / "whole").close()
    with Run(tmp_path / "run") as run, Run(tmp_path / "whole") as whole:
        ours, theirs = list(run.rows()), list(whole.rows())
    assert [row.certificate for row in ours] == [row.certificate for row in theirs]


class Stillborn:
    """Work whose process dies while it is opened."""

    def open(self) -> Any:
        os._exit(1)


def test_workers_that_die_as_they_start_are_a_clear_error() -> None:
    with pytest.raises(RunError, match=r"died as it started .*--resume"):
        list(execute(Stillborn(), range(3), workers=1))


def test_a_command_that_is_refused_leaves_the_seal(tmp_path: Path) -> None:
    certify_run(job(), tmp_path / "run").close()
    before = sealed_as(tmp_path / "run")
    assert before is not None
    with pytest.raises(RunError, match="already contains a run"):
        certify_run(job(), tmp_path / "run")
    with pytest.raises(RunError, match="other settings"):
        certify_run(job(seed=5), tmp_path / "run", resume=True)
    assert sealed_as(tmp_path / "run") == before
    certify_run(job(), tmp_path / "run", resume=True).close()
    assert sealed_as(tmp_path / "run") == before
    with sqlite3.connect(tmp_path / "run/run.sqlite") as db:
        db.execute("UPDATE results SET label = 1 - label")
    db.close()
    with pytest.raises(RunError, match="changed after it was sealed"):
        certify_run(job(), tmp_path / "run", resume=True)


def sealed_as(folder: Path) -> str | None:
    with Run(folder) as run:
        return run.stored_seal()


def test_a_corrupt_row_does_not_hide_the_others(tmp_path: Path, capsys: Any) -> None:
    certify_run(job(), tmp_path / "run").close()
    with sqlite3.connect(tmp_path / "run/run.sqlite") as db:
        db.execute("UPDATE results SET transcript = 'many' WHERE idx = 1")
        db.execute("UPDATE results SET claims = json_set(claims, '$.p_a', 0.999) WHERE idx = 4")
    db.close()
    with Run(tmp_path / "run") as run:
        assert [p.idx for p in verify(run)] == [None, 1, 4]
    assert app(["verify", str(tmp_path / "run")], exit_on_error=False) == 1
    assert "certificates recomputed from their votes: 2 do not hold" in capsys.readouterr().out
    with pytest.raises(RunError, match="input 1"):
        load_scores([tmp_path / "run"], None)
