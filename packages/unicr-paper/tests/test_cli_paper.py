"""`unicr paper` as a user calls it: the list, one item, wrong words, exit codes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.command import run

from unicr.errors import SpecError
from unicr_paper import ITEMS, Context, Item, MissingDataError, Output
from unicr_paper.command import FAILED, MISSING, paper


def broken(context: Context) -> Output:
    raise RuntimeError("broken")


def interrupted(context: Context) -> Output:
    raise KeyboardInterrupt


def homeless(context: Context) -> Output:
    raise MissingDataError("needs a dataset")


Swap = Callable[[str, Callable[[Context], Output]], None]


@pytest.fixture
def swap(monkeypatch: pytest.MonkeyPatch) -> Swap:
    """Give an item of the registry another body."""

    def change(name: str, run: Callable[[Context], Output]) -> None:
        # the item is a frozen dataclass, and the command looks it up by name
        monkeypatch.setitem(vars(ITEMS[name]), "run", run)

    return change


@pytest.mark.parametrize("words", [None, ["list"], ["LIST"]])
def test_the_list_names_every_item(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str] | None
) -> None:
    assert paper(words, out=tmp_path) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ITEMS)
    assert out.count("not yet") >= 7


def test_an_item_runs_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert paper(["confidence"], quick=True, out=tmp_path) == 0
    assert "confidence: done" in capsys.readouterr().out
    assert (tmp_path / "confidence" / "confidence.svg").is_file()
    assert paper(["confidence"], quick=True, out=tmp_path) == 0
    assert "confidence: kept" in capsys.readouterr().out
    paper(out=tmp_path, quick=True)
    assert "done (quick" in capsys.readouterr().out


def test_a_failed_item_gives_3_and_the_next_still_runs(
    tmp_path: Path, swap: Swap, capsys: pytest.CaptureFixture[str]
) -> None:
    swap("formulas", broken)
    swap("noises", homeless)
    assert paper(["formulas", "noises", "confidence"], quick=True, out=tmp_path) == FAILED == 3
    out = capsys.readouterr().out
    assert "formulas: failed, RuntimeError: broken" in out
    assert "noises: missing data, needs a dataset" in out
    assert "confidence: done" in out


def test_missing_data_alone_gives_4(tmp_path: Path, swap: Swap) -> None:
    swap("noises", homeless)
    assert paper(["noises", "confidence"], quick=True, out=tmp_path) == MISSING == 4


def test_control_c_gives_130_and_keeps_what_is_done(tmp_path: Path, swap: Swap) -> None:
    swap("gallery", interrupted)
    words = ("paper", "confidence", "gallery", "--quick", "--out", str(tmp_path))
    ended = run(*words, "--fresh")
    assert ended.code == 130
    assert "what is done stays: the same command goes on, without --fresh\n" in ended.err
    assert (tmp_path / "confidence" / "item.json").is_file()


def test_the_data_folder_comes_from_the_environment(
    tmp_path: Path, swap: Swap, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Path] = []

    def look(context: Context) -> Output:
        seen.append(context.data)
        return Output()

    swap("confidence", look)
    monkeypatch.setenv("UNICR_PAPER_DATA", "there")
    paper(["confidence"], out=tmp_path)
    paper(["confidence"], out=tmp_path, data_dir=Path("here"), fresh=True)
    monkeypatch.delenv("UNICR_PAPER_DATA")
    paper(["confidence"], out=tmp_path, fresh=True)
    assert seen == [Path("there"), Path("here"), Path("data")]


def test_wrong_words_are_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="did you mean gallery"):
        paper(["galery"], out=tmp_path)
    with pytest.raises(SpecError, match="one of --quick and --full"):
        paper(["gallery"], quick=True, full=True, out=tmp_path)
    with pytest.raises(SpecError, match="NAME=VALUE"):
        paper(["gallery"], set_=["imagenet"], out=tmp_path)
    with pytest.raises(SpecError, match="no item takes --set moon"):
        paper(["gallery"], set_=["moon=1"], out=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("item", ITEMS.values(), ids=list(ITEMS))
def test_every_item_has_sizes_for_every_mode(item: Item) -> None:
    sizes = item.sizes
    assert set(sizes) == {"quick", "default", "full"}
    assert len({tuple(sizes[mode]) for mode in sizes}) == 1
