"""All commands in one cyclopts app. Each is a file that is imported when its command is called.

Other distributions add theirs by entry points, each a function or an app.
"""

from __future__ import annotations

from cyclopts import App

import unicr
from unicr.cli import GROUPS, PLUGINS
from unicr.cli._parameters import EVERY_OPTION, command
from unicr.errors import UnicrError
from unicr.registry import entries, leave_out_if_broken

APPS = ("data", "noise")  # commands that have commands of their own

app = App(
    name="unicr",
    version=unicr.__version__,
    help="Certified robustness for any classifier, lp norm and continuous noise.",
    help_format="plaintext",
    result_action="return_value",
    default_parameter=EVERY_OPTION,
)

for _name in [name for commands in GROUPS.values() for name in commands]:
    _file = _name.replace("-", "_")
    app.command(f"unicr.cli.{_file}:{'app' if _name in APPS else _file}", name=_name)

for _point in entries(PLUGINS):
    with leave_out_if_broken(_point):
        if _point.name in app:
            raise UnicrError("unicr already has a command of this name")
        app.command(command(_point.load()), name=_point.name)
