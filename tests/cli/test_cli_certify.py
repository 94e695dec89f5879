"""`unicr certify`, `verify`, `score`, `export`, `recertify` and `demo`, as a user calls them."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from cyclopts import CycloptsError

from unicr.cli import app
from unicr.errors import UnicrError
from unicr.runs import Run

MODEL = "def classify(batch):\n    return (batch[:, 0] > 0).long()\n"


def run(*arguments: str) -> object:
    return app(list(arguments), exit_on_error=False, print_error=False)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=x, y=(x[:, 0] > 0).astype(np.int64))
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def certify(out: str, *more: str, model: str = "model.py:classify") -> object:
    fixed = ["--data", "data.npz", "--noise", "gaussian(sigma=0.5)", "--out", out]
    samples = [] if "--n" in more else ["--n", "500"]
    norms = [] if "--norm" in more else ["--norm", "1", "2", "inf"]
    return run("certify", "--model", model, *fixed, *samples, *norms, *more)


def test_from_model_and_data_to_scores(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert certify("run") == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("8 inputs: ")
    assert len(printed.out.splitlines()) == 1 + 4 + 1  # counts, the table of three norms, p_A
    assert printed.err.splitlines()[-1].startswith("run in run, seal ")
    assert "largest proved radius" not in printed.err
    assert certify("more", "--verbose") == 0
    printed = capsys.readouterr()
    assert "largest proved radius that n=500" in printed.err
    assert "The average radius can mislead" in printed.out
    assert run("verify", "run", "--replay", "3", "--trust", "model.py") == 0
    assert "3 of 8 inputs sampled again: the same votes" in capsys.readouterr().out
    run("score", "run", "--radii", "0", "0.25", "--format", "json", "-o", "plot.png")
    records = json.loads(capsys.readouterr().out)
    assert {r["norm"] for r in records} == {"1", "2", "inf"}
    assert all("robustness_score" in r or "at 0.25" in r for r in records)
    assert (here / "plot.png").read_bytes().startswith(b"\x89PNG")
    for form, word in (
        ("markdown", "robustness score over 1 run(s)"),
        ("csv", "certified_accuracy"),
        ("latex", r"\begin{tabular}"),
    ):
        run("score", "run", "--norm", "2", "--format", form, "--verbose")
        assert word in capsys.readouterr().out
    run("score", "run", "--norm", "2", "--radii", "0.1", "-o", "scores.tex")
    title, _, head, row, _, last = capsys.readouterr().out.splitlines()
    assert title == "l2"
    names = ["run", "inputs", "certified_accuracy", "at 0.1", "p_A 10 %", "p_A 50 %", "p_A 90 %"]
    assert head.split("  ")[0] == "run"
    assert all(name in head for name in [*names, "average_radius"])
    assert row.startswith("run (gaussian(sigma=0.5))")
    assert last.startswith("The average radius can mislead")
    assert "p\\_A 50 \\%" in (here / "scores.tex").read_text()
    run("export", "run", "-o", "run.tsv", "--norm", "2")
    run("score", "run.tsv")
    assert "\nrun  " in capsys.readouterr().out
    run("recertify", "run.tsv", "--noise", "gaussian(sigma=0.5)", "--norm", "inf", "--dim", "6")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 9


def test_verify_says_where_the_law_of_the_noise_has_no_bound(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for law, said in (
        ("spherical_gg(k=2, sigma=0.5, dim=6)", True),
        ("gaussian(sigma=0.5)", False),
    ):
        arguments = ("--model", "model.py:classify", "--data", "data.npz", "--noise", law)
        assert run("certify", *arguments, "--out", law[:3], "--n", "100", "--norm", "2") == 0
        capsys.readouterr()
        assert run("verify", law[:3]) == 0
        printed = capsys.readouterr().out
        assert ("sampler has no computed bound" in printed) == said


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # torch's own, at its import
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a compiler")
def test_a_compiled_model_is_certified_as_another_one_and_replays(here: Path) -> None:
    model = "builtin:mnist-mlp-0.25"
    shared = ("--data", "builtin:mnist", "--noise", "gaussian(sigma=0.25)", "--norm", "2",
              "--n", "2000", "--max", "2", "--seed", "0")  # fmt: skip
    assert run("certify", "--model", model, *shared, "--out", "plain") == 0
    assert run("certify", "--model", model, *shared, "--out", "quick", "--compile") == 0
    assert run("verify", "quick", "--replay", "2") == 0
    with Run(here / "plain") as plain, Run(here / "quick") as quick:
        assert plain.spec.model_hash != quick.spec.model_hash
        for one, other in zip(plain.rows(), quick.rows(), strict=True):
            assert one.certificate is not None
            assert other.certificate is not None
            assert one.certificate.predict == other.certificate.predict
            pairs = zip(one.certificate.counts, other.certificate.counts, strict=True)
            assert max(abs(a - b) for a, b in pairs) <= 2  # a score or two that nearly tie


def test_early_stopping_options(here: Path) -> None:
    assert certify("target", "--rule", "target(radius=0.3)", "--norm", "2") == 0
    assert certify("both", "--rule", "three") == 0
    assert certify("pilot", "--rule", "pilot(share=0.1)") == 0
    for folder in ("target", "both", "pilot"):
        assert run("verify", folder) == 0


def test_failed_inputs_show_in_the_exit_code(here: Path) -> None:
    text = "def classify(batch):\n    assert batch.mean() < 0.1 or len(batch) == 2\n"
    (here / "bad.py").write_text(text + "    return (batch[:, 0] > 0).long()\n")
    assert certify("run", model="bad.py:classify") == 3
    assert run("verify", "run") == 0


def test_clear_errors(here: Path) -> None:
    cases: list[tuple[list[str], str]] = [
        (["--n", "5"], "can certify nothing, even if all of them agree: take 11 or more"),
        (["--alpha", "2"], "alpha"),
        (["--norm", "zero"], "norm"),
        (["--skip", "0"], "skip"),
    ]
    for more, words in cases:
        with pytest.raises((UnicrError, CycloptsError), match=words):
            certify("run", *more)
    with pytest.raises(UnicrError, match="nowhere"):
        certify("run", model="nowhere.onnx")
    (here / "model.joblib").write_bytes(b"\x80\x04.")
    with pytest.raises(UnicrError, match="trust"):
        certify("run", model="model.joblib")
    certify("run")
    with pytest.raises(UnicrError, match="--resume"):
        certify("run")
    assert certify("run", "--resume") == 0
    with pytest.raises(UnicrError, match="seed"):
        certify("run", "--resume", "--seed", "5")
    with pytest.raises(UnicrError, match="not a run"):
        run("verify", str(here))


def test_warns_about_inputs_in_bytes_or_normalised(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    y = np.zeros(4, dtype=np.int64)
    np.savez(here / "data.npz", x=rng.uniform(0, 255, (4, 6)).astype(np.float32), y=y)
    certify("bytes")
    assert "is the noise meant for [0, 1]" in capsys.readouterr().err.replace("\n", " ")
    (here / "image.py").write_text("def classify(b):\n    return (b.mean((1, 2, 3)) > 0).long()\n")
    np.savez(here / "data.npz", x=rng.normal(size=(4, 3, 4, 4)).astype(np.float32), y=y)
    certify("normal", model="image.py:classify")
    assert "normalised" in capsys.readouterr().err.replace("\n", " ")


def test_a_run_is_opened_again_as_it_was_read(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Split, normalisation and labels stand in the spec: nobody has to say them again."""
    rng = np.random.default_rng(1)
    arrays = {
        f"{kind}_{part}": values.astype(np.float32 if kind == "x" else np.int64)
        for part in ("train", "test")
        for kind, values in (("x", rng.random((5, 1, 28, 28))), ("y", rng.integers(2, size=5)))
    }
    np.savez(here / "split.npz", **arrays)  # type: ignore[arg-type]
    model, mean, std = "builtin:mnist-mlp-0.5", ["0.1"], ["0.8"]
    assert run("certify", "--model", model, "--data", "split.npz", "--split", "train",
                    "--noise", "gaussian(sigma=0.5)", "--norm", "2", "--n", "300", "--out", "run",
                    "--mean", *mean, "--std", *std) == 0  # fmt: skip
    capsys.readouterr()
    assert run("verify", "run", "--replay", "5") == 0
    assert "5 of 5 inputs sampled again: the same votes" in capsys.readouterr().out
    assert run("guard", "run", "--queries", "split.npz", "--max", "2") == 0
    with pytest.raises(UnicrError, match="or precision differs"):  # yours is taken as you say
        run("verify", "run", "--replay", "2", "--model", model)
    mine = ("--model", model, "--mean", *mean, "--std", *std)
    assert run("verify", "run", "--replay", "2", *mine) == 0
    with pytest.raises(UnicrError, match="the run used the train split"):
        run("verify", "run", "--data", "split.npz", "--split", "test")
    with pytest.raises(UnicrError, match="preprocessing or precision differs"):
        run("verify", "run", "--replay", "2", "--mean", "0", "--std", *std)
    with pytest.raises(UnicrError, match="its hash differs"):
        run("verify", "run", "--replay", "2", "--model", "builtin:mnist-mlp-1.0")


def test_demo(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("demo", "--inputs", "6", "--n", "500")
    out = capsys.readouterr().out
    assert out.count("gennorm(beta=1.5, sigma=0.5)") >= 3
    folder = here / "unicr-demo"
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert run("verify", str(folder / "laplace"), "--replay", "2") == 0
    run("demo", "--inputs", "6", "--n", "500")
    with pytest.raises(UnicrError, match="--fresh"):
        run("demo", "--inputs", "6", "--n", "600")
    run("demo", "--inputs", "6", "--n", "600", "--fresh")
