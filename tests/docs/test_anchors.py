"""Every place of the documentation that the code cites is there, and guarantees cite one."""

import ast
import re
from pathlib import Path

import pytest

from unicr.radius._rounding import CHARGES, Charge
from unicr.smoothing import Procedure, Rule
from unicr.smoothing._plan import PROCEDURES, RULES

ROOT = Path(__file__).parents[2]
CITATION = re.compile(r"docs/([\w-]+\.md)#([\w-]+)")
THEORY = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")


def places(page: str) -> set[str]:
    """The anchors of a page: those that it names, and its headings."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    named = set(re.findall(r"^\(([\w-]+)\)=$", text, re.M))
    return named | {re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in headings}


def test_every_cited_place_of_the_documentation_exists() -> None:
    cited = {
        (page, anchor, path.name)
        for folder in ("src", "packages")
        for path in (ROOT / folder).rglob("*.py")
        for page, anchor in CITATION.findall(path.read_text(encoding="utf-8"))
    }
    assert len({anchor for _, anchor, _ in cited}) >= 12
    known = {page: places(page) for page, _, _ in cited}
    assert [one for one in cited if one[1] not in known[one[0]]] == []


@pytest.mark.parametrize("kind", [*RULES.values(), *PROCEDURES.values()], ids=lambda k: k.name)
def test_what_a_rule_and_a_procedure_guarantee_has_its_proof(kind: type[Rule | Procedure]) -> None:
    function = kind.conclude if issubclass(kind, Rule) else kind.steps
    assert CITATION.search(function.__doc__ or "")


def test_the_table_of_rounding_charges_is_the_one_of_the_code() -> None:
    rows = [
        f"| {one.theorems} | {one.of} | {one.size} | {one.reason} | `{one.constant}` |"
        for one in CHARGES
    ]
    assert "\n".join(rows) in THEORY


@pytest.mark.parametrize("charge", CHARGES, ids=lambda one: one.of)
def test_every_charge_names_a_constant_of_its_size(charge: Charge) -> None:
    """The file defines the constant, and the numbers of the table are those of the code."""
    file, _, names = charge.constant.partition(" ")
    text = (ROOT / "src" / "unicr" / file).read_text(encoding="utf-8")
    values = [re.search(rf"^{name} = (.*)$", text, re.M) for name in names.split(", ")]
    assert all(values), charge.constant
    written = [value[1].split("#")[0].strip() for value in values if value is not None]
    stated = re.findall(r"\d+e-\d+", charge.size)
    plain = [word for word in written if re.fullmatch(r"\d+e-\d+", word)]
    assert set(plain) <= set(stated), (written, charge.size)


def test_every_rounding_constant_of_a_radius_stands_in_the_table() -> None:
    """A charge that a theorem takes and the table does not name is told to nobody."""
    listed = set()
    for charge in CHARGES:
        file, _, names = charge.constant.partition(" ")
        listed |= {f"{file} {name}" for name in names.split(", ")}
    source, written = ROOT / "src" / "unicr", set()
    for path in [*(source / "radius").rglob("*.py"), *(source / "tradeoff").rglob("*.py")]:
        file = path.relative_to(source).as_posix()
        text = path.read_text("utf-8")
        found = re.findall(r"^([A-Z_]*(?:CHARGE|ROUNDING|LACK|_UNIT)[A-Z_]*) = (?!\()", text, re.M)
        written |= {f"{file} {name}" for name in found}
    # what rounding adds to a variance decides where cells are cut, and no bound
    assert written - listed == {"tradeoff/_ratio.py ROUNDING_VARIANCE"}


# What a docstring says of a number that a certificate may rest on.
GUARANTEE = re.compile(
    r"from below|from above|rounded (up|down|outwards)|with probability|proved (at|for)"
    r"|certifi(es|ed)|lower bound|upper bound"
)
ON_THE_PATH = ("radius", "tradeoff", "law", "sample", "noise", "montecarlo", "guard", "select")


def uncited(path: Path) -> list[str]:
    """Functions that state a guarantee, where neither they nor class or module cite its place."""
    missing = []

    def visit(node: ast.AST, cited: bool) -> None:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = " ".join((ast.get_docstring(node) or "").split())
            cited = cited or CITATION.search(text) is not None
            if GUARANTEE.search(text) and not cited and isinstance(node, ast.FunctionDef):
                missing.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
        for child in ast.iter_child_nodes(node):
            visit(child, cited)

    visit(ast.parse(path.read_text(encoding="utf-8")), False)
    return missing


@pytest.mark.parametrize("package", ON_THE_PATH)
def test_a_function_with_a_guarantee_leads_to_its_proof(package: str) -> None:
    files = (ROOT / "src" / "unicr" / package).rglob("*.py")
    assert [line for path in sorted(files) for line in uncited(path)] == []
