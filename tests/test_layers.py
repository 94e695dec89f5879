"""Imports point one way: a package may use itself and what stands before it, never after."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import unicr

ROOT = Path(unicr.__file__).parent
LAYERS = (
    {"errors", "values"},
    {"text"},
    {"binomial", "files", "folder", "extras", "progress", "registry"},
    {"tables"},
    {"sample", "law"},
    {"noise"},
    {"norms"},
    {"metrics"},
    {"tradeoff"},
    {"montecarlo"},
    {"radius"},
    {"tightness"},
    {"data"},
    {"classifier"},
    {"smoothing"},
    {"runs"},
    {"smoothed"},
    {"sklearn"},
    {"i_opt"},
    {"select"},
    {"guard"},
    {"lab.train", "lab.optimality"},
    {"lab.attack"},
    {"lab.c_opt"},
    {"lab.report"},
    {"lab.explore"},
    {"cli"},
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
MODULES = [
    path
    for path in sorted(ROOT.rglob("*.py"))
    if path.parent not in (ROOT, ROOT / "lab") or path.name[0] != "_"
]


def part_of(names: list[str]) -> str:
    """The package of a dotted name below unicr; each package of `lab` is one by itself."""
    return ".".join(names[:2] if names[0] == "lab" else names[:1])


def home(path: Path) -> str:
    """The part to which a file belongs."""
    return part_of(list(path.relative_to(ROOT).with_suffix("").parts))


def imported(path: Path) -> Iterator[str]:
    """The parts of unicr that a file imports, at its top or inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [node.module]
            if node.module in ("unicr", "unicr.lab"):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            package, *rest = name.split(".")
            if package == "unicr" and rest and part_of(rest) in RANK:
                yield part_of(rest)


def test_every_part_has_a_place() -> None:
    assert {home(path) for path in MODULES} == set(RANK)


@pytest.mark.parametrize("part", sorted(RANK))
def test_imports_point_one_way(part: str) -> None:
    for path in MODULES:
        if home(path) == part:
            above = {other for other in imported(path) if other != part}
            wrong = {other for other in above if RANK[other] >= RANK[part]}
            assert not wrong, f"{path.relative_to(ROOT)} imports {sorted(wrong)}"


def private(path: Path, part: str) -> Iterator[str]:
    """Another part's underscore modules and names that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("unicr."):
            names = (node.module or "").split(".")[1:]
            if part_of(names) != part:
                hidden = any(name.startswith("_") for name in names[1:])
                hidden |= any(alias.name.startswith("_") for alias in node.names)
                if hidden:
                    yield f"{node.module}: {[alias.name for alias in node.names]}"


@pytest.mark.parametrize("part", sorted(RANK))
def test_underscores_stay_at_home(part: str) -> None:
    """What a package lends to others stands in its `__init__` or in its `internal` module."""
    for path in MODULES:
        if home(path) == part:
            found = list(private(path, part))
            assert not found, f"{path.relative_to(ROOT)} imports {found}"
