"""Formulas as inline SVG, drawn by matplotlib: the pages need no script and no other host.

A formula becomes one path in the colour of the text, with its source as the label. What matplotlib
cannot typeset stops the build.
"""

from __future__ import annotations

import html
from typing import Any

from docutils import nodes
from matplotlib import rc_context
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import TextPath, text_to_path
from sphinx.application import Sphinx

SIZE = 100.0  # units per em
LETTERS = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C"}


def svg(formula: str) -> str:
    """The formula as an SVG element, as high as its own glyphs, sitting on the text's baseline."""
    source = " ".join(formula.split())
    text = f"${source}$"
    with rc_context({"mathtext.fontset": "stix"}):
        font = FontProperties(size=SIZE)
        width, height, descent = text_to_path.get_text_width_height_descent(text, font, ismath=True)
        outline = TextPath((0, 0), text, prop=font)
    em = 1.1 / SIZE
    box = f"0 {-(height - descent):.0f} {width:.0f} {height:.0f}"
    style = f"height:{height * em:.3f}em;vertical-align:{-descent * em:.3f}em;max-width:none"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{html.escape(source)}" '
        f'viewBox="{box}" style="{style}"><path fill="currentColor" d="{_path(outline)}"/></svg>'
    )


def _path(outline: Path) -> str:
    parts = []
    for points, code in outline.iter_segments(curves=True, simplify=False):
        if code == Path.CLOSEPOLY:
            parts.append("Z")
            continue
        numbers = [f"{-v if i % 2 else v:.1f}" for i, v in enumerate(points)]
        parts.append(LETTERS[code] + " ".join(numbers))
    return "".join(parts)


def visit_inline(writer: Any, node: nodes.math) -> None:
    """An inline formula."""
    writer.body.append(svg(node.astext()))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.math_block) -> None:
    """Displayed formulas, one for each line that ends in a double backslash."""
    lines = [line for line in node.astext().split("\\\\") if line.strip()]
    drawn = "".join(f'<div style="margin:.5em 0">{svg(line)}</div>' for line in lines)
    writer.body.append(f'<div style="margin:1em 0 1em 2em;overflow-x:auto">{drawn}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer that conf.py names."""
    app.add_html_math_renderer("drawn", (visit_inline, None), (visit_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
