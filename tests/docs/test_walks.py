"""Three newcomers, each with less than ten commands and no look at the source.

A researcher with a noise of her own, an engineer with four kinds of models, an auditor who gets
their runs and gives no options.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.cli.command import run
from unicr.runs import Run

HUBER = '''"""Huber noise: a Gaussian heart with exponential tails."""

import numpy as np
from unicr import noise


def law(sigma, knee=1.0):
    def log_density(x):
        size = np.abs(x)
        return np.where(size < knee, -0.5 * size**2, -knee * size + 0.5 * knee**2)

    return noise.from_density(log_density, name=f"huber(knee={knee})").with_sigma(sigma)
'''
MOST = 9


class Walk:
    """Commands in a folder, counted; each must end well."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, line: str, *more: str) -> str:
        self.count += 1
        assert self.count <= MOST
        ended = run(*line.split(), *more)
        assert ended.code == 0, (line, ended.err)
        assert "warning" not in ended.err, ended.err
        return ended.out + ended.err


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("walk")
    with chdir(folder):
        yield folder


def picture(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 10_000


@pytest.mark.slow
def test_a_researcher_with_a_noise_of_her_own(here: Path) -> None:
    (here / "huber.py").write_text(HUBER)
    walk, own = Walk(), ("--noise", "huber.py:law(sigma=0.5)")
    assert "huber" in walk("noise show", own[1])
    for norm in ("1", "2", "inf"):
        walk(f"curve --norm {norm} --dim 784 -o l{norm}.png", *own, "gaussian(sigma=0.5)")
        assert picture(here / f"l{norm}.png")
    both = "certify --model builtin:mnist-mlp-0.5 --data builtin:mnist --norm 1 2 inf --n 2000"
    walk(f"{both} --max 10 --out huber", *own)
    walk(f"{both} --max 10 --out gaussian", "--noise", "gaussian(sigma=0.5)")
    scores = walk("score huber gaussian -o comparison.png")
    assert "huber.py:law(sigma=0.5)" in scores
    assert picture(here / "comparison.png")
    with Run(here / "huber") as made:
        assert made.spec.to_dict()["noise_data"] is not None
        assert {row.status for row in made.rows()} <= {"certified", "abstained"}
    assert ": the same votes" in walk("verify huber --replay 2")  # without the file that made it


@pytest.fixture(scope="module")
def brought(here: Path) -> Path:
    """What the engineer has on her disk already."""
    pytest.importorskip("onnx")
    joblib = pytest.importorskip("joblib")
    transformers = pytest.importorskip("transformers")
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    x = rng.random((12, 3, 8, 8), dtype=np.float32)
    y = (x.mean((1, 2, 3)) > 0.5).astype(np.int64)
    np.savez(here / "small.npz", x=x, y=y)
    export(np.outer(np.ones(192), [-1, 1]), here / "model.onnx")

    names = np.array(["setosa", "versicolor"])[y]
    rows = zip(table(x), names, strict=True)
    lines = [",".join([*map(str, row[:6]), name]) for row, name in rows]
    (here / "flowers.csv").write_text("a,b,c,d,e,f,kind\n" + "\n".join(lines) + "\n")
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(table(x)[:, :6], names)
    joblib.dump(pipeline, here / "flowers.joblib")

    config = transformers.ViTConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        image_size=8,
        patch_size=4,
        num_labels=4,
    )
    transformers.ViTForImageClassification(config).save_pretrained(here / "vit")

    large = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 7, 4), torch.nn.ReLU(), torch.nn.Flatten(1), torch.nn.LazyLinear(5)
    )
    large(torch.zeros(1, 3, 224, 224))
    wide = rng.random((2, 3, 224, 224), dtype=np.float32)
    np.savez(here / "wide.npz", x=wide, y=np.zeros(2, np.int64))
    batch = torch.export.Dim("batch", min=1)
    sample = torch.zeros(2, 3, 224, 224)
    program = torch.export.export(large.eval(), (sample,), dynamic_shapes=({0: batch},))
    torch.export.save(program, here / "wide.pt2")
    return here


def table(x: np.ndarray) -> np.ndarray:
    """Twelve rows of a table, from the same inputs."""
    return np.asarray(x.reshape(len(x), -1) + (x.mean((1, 2, 3)) > 0.5)[:, None])


def export(weight: np.ndarray, path: Path) -> None:
    """A linear model as ONNX, written by hand: no exporter is needed."""
    import onnx
    from onnx import helper, numpy_helper

    nodes = [
        helper.make_node("Flatten", ["x"], ["flat"], axis=1),
        helper.make_node("MatMul", ["flat", "w"], ["scores"]),
    ]
    kind = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info("x", kind, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info("scores", kind, ["n", 2])],
        [numpy_helper.from_array(weight.astype(np.float32), "w")],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path
    )


RUNS = ("onnx", "table", "hf", "wide")


@pytest.fixture(scope="module")
def certified(brought: Path) -> Path:
    """Four models, four commands, one report."""
    walk, sizes = Walk(), "--n 300 --n0 30 --norm 2"
    small = ("--noise", "gaussian(sigma=0.25)")
    walk(
        f"certify --model model.onnx --mean 0.5 0.5 0.5 --std 0.5 0.5 0.5 --data small.npz {sizes} "
        "--out onnx",
        *small,
    )
    walk(
        "certify --model flowers.joblib --trust flowers.joblib --data flowers.csv "
        f"--label-column kind {sizes} --out table",
        *small,
    )
    told = walk(f"certify --model hf:vit --data small.npz {sizes} --out hf", *small)
    assert "near chance" not in told
    walk(f"certify --model wide.pt2 --trust wide.pt2 --data wide.npz {sizes} --out wide", *small)
    walk("report onnx table hf wide -o report.html")
    return brought


@pytest.mark.slow
def test_an_engineer_with_four_kinds_of_models(certified: Path) -> None:
    for name in RUNS:
        with Run(certified / name) as made:
            assert {row.status for row in made.rows()} <= {"certified", "abstained"}, name
    with Run(certified / "wide") as made:
        assert made.spec.batch < 100
    page = (certified / "report.html").read_text(encoding="utf-8")
    assert "setosa" in page
    assert all(name in page for name in RUNS)


@pytest.mark.slow
def test_an_auditor_gives_no_options(certified: Path) -> None:
    walk = Walk()
    for name in ("onnx", "hf"):
        assert ": the same votes" in walk(f"verify {name} --replay 2")
    for name, code in (("table", "flowers.joblib"), ("wide", "wide.pt2")):
        refused = run("verify", name, "--replay", 2)  # what may run code is named by its reader
        refused.check_refused("--trust")
        assert ": the same votes" in walk(f"verify {name} --replay 2 --trust {code}")
