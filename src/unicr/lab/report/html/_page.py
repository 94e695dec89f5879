"""From plain data to one HTML file: style, plotly, script and data inside, nothing loaded.

Texts of users reach the page in the JSON block alone, whose `<`, `>` and `&` are written as JSON
escapes, and the script puts them in as text. The content security policy names the scripts by
their hash, so nothing else runs, and forbids every request.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib.resources import files
from typing import Any

from unicr.extras import require

ESCAPES = {c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def page(content: dict[str, Any]) -> str:
    """The HTML text of the report."""
    plotly = require("plotly.offline", "report").get_plotlyjs()
    script = _asset("page.js")
    hashes = " ".join(f"'sha256-{_sha256(text)}'" for text in (plotly, script))
    names = ", ".join(run["name"] for run in content["runs"])
    parts = {
        "policy": f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'",
        "title": html.escape(f"unicr report: {names}"),
        "style": _asset("page.css"),
        "plotly": plotly,
        "data": embed(content),
        "script": script,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("page.html"))


def embed(content: dict[str, Any]) -> str:
    """JSON that can stand inside a script element whatever texts it holds."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return "".join(ESCAPES.get(c, c) for c in text)


def _asset(name: str) -> str:
    return files("unicr.lab.report.html").joinpath(name).read_text(encoding="utf-8")


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
