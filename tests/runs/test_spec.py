"""The spec of a run: JSON both ways, one digest of what decides, nothing of names in the key."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, replace
from typing import Any

import pytest

from unicr.classifier import load_classifier
from unicr.data import load_dataset
from unicr.errors import RunError
from unicr.noise import Lattice, from_density, gaussian, laplace, parse
from unicr.runs import Job, Spec
from unicr.smoothing import ClosedNoise, Plan, read_norms, stream_key

MODEL, DATA, NONCE = "builtin:mnist-mlp-0.5", "builtin:mnist", "5a" * 32


def made(**changes: Any) -> Spec:
    job = Job(
        classifier=load_classifier(MODEL),
        data=load_dataset(DATA),
        noise=gaussian(sigma=0.5),
        norms=read_norms([2, "inf"]),
        plan=Plan(n=300),
        nonce=NONCE,
        data_spec=DATA,
        limit=3,
        batch=100,
        channels_last=False,
    )
    return replace(job.spec, **changes)


SPEC = made()
OTHER: dict[str, Any] = {
    "model_hash": "0" * 64,
    "shape": (28, 28),
    "data_size": 12,
    "noise": laplace(sigma=0.5),
    "plan": Plan(n=301),
    "searched": True,
    "skip": 2,
    "max": 4,
    "batch": 104,
    "channels_last": True,
    "lattice": Lattice.parse("1/510"),
    "classes": ("a", "b"),
    "model_digests": {"model": "2"},
    "inputs": "1" * 64,
    "split": "train",
    "nonce_origin": "drawn",
    "require": ("accuracy(2, 0.5) >= 0.7",),
    "all_norms": read_norms([2, "inf", 1]),
}
DRAW = {"seed", "nonce"}
NAMES: dict[str, Any] = {
    "model": "elsewhere.onnx",
    "data": "elsewhere.npz",
    "loading": {"mean": [0.5]},
    "reading": {"labels": "elsewhere.npy"},
    "norms": read_norms(2),  # of one run of a search; the votes are for all of them
}


def test_every_field_is_in_one_of_the_groups() -> None:
    assert {one.name for one in fields(Spec)} == {*OTHER, *NAMES, *DRAW}


def test_json_goes_both_ways() -> None:
    assert Spec.from_dict(json.loads(json.dumps(SPEC.to_dict()))) == SPEC


@pytest.mark.parametrize("name", OTHER)
def test_what_decides_is_in_the_digest(name: str) -> None:
    changed = made(**{name: OTHER[name]})
    assert changed.commitment != SPEC.commitment
    assert changed.smoothing != SPEC.smoothing
    assert Spec.from_dict(json.loads(json.dumps(changed.to_dict()))) == changed


@pytest.mark.parametrize("name", NAMES)
def test_names_of_files_are_neither_in_the_digest_nor_in_the_key(name: str) -> None:
    changed = made(**{name: NAMES[name]})
    assert changed.commitment == SPEC.commitment
    assert changed.smoothing == SPEC.smoothing


def test_the_commitment_is_the_hash_of_canonical_json_and_the_key_of_it_and_the_nonce() -> None:
    """Computed here from scratch: whoever has the numbers needs no unicr."""
    decides = json.dumps(
        SPEC.decides, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    ).encode()
    assert SPEC.commitment == hashlib.sha256(decides).hexdigest()
    both = bytes.fromhex(SPEC.commitment) + bytes.fromhex(NONCE)
    assert stream_key(SPEC.commitment, NONCE) == hashlib.sha256(both).digest()


def test_equal_noises_commit_to_equal_numbers() -> None:
    """The text of a noise, or the file that it was written in, is nothing to choose."""
    law = from_density(lambda x: -(abs(x) ** 1.5), name="one")
    twin = from_density(lambda x: -(abs(x) ** 1.5), name="two")
    there = law.loaded_from("a.py:law")
    assert len({made(noise=one).commitment for one in (law, twin, there)}) == 1
    assert made(noise=parse("gaussian(sigma=.5)")).commitment == SPEC.commitment


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 1}, "use the version that wrote the run"),
        ({"boast": 1}, "boast, which unicr did not write"),
        ({"seed": 1}, "either a nonce or"),
        ({"nonce": None}, "either a nonce or"),
        ({"norms": ["2", "2"]}, "different norms"),
        ({"lattice": "2/510"}, "lattice"),
        ({"noise": "laplace(sigma=.5)"}, r"those of laplace\(sigma=0\.5\)"),
        ({"max": 0}, "at least 1"),
        ({"inputs": "abc"}, "64 hexadecimal"),
        ({"split": "both"}, "one of test, train"),
        ({"nonce_origin": "beacon"}, "one of given, drawn"),
        ({"nonce_origin": None}, "where the nonce is from"),
        ({"require": ["accuracy > 1"]}, "cannot read the requirement"),
        ({"model": "a\x1b[2J"}, "printable"),
    ],
)
def test_what_could_not_have_been_written_is_refused_in_one_line(
    change: dict[str, Any], words: str
) -> None:
    with pytest.raises(RunError, match=words) as caught:
        Spec.from_dict({**SPEC.to_dict(), **change})
    assert "\n" not in str(caught.value)


def test_each_field_is_needed() -> None:
    values = SPEC.to_dict()
    for name in values:
        with pytest.raises(RunError, match=r"format|damaged"):
            Spec.from_dict({k: v for k, v in values.items() if k != name})


def test_a_noise_is_kept_once() -> None:
    """A family by its text, a density by its numbers, which must be those of its name."""
    assert SPEC.to_dict()["noise_data"] is None
    law = from_density(lambda x: -(abs(x) ** 1.5), name="mine").loaded_from("a.py:law")
    values = made(noise=law).to_dict()
    assert Spec.from_dict(values).noise == law
    assert Spec.from_dict(values).commitment == made(noise=law).commitment
    with pytest.raises(RunError, match=r"'b\.py:law', but .* are those of a\.py:law"):
        Spec.from_dict({**values, "noise": "b.py:law"})


def test_a_noise_that_is_code_stays_closed() -> None:
    values = {**SPEC.to_dict(), "noise": "there.py:law", "noise_data": None}
    spec = Spec.from_dict(values)
    assert spec.noise == ClosedNoise("there.py:law")
    assert spec.to_dict() == values
    with pytest.raises(RunError, match="not executed unless you trust it"):
        _ = spec.noise.sigma
