"""Commitments: all that decides a run is fixed, and dated, before a number is drawn.

`commitment.json` in the folder of a run holds `Spec.decides` in canonical JSON; its SHA-256 is the
commitment, so any program can compute it. Noise follows from SHA-256(commitment ‖ nonce). An
auditor who dates the commitment and gives the nonce afterwards leaves nothing to grind.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary

from unicr.data import Dataset
from unicr.data.internal import digest_input
from unicr.errors import UNREADABLE, RunError, UnicrError
from unicr.extras import torch
from unicr.files import read_json, read_plain
from unicr.folder import changes, plain, replace_file
from unicr.runs._database import canonical
from unicr.runs._run import ENVIRONMENT
from unicr.runs._spec import GIVEN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unicr.classifier import Classifier
    from unicr.runs._job import Job
    from unicr.runs._spec import Spec

FILE = "commitment.json"
UNREADABLE_INPUT = "unreadable"  # in place of the hash of an input that cannot be read
LARGEST = 100_000_000  # bytes of a commitment: the tables of a noise are its largest part

# What is committed to of an input: its number, its label and its hash.
Line: TypeAlias = "tuple[int, int, str]"
_lines: WeakKeyDictionary[Dataset, dict[tuple[int, int | None], dict[int, Line]]] = (
    WeakKeyDictionary()
)


@dataclass(frozen=True)
class Input:
    """One input with its number, label and hash; `x` is None if it could not be read."""

    index: int
    x: torch.Tensor | None
    label: int
    digest: str


def read_input(data: Dataset, index: int) -> Input:
    """Input number `index`, or the reason why it cannot be read in place of its hash.

    It is read once: the hash is of the very values that are certified, whatever a dataset with
    transforms of its own would give the next time.
    """
    try:
        x, label = data[index]
        return Input(index, x, label, digest_input(x.numpy()))
    except UnicrError as error:
        return Input(index, None, -1, f"unreadable: {error}")
    except (OSError, MemoryError) as error:
        return Input(index, None, -1, f"{ENVIRONMENT}unreadable: {error}")


def digest_of_inputs(inputs: Iterable[Line]) -> str:
    """SHA-256 over number, label and hash of inputs, a line for each."""
    digest = hashlib.sha256()
    for index, label, known in inputs:
        word = known if re.fullmatch("[0-9a-f]{64}", known) else UNREADABLE_INPUT
        digest.update(f"{index} {label} {word}\n".encode())
    return digest.hexdigest()


def read_lines(data: Dataset, skip: int, limit: int | None) -> dict[int, Line]:
    """Every `skip`-th input of the data, at most `limit` of them, by its number. Every one is read;
    the answer is kept with the dataset.
    """
    known = _lines.setdefault(data, {})
    if (skip, limit) not in known:
        chosen = (read_input(data, index) for index in range(0, len(data), skip)[:limit])
        known[skip, limit] = {x.index: (x.index, x.label, x.digest) for x in chosen}
    return known[skip, limit]


def read_committed(data: Dataset, index: int, skip: int, limit: int | None) -> Input:
    """An input as it is certified; RunError if it is not the one that is committed to.

    Files may change while a run is made, and a dataset may give other values every time.
    """
    found = read_input(data, index)
    line = (index, found.label, found.digest)
    if found.x is not None and line != read_lines(data, skip, limit)[index]:
        raise RunError(
            f"input {index} of {data.name} is not the one that the run was started with: its file "
            "was changed, or the dataset gives different values each time. Restore it and use "
            "--resume, or start a new run"
        )
    return found


def write_commitment(job: Job, folder: Path) -> str:
    """Write what decides a job into `folder`, and say its commitment. The nonce is then given.

    A model or a noise that has no digest of its own is refused: it could be changed afterwards.
    """
    spec = job.spec
    if spec.nonce_origin != GIVEN:
        raise RunError(
            "a commitment needs a run whose nonce comes from outside, after the commitment"
        )
    if spec.model_hash.startswith("unhashable"):
        raise RunError(
            f"{spec.model} has no digest, because its code or data cannot be written down: name "
            "the model as file.py:name, or use a file of weights"
        )
    if not spec.has_numbers:
        raise RunError(
            f"the noise {spec.noise.text} is code, which could be changed after the nonce is "
            "known: use a density of one coordinate, or a built-in family"
        )
    file = folder / FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with file.open("xb") as handle:
            handle.write(canonical(spec.decides))
    except FileExistsError:
        raise RunError(f"{file} exists already, and a commitment is made only once") from None
    except OSError as error:
        raise RunError(f"cannot write {file}: {error.strerror or error}") from None
    return spec.commitment


def read_commitment(folder: Path) -> tuple[str, dict[str, Any]] | None:
    """(commitment, what it fixes) of a folder; None if nothing was committed there."""
    file = folder / FILE
    try:
        content = read_plain(file, LARGEST)
        fixed = read_json(content)
    except FileNotFoundError:
        return None
    except (OSError, *UNREADABLE) as error:
        raise RunError(f"cannot read {file}: {error}") from None
    if not isinstance(fixed, dict) or canonical(fixed) != content:
        raise RunError(f"cannot read {file}: it is not a file that `unicr commit` wrote")
    return hashlib.sha256(content).hexdigest(), fixed


def copy_commitment(source: Path, folder: Path) -> None:
    """Put the commitment of `source`, with its signature and date, into `folder` as well.

    A search writes one run for each norm, and each of them goes to others by itself.
    """
    names = [name for name in (FILE, f"{FILE}.sig", f"{FILE}.tsr") if (source / name).is_file()]
    if source == folder or FILE not in names:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        with replace_file(folder / name) as copy:
            copy.write_bytes((source / name).read_bytes())


def follow_commitment(job: Job, folder: Path) -> Job:
    """The job as it was committed to in `folder`: any other is refused; itself if there is no
    commitment. The size and layout of passes, lattice and requirements are taken from there.
    """
    found = read_commitment(folder)
    if found is None:
        return job
    commitment, fixed = found
    if job.nonce_origin != GIVEN:
        raise RunError(
            f"{folder} holds the commitment {commitment[:16]}…: give --nonce, the 64 hexadecimal "
            "digits that were fixed after it was dated"
        )
    taken = {name: fixed.get(name) for name in ("batch", "channels_last", "lattice", "require")}
    try:
        job = replace(job, **taken | {"require": tuple(taken["require"] or ())})
        now = job.spec.decides
    except (TypeError, ValueError, UnicrError) as error:
        raise RunError(f"cannot check the run against {folder / FILE}: {error}") from None
    if differing := changes(fixed, plain(now)):
        raise RunError(
            f"this run is not the one that {folder / FILE} commits to; these settings differ: "
            f"{differing[:600]}"
        )
    return job


def commit_again(spec: Spec, model: Classifier | None, data: Dataset | None) -> Spec:
    """The spec with all that an auditor's own model and data say in place of what the run says.

    Where nothing was changed it has the same commitment.
    """
    own: dict[str, Any] = {}
    if model is not None:
        own = {"model_hash": model.digest, "model_digests": dict(model.digests)}
    if data is not None:
        own |= {
            "data_size": len(data),
            "shape": tuple(data.shape),
            "inputs": digest_of_inputs(read_lines(data, spec.skip, spec.max).values()),
        }
    if model is not None and data is not None:
        classes = model.classes or data.classes
        own["classes"] = tuple(classes) if classes else None
    return replace(spec, **own)
