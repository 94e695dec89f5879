"""What an auditor can do with `pip install unicr` alone: no torch, no matplotlib.

    python tools/without_torch.py RUN

Run by the interpreter of an environment without the two, on a run folder that was made elsewhere.
`make notorch` does both. Each command must work, or name the extra that it needs in one line.
"""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import NormalDist

GAUSSIAN = "gaussian(sigma=0.5)"
PROBLEM = ("--noise", GAUSSIAN, "--norm", "2", "--dim", "784")


def unicr(*words: object, refused: str | None = None) -> str:
    """What the command printed; where `refused` is given it must name that extra in one line."""
    line = [sys.executable, "-m", "unicr", *map(str, words)]
    done = subprocess.run(line, capture_output=True, text=True)
    shown = f"unicr {' '.join(map(str, words))}"
    if refused is not None:
        if done.returncode != 2 or f"'unicr[{refused}]'" not in done.stderr.splitlines()[-1]:
            raise SystemExit(f"{shown} should need unicr[{refused}]: {done.stderr}")
        print(f"{shown}: needs unicr[{refused}], as it says")
        return done.stderr
    if done.returncode:
        raise SystemExit(f"{shown}: {done.stderr}{done.stdout}")
    print(f"{shown}: works")
    return done.stdout


def main() -> None:
    """Every command that is promised, and some that need an extra."""
    run = Path(sys.argv[1])
    for module in ("torch", "matplotlib"):
        if importlib.util.find_spec(module) is not None:
            raise SystemExit(f"{module} is installed here: this shows nothing")
    closed = 0.5 * NormalDist().inv_cdf(0.9)  # Cohen et al. 2019
    radius = f"{math.floor(closed * 1e6) / 1e6:.6f}"  # radii are printed rounded down
    if radius not in unicr("radius", *PROBLEM, "--pa", "0.9"):
        raise SystemExit(f"the radius is not {radius}")
    if "all hold" not in unicr("verify", run):
        raise SystemExit("the run does not hold")
    with tempfile.TemporaryDirectory() as folder:
        curve, table = Path(folder) / "curve.csv", Path(folder) / "run.tsv"
        unicr("curve", *PROBLEM, "--out", curve)
        unicr("score", run)
        unicr("export", run, "--norm", "2", "-o", table)
        unicr("recertify", table, "--noise", GAUSSIAN, "--norm", "inf", "--dim", "784")
        unicr("curve", *PROBLEM, "--out", curve.with_suffix(".png"), refused="plots")
        if not curve.read_text().startswith("noise,norm,dim,p_a,proved,searched"):
            raise SystemExit("the curve is no table")
    unicr("noise", "list")
    unicr("seal", run)
    unicr("verify", run, "--replay", "1", refused="torch")


if __name__ == "__main__":
    main()
