"""The picture of docs/architecture.md is the imports of the source, and they are few."""

from __future__ import annotations

from tests.docs import architecture

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
