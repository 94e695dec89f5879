"""The example scripts run as a user runs them, and the audit catches what claims too much."""

from __future__ import annotations

import ast
import json
import sqlite3
import subprocess
import sys
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.docs.pages import ROOT
from unicr.runs import Run, export


def example(name: str, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), *arguments],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def loaded(name: str) -> ModuleType:
    spec = util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def onnx_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("onnx")
    printed = example("certify_onnx.py", "--out", str(out), "--inputs", "6", "--samples", "1000")
    return out / "run", printed


def test_a_new_noise(tmp_path: Path) -> None:
    printed = example(
        "new_noise.py", "--out", str(tmp_path), "--dim", "16", "--digits", "1", "--samples", "500"
    )
    assert "log_concave=True" in printed
    assert "exact, by (b) one-hot, log-concave, floating point with a charge" in printed
    kept = float(printed.split("the worst classifier keeps ")[1].split()[0])
    assert kept == pytest.approx(0.5, abs=0.0062)  # 5.5 standard deviations of 200,000 votes
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert "digit 0, label 7: class 7" in printed


def test_an_onnx_model(onnx_run: tuple[Path, str]) -> None:
    _, printed = onnx_run
    assert "6 of 6 labels as in torch" in printed
    assert "**l2**" in printed
    assert "**linf**" in printed
    assert "0 certificates do not follow from their counts" in printed
    assert "0 of 3 inputs got other votes" in printed


def test_the_audit_agrees_with_an_honest_run(onnx_run: tuple[Path, str]) -> None:
    printed = example("audit.py", str(onnx_run[0]))
    assert "6 certificates checked from scratch, 0 claim too much" in printed
    assert "6 certificates recomputed from their votes: all hold" in printed


def test_the_audit_catches_a_radius_that_is_too_large(
    onnx_run: tuple[Path, str], tmp_path: Path
) -> None:
    with sqlite3.connect(onnx_run[0] / "run.sqlite") as source:
        with sqlite3.connect(tmp_path / "run.sqlite") as target:
            source.backup(target)
            (text,) = target.execute("SELECT claims FROM results WHERE idx = 2").fetchone()
            claims = json.loads(text)
            claims["radii"][0]["radius"] *= 1.0001
            target.execute("UPDATE results SET claims = ? WHERE idx = 2", (json.dumps(claims),))
        target.close()
    source.close()
    script = loaded("audit")
    checked, left, complaints = script.audit(*script.read_run(tmp_path))
    assert (checked, left) == (6, 0)
    assert [text.split(" in l2")[0].rsplit(" ", 1)[0] for text in complaints] == ["input 2: radius"]


@pytest.fixture
def exported(onnx_run: tuple[Path, str], tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    with Run(onnx_run[0]) as store:
        export(store, path)
    return path


def change(path: Path, **values: Any) -> None:
    """Write other values into the second line of an export."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[1].update(values)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_the_audit_reads_an_export(exported: Path) -> None:
    script = loaded("audit")
    assert script.audit(*script.read_jsonl(exported)) == (6, 0, [])
    counts = json.loads(exported.read_text().splitlines()[1])["counts"]
    for changed, words in (
        ({"p_a": 0.9999, "p_b": 0.0001}, "p_A, p_B = 0.9999"),
        ({"predict": 5}, "class 5 claimed"),
        ({"counts": [*counts[:-1], counts[-1] + 1]}, "not as many as n0 and n say"),
        ({"predict": -1}, "0.0 follows"),
    ):
        before = exported.read_text()
        change(exported, **changed)
        _, _, complaints = script.audit(*script.read_jsonl(exported))
        assert len(complaints) >= 1
        assert complaints[0].startswith("input ")
        assert any(words in text for text in complaints)
        exported.write_text(before)


def test_the_audit_leaves_out_what_it_cannot_judge(exported: Path) -> None:
    script = loaded("audit")
    change(exported, noise="laplace(sigma=0.5)")
    assert script.audit(*script.read_jsonl(exported)) == (5, 1, [])
    change(exported, n=700)
    assert script.audit(*script.read_jsonl(exported)) == (0, 6, [])
    change(exported, scope="this input's noise")
    with pytest.raises(SystemExit, match="audit the run folder"):
        script.read_jsonl(exported)


def test_the_audit_has_the_bounds_of_the_package() -> None:
    from unicr.noise import gaussian
    from unicr.smoothing import Plan, Radii, Votes, lower_bound, read_norms, upper_bound
    from unicr.smoothing.rules import ThreeTests

    script = loaded("audit")
    for k, n in ((0, 50), (1, 50), (37, 50), (50, 50), (998, 1000)):
        assert script.at_least(k, n, 0.001) == pytest.approx(lower_bound(k, n, 0.001), rel=1e-10)
        assert script.at_most(k, n, 0.001) == pytest.approx(upper_bound(k, n, 0.001), rel=1e-10)
    counts = [10, 700, 290]
    row = {"selection": [2, 60, 38], "counts": counts, "alpha": 0.003}
    both = {"rule": {"name": "three"}}
    plan, radii = Plan(alpha=0.003, rule=ThreeTests()), Radii(gaussian(sigma=1), read_norms(2), 2)
    expected = plan.rule.conclude(Votes(700, 290, 1000), plan, radii)
    assert script.bounds(row, both) == pytest.approx(expected, rel=1e-10)


def test_the_notebook_runs_and_its_tables_can_be_shown() -> None:
    """Cell by cell in one namespace; what a cell ends with is shown as a notebook would."""
    notebook = json.loads((ROOT / "examples" / "tour.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    names: dict[str, Any] = {}
    shown = []
    for cell in cells:
        *before, last = ast.parse(cell).body
        exec(compile(ast.Module(before, []), "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
            shown += [value._repr_html_()] if value is not None else []
        else:
            exec(compile(ast.Module([last], []), "cell", "exec"), names)
    assert len(shown) == 2
    assert all(text.startswith("<table>") for text in shown)
    assert "guarantee" in shown[0]
    assert "radius_linf" in shown[1]
