"""`unicr noise`, run as a user runs it."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from unicr import noise
from unicr.cli import main


def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of `unicr arguments...`."""
    monkeypatch.setattr(sys, "argv", ["unicr", *arguments])
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    with pytest.raises(SystemExit) as end:
        main()
    written = capsys.readouterr()
    code = end.value.code
    return (code if isinstance(code, int) else 0), written.out, written.err


def test_list_names_every_family(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(monkeypatch, capsys, "noise", "list")
    assert (code, err) == (0, "")
    for name, family in noise.FAMILIES.items():
        example = family.example
        assert any(line.startswith(name) and example in line for line in out.splitlines())
        assert noise.parse(example).text == example


@pytest.mark.parametrize("spec", [family.example for family in noise.FAMILIES.values()])
def test_show_prints_facts_and_moments(
    spec: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(monkeypatch, capsys, "noise", "show", spec)
    assert (code, err) == (0, "")
    rows = {line[:16].strip(): line[16:].strip() for line in out.splitlines()}
    one = noise.parse(spec)
    assert rows["noise"] == spec
    for word, value in (
        ("symmetric", one.facts.symmetric),
        ("log-concave", one.facts.log_concave),
        ("bounded", one.facts.bounded),
        ("finite variance", one.facts.finite_variance),
    ):
        assert rows[word] == ("yes" if value else "no")
    if math.isfinite(one.sigma):
        assert float(rows["sigma"]) == pytest.approx(one.sigma, rel=1e-8)
    else:
        assert "infinite variance" in rows["sigma"]
    assert "0.5: " in rows["quantiles" if isinstance(one, noise.IID) else "radius"]


@pytest.mark.parametrize(
    ("spec", "ending", "magic"),
    [
        ("gaussian(sigma=0.5)", "png", b"\x89PNG\r\n\x1a\n"),
        ("uniform(sigma=1)", "svg", b"<?xml"),
        ("cauchy(scale=0.3).truncated(5)", "png", b"\x89PNG\r\n\x1a\n"),
        ("spherical_gg(k=1530, sigma=0.5, dim=3072)", "pdf", b"%PDF"),
    ],
)
def test_show_draws_the_density(
    spec: str,
    ending: str,
    magic: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / f"density.{ending}"
    code, out, err = run(monkeypatch, capsys, "noise", "show", spec, "-o", str(path))
    assert (code, err) == (0, "")
    assert str(path) in out
    assert path.read_bytes().startswith(magic)
    assert path.stat().st_size > 3000


def test_a_users_file_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "own.py"
    path.write_text("def quartic(x):\n    return -(x**4)\n")
    code, out, _ = run(monkeypatch, capsys, "noise", "show", f"{path}:quartic")
    assert code == 0
    sigma = math.sqrt(math.gamma(3 / 4) / math.gamma(1 / 4))
    shown = next(line for line in out.splitlines() if line.startswith("sigma"))
    assert float(shown.split()[1]) == pytest.approx(sigma, rel=1e-8)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("gausian(sigma=1)",), "did you mean gaussian"),
        (("cauchy(sigma=1)",), "scale="),
        (("gaussian(sigma=-1)",), "sigma=-1"),
        (("__import__('os').getcwd()",), "cannot read the noise"),
        (("nothing.py:mine",), "no file nothing.py"),
        (("gaussian(sigma=1)", "-o", "density.gif"), ".png"),
        (("gaussian(sigma=1)", "-o", "no/such/folder/density.png"), "does not exist"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    arguments: tuple[str, ...],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run(monkeypatch, capsys, "noise", "show", *arguments)
    assert code == 2
    assert err.startswith("unicr: ")
    assert err.count("\n") == 1
    assert reason in err
    assert "Traceback" not in err
    assert not list(tmp_path.iterdir())


def test_version_and_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import unicr

    assert unicr.__version__ in run(monkeypatch, capsys, "--version")[1]
    code, out, _ = run(monkeypatch, capsys, "--help")
    assert code == 0
    for word in ("noise", "demo"):
        assert word in out
