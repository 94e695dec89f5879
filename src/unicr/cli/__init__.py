"""The `unicr` command. Every sub-command is one file here and imports its heavy parts when run.

`unicr --help` is printed from the words below and loads nothing else.
"""

from __future__ import annotations

import shlex
import sys
import warnings
from typing import Any, NoReturn, TextIO

import unicr
from unicr.errors import UnicrError, one_line, printable

GROUPS = {
    "Start here": {
        "demo": "Certify built-in models on real digits, in less than a minute.",
        "explore": "Open a local page with sliders for noise, norm and p_A.",
        "data": "Download well-known datasets.",
    },
    "Certify a model": {
        "commit": "Record all settings of a run before its random noise is known.",
        "certify": "Certify every input of a dataset; an interruption loses nothing.",
        "score": "Print certified accuracy at radii, p_A percentiles, average radii.",
        "report": "Write one offline HTML page about runs.",
        "export": "Write the certificates of a run as a table, radii rounded down.",
        "recertify": "Compute radii in other norms from a published log.",
        "convert": "Convert a model to ONNX or safetensors, which cannot run code.",
    },
    "Choose the noise": {
        "noise": "List the built-in noises, or show the facts of one.",
        "optimality": "Rank noises of equal sigma by radius, and say what is proved.",
        "i-opt": "Find the best noise for each input and certify the input (I-OPT).",
        "select": "Train a selector that chooses a noise for each input.",
        "c-opt": "Find the best noise for a classifier by training (C-OPT).",
        "train": "Train a classifier on noisy inputs.",
    },
    "One radius": {
        "radius": "Compute the certified radius for given probabilities p_A, p_B.",
        "curve": "Draw the radius against p_A for one or more noises.",
        "tightness": "Check whether a published radius formula is tight, loose or wrong.",
    },
    "Check": {
        "verify": "Recompute every claim of a run from its votes.",
        "check-log": "Find contradictions in published logs.",
        "seal": "Print the seals (checksums) of a run, sign and time-stamp them.",
        "attack": "Attack every certified input of a run, at its radius and beyond.",
        "guard": "Answer queries without contradicting earlier certificates.",
    },
}
PLUGINS = "unicr.commands"  # the group of entry points that add commands
SUMMARY = 66  # characters of a plugin's summary: a line of the overview has 80
RESUMED = ("certify", "i-opt", "c-opt", "train")
CONTINUES = ("attack", "data", "demo")  # what they did is found by the same command


def overview() -> str:
    """What `unicr --help` prints."""
    lines = [
        "unicr: certified robustness for any classifier, lp norm and continuous noise.",
        "",
        "Usage: unicr COMMAND [OPTIONS]    unicr COMMAND --help says more, with examples",
    ]
    groups = {**GROUPS, "From plugins": plugin_summaries()}
    for group, commands in groups.items():
        if not commands:
            continue
        lines += ["", group, *(f"  {name:<11} {text}" for name, text in commands.items())]
    return "\n".join(lines)


def plugin_summaries() -> dict[str, str]:
    """Commands of other distributions, with these in brackets: nothing of them is imported."""
    from unicr.registry import distribution_of, entries

    own = {name for commands in GROUPS.values() for name in commands}
    summaries = {}
    for point in entries(PLUGINS):
        if point.name not in own and point.dist is not None:
            summary = point.dist.metadata["Summary"] or distribution_of(point)
            summaries[printable(point.name)] = printable(summary)[:SUMMARY]
    return summaries


def __getattr__(name: str) -> Any:
    """`app`, the whole command line, for whoever calls it from Python."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from unicr.cli._app import app

    return app


def main() -> None:
    """Run the command line. What is wrong with the user's words, files or machine is one line.

    Exit code 2 for those; an exception of another kind is a fault of unicr's and stays visible.
    """
    words = sys.argv[1:]
    warnings.showwarning = _warn
    if words[:1] in ([], ["--help"], ["-h"], ["--version"]):
        print(unicr.__version__ if words[:1] == ["--version"] else overview())
        sys.exit(0)
    try:
        _run(words)
    except KeyboardInterrupt:
        _stop(f"interrupted{_how_to_resume(words)}", 130)


def _run(words: list[str]) -> NoReturn:
    from cyclopts import CycloptsError

    from unicr.cli._app import app
    from unicr.extras import name_missing_extra
    from unicr.progress import show

    try:
        with show():
            result = app(words, exit_on_error=False, print_error=False)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    except UnicrError as error:
        _stop(_as_typed(str(error), words))
    except ModuleNotFoundError as error:
        lacking = name_missing_extra(error)
        if lacking is None:
            raise
        _stop(str(lacking))
    except CycloptsError as error:
        _stop(" ".join(str(error).split()))
    except MemoryError as error:
        _stop(f"not enough memory: {one_line(error)}")
    except OSError as error:
        _stop(f"{error.filename or 'the system'}: {error.strerror or error}")
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):
            sys.exit(141)
        if isinstance(error.__context__, KeyboardInterrupt):  # cyclopts makes an exit of it
            raise KeyboardInterrupt from None
        _stop(f"code of a file that was loaded wanted to end the program ({error.code!r})")
    sys.exit(result if isinstance(result, int) else 0)


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A plugin that is left out is one plain line; other warnings are as Python shows them."""
    from unicr.registry import PluginWarning

    text = warnings.formatwarning(message, category, filename, lineno, line)
    if issubclass(category, PluginWarning):
        text = f"unicr: {printable(str(message))}\n"
    (file or sys.stderr).write(text)


def _how_to_resume(words: list[str]) -> str:
    """The command that continues what was interrupted."""
    if words[0] not in (*RESUMED, *CONTINUES):
        return ""
    words = [word for word in words if word != "--fresh"]
    more = [] if "--resume" in words or words[0] in CONTINUES else ["--resume"]
    return f"; what is done stays, continue with: unicr {shlex.join([*words, *more])}"


def _as_typed(text: str, words: list[str]) -> str:
    """A message that begins with name=value, in the user's words: --name value."""
    name, _, rest = text.partition("=")
    short = "--max" if name == "limit" else f"--{name.replace('_', '')}"
    options = (f"--{name.replace('_', '-')}", short)
    return next((f"{option} {rest}" for option in options if option in words), text)


def _stop(why: str, code: int = 2) -> NoReturn:
    print(f"unicr: {printable(why)}", file=sys.stderr)
    sys.exit(code)
