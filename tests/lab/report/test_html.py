"""The HTML report without a browser: its numbers, its pictures, what it refuses and escapes."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import math
import re
import shutil
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from scipy import integrate, stats

from tests.lab.report.runs import REASON, SIDE, make_run, save_pictures
from unicr.cli import app
from unicr.data import load_dataset
from unicr.errors import MissingExtraError, RunError, UnicrError
from unicr.lab.report.html import write_report
from unicr.lab.report.html._data import _ceil_text, floor_value, percent
from unicr.lab.report.html._images import picture, picture_axes, value_range
from unicr.lab.report.html._page import embed
from unicr.lab.report.tables import score_table, summary
from unicr.noise import parse
from unicr.runs import Row, Run, load_run, load_scores
from unicr.smoothing import Certificate, ClosedNoise, NormRadius


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs on the same twelve pictures, the last of which fails."""
    folder = tmp_path_factory.mktemp("report")
    data = save_pictures(folder / "pictures.npz")
    make_run(folder / "half", data)
    make_run(folder / "quarter", data, noise="gaussian(sigma=0.25)")
    return folder


def content_of(page: Path) -> dict[str, Any]:
    """The JSON block of a written page."""
    found = re.search(
        r'<script id="data" type="application/json">(.*?)</script>', page.read_text(), re.DOTALL
    )
    assert found is not None
    content: dict[str, Any] = json.loads(found[1])
    return content


def written(place: Path, *runs: Path, **options: Any) -> tuple[dict[str, Any], list[str]]:
    page = place / "page.html"
    notes = write_report(runs, page, **options)
    return content_of(page), notes


def stored(folder: Path) -> list[Row]:
    with Run(folder) as store:
        return list(store.rows())


def pixels(uri: str) -> NDArray[np.uint8]:
    head, _, data = uri.partition(",")
    assert head == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))


def test_accuracies_and_scores_follow_from_the_certificates(place: Path) -> None:
    content, notes = written(place, place / "half", place / "quarter")
    assert notes == []
    rows = [stored(place / name) for name in ("half", "quarter")]
    assert [run["status"]["failed"] for run in content["runs"]] == [1, 1]

    def accuracy(run: list[Row], norm: str, r: float) -> float:
        return sum(row.correct and row.radius(norm) >= r for row in run) / len(run)

    (group,) = content["groups"]
    assert group["runs"] == [0, 1]
    assert group["norms"] == ["1", "2", "inf"]
    for norm in group["norms"]:
        counted = [np.array([row.radius(norm) if row.correct else -1 for row in r]) for r in rows]
        grid = np.linspace(0, max(map(np.max, counted)), 20_001)
        best = np.max([np.mean(c[:, None] >= grid, axis=0) for c in counted], axis=0)
        area = float(integrate.trapezoid(best, grid))
        score = float(group["scores"][norm]["score"])
        assert score == pytest.approx(area, rel=2e-3)
        for run, one in zip(content["runs"], rows, strict=True):
            mean = sum(row.radius(norm) for row in one if row.correct) / len(one)
            shown = float(run["scores"][norm]["average"])
            assert mean * (1 - 1e-3) <= shown <= mean
            curve = run["scores"][norm]["curve"]
            for r, share in zip(curve["r"], curve["share"], strict=True):
                assert share == pytest.approx(accuracy(one, norm, r))
        for i, radius in enumerate(group["scores"][norm]["radii"]):
            for k, one in enumerate(rows):
                share = float(group["scores"][norm]["table"][k][i].removesuffix(" %"))
                assert share == math.floor(1000 * accuracy(one, norm, float(radius)) + 1e-9) / 10


def test_the_summary_says_what_certificates_say_against_themselves(tmp_path: Path) -> None:
    image = np.full((3, 1, SIDE, SIDE), 51 / 255, np.float32)
    np.savez(tmp_path / "images.npz", x=image, y=np.zeros(3, np.int64))
    run = make_run(tmp_path / "run", tmp_path / "images.npz")
    (shown,) = written(tmp_path, run)[0]["runs"]
    assert not shown["kept"]
    assert shown["said"][0] == "noise of seed 3, which a model may know: an experiment"


def test_one_run_scores_its_mean_radius(place: Path) -> None:
    content, _ = written(place, place / "half")
    for norm, found in content["groups"][0]["scores"].items():
        assert found["score"] == content["runs"][0]["scores"][norm]["average"]


def test_nothing_on_the_page_exceeds_what_was_certified(place: Path) -> None:
    content, _ = written(place, place / "half")
    columns = content["runs"][0]["rows"]
    rows = stored(place / "half")
    assert columns["status"].count("certified") >= 8
    for i, row in enumerate(rows):
        c = row.certificate
        if c is None:
            assert columns["p_a"][i] is None
            assert columns["radii"]["2"]["radius"][i] is None
            assert REASON in columns["reason"][i]
            continue
        assert c.p_a - 1e-6 < columns["p_a"][i] <= c.p_a
        assert c.p_b <= float(columns["p_b"][i]) <= c.p_b * 1.01
        assert sum(n for _, n in columns["votes"][i]) == c.n
        for norm in ("1", "2", "inf"):
            shown = columns["radii"][norm]
            assert float(shown["radius"][i]) <= c.radius(norm)
            assert shown["value"][i] <= c.radius(norm)
            assert float(shown["radius"][i]) == pytest.approx(c.radius(norm), rel=1e-3)


def test_curves_are_the_closed_form_from_below(place: Path) -> None:
    content, _ = written(place, place / "half")
    (curve,) = content["runs"][0]["curves"]["2"]
    p = np.array(curve["p"])
    exact = 0.5 * stats.norm.ppf(p)
    for name in ("proved", "searched"):
        assert np.all(np.array(curve[name]) <= exact + 1e-12)
        assert curve[name] == pytest.approx(exact, rel=1e-3, abs=1e-4)
    assert p.max() >= max(row.certificate.p_a for row in stored(place / "half") if row.certificate)


def test_pictures_are_the_inputs_and_the_first_sample_of_the_run(place: Path) -> None:
    content, _ = written(place, place / "half", place / "quarter")
    data = load_dataset(str(place / "pictures.npz"))
    for run in content["runs"]:
        for i, idx in enumerate(run["rows"]["idx"]):
            x, _ = data[idx]
            shown = pixels(content["pictures"][run["rows"]["hash"][i]])
            assert np.array_equal(shown, np.round(255 * x[0].numpy().astype(np.float64)))
            noisy = parse(run["noise"]).sample(1, seed=3, input_index=idx, base=x)[0, 0]
            clipped = np.clip(noisy.numpy().astype(np.float64), 0, 1)
            assert np.array_equal(pixels(run["rows"]["noisy"][i]), np.round(255 * clipped))
    assert len(content["pictures"]) == 12


def test_a_noise_of_one_input_is_drawn_and_named(place: Path, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    with Run(place / "half") as store:
        spec, rows = store.spec, list(store.rows())
    certificate = rows[0].certificate
    assert certificate is not None
    own = replace(certificate, noise="gaussian(sigma=0.7)")
    with Run(folder, create=True) as store:
        store.set_spec(spec)
        store.add(replace(rows[0], certificate=own))
        store.add(rows[1])
    content, _ = written(tmp_path, folder)
    (run,) = content["runs"]
    assert run["own"]
    assert run["rows"]["noise"] == ["gaussian(sigma=0.7)", None]
    assert [c["noise"] for c in run["curves"]["1"]] == [
        "gaussian(sigma=0.7)",
        "gaussian(sigma=0.5)",
    ]
    x, _ = load_dataset(str(place / "pictures.npz"))[0]
    noisy = parse("gaussian(sigma=0.7)").sample(1, seed=3, input_index=0, base=x)[0, 0].numpy()
    expected = np.round(255 * np.clip(noisy.astype(np.float64), 0, 1))
    assert np.array_equal(pixels(run["rows"]["noisy"][0]), expected)


def test_many_noises_are_shown_without_curves(place: Path, tmp_path: Path) -> None:
    with Run(place / "half") as store:
        spec, rows = store.spec, list(store.rows())
    with Run(tmp_path / "own", create=True) as store:
        store.set_spec(spec)
        for row in rows:
            c = row.certificate
            text = f"gaussian(sigma={0.5 + row.idx / 100})"
            store.add(replace(row, certificate=c and replace(c, noise=text)))
        store.set_seal()
    content, _ = written(tmp_path, tmp_path / "own", images=False)
    assert content["runs"][0]["noises"] == 11
    assert content["runs"][0]["curves"]["2"] == []


def test_moved_data_leaves_a_report_without_pictures(tmp_path: Path) -> None:
    data = save_pictures(tmp_path / "pictures.npz")
    run = make_run(tmp_path / "run", data)
    moved = data.rename(tmp_path / "moved.npz")
    content, notes = written(tmp_path, run)
    assert content["pictures"] == {}
    assert content["notes"] == notes
    assert len(notes) == 1
    assert str(data) in notes[0]
    content, notes = written(tmp_path, run, data=str(moved))
    assert len(content["pictures"]) == 12
    assert notes == []
    other = save_pictures(tmp_path / "other.npz", seed=1)
    content, notes = written(tmp_path, run, data=str(other))
    assert content["pictures"] == {}
    assert notes == [f"12 inputs without pictures: {other} holds other inputs there"]
    shorter = save_pictures(tmp_path / "shorter.npz", count=5)
    content, notes = written(tmp_path, run, data=str(shorter))
    assert list(content["pictures"]) == [stored(run)[0].input_hash]
    assert notes == [f"11 inputs without pictures: {shorter} holds other inputs there"]


def test_a_noise_that_cannot_be_made_again_leaves_a_report(tmp_path: Path) -> None:
    data = save_pictures(tmp_path / "pictures.npz")
    make_run(tmp_path / "run", data)
    with Run(tmp_path / "run", create=True) as store:
        store.set_spec(replace(store.spec, noise=ClosedNoise("gone.py:law")))
        store.set_seal()
    content, notes = written(tmp_path, tmp_path / "run")
    assert any("no noisy copies" in note for note in notes)
    assert len(content["pictures"]) == 12
    assert "gone.py" in content["runs"][0]["curves"]["2"][0]["error"]


def test_fewer_pictures_on_demand(place: Path) -> None:
    content, notes = written(place, place / "half", max_images=5)
    assert len(content["pictures"]) == 5
    assert notes == ["pictures of the first 5 inputs of each run only"]
    content, notes = written(place, place / "half", images=False)
    assert content["pictures"] == {}
    assert notes == []


def test_rows_of_a_table_have_no_pictures(tmp_path: Path) -> None:
    x = np.random.default_rng(0).uniform(size=(6, 5)).astype(np.float32)
    np.savez(tmp_path / "rows.npz", x=x, y=(x.mean(1) > 0.5).astype(np.int64))
    run = make_run(tmp_path / "run", tmp_path / "rows.npz", norms=("2",))
    content, notes = written(tmp_path, run)
    assert content["pictures"] == {}
    assert notes == []
    assert content["runs"][0]["total"] == 6


@pytest.mark.parametrize(
    ("shape", "axes", "mode"),
    [
        ((1, 8, 9), "chw", "L"),
        ((3, 8, 9), "chw", "RGB"),
        ((4, 8, 9), "chw", "RGB"),
        ((2, 8, 9), "chw", "L"),
        ((8, 9, 3), "hwc", "RGB"),
        ((8, 9), "hw", "L"),
    ],
)
def test_shapes_that_are_pictures(shape: tuple[int, ...], axes: str, mode: str) -> None:
    assert picture_axes(shape) == axes
    x = np.random.default_rng(0).uniform(size=shape)
    image = Image.open(io.BytesIO(base64.b64decode(picture(x, 0, 1, smooth=True).split(",")[1])))
    assert image.mode == mode
    assert image.size == (9, 8)


@pytest.mark.parametrize("shape", [(784,), (3,), (2, 3), (5, 2, 2), (2, 3, 8, 8)])
def test_shapes_that_are_not(shape: tuple[int, ...]) -> None:
    assert picture_axes(shape) is None
    with pytest.raises(UnicrError, match="cannot be shown as a picture"):
        picture(np.zeros(shape), 0, 1, smooth=True)


def test_large_pictures_shrink_and_other_ranges_are_stretched() -> None:
    x = np.linspace(-2, 6, 3 * 200 * 100).reshape(3, 200, 100)
    assert value_range(x) == (-2, 6)
    assert value_range(np.full((4, 4), 7.0)) == (7.0, 8.0)
    assert value_range(np.full((4, 4), np.nan)) == (0.0, 1.0)
    shown = pixels(picture(x, *value_range(x), smooth=True))
    assert shown.shape == (96, 48, 3)
    assert shown[0, 0, 0] == 0
    assert shown[-1, -1, 2] >= 254


def test_runs_on_other_inputs_are_not_compared(place: Path, tmp_path: Path) -> None:
    other = save_pictures(tmp_path / "other.npz", seed=1)
    run = make_run(tmp_path / "half", other, norms=("2", "0.5"))
    content, _ = written(tmp_path, place / "half", place / "quarter", run)
    assert [g["runs"] for g in content["groups"]] == [[0, 1], [2]]
    assert content["groups"][1]["norms"] == ["0.5", "2"]
    assert [r["name"] for r in content["runs"]] == [str(place / "half"), "quarter", str(run)]


def test_runs_in_other_norms_share_a_section(place: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path / "one", place / "pictures.npz", norms=("3", "2"))
    content, _ = written(tmp_path, place / "half", run)
    (group,) = content["groups"]
    assert group["norms"] == ["1", "2", "3", "inf"]
    assert {p: s["runs"] for p, s in group["scores"].items()} == {
        "1": [0],
        "2": [0, 1],
        "3": [1],
        "inf": [0],
    }
    assert [run["label"] for run in content["runs"]] == [
        "half: gaussian(sigma=0.5)",
        "one: gaussian(sigma=0.5)",
    ]


def test_an_infinite_radius_is_said_and_not_drawn(tmp_path: Path) -> None:
    radius = NormRadius("2", math.inf, math.inf, math.inf, "exact")
    certificate = Certificate(0, 1.0, 0.0, 10, 100, 0.001, (radius,))
    with Run(make_run(tmp_path / "a", _rows_file(tmp_path), norms=("2",))) as store:
        spec = store.spec
    with Run(tmp_path / "b", create=True) as store:
        store.set_spec(spec)
        store.add(Row(0, 0, "0" * 64, 0.1, certificate))
        store.set_seal()
    content, _ = written(tmp_path, tmp_path / "b")
    run = content["runs"][0]
    assert run["rows"]["radii"]["2"]["radius"] == ["inf"]
    assert run["rows"]["radii"]["2"]["value"] == ["inf"]
    assert run["scores"]["2"]["curve"]["r"] == [0.0]
    assert content["groups"][0]["scores"]["2"]["score"] == "inf"


def _rows_file(folder: Path) -> Path:
    x = np.random.default_rng(0).uniform(size=(4, 5)).astype(np.float32)
    np.savez(folder / "rows.npz", x=x, y=np.zeros(4, dtype=np.int64))
    return folder / "rows.npz"


def test_users_texts_cannot_leave_the_data_block(place: Path, tmp_path: Path) -> None:
    name = """<img src=x onerror="boom()">&'{{script}}"""
    run = make_run(tmp_path / name, place / "pictures.npz")
    page = tmp_path / "page.html"
    write_report([run], page)
    text = page.read_text()
    assert text.count("</script") == 3
    assert "<img src=x" not in text
    content = content_of(page)
    assert content["runs"][0]["name"] == name
    assert REASON in content["runs"][0]["rows"]["reason"][-1]
    hostile = {"text": "</script><!--<script>\u2028\u2029&amp;"}
    assert json.loads(embed(hostile)) == hostile
    assert not set("<>&\u2028\u2029") & set(embed(hostile))


def test_the_page_names_its_scripts_and_nothing_outside(place: Path) -> None:
    page = place / "page.html"
    write_report([place / "half"], page)
    text = page.read_text()
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(scripts) == 2
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[1]
    assert "http" not in text.replace(scripts[0], "").replace("http-equiv", "")


def test_the_manifest_and_the_commands_are_there(place: Path) -> None:
    content, _ = written(place, place / "half")
    run = content["runs"][0]
    facts = dict(run["spec"])
    with Run(place / "half") as store:
        spec = store.spec
    assert set(facts) == set(spec.to_dict())
    assert facts["model_hash"] == spec.model_hash
    assert [command for _, command in run["verify"]] == [
        f"unicr verify {place / 'half'}",
        f"unicr verify {place / 'half'} --replay 5",
    ]


def test_shares_and_bounds_are_rounded_to_the_safe_side() -> None:
    assert percent(57, 100) == "57.0 %"
    assert percent(2, 3) == "66.6 %"
    assert percent(1999, 2000) == "99.9 %"
    assert percent(3, 3) == "100.0 %"
    rng = np.random.default_rng(0)
    for value in [*rng.uniform(0, 1, 500), *10.0 ** rng.uniform(-12, 0, 500)]:
        assert value <= float(_ceil_text(value)) <= value * 1.01
        shown = floor_value(value)
        assert isinstance(shown, float)
        assert value * (1 - 1e-5) <= shown <= value
    assert _ceil_text(0.0) == "0"


def unstarted(folder: Path) -> Path:
    Run(folder, create=True).close()
    return folder


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        (lambda place, _: [], "at least one run"),
        (lambda place, tmp: [tmp / "nothing"], "is not a run"),
        (lambda place, tmp: [place / "pictures.npz"], "is a file"),
        (lambda place, tmp: [unstarted(tmp / "new")], "was never started"),
    ],
)
def test_what_is_no_run_is_refused(
    place: Path, tmp_path: Path, runs: Callable[[Path, Path], list[Path]], words: str
) -> None:
    with pytest.raises(RunError, match=words):
        write_report(runs(place, tmp_path), tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_where_a_page_cannot_be_written(place: Path, tmp_path: Path) -> None:
    with pytest.raises(UnicrError, match=r"must end in \.html"):
        write_report([place / "half"], tmp_path / "page.pdf")
    with pytest.raises(UnicrError, match="does not exist"):
        write_report([place / "half"], tmp_path / "no" / "page.html")
    with pytest.raises(UnicrError, match="max_images=-1"):
        write_report([place / "half"], tmp_path / "page.html", max_images=-1)


def test_without_plotly_the_extra_is_named(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(MissingExtraError, match=r"unicr\[report\]"):
        write_report([place / "half"], tmp_path / "page.html")


def test_the_command(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    folders = [str(place / "half"), str(place / "quarter")]
    app(["report", *folders, "-o", str(page), "--max-images", "2"])
    printed = capsys.readouterr()
    assert printed.out == f"written to {page}\n"
    assert printed.err == "pictures of the first 2 inputs of each run only\n"
    assert len(content_of(page)["runs"]) == 2
    app(["report", folders[0], "-o", str(page), "--no-images"])
    assert content_of(page)["pictures"] == {}


def test_without_labels_nothing_is_called_an_accuracy(place: Path, tmp_path: Path) -> None:
    """The same run without labels: its table, its file and its page show certified inputs."""
    folder = tmp_path / "run"
    shutil.copytree(place / "half", folder)
    with contextlib.closing(sqlite3.connect(folder / "run.sqlite")) as db, db:
        db.execute("UPDATE results SET label = -1")
    rows = stored(folder)
    share = sum(row.status == "certified" for row in rows) / len(rows)
    mean = sum(row.radius("2") for row in rows) / len(rows)
    groups = load_scores([folder], "2", force=True)
    said = score_table(groups, [0.0], "table", verbose=False)
    assert "accuracy" not in said.split("The average radius")[0].replace("accuracies", "")
    assert f"{math.floor(share * 1e4) / 1e4:.4f}" in said
    (record,) = json.loads(score_table(groups, [0.0], "json"))
    assert "certified_accuracy" not in record
    assert "accuracy_holds" not in record
    assert record["certified"] == share
    assert record["average_radius"] == pytest.approx(mean)
    assert "certified accuracy" not in summary(rows, ["2"])
    content, _ = written(tmp_path, folder, force=True)
    assert not content["runs"][0]["labelled"]
    assert content["runs"][0]["accuracy"] == "no labels"
    with load_run(folder) as run:
        scores = run.scores("2")
        assert {record["correct"] for record in run.plain_rows()} == {None}
    assert scores.certified_share(0) == share
    assert scores.average_radius == pytest.approx(mean)
    for ask in (scores.certified_accuracy, scores.accuracy_bound):
        with pytest.raises(UnicrError, match="has no labels, so it has no accuracy"):
            ask(0.0)
