"""What is found by being there: names are not taken twice, and every group stands in the docs."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from unicr import registry
from unicr.errors import UnicrError
from unicr.noise import FAMILIES, gaussian
from unicr.registry import Catalogue
from unicr.tightness import FORMULAS, Formula

REPOSITORY = Path(__file__).parents[1]
SOURCES = [*(REPOSITORY / "src").rglob("*.py"), *(REPOSITORY / "packages").rglob("*.py")]


def groups() -> set[str]:
    """Every group of entry points that the source reads."""
    found = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            words = getattr(node, "value", None)
            if isinstance(node, ast.Constant) and isinstance(words, str):
                found |= set(re.findall(r"^unicr\.[a-z]+$", words))
    return found - {f"unicr.{path.stem}" for path in (REPOSITORY / "src" / "unicr").iterdir()}


def test_every_group_stands_in_the_docs() -> None:
    page = (REPOSITORY / "docs" / "plugins.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(unicr\.\w+)` \|", page, re.MULTILINE)) == groups()
    assert len(groups()) >= 11


def test_what_the_docs_name_can_be_imported() -> None:
    page = (REPOSITORY / "docs" / "plugins.md").read_text(encoding="utf-8")
    for module, name in re.findall(r"(?:subclasses|instances) of `([\w.]+)\.(\w+)`", page):
        assert isinstance(getattr(__import__(module, fromlist=[name]), name), type)


def test_a_thing_of_this_process_is_known_until_its_name_is_taken() -> None:
    mine = replace(FORMULAS["cohen"], name="mine")
    before = list(FORMULAS)
    own: Catalogue[Formula] = Catalogue("unicr.nothing", "unicr.tightness.formulas", Formula)
    assert own.add(mine) is mine
    assert list(own) == [*before, "mine"]
    own.reload()
    assert own["mine"] is mine
    with pytest.raises(UnicrError, match="the name 'mine' is already used"):
        own.add(replace(mine, note="another"))
    with pytest.raises(UnicrError, match="the name 'cohen' is already used"):
        own.add(replace(mine, name="cohen"))
    assert list(FORMULAS) == before


def test_a_catalogue_is_a_mapping_that_says_what_it_holds() -> None:
    assert FAMILIES["gaussian"] is gaussian
    assert "nothing" not in FAMILIES
    assert FAMILIES.get("nothing") is None
    assert len(FAMILIES) == len(list(FAMILIES)) >= 16
    assert repr(FAMILIES).startswith("Catalogue(unicr.families: cauchy, gaussian, ")


def test_a_module_of_unicr_that_fails_is_not_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only plugins are left out: a fault of unicr's own stays visible, at every use."""

    @dataclass(frozen=True)
    class Kind:
        name: str

    package = tmp_path / "broken_home"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("raise RuntimeError('here')")
    monkeypatch.syspath_prepend(str(tmp_path))
    own: Catalogue[Kind] = Catalogue("unicr.nothing", "broken_home", Kind)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="here"):
            list(own)


def test_entry_points_of_this_installation_come_from_unicr_paper() -> None:
    (point,) = [one for one in registry.entries("unicr.commands") if one.name == "paper"]
    assert registry.distribution_of(point) == "unicr-paper 0.2.0"
