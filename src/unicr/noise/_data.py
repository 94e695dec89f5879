"""A noise as data: what a run folder keeps, so that its reader needs none of its author's code.

A family is its name and numbers, a density of the user's own is its table. Read back, either gives
the same samples and the same radii bit for bit; nothing is executed, and every claim is checked.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from unicr.errors import NoiseError, SpecError
from unicr.law import Facts, Table
from unicr.law.internal import read_floats, read_number, require, table_from_data
from unicr.noise._anisotropic import Anisotropic
from unicr.noise._base import IID, Data, Noise
from unicr.noise._density import Tabulation
from unicr.noise._radial import within
from unicr.noise._spec import MOST_PARTS, parse
from unicr.noise._sum import Sum
from unicr.noise.families import FAMILIES

FORMAT = 1  # of stored noises; one of another number is refused
# What a hostile file may ask for.
DEEPEST = 8  # noises inside noises
MOST_COORDINATES = 20_000_000  # scales: those of the largest inputs, in 160 MB
LONGEST_NAME = 1000  # letters of a name
SAME_LAW = 1e-6  # between probabilities of a stored table and of the scipy law that it names
_REFERENCE = re.compile(r"[^\n]+\.py:[^\W\d]\w*(\([\w=., +-]*\))?")


def to_data(noise: Noise) -> Data:
    """Write a noise in JSON types, with a SHA-256 digest. `from_data` reads it.

    A noise that rests on Python functions of a whole vector (`Joint`, `from_radial_density`) has no
    table and is refused.
    """
    body = noise.to_body()
    return {"format": FORMAT, "noise": body, "sha256": _digest(body)}


def from_data(data: Any) -> Noise:
    """Read a noise that `to_data` wrote. It is equal to the original, with the same samples and
    radii.

    This runs no code of the data's author. It raises NoiseError if the digest is wrong, the table
    is not a distribution, or its numbers contradict a stated fact (symmetric, log-concave,
    unimodal).
    """
    if not isinstance(data, Mapping) or set(data) != {"format", "noise", "sha256"}:
        raise NoiseError(
            "a stored noise must have the fields format, noise and sha256, and no others"
        )
    if data["format"] != FORMAT:
        raise NoiseError(
            f"this stored noise has format {data['format']!r:.40}, but this version of unicr reads "
            f"format {FORMAT}"
        )
    try:
        digest = _digest(data["noise"])
        if data["sha256"] != digest:
            raise NoiseError(
                f"the stored noise was changed: its digest is {digest}, but the file says "
                f"{data['sha256']!r:.80}"
            )
        return _read(data["noise"], DEEPEST)
    except NoiseError:
        raise
    except (TypeError, ValueError, OverflowError, RecursionError, SpecError) as error:
        raise NoiseError(f"the stored noise is not valid: {error}") from None


def _digest(body: Any) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _read(body: Any, depth: int) -> Noise:
    require(isinstance(body, Mapping) and all(isinstance(key, str) for key in body), "it has names")
    require(depth > 0, f"noises are nested at most {DEEPEST} deep")
    for kind, read in _KINDS.items():
        if kind in body:
            return read(body, depth - 1)
    raise NoiseError(f"a stored noise must be one of {', '.join(_KINDS)}")


def _only(body: Data, *keys: str) -> None:
    require(set(body) == set(keys), f"it has exactly {', '.join(keys)}")


def _read_family(body: Data, depth: int) -> Noise:
    name = body["family"]
    make: Callable[..., Noise] | None = FAMILIES.get(name) if isinstance(name, str) else None
    if make is None:
        raise NoiseError(f"unknown family {name!r:.80}; known families: {', '.join(FAMILIES)}")
    numbers = {key: read_number(value) for key, value in body.items() if key != "family"}
    return make(**numbers)


def _read_written(body: Data, depth: int) -> Noise:
    _only(body, "written", "times", "noise")
    reference = body["written"]
    good = isinstance(reference, str) and len(reference) <= LONGEST_NAME
    good = good and reference.isprintable() and "|" not in reference
    require(good and _REFERENCE.fullmatch(reference) is not None, "a file is written file.py:name")
    noise = _read(body["noise"], depth).loaded_from(reference)
    factor = read_number(body["times"])
    return noise if factor == 1.0 else noise.scaled(factor)


def _read_truncated(body: Data, depth: int) -> Noise:
    _only(body, "truncated", "low", "high")
    low, high = read_number(body["low"]), read_number(body["high"])
    noise = _read(body["truncated"], depth)
    return noise.truncated(*((high,) if low == -high else (low, high)))


def _read_within(body: Data, depth: int) -> Noise:
    _only(body, "within", "share")
    return within(_read(body["within"], depth), read_number(body["share"]))


def _read_anisotropic(body: Data, depth: int) -> Noise:
    kind = "matrix" if "matrix" in body else "scales"
    _only(body, "anisotropic", kind)
    values, base = read_floats(body[kind], MOST_COORDINATES), _read_iid(body["anisotropic"], depth)
    if kind == "scales":
        return Anisotropic(base, values)
    rows = math.isqrt(values.size)
    require(rows * rows == values.size, "a matrix has as many rows as columns")
    noise = Anisotropic(base, matrix=values.reshape(rows, rows))
    require(np.array_equal(noise.entries.ravel(), values), "a matrix has 26 bits in each row")
    return noise


def _read_sum(body: Data, depth: int) -> Noise:
    _only(body, "sum")
    require(
        isinstance(body["sum"], list) and len(body["sum"]) <= MOST_PARTS, "a sum has some parts"
    )
    return Sum(*(_read(part, depth) for part in body["sum"]))


def _read_iid(body: Any, depth: int) -> IID:
    noise = _read(body, depth)
    if noise.iid is None:
        raise NoiseError(
            f"a noise with independent coordinates of the same law is needed here, not {noise}"
        )
    return noise.iid


def _read_density(body: Data, depth: int) -> Noise:
    _only(body, "density", "scale", "facts", "table")
    name, scale, facts = body["density"], read_number(body["scale"]), body["facts"]
    require(isinstance(name, str) and 0 < len(name) <= LONGEST_NAME, "a density has a name")
    require(name.isprintable() and "|" not in name, "a name is printable, without |")
    require(0.0 < scale < np.inf, "a scale is a finite number above 0")
    names = [field.name for field in fields(Facts)]
    require(isinstance(facts, Mapping) and set(facts) == set(names), "facts are complete")
    require(facts["source"] == "table", "facts are those of the table")
    claims = [facts[key] for key in names if key != "source"]
    require([isinstance(claim, bool) for claim in claims], "facts hold or not")
    stored = table_from_data(body["table"])
    for key in names[:-1]:
        require(
            getattr(stored.known, key) or not facts[key], f"a density claimed to be {key} is {key}"
        )
    table = replace(stored, known=Facts(**facts))
    _check_name(table, name)
    return Tabulation(table, name, scale).make()


def _check_name(table: Table, name: str) -> None:
    """No table may go under the name of another law, nor under one that looks like it."""
    plain = name.isascii() or _REFERENCE.fullmatch(name) is not None
    other = re.match(
        rf"\W*({'|'.join(FAMILIES)}|Anisotropic|sum|Joint|Spherical)\b", name, re.IGNORECASE
    )
    if not plain or other or ".truncated" in name:
        raise NoiseError(
            f"the stored density has the name {name!r:.80}, which belongs to another noise"
        )
    if name.startswith("scipy."):
        law, u = parse(name).iid, np.linspace(0.0, 1.0, 65)[1:-1]
        same = law is not None and np.abs(law.cdf(table.ppf(u)) - u) <= SAME_LAW
        require(same, f"the density {name} is that of scipy")


_KINDS: dict[str, Callable[[Data, int], Noise]] = {
    "family": _read_family,
    "written": _read_written,
    "truncated": _read_truncated,
    "within": _read_within,
    "anisotropic": _read_anisotropic,
    "sum": _read_sum,
    "density": _read_density,
}
