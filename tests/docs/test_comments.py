"""Code on a proof path gives its reasons: constants, places of the theory page, kinds of noise."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "unicr"
PROOFS = sorted(
    path
    for name in ("radius", "tradeoff", "sample", "binomial.py")
    for path in ([SOURCE / name] if name.endswith(".py") else (SOURCE / name).rglob("*.py"))
)
# Kinds of noise: asking for one of these outside `noise` means that what was learnt about a noise
# does not travel with it.
KINDS = ("IID", "Family", "Anisotropic", "RadialNoise", "Joint", "Noise")


def _is_number(node: ast.expr) -> bool:
    """Whether the expression is built from numbers alone (or from numbers and numpy's makers)."""
    numbers = [one for one in ast.walk(node) if isinstance(one, ast.Constant)]
    words = [one for one in numbers if isinstance(one.value, str)]
    plain = not any(isinstance(one, ast.Lambda | ast.Subscript) for one in ast.walk(node))
    return plain and bool(numbers) and not words


def _constants(path: Path) -> Iterator[tuple[str, int, int]]:
    """(name, first line, last line) of every module constant that is a number or holds numbers."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, node.value
            number = isinstance(value, ast.Constant) and isinstance(value.value, int | float)
            if name.isupper() and (number or _is_number(value)):
                yield name, node.lineno, node.end_lineno or node.lineno


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
    assert sum(1 for path in PROOFS for _ in _constants(path)) > 90


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
