"""Every place of the theory page that the code cites is there."""

import re
from pathlib import Path

from unicr.radius._rounding import CHARGES

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
    rows = [f"| {one.theorems} | {one.of} | {one.size} | {one.reason} |" for one in CHARGES]
    assert "\n".join(rows) in THEORY
