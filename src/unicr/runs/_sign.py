"""Seals of a folder, who stands behind them and since when: SSH signatures and time stamps.

`statement.json` is an in-toto statement: every file of the folder by name and digest, so that one
that is changed, removed or added is noticed. Beside it, and beside `commitment.json`, stand a
signature (`.sig`, by `ssh-keygen -Y sign -n unicr`) and a time stamp (`.tsr`, RFC 3161, of the
file's SHA-256). Both can be checked without this package.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from unicr.errors import UNREADABLE, RunError
from unicr.extras import require
from unicr.files import file_digest, read_json, read_plain
from unicr.folder import replace_file
from unicr.runs._commit import FILE as COMMITMENT
from unicr.runs._database import Database, canonical

STATEMENT = "statement.json"
STORES = ("run.sqlite", "attacks.sqlite", "guard.sqlite")
STATED = (STATEMENT, f"{STATEMENT}.sig", f"{STATEMENT}.tsr")
SIDE_FILES = ("-wal", "-shm", "-journal")  # of SQLite: their content is in its file's seal
SEAL = "unicr-seal"  # the digest of a database is its seal, which does not depend on its pages
NAMESPACE = "unicr"
TYPE = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:unicr:run:1"
MOST_STATED = 100_000_000  # bytes of a statement
LONGEST_SIGNATURE = 1_000_000  # bytes
LONGEST_STAMP = 1_000_000  # bytes of an answer of a time-stamp authority


class _Any(Database):
    tables = frozenset()


def compute_seals(folder: Path) -> dict[str, str]:
    """The seal of every file with results in a run folder, computed from what is in it now."""
    found = {name: _seal(folder / name) for name in STORES if (folder / name).is_file()}
    if STORES[0] not in found:
        raise RunError(f"{folder} is not a run: it has no {STORES[0]}")
    return found


def _seal(file: Path) -> str:
    with _Any(file) as store:
        return store.seal()


def digests(folder: Path) -> dict[str, dict[str, str]]:
    """Every file of a folder by its name in it: the seal of a database, SHA-256 of any other.

    Left out are the statement with its signature and time stamp, and what programs keep beside
    their files while they work (names that begin with a dot, SQLite's own).
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        hidden = any(part.startswith(".") for part in name.split("/"))
        beside = path.name in {f"{store}{end}" for store in STORES for end in SIDE_FILES}
        if path.is_symlink() and not hidden:  # to a folder, too: nobody looks into it here
            raise RunError(f"{path} is not an ordinary file, so a statement cannot cover it")
        if hidden or beside or name in STATED or path.is_dir():
            continue
        if not path.is_file():
            raise RunError(f"{path} is not an ordinary file, so a statement cannot cover it")
        kind = SEAL if path.name in STORES else "sha256"
        found[name] = {kind: _seal(path) if kind == SEAL else file_digest(path)}
    return found


def state(folder: Path) -> Path:
    """Write the in-toto statement of all files that a run folder has now; the file."""
    subjects = [{"name": name, "digest": value} for name, value in digests(folder).items()]
    if STORES[0] not in {one["name"] for one in subjects}:
        raise RunError(f"{folder} is not a run: it has no {STORES[0]}")
    content: dict[str, Any] = {
        "_type": TYPE,
        "predicateType": PREDICATE,
        "predicate": {},
        "subject": subjects,
    }
    with replace_file(folder / STATEMENT) as file:
        file.write_bytes(canonical(content))
    for old in (folder / f"{STATEMENT}.sig", folder / f"{STATEMENT}.tsr"):
        with suppress(FileNotFoundError):
            old.unlink()  # of what was stated before
    return folder / STATEMENT


def read_statement(folder: Path) -> dict[str, dict[str, str]]:
    """The digests that the statement of a folder gives its files."""
    try:
        content = read_json(read_plain(folder / STATEMENT, MOST_STATED))
        stated = {str(one["name"]): dict(one["digest"]) for one in content["subject"]}
        if len(stated) < len(content["subject"]):
            raise ValueError("a file is named twice")
        return stated
    except (OSError, *UNREADABLE) as error:
        raise RunError(f"cannot read {folder / STATEMENT}: {error}") from None


def statement_problems(folder: Path) -> Iterator[str]:
    """What differs between the files of a folder and those that its statement names."""
    try:
        stated = read_statement(folder)
    except RunError as error:
        yield str(error)
        return
    now = digests(folder)
    for name in sorted({*stated, *now}):
        if name not in now:
            yield f"{name} was stated and is not there"
        elif name not in stated:
            yield f"{name} is there and was not stated"
        elif stated[name] != now[name]:
            yield f"{name} is not what was stated"


def file_to_sign(folder: Path) -> Path:
    """What `unicr seal` signs and dates: the statement of a run; before there is one, what it was
    committed to.
    """
    if (folder / STORES[0]).is_file():
        return state(folder)
    if (folder / COMMITMENT).is_file():
        return folder / COMMITMENT
    raise RunError(f"{folder} contains neither a run nor a commitment")


def sign(file: Path, key: Path) -> Path:
    """Sign a file with a private SSH key; the file with the signature."""
    signature = _ssh("-Y", "sign", "-q", "-n", NAMESPACE, "-f", str(key), text=file.read_bytes())
    made = file.with_name(f"{file.name}.sig")
    with replace_file(made) as place:
        place.write_bytes(signature)
    return made


def check_signature(file: Path, key: Path) -> None:
    """RunError unless the owner of a public SSH key has signed this very file."""
    made = file.with_name(f"{file.name}.sig")
    public = read_public_key(key)
    try:
        content = read_plain(file, MOST_STATED)
        read_plain(made, LONGEST_SIGNATURE)
    except FileNotFoundError as error:
        raise RunError(f"there is no signature: the file {error.filename} is missing") from None
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"cannot read the signature: {error}") from None
    with tempfile.TemporaryDirectory() as place:
        people = Path(place) / "people"
        people.write_text(f'signer namespaces="{NAMESPACE}" {public[0]} {public[1]}\n')
        asked = ("-f", str(people), "-I", "signer", "-n", NAMESPACE, "-s", str(made))
        try:
            _ssh("-Y", "verify", *asked, text=content)
        except RunError as error:
            raise RunError(
                f"{file.name} was signed with another key, or was changed afterwards ({error})"
            ) from None


def read_public_key(key: Path) -> list[str]:
    """The words of a public SSH key: its kind, the key, perhaps a comment."""
    try:
        text = key.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"cannot read the key {key}: {error}") from None
    if text.startswith("-----BEGIN"):
        raise RunError(f"{key} is a private key: pass the public one, usually {key}.pub")
    words = text.split()
    if len(words) < 2:
        raise RunError(f"{key} is not a public SSH key: pass the file that ends in .pub")
    return words


def find_signer(file: Path) -> str | None:
    """The fingerprint of the key that signed a file; None if no signature of it is beside it.

    It says nothing about whose key that is: `check_signature` does.
    """
    made = file.with_name(f"{file.name}.sig")
    asked = ("-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(made))
    try:
        read_plain(made, LONGEST_SIGNATURE)
        said = _ssh(*asked, text=read_plain(file, MOST_STATED)).decode(errors="replace")
    except (OSError, RunError):
        return None
    found = re.search(r"SHA256:[A-Za-z0-9+/]+", said)
    return None if found is None else found.group()


def find_date(file: Path) -> str | None:
    """When the time stamp beside a file says that it was there; None if there is none of it.

    It says nothing about who states that: `check_stamp` does.
    """
    made = file.with_name(f"{file.name}.tsr")
    if not made.is_file():
        return None
    tsp = require("rfc3161_client", "timestamp")
    try:
        info = tsp.decode_timestamp_response(read_plain(made, LONGEST_STAMP)).tst_info
        same = info.message_imprint.message == _imprint(file, info)
    except (OSError, ValueError):
        return None
    return str(info.gen_time.isoformat()) if same else None


def _imprint(file: Path, info: Any) -> bytes:
    """The digest of a file by the hash that a time stamp names: SHA-256 or SHA-512."""
    name = "sha512" if len(info.message_imprint.message) == 64 else "sha256"
    return hashlib.new(name, file.read_bytes()).digest()


def _ssh(*arguments: str, text: bytes) -> bytes:
    try:
        done = subprocess.run(
            ["ssh-keygen", *arguments], input=text, capture_output=True, check=False
        )
    except FileNotFoundError:
        raise RunError("ssh-keygen is needed to sign runs and check signatures") from None
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        raise RunError(f"ssh-keygen: {said[-1] if said else 'it failed without a message'}")
    return done.stdout


@dataclass(frozen=True)
class Stamp:
    """What a time-stamp authority states: a file with this content existed at `time`."""

    time: datetime
    authority: str


def stamp(file: Path, url: str) -> Path:
    """Have a time-stamp authority (RFC 3161, by HTTP) date a file; the file with its answer.

    It is sent the SHA-256 only. Whether to believe the authority is decided by whoever checks.
    """
    tsp = require("rfc3161_client", "timestamp")
    request = tsp.TimestampRequestBuilder().data(file.read_bytes()).build()
    if not url.startswith(("http://", "https://")):
        raise RunError(
            f"--timestamp {url}: give the http or https address of a time-stamp authority"
        )
    asked = urllib.request.Request(
        url, request.as_bytes(), {"Content-Type": "application/timestamp-query"}
    )
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            content = answer.read(LONGEST_STAMP)
        found = tsp.decode_timestamp_response(content)
        imprint = found.tst_info.message_imprint.message
    except (OSError, ValueError) as error:
        raise RunError(f"{url} did not give a time stamp: {error}") from None
    if imprint != _imprint(file, found.tst_info):
        raise RunError(f"{url} gave a time stamp of another file")
    made = file.with_name(f"{file.name}.tsr")
    with replace_file(made) as place:
        place.write_bytes(content)
    return made


def check_stamp(file: Path, roots: Path) -> Stamp:
    """When a file was there, by the time stamp beside it.

    `roots` are certificates (PEM) of authorities that you believe. RunError if there is no time
    stamp, or where it is of another file or authority.
    """
    tsp, x509 = require("rfc3161_client", "timestamp"), require("cryptography.x509", "timestamp")
    made = file.with_name(f"{file.name}.tsr")
    try:
        believed = x509.load_pem_x509_certificates(roots.read_bytes())
        found = tsp.decode_timestamp_response(read_plain(made, LONGEST_STAMP))
        builder = tsp.VerifierBuilder()
        for one in believed:
            builder = builder.add_root_certificate(one)
        builder.build().verify_message(found, read_plain(file, MOST_STATED))
    except (OSError, ValueError) as error:
        raise RunError(f"cannot check a time stamp of {file.name}: {error}") from None
    except tsp.VerificationError as error:
        raise RunError(f"the time stamp of {file.name} is not valid: {error}") from None
    return Stamp(found.tst_info.gen_time, _find_authority(found, x509))


def _find_authority(found: Any, x509: Any) -> str:
    """The name in the certificate that signed a time stamp which was verified."""
    (by,) = found.signed_data.signer_infos
    for one in map(x509.load_der_x509_certificate, found.signed_data.certificates):
        if (one.issuer, one.serial_number) == (by.issuer, by.serial_number):
            return f"{one.subject.rfc4514_string()}, certified by {one.issuer.rfc4514_string()}"
    raise RunError("the time stamp does not contain the certificate of its authority")
