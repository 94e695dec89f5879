"""A family or a rule is known by its own file: no other one has its name in code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from unicr.noise import FAMILIES
from unicr.smoothing._plan import RULES

SOURCE = Path(__file__).parents[1] / "src" / "unicr"
# Files that speak of certain noises by their nature.
OF_FAMILIES = {
    "noise/__init__.py": "names them for Python users and their editors",
    "noise/families": "a family may build on another, or say that it has one's law",
    "tightness/formulas": "a published formula is about the noises of its paper",
    "lab/report/demo.py": "an example of three noises",
    "lab/attack/gaussian.py": "an attack of that name",
    "cli/select.py": "the noise of a selector where none is given",
}
OF_RULES = {
    "smoothing/rules": "names them for Python users",
    "smoothing/_plan.py": "the rule of a plan where none is given",
    "smoothing/procedures": "a procedure may be made of a rule",
}
WORDS = {
    "target": ("data/_dataset.py", "data/readers"),
    "union": ("smoothing/procedures/i_opt.py",),
}


def _is_under(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def _names_in_code(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Whole strings and what is imported from a module of that name; no prose, no help."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        if isinstance(node, ast.ImportFrom):
            yield node.lineno, (node.module or "").rpartition(".")[2]
            yield from ((node.lineno, alias.name) for alias in node.names)


def _offenders(names: Iterable[str], allowed: Iterable[str], home: str) -> list[str]:
    found, known, allowed = [], set(names), list(allowed)
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).as_posix()
        if _is_under(place, allowed):
            continue
        for line, name in _names_in_code(ast.parse(path.read_text(encoding="utf-8"))):
            own = place == f"{home}/{name}.py"
            if name in known and not own and not _is_under(place, WORDS.get(name, ())):
                found.append(f"{place}:{line} {name}")
    return found


def test_the_name_of_a_family_stands_in_its_own_file() -> None:
    assert _offenders(FAMILIES, OF_FAMILIES, "noise/families") == []


def test_the_name_of_a_rule_stands_in_its_own_file() -> None:
    assert _offenders(RULES, OF_RULES, "smoothing/rules") == []


def test_names_in_code_are_seen() -> None:
    code = "from unicr.noise.families.ball import x\nfrom unicr.noise import ball\ny = 'ball'\n"
    assert [name for _, name in _names_in_code(ast.parse(code)) if name == "ball"] == ["ball"] * 3
    assert len(_offenders(FAMILIES, (), "noise/families")) > 50


# A method that returns a changed copy is a participle, as `sorted` is in Python.
COPIES = {
    "aligned",
    "compiled",
    "labelled",
    "loaded_from",
    "moved",
    "normalised",
    "scaled",
    "sized_as",
    "truncated",
}
NO_VERB_NEEDED = {"certified_accuracy", "certified_radius", "certified_share"}  # what users know
NOT_YET = {"classifier", "cli", "data", "errors.py", "extras.py", "runs", "smoothing"}
EMPTY_NAMES = {"found", "got", "one", "seen"}


def _trees() -> Iterator[tuple[str, ast.Module]]:
    for folder in (SOURCE, SOURCE.parents[1] / "packages" / "unicr-paper" / "src"):
        for path in sorted(folder.rglob("*.py")):
            name = path.relative_to(folder).as_posix()
            if name.split("/")[0] not in NOT_YET:
                yield name, ast.parse(path.read_text(encoding="utf-8"))


def _bindings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every variable and parameter, where it gets its value."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg


def _participles(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Functions whose first word ends like a participle; a property is no function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and re.match(r"_*[a-z]+(ed|ing)(_|$)", node.name):
            words = " ".join(ast.dump(decorator) for decorator in node.decorator_list)
            if "property" not in words and not re.match(r"_*(seed|embed|ping)(_|$)", node.name):
                yield node.lineno, node.name


def test_a_variable_has_the_name_of_the_thing() -> None:
    empty = [
        f"{path}:{line} {name}"
        for path, tree in _trees()
        for line, name in _bindings(tree)
        if name in EMPTY_NAMES
    ]
    assert empty == []


def test_functions_are_verbs_and_changed_copies_participles() -> None:
    wrong = [
        f"{path}:{line} {name}"
        for path, tree in _trees()
        for line, name in _participles(tree)
        if name not in COPIES | NO_VERB_NEEDED
    ]
    assert wrong == []


def test_bindings_and_participles_are_seen() -> None:
    code = "def going_on(one):\n    for found in one: pass\n    return (got := 1)\n"
    tree = ast.parse(code)
    assert [name for _, name in _participles(tree)] == ["going_on"]
    assert {name for _, name in _bindings(tree)} == {"one", "found", "got"}
