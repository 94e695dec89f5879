"""Draw which package of unicr imports which into docs/architecture.md.

    python -m tests.docs.architecture

The picture is made from the imports of the source, at the top of files and inside functions;
`test_architecture.py` compares it with the page and counts its marks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
SOURCE = REPOSITORY / "src" / "unicr"
PAGE = REPOSITORY / "docs" / "architecture.md"
BEGIN, END = "<!-- imports: begin -->", "<!-- imports: end -->"


def packages() -> list[str]:
    """The packages of unicr. Single modules (errors, norms, …) serve all and are left out."""
    return sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))


def imported(path: Path) -> Iterator[str]:
    """The parts of unicr, by their first name, that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module == "unicr":
            names = [f"unicr.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from (name.split(".")[1] for name in names if name.startswith("unicr."))


def edges() -> dict[str, set[str]]:
    """For each package the others that it imports."""
    known = set(packages())
    found: dict[str, set[str]] = {name: set() for name in known}
    for name in known:
        for path in (SOURCE / name).rglob("*.py"):
            found[name] |= set(imported(path)) & known - {name}
    return found


def picture() -> str:
    """A row for each package, below all that it uses, with a mark under each of these."""
    uses = edges()

    @cache
    def height(name: str) -> int:
        return 1 + max((height(other) for other in uses[name]), default=0)

    order = sorted(uses, key=lambda name: (height(name), name))
    width = max(map(len, order))
    head = " " * (width + 4) + "".join(f"{i:>3}" for i in range(1, len(order) + 1))
    rows = [
        f"{i:>2} {name:<{width}} "
        + "".join("  ■" if other == name else "  ●" if other in uses[name] else "  ·"
                  for other in order[:i])
        for i, name in enumerate(order, 1)
    ]  # fmt: skip
    return "\n".join(["```text", head, *rows, "```"])


def page() -> str:
    """The page with the picture of today."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{picture()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
