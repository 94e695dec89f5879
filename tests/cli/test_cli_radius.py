"""`unicr radius`, `curve` and `tightness` as a user calls them."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from unicr.cli import app
from unicr.errors import UnicrError


def split(line: str) -> list[str]:
    return line.split(" ")


def run(*arguments: str) -> object:
    return app(list(arguments), exit_on_error=False, print_error=False)


def test_json_keys_and_values(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "radius",
        "--noise",
        "gaussian(sigma=0.5)",
        "--norm",
        "2",
        "--dim",
        "3072",
        "--pa",
        "0.99",
        "--json",
    ]
    run(*words)
    result = json.loads(capsys.readouterr().out)
    keys = "radius proved searched guarantee engine direction norm dim p_a p_b noise"
    assert set(keys.split()) <= set(result)
    assert result["radius"] == pytest.approx(0.5 * 2.3263478740408408)
    assert result["guarantee"] == "exact"
    assert result["norm"] == "2"


def test_text_rounds_down(capsys: pytest.CaptureFixture[str]) -> None:
    run(*split("radius --noise laplace(sigma=1) --norm 1 --dim 784 --pa 0.9"))
    out = capsys.readouterr().out
    assert "radius     1.13804 " in out
    assert "(b) one-hot, log-concave" in out


def test_p_b_searched_and_engine(capsys: pytest.CaptureFixture[str]) -> None:
    run(
        *[
            "radius",
            "--noise",
            "laplace(sigma=1)",
            "--norm",
            "inf",
            "--dim",
            "784",
            "--pa",
            "0.6",
            "--pb",
            "0.3",
            "--searched",
            "--json",
        ]
    )
    result = json.loads(capsys.readouterr().out)
    assert result["radius"] == result["searched"] >= result["proved"] > 0
    assert result["p_b"] == 0.3


@pytest.mark.parametrize(
    "words",
    [
        "--noise laplace(sigma=1) --norm 2 --dim 784 --pa 1.5",
        "--noise laplace(sigma=1) --norm two --dim 784 --pa 0.9",
        "--noise laplas(sigma=1) --norm 2 --dim 784 --pa 0.9",
        "--noise laplace(sigma=1) --norm 2 --dim 0 --pa 0.9",
        "--noise laplace(sigma=1) --norm 2 --pa 0.9",
        "--noise laplace(sigma=1) --norm 2 --dim 784 --pa 0.9 --engine exact",
    ],
)
def test_mistakes_are_one_clear_line(words: str) -> None:
    with pytest.raises(UnicrError) as caught:
        run("radius", *words.split())
    assert "\n" not in str(caught.value)


def test_exit_code_and_stderr_of_the_real_command() -> None:
    words = ["radius", "--noise", "laplace(sigma=1)", "--norm", "2", "--dim", "784", "--pa", "nan"]
    done = subprocess.run(
        [sys.executable, "-m", "unicr", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("unicr: --pa nan")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("ending", ["png", "svg", "csv"])
def test_curve_files(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNICR_CACHE_DIR", str(tmp_path))
    file = tmp_path / f"curve.{ending}"
    run(
        "curve",
        "--noise",
        "gaussian(sigma=1)",
        "laplace(sigma=1)",
        "--norm",
        "inf",
        "--dim",
        "784",
        "-o",
        str(file),
    )
    head = file.read_bytes()[:200]
    if ending == "png":
        assert head.startswith(b"\x89PNG")
    elif ending == "svg":
        assert b"<?xml" in head
    else:
        lines = file.read_text().splitlines()
        assert lines[0] == "noise,norm,dim,p_a,proved,searched,confident,confidence,grade"
        assert {line.split(")")[0] for line in lines[1:]} == {"gaussian(sigma=1", "laplace(sigma=1"}


def test_curve_html_names_the_extra_or_draws(tmp_path: Path) -> None:
    words = ["curve", "--noise", "gaussian(sigma=1)", "--norm", "2", "--dim", "10", "-o"]
    file = tmp_path / "page.html"
    if importlib.util.find_spec("plotly") is None:
        with pytest.raises(UnicrError, match=r"unicr\[report\]"):
            run(*words, str(file))
    else:
        run(*words, str(file))
        assert "plotly" in file.read_text(encoding="utf-8")


def test_curve_refuses_unknown_endings(tmp_path: Path) -> None:
    words = ["curve", "--noise", "gaussian(sigma=1)", "--norm", "2", "--dim", "10", "-o"]
    with pytest.raises(UnicrError, match="ending"):
        run(*words, str(tmp_path / "curve.doc"))
    with pytest.raises(UnicrError, match="does not exist"):
        run(*words, str(tmp_path / "no" / "curve.png"))


def test_tightness_table_plot_and_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "t.png"
    code = run(
        *[
            "tightness",
            "--noise",
            "gaussian(sigma=1)",
            "--norm",
            "2",
            "--dim",
            "784",
            "--formula",
            "lecuyer",
        ],
        "--pa",
        "0.6",
        "0.9",
        "-o",
        str(picture),
    )
    assert code == 0
    assert "loose by" in capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")
    wrong = tmp_path / "wrong.py"
    wrong.write_text("def twice(p_a):\n    return 2 * p_a\n")
    code = run(
        *[
            "tightness",
            "--noise",
            "gaussian(sigma=1)",
            "--norm",
            "inf",
            "--dim",
            "784",
            "--formula",
        ],
        f"{wrong}:twice",
        "--pa",
        "0.9",
    )
    assert code == 1
    assert "WRONG" in capsys.readouterr().out


def test_tightness_lists_formulas(capsys: pytest.CaptureFixture[str]) -> None:
    run(*split("tightness --noise gaussian(sigma=1) --norm 2 --formula list"))
    out = capsys.readouterr().out
    assert "cohen" in out
    assert "teng" in out


def test_explain_tells_theorem_files_and_charges(capsys: pytest.CaptureFixture[str]) -> None:
    words = split("radius --noise gaussian(sigma=0.5) --norm 2 --dim 3072 --pa 0.99 --explain")
    run(*words)
    out = capsys.readouterr().out
    assert "(d) Gaussian: docs/theory.md#theorem-d" in out
    assert "unicr/noise/families/gaussian.py: " in out
    assert "radius/_rounding.py TAIL_CHARGE" in out
    run(*words, "--json")
    told = json.loads(capsys.readouterr().out)
    assert told["explanation"]["proved"] == told["proved"]
