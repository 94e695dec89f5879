"""The `unicr` command. Every sub-command is one file here and imports its heavy parts when run."""

from __future__ import annotations

import sys
from typing import NoReturn

from cyclopts import App, CycloptsError

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
    seal,
    tightness,
    train,
    verify,
)
from unicr.errors import UnicrError, one_line

app = App(
    name="unicr",
    version=unicr.__version__,
    help="Certified robustness for any classifier, input, lp norm and continuous noise.",
    help_format="plaintext",
    result_action="return_value",
)
app.command(certify.certify)
app.command(verify.verify)
app.command(attack.attack)
app.command(seal.seal)
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
    """Run the command line. What is wrong with the user's words, files or machine is one line.

    Exit code 2 for those; an exception of another kind is a fault of unicr's and stays visible.
    """
    try:
        result = app(sys.argv[1:], exit_on_error=False, print_error=False)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    except KeyboardInterrupt:
        _stop("interrupted", 130)
    except UnicrError as error:
        _stop(str(error))
    except CycloptsError as error:
        _stop(" ".join(str(error).split()))
    except MemoryError as error:
        _stop(f"not enough memory: {one_line(error)}")
    except OSError as error:
        _stop(f"{error.filename or 'the system'}: {error.strerror or error}")
    except SystemExit as error:
        _stop(f"code of a file that was loaded wanted to end the program ({error.code!r})")
    sys.exit(result if isinstance(result, int) else 0)


def _stop(why: str, code: int = 2) -> NoReturn:
    print(f"unicr: {why}", file=sys.stderr)
    sys.exit(code)
