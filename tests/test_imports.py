"""Imports stay cheap: what is heavy loads when it is used."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

import unicr

HEAVY = ("torch", "scipy.stats", "matplotlib", "numba", "ray", "sklearn", "onnxruntime", "plotly")


def loaded_by(code: str) -> list[str]:
    """The heavy modules that a fresh interpreter holds after running `code`."""
    report = f"import sys; print('LOADED', *[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", f"{textwrap.dedent(code)}\n{report}"],
        capture_output=True,
        text=True,
        check=True,
    )
    last = done.stdout.strip().splitlines()[-1].split()
    assert last[0] == "LOADED"
    return last[1:]


HELP = """
    import sys
    from unicr.cli import main
    sys.argv = ["unicr", *{arguments!r}]
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
"""


def test_importing_unicr_loads_nothing_heavy() -> None:
    assert loaded_by("import unicr; unicr.__version__") == []


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["noise", "--help"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    assert loaded_by(HELP.format(arguments=arguments)) == []


def test_making_and_reading_a_noise_loads_nothing_heavy() -> None:
    assert (
        loaded_by("from unicr import noise; noise.parse('gennorm(beta=1.5, sigma=1)').cdf(1)") == []
    )


def test_the_probe_sees_a_heavy_import() -> None:
    assert loaded_by("import scipy.stats") == ["scipy.stats"]


def test_submodules_load_on_first_use() -> None:
    assert unicr.noise.gaussian(sigma=1).sigma == 1
    assert "noise" in dir(unicr)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        unicr.nonsense  # noqa: B018
