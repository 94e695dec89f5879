"""tests/long.txt names tests that exist: a test that was renamed would silently become quick."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import LONG

ROOT = Path(__file__).parents[1]


def test_every_long_test_exists() -> None:
    lines = LONG.read_text().splitlines()
    assert lines == sorted(set(lines))
    for line in lines:
        file, name = line.split("[")[0].split("::", 1)
        text = (ROOT / file).read_text()
        assert name in text.replace("(", " ").split(), line
