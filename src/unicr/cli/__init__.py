"""The `unicr` command. Every sub-command is one file here and imports its heavy parts when run."""

from __future__ import annotations

import sys

from cyclopts import App

import unicr
from unicr.cli import (
    attack,
    c_opt,
    certify,
    curve,
    data,
    demo,
    explore,
    export,
    guard,
    i_opt,
    noise,
    optimality,
    paper,
    radius,
    recertify,
    report,
    score,
    tightness,
    train,
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
app.command(attack.attack)
app.command(score.score)
app.command(report.report)
app.command(train.train)
app.command(c_opt.c_opt)
app.command(i_opt.i_opt)
app.command(guard.guard)
app.command(optimality.optimality)
app.command(recertify.recertify)
app.command(export.export)
app.command(data.app)
app.command(noise.app)
app.command(radius.radius)
app.command(curve.curve)
app.command(tightness.tightness)
app.command(paper.paper)
app.command(explore.explore)
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
