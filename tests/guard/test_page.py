"""The Python of the page on input-dependent certificates runs as printed."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "input-dependent.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_there_are_three_examples() -> None:
    assert len(BLOCKS) == 3


@pytest.mark.parametrize("code", BLOCKS)
def test_python_blocks_run(code: str) -> None:
    exec(compile(code, PAGE.name, "exec"), {})
