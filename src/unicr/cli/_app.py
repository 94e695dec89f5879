"""All commands in one cyclopts app: a file for each, with the command's function or its own app.

Other distributions add theirs by entry points, each a function or an app.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

from cyclopts import App, Parameter

import unicr
from unicr.cli import GROUPS, PLUGINS
from unicr.errors import UnicrError
from unicr.registry import entries, leave_out_if_broken

app = App(
    name="unicr",
    version=unicr.__version__,
    help="Certified robustness for any classifier, lp norm and continuous noise.",
    help_format="plaintext",
    result_action="return_value",
    default_parameter=Parameter(negative=(), consume_multiple=True),
)


def flowing(command: Any) -> Any:
    """The command with a docstring whose lines follow the terminal's width, but for examples."""
    if isinstance(command, App):
        return command
    text = inspect.getdoc(command) or ""
    head, marker, tail = text.partition("Parameters\n----------\n")
    parts = [p if p.startswith("unicr ") else " ".join(p.split()) for p in head.split("\n\n")]
    tail = re.sub(r"(?<=\S)\n    (?=\S)", " ", re.sub(r"(?m)^(\w+)\n    ", r"\1\n\t", tail))
    command.__doc__ = "\n\n".join(parts) + marker + tail.replace("\t", "    ")
    return command


for _name in [name for commands in GROUPS.values() for name in commands]:
    _file = _name.replace("-", "_")
    _module = import_module(f"unicr.cli.{_file}")
    app.command(flowing(getattr(_module, "app", None) or getattr(_module, _file)), name=_name)

for _point in entries(PLUGINS):
    with leave_out_if_broken(_point):
        if _point.name in app:
            raise UnicrError("unicr has a command of that name")
        app.command(flowing(_point.load()), name=_point.name)
