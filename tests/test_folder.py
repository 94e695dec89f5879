"""Folders that work is written into: whole files, one writer at a time, settings that stay."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import pytest

from unicr.errors import ModelError, RunError
from unicr.folder import Folder, Lock, changes, refuse_changes, replace_file


def in_process(code: str, *arguments: object) -> subprocess.Popen[str]:
    """A process of its own that runs the code; it says a line when it has come to the place."""
    words = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)


HOLD = """
    import sys
    from pathlib import Path
    from unicr.folder import Lock
    Lock(Path(sys.argv[1])).take()
    print("held", flush=True)
    sys.stdin.read()
"""


def test_another_process_keeps_the_lock_until_it_ends_or_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    for end in (signal.SIGTERM, signal.SIGKILL):
        with in_process(HOLD, path) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            with pytest.raises(
                RunError, match=rf"run.sqlite is being written to .*\({other.pid}\)"
            ):
                Lock(path).take()
            other.send_signal(end)
        lock = Lock(path)
        lock.take()
        lock.release()
    assert list(tmp_path.iterdir()) == []


def test_one_owner_inside_a_process_and_nothing_held_twice(tmp_path: Path) -> None:
    first, second = Lock(tmp_path / "a"), Lock(tmp_path / "a")
    first.take()
    first.take()
    with pytest.raises(RunError, match="already being written to by this process"):
        second.take()
    Lock(tmp_path / "b").take()
    second.release()  # it has nothing to give back
    with pytest.raises(RunError, match="already being written to by this process"):
        second.take()
    first.release()
    second.take()
    second.release()


def test_a_child_that_outlives_its_killed_parent_keeps_nobody_out(tmp_path: Path) -> None:
    code = """
        import os, sys, time
        from pathlib import Path
        from unicr.folder import Lock
        Lock(Path(sys.argv[1])).take()
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
        print("held", flush=True)
        sys.stdin.read()
    """
    with in_process(code, tmp_path / "run") as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        try:
            with pytest.raises(RunError, match="another process"):
                Lock(tmp_path / "run").take()
            parent.kill()
            parent.wait()
            lock = Lock(tmp_path / "run")
            lock.take()
            lock.release()
        finally:
            for child in children:
                os.kill(int(child), signal.SIGKILL)


def test_a_disk_without_locks_can_be_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.lockf", refuse)
    first = Lock(tmp_path / "run")
    first.take()
    with pytest.raises(RunError, match="already being written to by this process"):
        Lock(tmp_path / "run").take()
    first.release()


def _count(path: Path, turns: int) -> None:
    """Add one to a number in a file, so many times, each under the lock."""
    lock = Lock(path)
    while turns:
        try:
            lock.take()
        except RunError:
            time.sleep(0.0002)
            continue
        value = int(path.read_text())
        time.sleep(0.0002)
        path.write_text(str(value + 1))
        lock.release()
        turns -= 1


def test_no_turn_is_lost_between_processes_that_take_and_release(tmp_path: Path) -> None:
    """The file of the lock is removed by each owner: nobody may hold a lock on a removed one."""
    path = tmp_path / "number"
    path.write_text("0")
    spawn = multiprocessing.get_context("fork")
    workers = [spawn.Process(target=_count, args=(path, 60)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert path.read_text() == "240"


def test_a_file_is_replaced_as_a_whole_or_stays(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_text("old")
    with suppress(ZeroDivisionError), replace_file(path) as file:
        file.write_text("half")
        raise ZeroDivisionError
    assert path.read_text() == "old"
    with replace_file(path) as file:
        assert file.suffix == ".onnx"
        file.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert [one.name for one in tmp_path.iterdir()] == ["model.onnx"]
    with (
        pytest.raises(ModelError, match="no folder"),
        replace_file(tmp_path / "no" / "x", ModelError),
    ):
        pass
    with (
        pytest.raises(ModelError, match=r"cannot write .*: No such file"),
        replace_file(path, ModelError),
    ):
        pass  # nothing was written


def test_settings_that_differ_are_named(tmp_path: Path) -> None:
    old = {"noise": "gaussian(sigma=1)", "n": 100, "shape": [3, 4], "date": 1}
    refuse_changes(tmp_path, old, {**old, "shape": (3, 4), "date": 2}, free={"date"})
    with pytest.raises(
        RunError, match=r"other settings \(n: 100 there, 50 now; seed: None there, 1"
    ):
        refuse_changes(tmp_path, old, {**old, "n": 50, "seed": 1})
    assert changes(old, old) == ""


def test_a_folder_goes_on_with_its_settings_only(tmp_path: Path) -> None:
    home = Folder(tmp_path / "deep" / "work", "a search", "search.json")
    with home.write():
        assert home.begin({"n": 1}, resume=False) is None
        home.note({"settings": {"n": 1}, "best": 0.5})
        with pytest.raises(RunError, match="already contains a search: use --resume"):
            home.begin({"n": 1}, resume=False)
        assert home.begin({"n": 1}, resume=True) == {"settings": {"n": 1}, "best": 0.5}
        with pytest.raises(RunError, match="n: 1 there, 2 now"):
            home.begin({"n": 2}, resume=True)
        with (
            pytest.raises(RunError, match="already being written to by this process"),
            home.write(),
        ):
            pass
    for text in ("{", "[]", '{"settings": 3}', "[" * 100_000):
        home.record.write_text(text)
        with pytest.raises(RunError, match="cannot read"):
            home.read()
    (tmp_path / "file").write_text("")
    home = Folder(tmp_path / "file", "a search", "search.json")
    with pytest.raises(RunError, match="cannot create the folder"), home.write():
        pass


KILLED = """
    import os, signal, sys
    from pathlib import Path
    from unicr.folder import Folder
    home, moves = Folder(Path(sys.argv[1]), "work", "record.json"), []
    move = os.replace
    def some(source, target):
        if len(moves) == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        moves.append(target)
        move(source, target)
    os.replace = some
    with home.write(), home.replace_files(remove=["gone"]) as fresh:
        (fresh / "below").mkdir()
        for name in ("a", "below/b", "record.json"):
            (fresh / name).write_text('{"settings": {"new": 1}}')
"""


@pytest.mark.parametrize("moment", range(4))
def test_a_kill_between_files_leaves_no_record_that_lies(tmp_path: Path, moment: int) -> None:
    """With a record all files are of one writing; what was left behind goes with the next one."""
    (tmp_path / "below").mkdir()
    for name in ("a", "below/b", "gone"):
        (tmp_path / name).write_text("old")
    (tmp_path / "record.json").write_text('{"settings": {"old": 1}}')
    with in_process(KILLED, tmp_path, moment) as process:
        process.communicate()
    assert process.returncode == (0 if moment == 3 else -signal.SIGKILL)
    home = Folder(tmp_path, "work", "record.json")
    record = home.read()
    texts = {(tmp_path / name).read_text() for name in ("a", "below/b")}
    if moment == 3:
        assert record == {"settings": {"new": 1}}
        assert texts == {json.dumps(record)}
        assert not (tmp_path / "gone").exists()
    else:
        assert record is None
    with home.write():
        assert not [one for one in tmp_path.iterdir() if one.name.startswith(".new-")]
