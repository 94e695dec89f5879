"""Optimality: brackets against closed forms and theory, honest verdicts, runs, tables, gallery."""

import csv
import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from unicr import noise
from unicr.classifier import load_classifier
from unicr.cli import app
from unicr.data import load_dataset
from unicr.errors import NoiseError, RadiusError, RunError, UnicrError
from unicr.lab.optimality import (
    Comparison,
    Standing,
    compare_average,
    compare_noises,
    gallery,
    read_run,
    rescale_to,
)
from unicr.lab.report.optimality import Group, draw_gallery, optimality_table
from unicr.norms import parse_norm
from unicr.progress import listen
from unicr.radius import certified_radius
from unicr.runs import Job, Row, Run, Spec, certify_run
from unicr.smoothing import Certificate, NormRadius, Plan, read_norms

P = (0.6, 0.9, 0.99)
CAUCHY = Spec(
    model="m",
    model_hash="",
    data="d",
    shape=(4,),
    noise=noise.parse("cauchy(scale=1)"),
    norms=read_norms(1),
    plan=Plan(),
    seed=0,
    searched=False,
    skip=1,
    max=None,
    batch=1,
    channels_last=False,
    data_size=1,
    lattice=None,
    nonce=None,
    classes=None,
    model_digests={},
    inputs="0" * 64,
    split=None,
    all_norms=read_norms(1),
    nonce_origin=None,
    require=(),
    loading={},
    reading={},
)


def run(*words: str) -> None:
    app(["optimality", *words], exit_on_error=False, print_error=False)


def split(line: str) -> list[str]:
    return line.split(" ")


def gennorms(*betas: float, sigma: float = 1.0) -> tuple[noise.Noise, ...]:
    return gallery("gennorm", sigma, betas)[0]


def standing(comparison: Comparison, text: str) -> Standing:
    (found,) = [s for s in comparison.standings if s.noise == text]
    return found


def test_closed_forms() -> None:
    sigma = 0.7
    laws = [noise.gaussian(sigma=sigma), noise.gennorm(beta=2, sigma=sigma)]
    for one in compare_noises(laws, 2, 3072, P):
        for s in one.standings:
            assert s.proved == s.searched == pytest.approx(sigma * stats.norm.ppf(one.p_a or 0))
        assert one.verdict == "tied"
    laplace = noise.lapgauss(beta=1, sigma=sigma)
    for one in compare_noises([laplace], 1, 784, P, curves=True):
        expected = stats.laplace.ppf(one.p_a or 0, scale=sigma / math.sqrt(2))
        assert one.standings[0].proved == pytest.approx(expected, rel=1e-3)
        assert one.standings[0].proved <= expected
        assert one.verdict == "proved"


@pytest.mark.parametrize("curves", [False, True])
def test_dense_directions_rank_as_fisher_information_says(curves: bool) -> None:
    reference = {2.0: 1.0, 2.25: 0.9939, 1.5: 0.9553, 3.0: 0.9399, 1.0: 0.7071}
    betas = (3, 2) if curves else tuple(reference)
    d = 40_000
    (one,) = compare_noises(gennorms(*betas), "inf", d, [0.9], curves=curves)
    ranked = sorted(one.standings, key=lambda s: s.rank_searched)
    order = [b for b in reference if b in betas]
    assert [s.noise for s in ranked] == [f"gennorm(beta={b:g}, sigma=1)" for b in order]
    assert [s.rank_proved for s in ranked] == list(range(1, len(order) + 1))
    for s, beta in zip(ranked, order, strict=True):
        dense = reference[beta] * stats.norm.ppf(0.9) / math.sqrt(d)
        assert s.searched == pytest.approx(dense, rel=0.012)
    assert one.verdict == "proved"
    assert one.possible == (f"gennorm(beta={order[0]:g}, sigma=1)",)
    assert "is proved best" in one.text


def test_curves_and_single_radii_agree_in_values_and_ranking() -> None:
    laws = [*gennorms(1.5, 2), noise.sech(sigma=1)]
    for norm in ("1", "inf"):
        for one in compare_noises(laws, norm, 50, (0.7, 0.99), curves=True):
            found = [certified_radius(law, norm, 50, p_a=one.p_a or 0.0) for law in laws]
            for s, expected in zip(one.standings, found, strict=True):
                assert s.searched == pytest.approx(expected.searched, rel=1.1e-3)
                assert s.proved <= expected.proved * (1 + 3e-4)
            values = [r.searched for r in found]
            places = [1 + sum(v > value for v in values) for value in values]
            assert [s.rank_searched for s in one.standings] == places


def test_overlapping_brackets_stay_open() -> None:
    laws = gennorms(0.845, 0.85, 1)
    (one,) = compare_noises(laws, 1, 2, [0.999])
    found = [certified_radius(law, 1, 2, p_a=0.999) for law in laws]
    best = max(r.proved for r in found)
    overlap = [law.text for law, r in zip(laws, found, strict=True) if r.searched >= best]
    assert len(overlap) > 1
    assert one.verdict == "open"
    assert one.possible == tuple(overlap)
    assert f"{overlap[0]}, {overlap[1]}" in one.text
    assert "remain possible" in one.text
    assert one.best == laws[int(np.argmax([r.proved for r in found]))].text
    assert one.best_searched == laws[int(np.argmax([r.searched for r in found]))].text


def test_a_gap_below_the_accuracy_of_the_search_is_a_tie() -> None:
    close = gennorms(2, 2.01, 1)
    (one,) = compare_noises(close, "inf", 1000, [0.9])
    assert one.verdict == "tied"
    assert one.possible == (close[0].text, close[1].text)
    assert "tied within 0.2%" in one.text


@pytest.mark.parametrize(("p", "verdict"), [(0.5, "none"), (0.2, "none"), (1.0, "tied")])
def test_the_ends_of_p(p: float, verdict: str) -> None:
    for curves in (True, False):
        (one,) = compare_noises(gennorms(1, 2), 1, 8, [p], curves=curves)
        assert one.verdict == verdict
        assert {s.searched for s in one.standings} == {math.inf if p == 1 else 0.0}
        assert {s.rank_proved for s in one.standings} == {1}


def test_beyond_the_end_of_a_curve_the_radius_still_rises() -> None:
    p = 1 - 1e-13
    (one,) = compare_noises([noise.gaussian(sigma=1)], 2, 8, [p], curves=True)
    assert one.standings[0].searched == pytest.approx(stats.norm.isf(1 - p), rel=1e-6)
    laws = [noise.uniform(sigma=1), noise.gaussian(sigma=1)]
    (one,) = compare_noises(laws, 1, 8, [1.0], curves=True)
    assert [s.searched for s in one.standings] == [pytest.approx(math.sqrt(3)), math.inf]
    assert one.possible == ("gaussian(sigma=1)",)


def test_just_above_one_half_nothing_is_claimed() -> None:
    (one,) = compare_noises(gennorms(1, 3), 1, 8, [0.5 + 5e-7], curves=True)
    assert one.verdict in ("open", "tied")
    assert len(one.possible) == 2


def test_the_average_is_the_mean_of_the_radii() -> None:
    laws = gennorms(1, 2, sigma=0.5)
    p = np.array([0.0, 0.6, 0.99, 0.99, 0.8])
    factors = np.array([1.0, 2.0, 1.0, 0.5, 3.0])
    one = compare_average(laws, 1, 20, p, factors=factors)
    live = p > 0
    for s, law in zip(one.standings, (stats.laplace(scale=0.5 / math.sqrt(2)), None), strict=True):
        exact = law.ppf(p[live]) if law is not None else 0.5 * stats.norm.ppf(p[live])
        assert s.searched == pytest.approx(np.sum(exact * factors[live]) / 5)
    assert (one.p_a, one.inputs) == (None, 5)


def test_gallery_takes_what_a_family_can_have() -> None:
    laws, refused = gallery("lapgauss", 2.0, (0.5, 3, 0))
    assert [law.text for law in laws] == [
        "lapgauss(beta=0.5, sigma=2)",
        "lapgauss(beta=0, sigma=2)",
    ]
    assert len(refused) == 1
    assert "beta=3" in refused[0]
    assert len(gallery("expmix", 1.0)[0]) == 5
    with pytest.raises(NoiseError, match="no finite variance"):
        gallery("pareto", 1.0, [1.5])
    with pytest.raises(NoiseError, match="no beta was given"):
        gallery("gennorm", 1.0, [])
    with pytest.raises(
        NoiseError, match=r"'laplace' is not a family with a parameter beta .*gennorm"
    ):
        gallery("laplace", 1.0)
    with pytest.raises(NoiseError, match="sigma=-1 must be"):
        gallery("gennorm", -1)


def test_errors() -> None:
    gauss = noise.gaussian(sigma=1)
    with pytest.raises(NoiseError, match=r"cauchy\(scale=1\)\.truncated\(5\)"):
        compare_noises([gauss, noise.cauchy(scale=1)], 2, 10, [0.9])
    assert rescale_to(noise.cauchy(scale=1).truncated(5), 2).sigma == pytest.approx(2)
    with pytest.raises(NoiseError, match=r"has sigma 2, .* use \.with_sigma\(1\)"):
        compare_noises([gauss, noise.laplace(sigma=2)], 2, 10, [0.9])
    with pytest.raises(NoiseError, match="no noise to compare"):
        compare_noises([], 2, 10, [0.9])
    with pytest.raises(RadiusError, match=r"p_a=1\.2 must be a probability"):
        compare_noises([gauss], 2, 10, [0.9, 1.2])
    with pytest.raises(RadiusError, match="no p_A was given"):
        compare_noises([gauss], 2, 10, [])
    with pytest.raises(RadiusError, match="has no curve"):
        compare_noises([noise.parse("l1_exp(k=2, j=0, sigma=1, dim=10)")], 2, 10, [0.9])
    with pytest.raises(RadiusError, match="give it by --dim"):
        compare_noises([gauss], 2, None, [0.9])


def first_coordinate(batch: torch.Tensor) -> torch.Tensor:
    return (batch[:, 0] > 0).long()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    x = np.random.default_rng(0).normal(size=(12, 6)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int64)
    y[3] = 1 - y[3]
    job = Job(
        classifier=load_classifier(first_coordinate, num_classes=2),
        data=load_dataset((x, y)),
        noise=noise.laplace(sigma=0.5),
        norms=read_norms([1, "inf"]),
        plan=Plan(n=400),
        seed=0,
    )
    certify_run(job, tmp_path / "run").close()
    return tmp_path / "run"


def test_a_run_brings_its_p_a_sigma_norms_and_dimension(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("--run", str(folder), "--noise", "gaussian(sigma=9)", "--format", "json")
    result = json.loads(capsys.readouterr().out)
    with Run(folder) as store:
        rows = list(store.rows())
    p = np.array([r.certificate.p_a for r in rows if r.certificate and r.correct])
    assert 0 < len(p) < 12
    l1, linf = result["comparisons"]
    assert (l1["norm"], linf["norm"], l1["dim"], l1["inputs"]) == ("1", "inf", 6, 12)
    assert (result["sigma"], result["sigma_per_input"]) == (0.5, False)
    means = {entry["noise"]: entry["searched"] for entry in l1["noises"]}
    gauss = 0.5 * stats.norm.ppf(p).sum() / 12
    assert means["gaussian(sigma=0.5)"] == pytest.approx(gauss, rel=1e-3)
    assert means["laplace(sigma=0.5)"] == pytest.approx(
        stats.laplace(scale=0.5 / math.sqrt(2)).ppf(p).sum() / 12, rel=1e-3
    )
    assert means["laplace(sigma=0.5)"] == pytest.approx(
        np.mean([r.radius("1") if r.correct else 0.0 for r in rows]), rel=1e-4
    )
    assert "must come through a larger p_A" in result["note"]


def test_inputs_with_a_noise_of_their_own_keep_their_sigma(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = Certificate(
        predict=1,
        p_a=0.9,
        p_b=0.1,
        n0=10,
        n=100,
        alpha=0.001,
        radii=(NormRadius("1", 1.0, 1.0, 1.0, "exact"), NormRadius("inf", 0.1, 0.1, 0.1, "exact")),
        noise="gaussian(sigma=2)",
    )
    with Run(folder, create=True) as store:
        before = list(store.rows())
        store.add(Row(12, 1, "", 0.0, own))
        store.add(Row(13, 1, "", 0.0, None, "no label"))
    inputs = read_run(folder)
    assert (inputs.p_a[12], inputs.sigma[12], inputs.p_a[13]) == (0.9, 2.0, 0.0)
    p = np.array([r.certificate.p_a for r in before if r.certificate and r.correct])
    expected = (0.5 * stats.norm.ppf(p).sum() + 2 * stats.norm.ppf(0.9)) / 14
    words = ["--run", str(folder), "--noise", "gaussian(sigma=1)", "--norm", "1"]
    run(*words, "--format", "csv")
    first = next(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert (first["p_a"], first["sigma"], first["inputs"]) == ("average", "per input", "14")
    assert float(first["searched"]) == pytest.approx(expected, rel=1e-3)
    run(*words)
    assert "rescaled to each input's own sigma" in capsys.readouterr().out
    run(*words, "--sigma", "1", "--format", "csv")
    first = next(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    alike = (stats.norm.ppf(p).sum() + stats.norm.ppf(0.9)) / 14
    assert float(first["searched"]) == pytest.approx(alike, rel=1e-3)


def test_a_run_without_a_sigma_or_results(tmp_path: Path) -> None:
    with Run(tmp_path, create=True) as store:
        store.set_spec(CAUCHY)
        with pytest.raises(RunError, match="has no results yet"):
            read_run(tmp_path)
        store.add(Row(0, 1, "", 0.0, None, "no label"))
    with pytest.raises(
        UnicrError, match=r"has no finite variance: give the standard deviation .* --sigma 1"
    ):
        run("--run", str(tmp_path), "--noise", "gaussian(sigma=1)")
    run("--run", str(tmp_path), "--noise", "gaussian(sigma=1)", "--sigma", "1")


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["--run", "x", "--pa", "0.9"], "or --pa, not both"),
        (["--dim", "4"], "give the norms to compare in"),
        (
            ["--norm", "1", "--dim", "4", "--beta", "1", "--noise", "sech(sigma=1)"],
            "--beta needs",
        ),
        (["--norm", "1", "--dim", "4", "--noise", "cauchy(scale=1)"], "truncated"),
        (["--norm", "1", "--dim", "4", "--family", "sech"], "not a family with a parameter beta"),
        (["--norm", "1", "--noise", "sech(sigma=1)"], "give it by --dim"),
        (["--norm", "1", "--run", "nowhere"], "is not a run"),
        (
            ["--norm", "1", "--dim", "4", "--family", "gennorm", "-o", "a.txt"],
            "its ending must be one of .png",
        ),
    ],
)
def test_refusals_of_the_command(words: list[str], match: str) -> None:
    with pytest.raises(UnicrError, match=match):
        run(*words)


def test_csv_and_json_read_back(capsys: pytest.CaptureFixture[str]) -> None:
    words = split("--norm 1 inf --dim 9 --family gennorm expmix --beta 1 2 --sigma 2 --pa 0.9 1")
    run(*words, "--format", "csv")
    printed = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(printed.out)))
    assert "must come through a larger p_A" in printed.err
    assert "left out expmix at beta=2" in printed.err
    run(*words, "--format", "json")
    result = json.loads(capsys.readouterr().out)
    assert result["sigma"] == 2
    flat = [(c, entry) for c in result["comparisons"] for entry in c["noises"]]
    assert len(rows) == len(flat) == 2 * 2 * 3
    for row, (comparison, entry) in zip(rows, flat, strict=True):
        assert (row["norm"], float(row["p_a"])) == (comparison["norm"], comparison["p_a"])
        assert row["noise"] == entry["noise"]
        assert float(row["proved"]) == float(entry["proved"])
        assert float(row["searched"]) == float(entry["searched"])
        assert int(row["rank_searched"]) == entry["rank_searched"]
        assert (
            (row["possible"] == "True")
            is entry["possible"]
            is (row["noise"] in comparison["possible"])
        )
    assert flat[0][1]["searched"] == pytest.approx(stats.laplace.ppf(0.9, scale=math.sqrt(2)))


def test_printed_radii_are_rounded_down(capsys: pytest.CaptureFixture[str]) -> None:
    run(*split("--norm 2 --dim 3072 --family gennorm --beta 2 --pa 0.6 0.9 0.99 --format markdown"))
    out = capsys.readouterr().out
    line = next(x for x in out.splitlines() if x.startswith("| gennorm(beta=2, sigma=1)"))
    cells = [float(cell.split()[0]) for cell in line.split("|")[2:-1]]
    for cell, p in zip(cells, P, strict=True):
        assert stats.norm.ppf(p) - 1e-4 < cell <= stats.norm.ppf(p)
    assert "must come through a larger p_A" in out
    low, high = 0.123456789, 1.99999999
    bracket = Standing("x", low, high, 1, 1, possible=True)
    made = Comparison(parse_norm(2), 3, 0.9, 1, (bracket,), "proved")
    assert "| 0.123456 – 1.99999 #1 |" in optimality_table([made], 1.0, "markdown")


def test_the_gallery_has_a_panel_for_each_family_and_norm(tmp_path: Path) -> None:
    named = (noise.laplace(sigma=1), noise.gennorm(beta=2, sigma=1))
    groups = [Group("gennorm", gennorms(1, 2)), Group("noises", named)]
    assert groups[0].labels == ["β = 1", "β = 2"]
    assert groups[1].labels == ["laplace(sigma=1)", "gennorm(beta=2, sigma=1)"]
    norms = [parse_norm(p) for p in (1, "inf")]
    draw_gallery(groups, norms, 9, tmp_path / "gallery.svg")
    text = (tmp_path / "gallery.svg").read_text()
    assert text.count('<g id="axes_') == 4
    assert text.count('<g id="legend_') == 2
    steps: list[tuple[str, float]] = []
    with listen(lambda task, done, of, text: steps.append((text, done / (of or 1)))):
        draw_gallery(groups, norms, 9, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert [s for _, s in steps] == [0, 0.25, 0.5, 0.75, 1]


def test_the_command_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.svg"
    run(*split("--norm 1 --dim 9 --family gennorm --beta 1 2 3 -o"), str(path))
    printed = capsys.readouterr()
    assert "drawn to" in printed.err
    assert "l1, dimension 9, sigma 1\n" in printed.out
    assert path.read_text().count('<g id="axes_') == 1
