"""Every item in quick mode, and some numbers of its tables against closed forms.

Reference radii of other noises come from an implementation independent of this one.
"""

from __future__ import annotations

import csv
import itertools
import math
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from scipy import stats

from unicr.noise import parse
from unicr_paper import ITEMS, Request, run_items
from unicr_paper.items.confidence import (
    clopper_pearson_confidence,
    dkw_confidence,
    paper_confidence,
)
from unicr_paper.items.noises import CAUCHY, CUT, NOISES, PARETO

DIM = 3072
QUANTILE = {p: NormalDist().inv_cdf(p) for p in (0.6, 0.9, 0.99)}


def made(name: str, out: Path) -> Path:
    settings = Request(out=out, data=out / "none", mode="quick")
    (outcome,) = run_items([ITEMS[name]], settings, log=print)
    assert outcome.state == "done", outcome.text
    folder = out / name
    assert any(folder.glob("*.png"))
    assert any(folder.glob("*.svg"))
    assert "Note: " in (folder / "comparison.txt").read_text()
    return folder


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def radii(rows: list[dict[str, str]], noise: str, norm: str) -> dict[float, float]:
    own = [row for row in rows if row["noise"] == noise and row["norm"] == norm]
    return {float(row["p_a"]): float(row["searched"]) for row in own}


def below(found: float, truth: float, by: float = 1e-3) -> bool:
    """A radius may lose a little; it must not lie above the truth (1e-9: rounding)."""
    return truth * (1 - by) <= found <= truth * (1 + 1e-9)


def test_confidence(tmp_path: Path) -> None:
    rows = {
        int(row["samples"]): row for row in read(made("confidence", tmp_path) / "confidence.csv")
    }
    at = rows[400]
    tail = 2 * math.exp(-2 * 400 * 0.1**2)
    assert float(at["paper"]) == pytest.approx(0.999**2 * (1 - tail) ** 4, rel=1e-12)
    assert float(at["dkw"]) == pytest.approx(1 - tail, rel=1e-12)
    for n in (10, 30, 50):  # P(Bin(n, 0.9) ≤ 0.8n) and P(Bin(n, 1/2) ≥ 0.6n), summed in integers
        low = sum(math.comb(n, k) * 9**k for k in range(8 * n // 10 + 1)) / 10**n
        high = sum(math.comb(n, k) for k in range(6 * n // 10, n + 1)) / 2**n
        expected = max(1 - low - high, 0)
        assert float(rows[n]["clopper_pearson"]) == pytest.approx(expected, abs=1e-12)


def test_the_lines_of_the_confidence_figure() -> None:
    n = np.array([10, 100, 400, 1000])
    assert paper_confidence(400) == pytest.approx(0.999**2 * (1 - 2 * math.exp(-8)) ** 4)
    np.testing.assert_allclose(dkw_confidence(n)[2:], 1 - 2 * np.exp(-0.02 * n[2:]))
    exact = 1 - stats.binom.cdf(320, 400, 0.9) - stats.binom.sf(239, 400, 0.5)
    assert clopper_pearson_confidence(400) == pytest.approx(exact, abs=1e-9)
    assert np.all(clopper_pearson_confidence(n) >= dkw_confidence(n) - 1e-12)


def test_cut_noises_have_unit_sigma() -> None:
    c = CUT / CAUCHY
    cauchy = CAUCHY**2 * (c - math.atan(c)) / math.atan(c)
    assert cauchy == pytest.approx(1, abs=1e-5)
    c = CUT / PARETO
    pareto = PARETO**2 * (c - 2 * math.log1p(c) + c / (1 + c)) / (c / (1 + c))
    assert pareto == pytest.approx(1, abs=1e-5)
    assert all(
        parse(text).sigma == pytest.approx(1, abs=1e-5)
        for text in NOISES.values()
        if parse(text).facts.finite_variance
    )


@pytest.mark.slow
def test_formulas(tmp_path: Path) -> None:
    folder = made("formulas", tmp_path)
    rows = read(folder / "formulas.csv")
    for p, quantile in QUANTILE.items():
        laplace = -math.log(2 * (1 - p)) / math.sqrt(2)
        assert below(radii(rows, "gaussian(sigma=1)", "2")[p], quantile)
        assert below(radii(rows, "gaussian(sigma=1)", "inf")[p], quantile / math.sqrt(DIM))
        assert below(radii(rows, "laplace(sigma=1)", "1")[p], laplace)
    verdicts: dict[str, set[str]] = {row["formula"]: set() for row in rows}
    for row in rows:
        verdicts[row["formula"]].add(row["verdict"])
        assert float(row["proved"]) <= float(row["searched"]) * (1 + 1e-12)
    exact = ("teng", "cohen", "yang_gaussian_linf", "yang_gennorm_l1", "yang_exponential_l1")
    assert all(verdicts[name] == {"tight"} for name in exact)
    assert "WRONG" not in set.union(*verdicts.values())
    for row in read(folder / "monte-carlo.csv"):
        assert float(row["ratio"]) == pytest.approx(1, abs=0.25)  # 1,000 samples, chosen minimum


@pytest.mark.slow
def test_noises(tmp_path: Path) -> None:
    rows = read(made("noises", tmp_path) / "radii.csv")
    assert len(rows) == len(NOISES) * 3 * len(QUANTILE)
    for p, quantile in QUANTILE.items():
        assert below(radii(rows, "gaussian(sigma=1)", "1")[p], quantile)
        laplace = -math.log(2 * (1 - p)) / math.sqrt(2)
        assert below(radii(rows, "laplace(sigma=1)", "1")[p], laplace)
        secant = math.log(math.tan(math.pi * p / 2)) * 2 / math.pi
        assert below(radii(rows, "sech(sigma=1)", "1")[p], secant)
    spread = radii(rows, "laplace(sigma=1)", "2")
    assert spread == pytest.approx({0.6: 0.15779, 0.9: 0.90968, 0.99: 1.65652}, rel=1e-3)
    normal = radii(rows, "gennorm(beta=1.5, sigma=1)", "2")
    assert normal == pytest.approx({0.6: 0.21691, 0.9: 1.21651, 0.99: 2.2226}, rel=1e-3)


@pytest.mark.slow
def test_gallery(tmp_path: Path) -> None:
    rows = read(made("gallery", tmp_path) / "radii.csv")
    assert len(rows) == 3 * 5 * 3 * len(QUANTILE)
    flat = radii(rows, "gennorm(beta=3, sigma=1)", "2")
    assert flat == pytest.approx({0.6: 0.23812, 0.9: 1.20451, 0.99: 2.12666}, rel=1e-3)
    mixed = radii(rows, "expmix(beta=0.5, sigma=1)", "inf")
    assert mixed == pytest.approx({0.6: 0.00443, 0.9: 0.0224, 0.99: 0.04067}, rel=2e-3)
    gaussian = {row["family"] for row in rows if row["noise"] == "gaussian(sigma=1)"}
    assert len(gaussian) == 3
    for p, quantile in QUANTILE.items():
        assert below(radii(rows, "gaussian(sigma=1)", "inf")[p], quantile / math.sqrt(DIM))


@pytest.mark.slow
def test_any_p(tmp_path: Path) -> None:
    folder = made("any-p", tmp_path)
    rows = read(folder / "radii.csv")
    quantile = QUANTILE[0.9]
    for row in rows:
        p, searched, proved = (float(row[key]) for key in ("p", "searched", "proved"))
        assert proved <= searched * (1 + 1e-12)
        assert searched <= min(float(row["one_hot"]), float(row["all_equal"])) * (1 + 1e-4)
        if row["noise"] == "gaussian(sigma=1)":
            truth = quantile * DIM ** min(1 / p - 0.5, 0)
            assert below(searched, truth)
        if row["noise"] == "laplace(sigma=1)" and p <= 1:
            assert below(searched, math.log(5) / math.sqrt(2))
        if row["noise"] == "laplace(sigma=1)" and p == 2:
            assert searched == pytest.approx(0.90968, rel=1e-3)
    words = (folder / "comparison.txt").read_text()
    assert "gaussian(sigma=1): flat" in words
    assert "laplace(sigma=1): falls by 20.1%" in words


@pytest.mark.slow
def test_runtime(tmp_path: Path) -> None:
    rows = read(made("runtime", tmp_path) / "seconds.csv")
    found = {(row["engine"], row["input"]): float(row["radius"]) for row in rows}
    assert found["composition", "3×32×32"] == pytest.approx(1.21651, rel=1e-3)
    for (engine, _), radius in found.items():
        if engine == "Monte Carlo":
            assert radius == pytest.approx(1.2165, rel=0.25)  # 1,000 samples, chosen minimum
    assert all(float(row["cpu_seconds"]) > 0 for row in rows)


@pytest.mark.important
@pytest.mark.slow
def test_score_example(tmp_path: Path) -> None:
    folder = made("score-example", tmp_path)
    scores = {row["sigma"]: row for row in read(folder / "scores.csv")}
    score = float(scores["all"]["average_radius"])
    curve = read(folder / "curves.csv")
    best = [float(row["envelope"]) for row in curve]
    radius = [float(row["radius"]) for row in curve]
    steps = [b - a for a, b in itertools.pairwise(radius)]
    inner = sum(w * y for w, y in zip(steps, best[1:], strict=True))
    outer = sum(w * y for w, y in zip(steps, best[:-1], strict=True))
    assert inner <= score <= outer  # the envelope falls: its area lies between both sums
    alone = [float(scores[s]["average_radius"]) for s in ("0.25", "0.5", "1")]
    assert score >= max(alone) - 1e-12
    for row in curve:
        lines = [float(row[f"sigma_{s}"]) for s in ("0.25", "0.5", "1")]
        assert float(row["envelope"]) == max(lines)
    assert len(list((folder / "work").glob("*/sigma-*"))) == 3
