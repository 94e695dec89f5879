"""Letters with indices in running text, p_A, T_{u+v} or R^d, shown as such.

The pages are written so that their source reads well; here `_` and `^` after a letter become
subscripts and superscripts. Code, formulas and signatures stay as they are.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

INDEX = re.compile(
    r"(?:(?<![^\W_])(?P<base>[^\W\d_])|(?P<norm>‖))_"
    r"(?:\{(?P<long>[^{}]+)\}|(?P<short>[^\W_]+|[∞½]))"
    r"|(?<=[\w|)])\^(?:\((?P<group>[^()]+)\)|(?P<power>[^\W_]+))"
)
LEFT_ALONE = (
    nodes.FixedTextElement,
    nodes.literal,
    nodes.math,
    nodes.math_block,
    nodes.raw,
    addnodes.desc_signature,
)


def pieces(text: str) -> list[nodes.Node]:
    """The text with its indices as nodes of their own."""
    found: list[nodes.Node] = []
    at = 0
    for match in INDEX.finditer(text):
        low = match["long"] or match["short"]
        before = text[at : match.start()] + (match["base"] or match["norm"] or "")
        if before:
            found.append(nodes.Text(before))
        kind = nodes.subscript if low else nodes.superscript
        content = low or match["group"] or match["power"]
        found.append(kind("", nodes.Text(content)))
        at = match.end()
    if at < len(text):
        found.append(nodes.Text(text[at:]))
    return found


class Indices(SphinxTransform):
    """Replace the texts of a page."""

    default_priority: ClassVar[int] = 700

    def apply(self, **kwargs: Any) -> None:
        """Every text node that is not code."""
        for text in list(self.document.findall(nodes.Text)):
            if INDEX.search(text) and not _inside(text):
                text.parent.replace(text, pieces(str(text)))


def _inside(node: nodes.Node) -> bool:
    while node.parent is not None:
        node = node.parent
        if isinstance(node, LEFT_ALONE):
            return True
    return False


def setup(app: Sphinx) -> dict[str, Any]:
    """Run the transform on every page."""
    app.add_transform(Indices)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
