"""Every place of the theory page that the code cites is there."""

import re
from pathlib import Path

import pytest

from unicr.radius._rounding import CHARGES, Charge

ROOT = Path(__file__).parents[2]
THEORY = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")


def test_every_cited_place_of_the_theory_page_exists() -> None:
    cited = {
        (anchor, path.name)
        for path in (ROOT / "src").rglob("*.py")
        for anchor in re.findall(r"docs/theory\.md#([\w-]+)", path.read_text(encoding="utf-8"))
    }
    assert len({anchor for anchor, _ in cited}) >= 12
    targets = set(re.findall(r"^\(([\w-]+)\)=$", THEORY, re.M))
    headings = re.findall(r"^#+ (.+)$", THEORY, re.M)
    targets |= {re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in headings}
    missing = [(anchor, name) for anchor, name in cited if anchor not in targets]
    assert missing == []


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
