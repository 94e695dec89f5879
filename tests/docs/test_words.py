"""Plain English stays plain: words and turns of phrase that readers stumbled over are not used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXTS = sorted(
    [
        *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "src").rglob("*.js"),
        *(ROOT / "src").rglob("*.html"),
        *(ROOT / "packages").rglob("src/**/*.py"),
        *(ROOT / "examples").glob("*.py"),
    ]
)
# What was written, and the ordinary words for it.
DIALECT = {
    r"foretold|foretell": "predictable, predict",
    r"told (on )?another way": "received separately",
    r"or less for a tenth": "percentile",
    r"\bspoilt\b": "wrong by chance",
    r"the radius is his": "the full radius applies",
    r"a forger of \d": "this replay would detect N forged rows",
    r"votes from the nonce": "re-runs inputs",
    r"fly in the swarm": "number of particles",
    r"of everything random": "random seed",
    r"read so were": "tested on",
    r"come out again": "the same seed gives the same result",
    r"checked from their counts": "recomputed from their votes",
    r"by another way than": "separately",
    r"the word of whoever": "you have to believe the author",
    r"you were told": "you received, you expected",
    r"\banew\b": "again, fresh",
    r"\bnone where (it|there|they|the|no|a|that|nobody)\b": "None if",
    r"those that there are|what there is\b": "the list, all of them",
    r"does not tell it\b": "does not contain it",
    r"not to be found": "missing, out of date",
    r"take it along": "use it elsewhere",
    r"may be typed": "you can type",
    r"throw .{0,30}away": "delete",
    r"tabs between": "separated by tabs",
    r"whoever gets|trust anybody": "say who: you, the author, the auditor",
    r"\bnevertheless\b": "anyway",
    r"must be that of": "must be the run's",
    r"goes on where|go on where": "continues",
    r"\bdoes again\b": "repeats",
    r"\bthe word of": "what X states",
    r"carry it to": "convert it to",
}


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_text_uses_ordinary_words(path: Path) -> None:
    text = " ".join(path.read_text(encoding="utf-8").split()).lower()
    found = {words: say for words, say in DIALECT.items() if re.search(words, text)}
    assert found == {}
