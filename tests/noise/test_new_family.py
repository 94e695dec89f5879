"""Adding a family is adding one file: everything else finds it and reads what it says of itself."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import unicr

LOGISTIC = '''
"""Logistic noise, density ∝ sech²(x/2α)."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from unicr.law import SymmetricLaw
from unicr.noise._family import IIDFamily, Parameter
from unicr.values import Array


@dataclass(frozen=True)
class Logistic(SymmetricLaw):
    """Heavier tails than Gaussian noise; `steep` only divides the scale."""

    steep: float

    @property
    def std(self) -> float:
        return math.pi / math.sqrt(3) / self.steep

    @property
    def log_norm(self) -> float:
        return math.log(4 / self.steep)

    def kernel(self, z: Any, xp: Any) -> Any:
        a = xp.abs(z) * self.steep
        return 2 * math.log(2) - a - 2 * xp.log1p(xp.exp(-a))

    def tail(self, z: Array) -> Array:
        return 1 / (1 + np.exp(self.steep * z))

    def tail_inverse(self, v: Array) -> Array:
        return np.log((1 - v) / v) / self.steep


logistic = IIDFamily(
    "logistic",
    Logistic,
    formula="sech(s*x/2a)^2",
    example="logistic(steep=1, sigma=1)",
    parameters=(
        Parameter("steep", 0.5, 2.0, slider=(0.5, 2.0, 1.0), axis=(0.5, 2.0, 0.5), gallery=(1.0,)),
    ),
)
'''

USE = """
import math, sys
import numpy as np
import torch
from scipy import stats
from unicr import noise
from unicr.cli.i_opt import axes_of
from unicr.errors import NoiseError
from unicr.lab.explore._answers import answer
from unicr.lab.optimality import gallery
from unicr.radius import certified_radius

one = noise.parse("logistic(steep=1, sigma=1)")
law = stats.logistic(0, math.sqrt(3) / math.pi)
assert one == noise.logistic(steep=1, sigma=1) and "logistic" in dir(noise)
x = np.linspace(-9, 9, 61)
np.testing.assert_allclose(one.cdf(x), law.cdf(x), rtol=1e-12)
np.testing.assert_allclose(one.pdf(x), law.pdf(x), rtol=1e-12)
assert one.evaluate_error().variation < 1e-13
assert abs(float(one.sample(10**5, 1, seed=3, dtype=torch.float64).std()) - 1) < 0.02
assert noise.from_data(noise.to_data(one)) == one
r = certified_radius(one, norm=1, dim=10, p_a=0.9)
assert math.isclose(r.proved, law.ppf(0.9), rel_tol=1e-9), r
listed = {f["name"]: f for f in answer("families", {})["families"]}
assert listed["logistic"]["parameters"][0]["name"] == "steep"
answer("density", {"family": "logistic", "steep": "1", "sigma": "2"})
assert [a.name for a in axes_of(None, 1.0, "logistic")] == ["sigma", "steep"]
noises, refused = gallery("logistic", 1.0)
assert noises == (one,) and not refused
try:
    noise.parse("logistic(steep=3, sigma=1)")
except NoiseError as error:
    assert "from 0.5 to 2" in str(error)
else:
    sys.exit("outside its range")
sys.argv = ["unicr", "noise", "list"]
from unicr.cli import main
main()
"""


def contents(root: Path) -> dict[Path, bytes]:
    return {p.relative_to(root): p.read_bytes() for p in root.rglob("*.py")}


def test_a_new_family_is_one_file(tmp_path: Path) -> None:
    source = Path(unicr.__file__).parent
    copy = tmp_path / "unicr"
    shutil.copytree(source, copy)  # with what was compiled of it
    (copy / "noise" / "families" / "logistic.py").write_text(LOGISTIC)
    before, after = contents(source), contents(copy)
    touched = {path for path in after if after[path] != before.get(path)}
    assert len(touched) == 1
    done = subprocess.run(
        [sys.executable, "-c", USE],
        env={"PYTHONPATH": str(tmp_path), "PATH": "", "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "logistic(steep=1, sigma=1)" in done.stdout
    assert "logistic steep 0.5 to 2" in " ".join(done.stdout.split())
