"""Two small distributions are built, installed and used: what they bring is found, or left out.

`zoo` adds a family, a rule, an adapter, an attack and a command by entry points; everything in
`broken` is wrong. Both are installed by pip into a folder of their own, which a fresh interpreter
has on its path.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tomllib
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

HERE = Path(__file__).parent
NOISE = "student(nu=5, sigma=0.5)"


def build_wheel(project: Path, folder: Path) -> Path:
    """The wheel of a project without dependencies to build it (PEP 427: a zip of known files)."""
    about = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    name = about["name"].replace("-", "_")
    info = f"{name}-{about['version']}.dist-info"
    points = "".join(
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in named.items()) + "\n"
        for group, named in about["entry-points"].items()
    )
    files = {
        str(path.relative_to(project)): path.read_text() for path in (project / name).glob("*.py")
    }
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n"
        f"Summary: {about['description']}\nRequires-Dist: unicr\n"
    )
    files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/entry_points.txt"] = points
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        rows.writerow([path, f"sha256={digest.decode()}", len(text.encode())])
    rows.writerow([f"{info}/RECORD", "", ""])
    wheel = folder / f"{name}-{about['version']}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": record.getvalue()}.items():
            archive.writestr(path, text)
    return wheel


def install(project: str, folder: Path) -> Path:
    """The folder into which pip installed the project."""
    wheel = build_wheel(HERE / project, folder)
    target = folder / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", "--no-index", "--target", target, wheel], check=True)
    return target


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install("zoo", tmp_path_factory.mktemp("zoo"))


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install("broken", tmp_path_factory.mktemp("broken"))


def with_path(*folders: Path) -> dict[str, str]:
    path = [*map(str, folders), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


def unicr(*words: object, folders: tuple[Path, ...] = (), cwd: Path | None = None) -> Ended:
    """The command in a fresh interpreter, with these folders on its path."""
    done = subprocess.run(
        [sys.executable, "-m", "unicr", *map(str, words)],
        env=with_path(*folders),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def here(zoo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of the adapter's kind, data, and a run that needs every plugin."""
    folder = tmp_path_factory.mktemp("here")
    x = np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32)
    x[0, 0] = 9.0  # far from the level: every vote agrees
    np.savez(folder / "data.npz", x=x, y=(x[:, 0] > 0).astype(np.int64))
    (folder / "model.level").write_text("0.0")
    sizes = ("--n0", 50, "--n", 400, "--rule", "half")
    certify = ("certify", "--model", "model.level", "--data", "data.npz", "--noise", NOISE)
    ended = unicr(*certify, *sizes, "--norm", "inf", "--out", "run", folders=(zoo,), cwd=folder)
    assert ended.code == 0, ended.err
    assert "8 inputs" in ended.out
    with closing(sqlite3.connect(folder / "run" / "run.sqlite")) as db:
        taken = db.execute("SELECT DISTINCT json_extract(claims, '$.n') FROM results").fetchall()
    assert (200,) in taken  # the rule stops after half of n where that is enough
    return folder


def test_the_command_is_in_the_overview_and_runs(zoo: Path) -> None:
    said = unicr("--help", folders=(zoo,)).out
    assert "From plugins\n" in said
    words = "A family, a rule, an adapter, an attack and a command from outside."
    assert f"\n  zoo         {words[:66]}\n" in said
    assert unicr("zoo", folders=(zoo,)).out == "an animal: student(nu=5, sigma=1)\n"
    assert "--family" in unicr("zoo", "--help", folders=(zoo,)).out
    assert "zoo" not in unicr("--help").out


def test_the_family_is_listed_and_described(zoo: Path) -> None:
    listed = unicr("noise", "list", folders=(zoo,)).out
    assert "student(nu=5, sigma=1)" in listed
    assert "student" not in unicr("noise", "list").out
    shown = unicr("noise", "show", "student(nu=5, scale=2)", folders=(zoo,)).out
    quantile = re.search(r"0\.99: ([\d.]+)", shown)
    assert quantile is not None
    assert float(quantile[1]) == pytest.approx(2 * stats.t(5).ppf(0.99), rel=1e-4)
    sigma = re.search(r"^sigma\s+([\d.]+)", shown, re.MULTILINE)
    assert sigma is not None
    assert float(sigma[1]) == pytest.approx(2 * stats.t(5).std(), rel=1e-8)


def test_a_run_of_plugins_is_verified_and_sampled_again(zoo: Path, here: Path) -> None:
    ended = unicr("verify", "run", "--replay", 3, folders=(zoo,), cwd=here)
    assert ended.code == 0, ended.err + ended.out
    assert "3 of 8 inputs sampled again: the same votes" in ended.out
    unicr("export", "run", "--norm", "inf", "-o", "run.tsv", folders=(zoo,), cwd=here)
    first, *_ = csv.DictReader((here / "run.tsv").read_text().splitlines(), delimiter="\t")
    assert float(first["radius"]) > 0


def test_a_forged_run_of_plugins_is_refused(zoo: Path, here: Path, tmp_path: Path) -> None:
    """The rule of the plugin decides again: one radius more than it gives is seen."""
    shutil.copytree(here / "run", tmp_path / "run")
    (database,) = tmp_path.glob("run/*.sqlite*")
    with sqlite3.connect(database) as db:
        ((text,),) = db.execute("SELECT claims FROM results WHERE idx = 0")
        claims = json.loads(text)
        # all of 200 votes agree: p^200 = α/2 is Clopper–Pearson's bound, less the sampler's charge
        assert claims["p_a"] == pytest.approx(0.0005 ** (1 / 200), abs=1e-9)
        forged = json.dumps({**claims, "p_a": 0.9999})
        db.execute("UPDATE results SET claims = ? WHERE idx = 0", (forged,))
    ended = unicr("verify", tmp_path / "run", folders=(zoo,), cwd=here)
    assert ended.code == 1, ended.err
    assert "input 0: p_A 0.9999 stored, " in ended.out


def test_without_the_plugin_a_run_is_refused_in_one_line(here: Path) -> None:
    ended = unicr("verify", "run", cwd=here)
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert "student" in ended.err or "half" in ended.err


def test_the_attack_runs(zoo: Path, here: Path) -> None:
    words = ("attack", "run", "--attack", "upwards", "--votes", 100, "--norm", "inf")
    ended = unicr(*words, folders=(zoo,), cwd=here)
    assert ended.code == 0, ended.err
    assert "upwards" in ended.out


@pytest.fixture
def explorer(zoo: Path) -> Iterator[str]:
    """The address of the page that `unicr explore` serves."""
    served = subprocess.Popen(
        [sys.executable, "-m", "unicr", "explore", "--port", "0", "--no-browser"],
        env=with_path(zoo),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert served.stdout is not None
    said = served.stdout.readline()
    yield said.split()[2]
    served.terminate()
    served.communicate(timeout=30)


def ask(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=60) as reply:
        return json.load(reply)


def test_the_explorer_has_the_family(explorer: str) -> None:
    families = {one["name"]: one for one in ask(f"{explorer}api/families")["families"]}
    assert families["student"]["parameters"][0]["name"] == "nu"
    assert families["student"]["joint"] is False
    words = "family=student&nu=5&scale=1&norm=inf&dim=4&pa=0.9"
    found = ask(f"{explorer}api/radius?{words}")
    assert 0 < found["proved"] <= found["searched"]
    drawn = ask(f"{explorer}api/density?family=student&nu=5&scale=1")
    at = np.array(drawn["x"])
    np.testing.assert_allclose(drawn["y"], stats.t(5).pdf(at), rtol=1e-9)


def test_broken_plugins_are_left_out_in_one_line_each(broken: Path, zoo: Path) -> None:
    listed = unicr("noise", "list", folders=(broken, zoo))
    assert listed.code == 0
    assert "student(nu=5, sigma=1)" in listed.out
    assert listed.out == unicr("noise", "list", folders=(zoo,)).out
    start = r"unicr: unicr-broken 0\.3: its plugin"
    wanted = [
        rf"{start} 'certify' \(unicr\.commands\) is left out: unicr already has a command .*",
        rf"{start} 'raises' \(unicr\.commands\) is left out: RuntimeError: first line second line",
        rf"{start} 'exits' \(unicr\.families\) is left out: SystemExit: no family today",
        rf"{start} 'nameless' \(unicr\.families\) is left out: .*must be a text",
        rf"{start} 'taken' \(unicr\.families\) is left out: the name 'gaussian' is already used",
    ]
    lines = listed.err.splitlines()
    assert len(lines) == len(wanted), listed.err
    for line, pattern in zip(lines, wanted, strict=True):
        assert re.fullmatch(pattern, line), line


def test_a_run_beside_broken_plugins_is_the_same(broken: Path, zoo: Path, here: Path) -> None:
    ended = unicr("verify", "run", "--replay", 1, folders=(broken, zoo), cwd=here)
    assert ended.code == 0, ended.err
    left = [line for line in ended.err.splitlines() if "is left out" in line]
    assert [re.findall(r"plugin '(\w+)'", line)[0] for line in left].count("absent") == 1
    assert sum("contains no instance of Adapter" in line for line in left) == 1
    assert "Traceback" not in ended.err
