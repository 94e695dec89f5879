"""C-OPT: the table says what the runs say, the best is the best, and a search goes on where it was.

Two blobs in sixteen dimensions stand for data: trained in a moment, and certified in l1 and linf.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from unicr.cli import app
from unicr.data import Dataset, load_dataset
from unicr.errors import DataError, NoiseError, RunError, SpecError, UnicrError
from unicr.lab.c_opt import (
    COpt,
    Scales,
    ShapeScore,
    Trained,
    c_opt,
    find_best_shape,
    grid,
    make_search,
)
from unicr.lab.c_opt._points import Point
from unicr.lab.c_opt._scores import is_done, read_result
from unicr.lab.c_opt._search import PointWork, _read_files, _store_files
from unicr.lab.report.copt import best_text, copt_csv, copt_table, draw_copt
from unicr.lab.train import Training
from unicr.metrics import robustness_score
from unicr.norms import parse_norm
from unicr.runs import Run, load_scores, verify
from unicr.smoothing import Plan

NORMS = ("1", "inf")


pytestmark = pytest.mark.usefixtures("one_thread")


def blobs(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(size) % 2
    x = rng.normal(scale=0.3, size=(size, 16)) + np.where(y[:, None] == 1, 0.4, -0.4)
    return x.astype(np.float32), y


@pytest.fixture
def data(tmp_path: Path) -> tuple[Path, Path]:
    files = tmp_path / "train.npz", tmp_path / "test.npz"
    for file, size in zip(files, (400, 20), strict=True):
        x, y = blobs(size, size)
        np.savez(file, x=x, y=y)
    return files


def run(data: tuple[Path, Path], out: Path, *more: str) -> object:
    fixed = ["--train", str(data[0]), "--test", str(data[1]), "--norm", *NORMS, "--out", str(out)]
    quick = ["--epochs", "3", "--train-batch", "64", "--n", "300", "--n0", "20"]
    return app(["c-opt", *fixed, *quick, *more], exit_on_error=False, print_error=False)


GRID = ("--beta", "1", "2", "--sigma", "0.25", "0.5")


def table(out: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((out / "table.csv").read_text().splitlines()))


def recomputed(out: Path, beta: str, norm: str) -> float:
    runs = sorted(out.glob(f"points/gennorm-beta-{beta}-*/run"))
    assert len(runs) == 2
    return robustness_score(load_scores(runs, norm)[norm])


def test_the_table_follows_from_the_runs(
    data: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(data, out, *GRID) == 0
    printed = capsys.readouterr().out
    rows = table(out)
    assert [row["beta"] for row in rows] == ["1", "2"]
    for norm in NORMS:
        scores = [float(row[f"l{norm}"]) for row in rows]
        assert scores == [recomputed(out, row["beta"], norm) for row in rows]
        assert min(scores) > 0
        marks = [row[f"best_l{norm}"] for row in rows]
        assert marks == ["1" if value == max(scores) else "0" for value in scores]
    assert printed.count("**") == 4
    assert printed.splitlines()[:3] == ["proved radii", "", "| beta | l1 | linf |"]
    assert (out / "c-opt.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "table.md").read_text().startswith(printed.splitlines()[2])
    point = out / "points" / "gennorm-beta-2-sigma-0.5"
    with Run(point / "run") as store:
        assert [problem for problem in verify(store) if problem is not None] == []
        assert store.spec.noise.text == "gennorm(beta=2, sigma=0.5)"
        nonce = json.loads((out / "c-opt.json").read_text())["settings"]["nonce"]
        assert (store.spec.nonce, store.spec.seed) == (nonce, None)
        assert store.spec.lattice is not None
        assert store.spec.loading == {"weights": str(point / "model.safetensors")}
    assert app(["verify", str(point / "run"), "--replay", "5"], result_action="return_value") == 0
    assert "5 of 20 inputs sampled again: the same votes" in capsys.readouterr().out


def test_a_search_goes_on_at_every_level(data: tuple[Path, Path], tmp_path: Path) -> None:
    """Done points stay untouched; half a training and half a run end as the whole ones did."""
    out = tmp_path / "out"
    run(data, out, *GRID)
    before = (out / "table.csv").read_text()
    points = out / "points"
    untouched = points / "gennorm-beta-1-sigma-0.25" / "model.safetensors"
    stamp = untouched.stat().st_mtime_ns
    half = points / "gennorm-beta-2-sigma-0.5" / "run"
    with Run(half, create=True) as store, store.write():
        store._db.execute("DELETE FROM results WHERE idx >= 10")
    for file in (points / "gennorm-beta-2-sigma-0.25").rglob("*.*"):
        file.unlink()
    with pytest.raises(RunError, match="already contains a search: use --resume"):
        run(data, out, *GRID)
    (out / "table.csv").unlink()
    assert run(data, out, *GRID, "--resume") == 0
    assert (out / "table.csv").read_text() == before
    assert untouched.stat().st_mtime_ns == stamp
    with pytest.raises(RunError, match=r"plan: .*seed: None there, 3 now"):
        run(data, out, *GRID, "--resume", "--seed", "3", "--alpha", "0.01")
    with pytest.raises(RunError, match="shapes"):
        run(data, out, "--beta", "1", "--sigma", "0.25", "0.5", "--resume")


@pytest.mark.slow
@pytest.mark.important
def test_workers_give_the_same_table(data: tuple[Path, Path], tmp_path: Path) -> None:
    run(data, tmp_path / "one", *GRID, "--nonce", "7a" * 32)
    run(data, tmp_path / "two", *GRID, "--nonce", "7a" * 32, "--workers", "1")
    tables = [(tmp_path / name / "table.csv").read_text() for name in ("one", "two")]
    assert tables[0] == tables[1]


def search(data: tuple[Path, Path], folder: Path, training: Training) -> COpt:
    settings = make_search(
        load_dataset(data[0]),
        load_dataset(data[1]),
        training=training,
        norms=tuple(map(parse_norm, NORMS)),
        plan=Plan(n0=20, n=300),
        seed=0,
    )
    return COpt(settings, folder)


DIVERGES_AT = """
import torch

class Fragile(torch.nn.Linear):
    def forward(self, x):
        y = super().forward(x)
        return y * float("nan") if self.training and float(x.detach().std()) > 2 else y

def net():
    return Fragile(16, 2)
"""


def test_a_training_that_diverges_is_told_and_the_rest_goes_on(
    data: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "net.py").write_text(DIVERGES_AT)
    training = Training(None, arch=f"{tmp_path / 'net.py'}:net", epochs=2, batch=64)
    copt = search(data, tmp_path / "out", training)
    told: list[Trained] = []
    copt.on_result = told.append
    lines = c_opt(copt, Scales("gennorm", (0.25, 4.0)), grid({"beta": [2.0]}))
    assert [result.failed is not None for result in told] == [False, True]
    assert lines[0].scores == {"1": None, "inf": None}
    assert "sigma=4) diverged in epoch 1" in lines[0].failures[0]
    assert find_best_shape(lines, "1") is None
    assert "| 2 | failed | failed |" in copt_table(lines, NORMS)
    assert "every shape has a training that failed" in best_text(lines, NORMS)
    assert copt_csv(lines, NORMS).splitlines()[1] == "2,,,0,0"
    draw_copt(lines, NORMS, tmp_path / "empty.png")
    again = c_opt(copt, Scales("gennorm", (0.25, 4.0)), grid({"beta": [2.0]}), resume=True)
    assert again == lines
    assert len(told) == 2


def test_files_of_a_point_made_elsewhere_are_the_same(
    data: tuple[Path, Path], tmp_path: Path
) -> None:
    """Without a shared folder the work sends files back: byte for byte the same weights."""
    copt = search(data, tmp_path / "here", Training(None, epochs=2, batch=64))
    point = Point("laplace", (), 0.5)
    local = copt.evaluate([point])[point].folder
    work = copt._pack_work()
    assert isinstance(work, PointWork)
    away = PointWork(work.train, work.inputs, work.labels, work.job, work.training, None, work.home)
    files = away.open()(point)
    assert files is not None
    _store_files(files, tmp_path / "back")
    assert is_done(tmp_path / "back", 20)
    assert _read_files(local)["model.safetensors"] == files["model.safetensors"]
    with Run(local / "run") as one, Run(tmp_path / "back" / "run") as other:
        for a, b in zip(one.rows(), other.rows(), strict=True):
            assert a.certificate == b.certificate


def test_parameters_by_name_and_scale_in_place_of_sigma(
    data: tuple[Path, Path], tmp_path: Path
) -> None:
    assert grid({"a": [1, 2], "b": [3]}) == [(("a", 1.0), ("b", 3.0)), (("a", 2.0), ("b", 3.0))]
    assert run(data, tmp_path / "out", "--param", "beta=1,2", "--scale", "0.2", "--max", "4") == 0
    names = {path.name for path in (tmp_path / "out" / "points").iterdir()}
    assert names == {"gennorm-beta-1-scale-0.2", "gennorm-beta-2-scale-0.2"}
    spec = json.loads((tmp_path / "out" / "c-opt.json").read_text())["settings"]
    assert spec["family"]["given"] == "scale"


def test_words_and_several_parameters_in_tables(tmp_path: Path) -> None:
    lines = [
        ShapeScore((("a", 1.0), ("b", 2.0)), {"2": 0.123456}, ()),
        ShapeScore((("a", 1.0), ("b", 3.0)), {"2": 0.5}, ()),
    ]
    text = copt_table(lines, ["2"])
    assert "| 1 | 2 | 0.1234 |" in text  # rounded down
    assert "| 1 | 3 | **0.5** |" in text
    draw_copt(lines, ["2"], tmp_path / "plot.svg")
    assert "a=1, b=3" in (tmp_path / "plot.svg").read_text()


@pytest.mark.parametrize(
    ("more", "error", "words"),
    [
        (("--beta", "1"), SpecError, "either --sigma or --scale"),
        (("--beta", "1", "--sigma", "1", "--scale", "1"), SpecError, "either --sigma or --scale"),
        (("--beta", "1", "1", "--sigma", "1"), UnicrError, "beta has the same value twice"),
        (("--beta", "-1", "--sigma", "1"), NoiseError, "beta=-1"),
        (("--param", "beta", "--sigma", "1"), SpecError, "write it as name=0.5,1,2"),
        (("--beta", "1", "--param", "beta=2", "--sigma", "1"), SpecError, "given twice"),
        (("--param", "gamma=2", "--sigma", "1"), SpecError, "gamma"),
        (("--family", "pareto", "--beta", "1.5", "--sigma", "1"), NoiseError, "give scale="),
        (("--beta", "1", "--range", "beta=1:2", "--sigma", "1"), SpecError, "--search optuna"),
        (("--search", "optuna", "--sigma", "1"), SpecError, "give --range"),
        (("--search", "optuna", "--range", "beta=2:1", "--sigma", "1"), SpecError, "below"),
        (("--search", "optuna", "--range", "beta=2", "--sigma", "1"), SpecError, "name=0.5:5"),
    ],
)
def test_bad_words(
    more: tuple[str, ...],
    error: type[UnicrError],
    words: str,
    data: tuple[Path, Path],
    tmp_path: Path,
) -> None:
    with pytest.raises(error, match=words):
        run(data, tmp_path / "out", *more)
    assert not (tmp_path / "out").exists()


def test_bad_data_and_folders(data: tuple[Path, Path], tmp_path: Path) -> None:
    x, y = blobs(8, 0)
    other: Dataset = load_dataset((x[:, :5], y))
    with pytest.raises(DataError, match=r"shape \(16,\), but test inputs have \(5,\)"):
        make_search(load_dataset(data[0]), other)
    with pytest.raises(RunError, match="contains no result"):
        read_result(Point("laplace", (), 1.0), tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot create the folder"):
        run(data, tmp_path / "file" / "out", *GRID)
    with pytest.raises(UnicrError, match="at least one noise"):
        search(data, tmp_path / "out", Training(None)).evaluate([])


def test_optuna_searches_and_resumes(data: tuple[Path, Path], tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    out = tmp_path / "out"
    words = ("--search", "optuna", "--range", "beta=1:3", "--sigma", "0.25", "0.5", "--max", "6")
    assert run(data, out, *words, "--trials", "2") == 0
    first = table(out)
    assert run(data, out, *words, "--trials", "3", "--resume") == 0
    rows = table(out)
    assert len(first) == 2
    assert len(rows) == 3
    assert all(
        row in [{**r, "best_l1": row["best_l1"], "best_linf": row["best_linf"]} for r in rows]
        for row in first
    )
    assert all(1 <= float(row["beta"]) <= 3 for row in rows)
    for row in rows:
        assert float(row["l1"]) == recomputed(out, row["beta"], "1")
    changed = [word.replace("1:3", "1:4") for word in words]
    with pytest.raises(RunError, match="ranges"):
        run(data, out, *changed, "--resume")
    with pytest.raises(UnicrError, match="trials=0"):
        run(data, tmp_path / "none", *words, "--trials", "0")
