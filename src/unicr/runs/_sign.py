"""Seals of a folder and who stands behind them: signed and checked by ssh-keygen, with SSH keys.

`run.sig` holds one line for each file with results, `NAME SEAL`, and the signature of these lines.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from unicr.errors import RunError
from unicr.runs._database import Database

SIGNATURE = "run.sig"
STORES = ("run.sqlite", "attacks.sqlite", "guard.sqlite")
NAMESPACE = "unicr"
BEGIN = "-----BEGIN SSH SIGNATURE-----"


class _Any(Database):
    tables = frozenset()


def seals(folder: Path) -> dict[str, str]:
    """The seal of every file with results in a run folder, computed from what is in it now."""
    found = {}
    for name in STORES:
        if (folder / name).is_file():
            with _Any(folder / name) as store:
                found[name] = store.seal()
    if STORES[0] not in found:
        raise RunError(f"{folder} is not a run: it has no {STORES[0]}")
    return found


def sign(folder: Path, key: Path) -> Path:
    """Sign the seals of a folder with a private SSH key; the file with the signature."""
    text = "".join(f"{name} {seal}\n" for name, seal in seals(folder).items())
    signature = _ssh("-Y", "sign", "-q", "-n", NAMESPACE, "-f", str(key), text=text)
    file = folder / SIGNATURE
    try:
        file.write_text(text + signature)
    except OSError as error:
        raise RunError(f"cannot write {file}: {error.strerror or error}") from None
    return file


def signed_by(folder: Path, key: Path) -> dict[str, str]:
    """The seals that the owner of a public SSH key has signed in this folder.

    Raises RunError where there is no signature, or where it is not of that key.
    """
    try:
        text, begin, signature = (folder / SIGNATURE).read_text().partition(BEGIN)
        public = key.read_text().split()
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"no signature can be checked: {error}") from None
    if not begin or len(public) < 2:
        raise RunError(f"{folder / SIGNATURE} or {key} is not what it should be")
    with tempfile.TemporaryDirectory() as place:
        people, made = Path(place) / "people", Path(place) / "signature"
        people.write_text(f'signer namespaces="{NAMESPACE}" {public[0]} {public[1]}\n')
        made.write_text(begin + signature)
        asked = ("-f", str(people), "-I", "signer", "-n", NAMESPACE, "-s", str(made))
        _ssh("-Y", "verify", "-q", *asked, text=text)
    return dict(line.split(" ", 1) for line in text.splitlines() if " " in line)


def _ssh(*arguments: str, text: str) -> str:
    try:
        done = subprocess.run(
            ["ssh-keygen", *arguments], input=text, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise RunError("ssh-keygen is needed to sign runs and check signatures") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
        raise RunError(f"ssh-keygen: {said[-1]}")
    return done.stdout
