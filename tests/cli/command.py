"""The `unicr` command run inside this process: its exit code and what it printed."""

from __future__ import annotations

import contextlib
import io
import sys
from dataclasses import dataclass
from unittest import mock

from unicr import cli


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: object
    out: str
    err: str

    def check_refused(self, *words: str) -> None:
        """It ended with one line that says why, words among them."""
        assert self.code == 2, (self.code, self.err)
        last = self.err.rstrip("\n").splitlines()[-1]
        assert last.startswith("unicr: "), self.err
        assert len(last) < 2000
        assert "Traceback" not in self.err
        for word in words:
            assert word in last, last


def run(*arguments: object) -> Done:
    """Run `unicr ARGUMENTS`; an exception that is not SystemExit comes through, as a bug would."""
    out, err = io.StringIO(), io.StringIO()
    code: object = "no exit"
    with (
        mock.patch.object(sys, "argv", ["unicr", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            cli.main()
        except SystemExit as end:
            code = end.code
    return Done(code, out.getvalue(), err.getvalue())
