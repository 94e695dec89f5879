"""Signed and dated runs: the walk of docs/howto-audit.md with two folders, and forgeries."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT
from tests.runs.authority import authority, openssl
from tests.runs.forging import reseal
from unicr.cli import app
from unicr.errors import RunError
from unicr.runs import Run, check_signature, check_stamp, compute_seals, evidence, read_commitment

pytestmark = pytest.mark.skipif(
    shutil.which("ssh-keygen") is None or shutil.which("openssl") is None,
    reason="ssh-keygen and openssl are needed",
)
AUTHORITY = "CN=Test authority, certified by CN=Test root"
ADDRESS = "https://tsa.example/"  # as the page writes it


def unicr(*words: object) -> object:
    return app([str(word) for word in words], exit_on_error=False, print_error=False)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Everything that the page says, done in one folder, with an authority of our own."""
    place = tmp_path_factory.mktemp("people")
    page = (ROOT / "docs/howto-audit.md").read_text()
    section = page[page.index("Alice commits") : page.index("### What checks which field")]
    lines = [
        line
        for block in re.findall(r"^```sh\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
        for line in block.replace("\\\n", " ").splitlines()
    ]
    assert [line.split()[:2] for line in lines if line.startswith("unicr")] == [
        ["unicr", word] for word in ("commit", "certify", "seal", "verify")
    ]
    keys = tmp_path_factory.mktemp("authority")
    with pytest.MonkeyPatch.context() as patch, authority(keys) as address:
        patch.chdir(place)
        shutil.copy(keys / "ca.pem", place / "roots.pem")
        for line in lines:
            words = shlex.split(line.replace(ADDRESS, address))
            if words[0] == "unicr":
                assert unicr(*words[1:]) in (None, 0), line
            else:
                subprocess.run(words, check=True)
        (place / "address").write_text(address)
        yield place


def checks(place: Path, folder: Path) -> list[object]:
    return ["verify", folder, "--key", place / "alice.pub", "--timestamp-ca", place / "roots.pem"]


def test_the_page_works(place: Path, capsys: Any) -> None:
    folder, roots = place / "bob-copy", place / "roots.pem"
    capsys.readouterr()
    assert unicr(*checks(place, folder)) == 0
    said = capsys.readouterr().out
    assert "statement.json is signed with" in said
    dates = [check_stamp(folder / name, roots) for name in ("commitment.json", "statement.json")]
    assert dates[0].time <= dates[1].time
    assert {one.authority for one in dates} == {AUTHORITY}
    committed = read_commitment(folder)
    assert committed is not None
    assert f"commitment: {committed[0]}" in said
    assert "received after the commitment" in said


def test_others_programs_check_signature_and_date(place: Path, tmp_path: Path) -> None:
    """ssh-keygen and openssl by themselves, on the files as they are."""
    folder = place / "bob-copy"
    people = tmp_path / "people"
    people.write_text(f"alice {(place / 'alice.pub').read_text()}")
    for name in ("commitment.json", "statement.json"):
        with (folder / name).open("rb") as content:
            subprocess.run(
                ["ssh-keygen", "-Y", "verify", "-f", people, "-I", "alice", "-n", "unicr", "-s",
                 folder / f"{name}.sig"], stdin=content, check=True, capture_output=True,
            )  # fmt: skip
        subprocess.run(
            ["openssl", "ts", "-verify", "-data", folder / name, "-in", folder / f"{name}.tsr",
             "-CAfile", place / "roots.pem"], check=True, capture_output=True,
        )  # fmt: skip
    statement = json.loads((folder / "statement.json").read_text())
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    stated = {one["name"]: one["digest"] for one in statement["subject"]}
    assert stated["run.sqlite"] == {"unicr-seal": compute_seals(folder)["run.sqlite"]}
    assert set(stated) == {
        "run.sqlite", "commitment.json", "commitment.json.sig", "commitment.json.tsr"
    }  # fmt: skip


@pytest.fixture
def copy(place: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(place / "bob-copy", tmp_path / "run"))


@pytest.mark.parametrize("name", ["commitment.json", "commitment.json.sig", "statement.json.sig"])
def test_a_file_that_is_removed_is_noticed(place: Path, copy: Path, name: str) -> None:
    (copy / name).unlink()
    assert unicr(*checks(place, copy)) == 1


def test_attacks_that_are_removed_or_added_are_noticed(place: Path, copy: Path) -> None:
    unicr("attack", copy, "--attack", "gaussian", "--factor", "1", "--samples", "4",
          "--votes", "50", "--effort", "0.2")  # fmt: skip
    assert unicr(*checks(place, copy)) == 1
    unicr("seal", copy, "--key", place / "alice", "--timestamp", (place / "address").read_text())
    assert unicr(*checks(place, copy)) == 0
    (copy / "attacks.sqlite").unlink()
    assert unicr(*checks(place, copy)) == 1


def test_changed_and_foreign_signatures_are_refused(place: Path, copy: Path, capsys: Any) -> None:
    key = copy.parent / "mallory"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    check = ["verify", copy, "--key", place / "alice.pub"]
    assert unicr(*check) == 0
    capsys.readouterr()
    assert unicr("verify", copy, "--key", f"{key}.pub") == 1
    assert "was signed with another key, or was changed afterwards" in capsys.readouterr().out
    with closing(sqlite3.connect(copy / "run.sqlite")) as db, db:
        db.execute("UPDATE results SET seconds = seconds + 1 WHERE idx = 0")
    assert unicr(*check) == 1
    with pytest.raises(RunError, match=r"mallory is a private key: pass the public one"):
        unicr("verify", copy, "--key", key)
    with pytest.raises(RunError, match=r"cannot read the key .*nobody\.pub"):
        unicr("verify", copy, "--key", copy.parent / "nobody.pub")
    unicr("seal", copy, "--key", key)  # sealed and signed again, by somebody else
    assert unicr(*check) == 1
    with pytest.raises(RunError, match="another key"):
        check_signature(copy / "statement.json", place / "alice.pub")
    with pytest.raises(RunError, match="ssh-keygen: "):
        unicr("seal", copy, "--key", copy.parent / "nobody")


def test_dates_of_others_and_of_other_files_are_refused(
    place: Path, copy: Path, tmp_path: Path
) -> None:
    keys = tmp_path / "other"
    keys.mkdir()
    with authority(keys) as address:
        unicr("seal", copy, "--timestamp", address)
    for name, roots in (
        ("statement.json", place / "roots.pem"),
        ("commitment.json", keys / "ca.pem"),
    ):
        with pytest.raises(RunError, match="is not valid"):
            check_stamp(copy / name, roots)
    assert check_stamp(copy / "statement.json", keys / "ca.pem").authority == AUTHORITY
    shutil.copy(copy / "commitment.json.tsr", copy / "statement.json.tsr")
    with pytest.raises(RunError, match="is not valid"):
        check_stamp(copy / "statement.json", place / "roots.pem")
    (copy / "statement.json.tsr").write_bytes(b"no answer")
    with pytest.raises(RunError, match="cannot check a time stamp"):
        check_stamp(copy / "statement.json", place / "roots.pem")
    with pytest.raises(RunError, match="did not give a time stamp"):
        unicr("seal", copy, "--timestamp", "http://127.0.0.1:9/")


def test_the_authority_that_dated_is_named_among_several_believed(
    place: Path, copy: Path, tmp_path: Path
) -> None:
    """The first root of the file was named, whoever had signed."""
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", tmp_path / "k", "-out",
            tmp_path / "first.pem", "-days", 9, "-subj", "/CN=Somebody else")  # fmt: skip
    both = tmp_path / "both.pem"
    both.write_bytes((tmp_path / "first.pem").read_bytes() + (place / "roots.pem").read_bytes())
    assert check_stamp(copy / "statement.json", both).authority == AUTHORITY


def test_evidence_names_nobody_who_signed_another_run(copy: Path) -> None:
    """A run put beside the commitment and the statement that somebody signed for another."""

    def told() -> dict[str, Any]:
        with Run(copy) as run:
            return evidence(run)["signatures"]

    before = told()
    assert set(before) == {"commitment.json", "statement.json"}
    assert all(one["about_this_run"] and one["signer"] and one["dated"] for one in before.values())
    nobody = {"about_this_run": False, "signer": None, "dated": None}
    with closing(sqlite3.connect(copy / "run.sqlite")) as db, db:
        db.execute("UPDATE results SET seconds = seconds + 1 WHERE idx = 0")
    reseal(copy)
    assert told() == {**before, "statement.json": nobody}
    with closing(sqlite3.connect(copy / "run.sqlite")) as db, db:
        db.execute("UPDATE spec SET value = '[]' WHERE key = 'require'")
    reseal(copy)
    assert told() == dict.fromkeys(before, nobody)


def test_a_run_dated_before_its_commitment_is_told(place: Path, copy: Path, capsys: Any) -> None:
    from unicr.runs import stamp

    stamp(copy / "commitment.json", (place / "address").read_text())
    capsys.readouterr()
    assert unicr(*checks(place, copy)) == 1
    assert "the commitment was dated after the run" in capsys.readouterr().out


def test_a_seal_that_was_told_is_compared(place: Path) -> None:
    seal = compute_seals(place / "alice-run")["run.sqlite"]
    assert unicr("verify", place / "bob-copy", "--seal", seal.upper()) == 0
    assert unicr("verify", place / "bob-copy", "--seal", "0" * 64) == 1


def test_a_commitment_or_nonce_that_was_told_is_compared(place: Path) -> None:
    folder = place / "bob-copy"
    committed = read_commitment(folder)
    assert committed is not None
    assert unicr("verify", folder, "--commitment", committed[0].upper()) == 0
    assert unicr("verify", folder, "--commitment", "0" * 64) == 1
    assert unicr("verify", folder, "--nonce", "0" * 64) == 1
