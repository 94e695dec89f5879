"""The `unicr` command. Every sub-command is one file here and imports its heavy parts when run."""

from __future__ import annotations

import sys

from cyclopts import App

import unicr
from unicr.cli import (
    certify,
    curve,
    data,
    demo,
    export,
    noise,
    radius,
    recertify,
    score,
    tightness,
    verify,
)
from unicr.errors import UnicrError

app = App(
    name="unicr",
    version=unicr.__version__,
    help="Certified robustness for any classifier, input, lp norm and continuous noise.",
    result_action="return_value",
)
app.command(certify.certify)
app.command(verify.verify)
app.command(score.score)
app.command(recertify.recertify)
app.command(export.export)
app.command(data.app)
app.command(noise.app)
app.command(radius.radius)
app.command(curve.curve)
app.command(tightness.tightness)
app.command(demo.demo)


def main() -> None:
    """Run the command line; a mistake of the user's is one line on stderr and exit code 2."""
    try:
        result = app(sys.argv[1:])
    except UnicrError as error:
        print(f"unicr: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    sys.exit(result if isinstance(result, int) else 0)
