"""What `unicr curve` draws: a user's names, one colour for a noise, and noise without a theorem."""

from __future__ import annotations

import csv
import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from unicr import noise
from unicr.lab.report.colours import PALETTE, assign_colours
from unicr.lab.report.curves import write_curves
from unicr.lab.report.points import RadiusPoints, label_curves, make_curve
from unicr.noise import Joint, parse
from unicr.norms import l2
from unicr.radius import MonteCarlo, RadiusCurve

NAMED = """
from unicr import noise

law = noise.from_density(lambda x: -(abs(x) ** 3), name="cubic", sigma=0.5)
nameless = noise.from_density(lambda x: -(abs(x) ** 3))
"""


@pytest.mark.slow
@pytest.mark.important
def test_a_joint_noise_has_points_with_their_confidence_under_its_own_name(tmp_path: Path) -> None:
    # Gaussian noise in disguise, so that every radius has the closed form sigma * ppf(p_A). The
    # seed is fixed; 4,000 samples estimate a radius to within 10 %.
    law = Joint(
        lambda z: -2 * (z**2).sum(-1),
        lambda n, generator: 0.5 * torch.randn(n, 2, generator=generator),
        dim=2,
        symmetric=True,
        name="mine",
    )
    assert isinstance(make_curve(law, l2, None), RadiusPoints)
    points = RadiusPoints(law, l2, settings=MonteCarlo(samples=4000, particles=4, iterations=1))
    write_curves([points], tmp_path / "curve.csv")
    with (tmp_path / "curve.csv").open() as file:
        rows = list(csv.DictReader(file))
    true = 0.5 * stats.norm.ppf([float(row["p_a"]) for row in rows])
    assert [row["noise"] for row in rows] == ["mine"] * 7
    assert {row["confidence"] for row in rows} == {"0.999"}
    assert {row["proved"] for row in rows} == {"0.0"}
    searched = np.array([float(row["searched"]) for row in rows])
    confident = np.array([float(row["confident"]) for row in rows])
    assert (np.abs(searched / true - 1) < 0.1).all()
    assert (confident < true).all()
    assert (confident > 0).all()
    for ending in ("tex", "png"):
        write_curves([points], tmp_path / f"curve.{ending}")
    assert "99.9\\% confidence" in (tmp_path / "curve.tex").read_text()


def test_a_legend_shows_the_name_that_a_user_gave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(NAMED)
    law, nameless = parse("own.py:law"), parse("own.py:nameless")
    assert law.text == "own.py:law"
    assert law.label == "cubic.with_sigma(0.5)"
    assert (law * 2).label == "cubic.with_sigma(1)"
    assert nameless.label == "own.py:nameless"
    assert noise.gaussian(sigma=1).label == "gaussian(sigma=1)"
    twice = [RadiusCurve(one, 1, 784) for one in (law, noise.gaussian(sigma=1))]
    assert label_curves(twice) == ["cubic.with_sigma(0.5)", "gaussian(sigma=1)"]


def test_a_noise_has_its_colour_whatever_stands_beside_it() -> None:
    assert assign_colours(["laplace(sigma=0.5)", "gaussian(sigma=0.5)"]) == [1, 0]
    assert assign_colours(["demo/laplace (laplace(sigma=1))"]) == [1]
    assert assign_colours(["mine", "gaussian(sigma=1)", "gaussian(sigma=2)"]) == [1, 0, 2]
    many = assign_colours([f"noise {i}" for i in range(9)])
    assert many[:7] == list(range(7))
    assert all(place < 7 for place in many)


def test_the_page_and_the_pictures_have_one_palette() -> None:
    script = files("unicr.lab.report.html").joinpath("page.js").read_text(encoding="utf-8")
    light = re.search(r"light: \{.*?runs: \[(.*?)\]", script, re.DOTALL)
    assert light is not None
    assert tuple(re.findall(r'"(#\w+)"', light[1])) == PALETTE
