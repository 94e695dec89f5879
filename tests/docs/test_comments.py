"""Code on a proof path gives its reasons: constants, places of the theory page, kinds of noise."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "unicr"
ON_THE_PATH = (
    "radius",
    "tradeoff",
    "sample",
    "law",
    "noise",
    "montecarlo",
    "guard",
    "tightness",
    "binomial.py",
)
PROOFS = sorted(
    path
    for name in ON_THE_PATH
    for path in ([SOURCE / name] if name.endswith(".py") else (SOURCE / name).rglob("*.py"))
)
# Kinds of noise: asking for one of these outside `noise` means that what was learnt about a noise
# does not travel with it.
KINDS = ("IID", "Family", "Anisotropic", "RadialNoise", "Joint", "Noise")


def _is_number(node: ast.expr) -> bool:
    """Whether the expression is built from numbers alone, or from numbers and calls."""
    parts = list(ast.walk(node))
    values = [part.value for part in parts if isinstance(part, ast.Constant)]
    made = [
        part.func.id
        for part in parts
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)
    ]
    plain = not any(isinstance(part, ast.Lambda | ast.Subscript) for part in parts)
    plain = plain and not any(name[0].isupper() for name in made)  # an object, not a number
    return plain and bool(values) and not any(isinstance(value, str) for value in values)


def _constants(path: Path) -> Iterator[tuple[str, int, int]]:
    """(name, first line, last line) of every module constant that is a number or holds numbers."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        names = [part.id for part in ast.walk(target) if isinstance(part, ast.Name)]
        if names and all(name.strip("_").isupper() for name in names) and _is_number(node.value):
            yield ", ".join(names), node.lineno, node.end_lineno or node.lineno


@pytest.mark.parametrize("path", PROOFS, ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_number_on_a_proof_path_has_its_reason_beside_it(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    bare = [
        f"{path.relative_to(SOURCE)}:{first} {name}"
        for name, first, last in _constants(path)
        if not any("# " in line for line in lines[first - 1 : last])
        and not lines[first - 2].startswith("#")
    ]
    assert bare == []


def test_the_test_of_constants_sees_some() -> None:
    assert sum(1 for path in PROOFS for _ in _constants(path)) > 250


def test_no_type_is_asserted() -> None:
    """`assert isinstance` tells mypy what nobody checks under `python -O`."""
    asserted = [
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for path in SOURCE.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.match(r"\s*assert isinstance", line)
    ]
    assert asserted == []


def test_kinds_of_noise_are_asked_for_in_few_places() -> None:
    pattern = re.compile(rf"isinstance\([^()]*,\s*\(?[^()]*\b({'|'.join(KINDS)})\b")
    asked = [
        f"{path.relative_to(SOURCE)}:{i}"
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] != "noise"
        for i, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
    assert len(asked) <= 20, asked
