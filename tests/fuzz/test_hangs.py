"""What once took for ever: an answer, a line that says why not, or a limit with a progress line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import run
from tests.fuzz.work import check_answered, within
from unicr.cli import app
from unicr.errors import UnicrError
from unicr.progress import listen

ONE = ("--norm=2", "--dim=10", "--pa=0.9")
SLOW = "import time\n\n\ndef law(x):\n    time.sleep(0.5)\n    return -abs(x)\n"


def test_a_shape_beyond_its_range_and_too_many_cuts() -> None:
    with within():
        run("radius", "--noise=gennorm(beta=1e6,sigma=1)", *ONE).check_refused("beta")
        cut = "gaussian(sigma=1)" + ".truncated(3)" * 300
        run("radius", f"--noise={cut}", *ONE).check_refused("truncated at most")
        nested = "(" * 300 + "gaussian(sigma=1)" + ").truncated(3)" * 300
        run("radius", f"--noise={nested}", *ONE).check_refused("truncated at most")
    for limit in ("0", "-1", "nan"):
        run("radius", "--noise=gaussian(sigma=1)", *ONE, f"--limit={limit}").check_refused("limit")


def test_a_heavy_tail_ends_at_the_limit() -> None:
    """One that is neither symmetric nor has a variance: nothing is quick about it."""
    with within():
        done = run("radius", "--noise=scipy.levy(0,1)", *ONE, "--limit=4")
        if not check_answered(done):
            done.check_refused("took more than 4 s", "--limit")


def test_what_is_proved_at_the_limit_is_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A theorem that never ends takes none of the others with it."""

    def never(*arguments: object) -> float:
        while True:
            pass

    monkeypatch.setattr("unicr.radius.theorems.bellman.bellman_radius", never)
    with within():
        done = run("radius", "--noise=laplace(scale=1)", *ONE, "--limit=1")
        assert done.code == 0
        lines = dict(line.split(maxsplit=1) for line in done.out.splitlines())
        assert lines["stopped"].startswith("at --limit")
        assert float(lines["proved"].split()[0]) > 0
        assert "searched" not in lines
        kept = json.loads(
            run("radius", "--noise=laplace(scale=1)", *ONE, "--limit=1", "--json").out
        )
        assert kept["complete"] is False


def test_a_slow_density_is_given_up_with_a_line_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    monkeypatch.setattr("unicr.law._quadrature._table.PATIENCE", 1.0)
    monkeypatch.setattr("unicr.cli._watch.EVERY", 0.2)
    heard: list[str] = []
    words = ["radius", f"--noise={tmp_path / 'slow.py'}:law", *ONE]
    with (
        listen(lambda *told: heard.append(told[3])),
        pytest.raises(UnicrError, match="logpdf is too slow"),
    ):
        app(words, exit_on_error=False, print_error=False)
    assert heard[0].endswith("slow.py:law (--limit 300)")


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["scipy.levy(0,1)", "gennorm(beta=100,sigma=1)"])
def test_the_hardest_are_answered_or_given_up(noise: str) -> None:
    with within(320):
        check_answered(run("radius", f"--noise={noise}", *ONE))
