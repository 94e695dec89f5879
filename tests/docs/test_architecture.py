"""The picture of docs/architecture.md is the imports of the source, and they are few."""

from __future__ import annotations

from pathlib import Path

import unicr
from tests.docs import architecture
from unicr.radius.theorems import THEOREMS

MOST = 70  # imports between packages: more than this nobody keeps in mind


def test_the_picture_is_made_from_the_imports() -> None:
    """`python -m tests.docs.architecture` draws it again."""
    assert architecture.PAGE.read_text(encoding="utf-8") == architecture.page()
    assert architecture.picture().count("●") == sum(map(len, architecture.edges().values()))


def test_packages_import_few_others() -> None:
    assert 30 < sum(map(len, architecture.edges().values())) <= MOST


def test_the_table_of_the_page_names_every_package() -> None:
    text = architecture.PAGE.read_text(encoding="utf-8")
    for name in architecture.packages():
        assert f"`{name}`" in text or f"`{name}." in text, name


def test_the_table_of_theorems_leads_to_their_files() -> None:
    """Each letter with its file, and modules that exist."""
    text = architecture.PAGE.read_text(encoding="utf-8")
    table = text.split("| theorem |")[1].split("\n\n")[0]
    rows = [row.split(" | ") for row in table.splitlines()[2:]]
    listed: dict[str, str] = {}
    for letters, files, _ in rows:
        names = [name.strip("` ") for name in files.split(",")]
        listed |= dict(zip(letters.strip("| ").split(", "), names, strict=True))
    known = {one.letter: Path(one.match.__code__.co_filename).name for one in THEOREMS.values()}
    assert listed == known
    source = Path(unicr.__file__).parent
    for _, _, computed in rows:
        for word in computed.split("`")[1::2]:
            assert any((source / place / word).exists() for place in ("", "tradeoff")), word
