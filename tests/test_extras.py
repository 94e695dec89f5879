"""A missing optional dependency is one line that names the extra to install."""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import unicr
from unicr.errors import MissingExtraError
from unicr.extras import EXTRAS, require

ROOT = Path(unicr.__file__).parent


def required() -> set[tuple[str, str]]:
    """(extra, module) of every `require` in the source that names its module."""
    found = set()
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "require":
                words = [a.value for a in node.args if isinstance(a, ast.Constant)]
                if words and len(words) == len(node.args):
                    module = str(words[0]).partition(".")[0]
                    found.add((str(words[1]) if len(words) > 1 else module, module))
    return found


PLAIN = {(extra, module) for module, extra in EXTRAS.items()}
ATTACK = {("attack", name) for name in ("pyautoattack", "art", "foolbox")}
MODULES = sorted(required() | PLAIN | ATTACK)


@pytest.mark.parametrize(("extra", "module"), MODULES)
def test_a_missing_extra_is_named(extra: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (module, f"{module}.part"):
        monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(MissingExtraError) as caught:
            require(name, extra)
        message = str(caught.value)
        assert f"unicr[{extra}]" in message
        assert module in message
        assert "\n" not in message
        assert isinstance(caught.value, ImportError)


def test_an_installed_module_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    plotly = ModuleType("plotly")
    monkeypatch.setitem(sys.modules, "plotly", plotly)
    assert require("plotly") is plotly


def test_a_broken_module_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plotly.py").write_text("import a_module_that_is_not_there\n")
    monkeypatch.delitem(sys.modules, "plotly", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_not_there"):
        require("plotly")


def test_the_extras_are_those_of_the_package() -> None:
    project = Path(__file__).parents[1] / "pyproject.toml"
    declared = tomllib.loads(project.read_text())["project"]["optional-dependencies"]
    extras = {extra for extra, _ in MODULES}
    assert set(declared) == {*extras, "all", "dev"}
    for extra in extras:
        assert extra in declared["all"][0]
