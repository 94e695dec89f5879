"""Imports stay cheap: what is heavy loads when it is used."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import unicr
from tests.cli.command import run

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


WITHOUT = """
import sys

class Absent:
    @staticmethod
    def find_spec(name, *_):
        if name.partition(".")[0] in ("torch", "safetensors", "matplotlib"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent)
from unicr.cli import main
main()
"""


def without_torch(*words: object) -> tuple[int, str, str]:
    """A command in an interpreter that has neither torch nor matplotlib: code, output, errors."""
    line = [sys.executable, "-c", WITHOUT, *map(str, words)]
    done = subprocess.run(line, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_an_auditor_needs_no_torch(tmp_path: Path) -> None:
    """A run that was made with torch is checked, scored, exported and carried over without it."""
    x = np.random.default_rng(0).normal(size=(3, 6)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=x, y=(x[:, 0] > 0).astype(np.int64))
    (tmp_path / "model.py").write_text("def f(x):\n    return (x[:, 0] > 0).long()\n")
    folder, table = tmp_path / "run", tmp_path / "run.tsv"
    few = ("--n0", 20, "--n", 200, "--norm", 2, "--out", folder, "--trust", tmp_path / "model.py")
    model = ("--model", f"{tmp_path / 'model.py'}:f", "--data", tmp_path / "data.npz")
    assert run("certify", *model, "--noise", "gaussian(sigma=0.5)", *few).code == 0
    problem = ("--noise", "gaussian(sigma=0.5)", "--dim", 6)
    for words, said in (
        (("radius", *problem, "--norm", 2, "--pa", 0.9), "0.640775"),  # Cohen et al.: σ Φ⁻¹(p_A)
        (("verify", folder), "3 certificates recomputed from their votes: all hold"),
        (("score", folder), "certified_accuracy"),
        (("export", folder, "--norm", 2, "-o", table), "written to"),
        (("recertify", table, *problem, "--norm", "inf"), "radius"),
        (("curve", *problem, "--norm", 2, "--out", tmp_path / "curve.csv"), "written to"),
    ):
        code, out, err = without_torch(*words)
        assert code == 0, err
        assert said in out + err


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        ("demo --quick --out {}", "torch"),
        ("train --data builtin:mnist --noise gaussian(sigma=1) --out {}", "torch"),
        ("curve --noise gaussian(sigma=1) --norm 2 --dim 4 --out {}.png", "plots"),
    ],
)
def test_what_needs_torch_or_plots_says_so_in_one_line(
    words: str, extra: str, tmp_path: Path
) -> None:
    code, _, err = without_torch(*words.format(tmp_path / "out").split())
    assert code == 2
    assert err.splitlines()[-1].endswith(f"which is not installed: pip install 'unicr[{extra}]'")
    assert "Traceback" not in err


def test_the_probe_sees_a_heavy_import() -> None:
    assert loaded_by("import scipy.stats") == ["scipy.stats"]


def test_submodules_load_on_first_use() -> None:
    assert unicr.noise.gaussian(sigma=1).sigma == 1
    assert "noise" in dir(unicr)
    for name in dir(unicr):
        assert getattr(unicr, name) is not None
    assert 40 <= len(dir(unicr)) <= 60
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        unicr.nonsense  # noqa: B018
