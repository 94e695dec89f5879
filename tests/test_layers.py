"""Imports point one way: a package may use itself and what stands before it, never after."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import unicr

ROOT = Path(unicr.__file__).parent
LAYERS = (
    {"errors"},
    {"binomial", "files", "extras", "progress", "values"},
    {"tables"},
    {"sample"},
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
    {"runs", "sklearn"},
    {"train", "i_opt", "optimality"},
    {"select"},
    {"attack"},
    {"c_opt"},
    {"guard"},
    {"report"},
    {"explore", "paper"},
    {"cli"},
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
MODULES = [p for p in sorted(ROOT.rglob("*.py")) if p.parent != ROOT or p.name[0] != "_"]


def imported(path: Path) -> Iterator[str]:
    """The parts of unicr that a file imports, at its top or inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [node.module]
            if node.module == "unicr":
                names = [f"unicr.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            part = name.split(".")
            if part[0] == "unicr" and len(part) > 1 and part[1] in RANK:
                yield part[1]


def test_every_part_has_a_place() -> None:
    parts = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in MODULES}
    assert parts == set(RANK)


@pytest.mark.parametrize("part", sorted(RANK))
def test_imports_point_one_way(part: str) -> None:
    for path in MODULES:
        if path.relative_to(ROOT).parts[0].removesuffix(".py") == part:
            above = {other for other in imported(path) if other != part}
            wrong = {other for other in above if RANK[other] >= RANK[part]}
            assert not wrong, f"{path.relative_to(ROOT)} imports {sorted(wrong)}"


def private(path: Path, part: str) -> Iterator[str]:
    """Another part's underscore modules and names that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("unicr."):
            names = (node.module or "").split(".")[1:]
            if names[0] != part:
                hidden = any(name.startswith("_") for name in names[1:])
                hidden |= any(alias.name.startswith("_") for alias in node.names)
                if hidden:
                    yield f"{node.module}: {[alias.name for alias in node.names]}"


@pytest.mark.parametrize("part", sorted(RANK))
def test_underscores_stay_at_home(part: str) -> None:
    """What a package lends to others stands in its `__init__` or in its `internal` module."""
    for path in MODULES:
        if path.relative_to(ROOT).parts[0].removesuffix(".py") == part:
            found = list(private(path, part))
            assert not found, f"{path.relative_to(ROOT)} imports {found}"
