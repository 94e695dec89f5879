"""The pages as Sphinx sees them: every command has its help, every formula can be drawn."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import util
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from tests.docs.pages import PAGES, ROOT

pytest.importorskip("sphinx")


def extension(name: str) -> ModuleType:
    spec = util.spec_from_file_location(name, ROOT / "docs" / "_ext" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_command_has_its_help() -> None:
    from unicr.cli import app

    pages = extension("unicr_commands")
    found = list(pages.commands(app))
    assert {words[0] for words in found} == {n for n in app if not n.startswith("-")}
    assert ("noise", "show") in found
    for words in found:
        text = pages.help_text(words)
        assert text.startswith(f"Usage: unicr {' '.join(words)}")
        assert max(map(len, text.splitlines())) <= pages.WIDTH


def test_every_formula_is_drawn() -> None:
    math = extension("drawn_math")
    formulas = [
        line
        for page in PAGES
        for i, block in enumerate(page.read_text(encoding="utf-8").split("$$"))
        if i % 2
        for line in block.split("\\\\")
    ]
    assert len(formulas) >= 18
    for formula in formulas:
        drawn = ElementTree.fromstring(math.svg(formula))
        assert drawn.get("aria-label") == " ".join(formula.split())
        path = drawn[0].get("d")
        assert path is not None
        assert path.startswith("M")


def test_docstrings_become_text_not_markup() -> None:
    plain = extension("plain_docstrings")
    assert list(plain.convert(["|ε| ≤ a*b, see `x_`", "", "    y = 1", "", ">>> 1"])) == [
        "",
        r"\|ε\| ≤ a\*b, see \ ``x_``\ ",
        "",
        "::",
        "",
        "    y = 1",
        "",
        ">>> 1",
        "",
    ]
    fields = ["one: first", "two, three: second", "    and more"]
    assert list(plain.convert(fields))[1:-1] == [
        ":one: first",
        ":two, three: second",
        "    and more",
    ]


def test_indices_in_running_text() -> None:
    math = extension("plain_math")

    def shown(text: str) -> str:
        return "".join(f"<{n.astext()}>" if n.children else n.astext() for n in math.pieces(text))

    assert shown("p_A and T_{u+v}(α)") == "p<A> and T<u+v>(α)"
    assert shown("‖δ‖_p < R^d, ‖δ‖_∞") == "‖δ‖<p> < R<d>, ‖δ‖<∞>"
    assert shown("(Σ|δ_i|^p)^(1/p)") == "(Σ|δ<i>|<p>)<1/p>"
    assert shown("log_wealth of a_long name") == "log_wealth of a<long> name"
    assert shown("plain") == "plain"


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    folders = [str(ROOT / "docs"), str(tmp_path / "html"), "-d", str(tmp_path / "trees")]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [*command, *folders], capture_output=True, text=True, timeout=900, env=environment
    )
    assert done.returncode == 0, done.stderr
    for name in ("index", "quickstart", "theory", "api", "cli"):
        page = (tmp_path / "html" / f"{name}.html").read_text(encoding="utf-8")
        assert "https://cdn" not in page
    assert "<svg" in (tmp_path / "html" / "theory.html").read_text(encoding="utf-8")
