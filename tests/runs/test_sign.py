"""Signed runs: the walk-through of docs/howto-audit.md with two people's folders, and forgeries."""

from __future__ import annotations

import re
import shlex
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from unicr.cli import app
from unicr.errors import RunError
from unicr.runs import seals, signed_by

needs_ssh = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is missing")


def unicr(*words: object) -> object:
    return app([str(word) for word in words], exit_on_error=False, print_error=False)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that the page says, done in one folder."""
    place = tmp_path_factory.mktemp("people")
    page = (ROOT / "docs/howto-audit.md").read_text()
    section = page[page.index("Alice certifies") : page.index("### What checks which field")]
    lines = [
        line
        for block in re.findall(r"^```sh\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
        for line in block.splitlines()
    ]
    assert [line.split()[0] for line in lines] == ["ssh-keygen", "unicr", "unicr", "cp", "unicr"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for line in lines:
            words = shlex.split(line)
            if words[0] == "unicr":
                assert unicr(*words[1:]) in (None, 0), line
            else:
                subprocess.run(words, check=True)
    return place


@needs_ssh
def test_the_page_works(place: Path) -> None:
    assert signed_by(place / "bob-copy", place / "alice.pub") == seals(place / "alice-run")


@needs_ssh
def test_changed_and_foreign_signatures_are_refused(place: Path, tmp_path: Path) -> None:
    folder, key = tmp_path / "run", tmp_path / "mallory"
    shutil.copytree(place / "bob-copy", folder)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    check = ["verify", folder, "--key", place / "alice.pub"]
    assert unicr(*check) == 0
    assert unicr("verify", folder, "--key", f"{key}.pub") == 1
    with closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.execute("UPDATE results SET seconds = seconds + 1 WHERE idx = 0")
    assert unicr(*check) == 1
    unicr("seal", folder, "--key", key)  # sealed and signed again, by somebody else
    assert unicr(*check) == 1
    with pytest.raises(RunError, match="ssh-keygen"):
        signed_by(folder, place / "alice.pub")
    text = (folder / "run.sig").read_text()
    (folder / "run.sig").write_text(text.replace("run.sqlite ", "run.sqlite  "))
    assert unicr("verify", folder, "--key", f"{key}.pub") == 1
    (folder / "run.sig").unlink()
    assert unicr(*check) == 1
    with pytest.raises(RunError, match="ssh-keygen"):
        unicr("seal", folder, "--key", tmp_path / "nobody")


def test_a_seal_that_was_told_is_compared(place: Path, tmp_path: Path) -> None:
    seal = seals(place / "alice-run")["run.sqlite"]
    assert unicr("verify", place / "bob-copy", "--seal", seal.upper()) == 0
    assert unicr("verify", place / "bob-copy", "--seal", "0" * 64) == 1
