"""Items are run once, survive a kill, and do not stop each other."""

from __future__ import annotations

import csv
import json
import math
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import unicr
from unicr.errors import SpecError, UnicrError
from unicr_paper import (
    Context,
    Ended,
    Figure,
    Item,
    MissingDataError,
    Output,
    Request,
    Table,
    check_options,
    choose,
    run_items,
    state_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def squares(context: Context) -> Output:
    """An item in small: n² for n up to a size."""
    rows = [(n, n * n + context.seed) for n in range(context.sizes["most"])]
    return Output(
        tables={"squares": Table(("n", "square"), rows)},
        comparison=["the same as the paper"],
        remarks=["few of many"],
    )


def drawn(context: Context) -> Output:
    """The same with a figure."""
    result = squares(context)

    def draw(axes: list[Axes]) -> None:
        axes[0].plot(*zip(*result.tables["squares"].rows, strict=True))

    return replace(result, figures={"line": Figure(draw, width=2, height=2)})


ITEM = Item(
    name="squares",
    title="squares",
    source="Figure 1",
    run=squares,
    sizes={"quick": {"most": 3}, "default": {"most": 5}, "full": {"most": 9}},
)
DRAWN = replace(ITEM, run=drawn)
FILES = ["comparison.txt", "line.png", "line.svg", "squares.csv"]


@pytest.fixture
def settings(tmp_path: Path) -> Request:
    return Request(out=tmp_path / "out", data=tmp_path / "data", mode="quick")


def quiet(text: str) -> None:
    """A log that nobody reads."""


def outcomes(items: list[Item], settings: Request) -> list[Ended]:
    return list(run_items(items, settings, log=quiet))


def only(item: Item, settings: Request) -> Ended:
    (outcome,) = outcomes([item], settings)
    return outcome


def record(settings: Request, name: str = "squares") -> dict[str, object]:
    found = json.loads((settings.out / name / "item.json").read_text())
    assert isinstance(found, dict)
    return found


def counted(calls: list[str]) -> Item:
    def run(context: Context) -> Output:
        calls.append(context.mode)
        return squares(context)

    return replace(ITEM, run=run)


def test_everything_is_written(settings: Request) -> None:
    outcome = only(DRAWN, settings)
    assert outcome.state == "done"
    assert "the same as the paper" in outcome.text
    folder = settings.out / "squares"
    assert sorted(p.name for p in folder.iterdir()) == sorted([*FILES, "item.json"])
    with (folder / "squares.csv").open() as file:
        assert list(csv.reader(file)) == [["n", "square"], ["0", "0"], ["1", "1"], ["2", "4"]]
    assert (folder / "line.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "line.svg").read_text()
    words = (folder / "comparison.txt").read_text()
    assert "the same as the paper" in words
    assert "Note: few of many" in words
    found = record(settings)
    assert found["sizes"] == {"most": 3}
    assert found["unicr"] == unicr.__version__
    assert found["files"] == FILES


def test_numbers_are_written_in_full(settings: Request) -> None:
    value = np.float64(0.1) + np.float64(0.2)
    table = Table(("x", "n"), [(value, np.int64(3))])
    only(replace(ITEM, run=lambda context: Output(tables={"t": table})), settings)
    with (settings.out / "squares" / "t.csv").open() as file:
        row = list(csv.reader(file))[1]
    assert float(row[0]) == float(value)
    assert row[1] == "3"


def test_a_done_item_is_not_made_again(settings: Request) -> None:
    calls: list[str] = []
    item = counted(calls)
    assert [only(item, settings).state for _ in range(2)] == ["done", "kept"]
    assert only(item, replace(settings, again=True)).state == "done"
    assert len(calls) == 2


def test_other_settings_make_it_again(settings: Request) -> None:
    calls: list[str] = []
    item = counted(calls)
    only(item, settings)
    assert only(item, replace(settings, seed=1)).state == "done"
    assert only(item, replace(settings, seed=1, mode="full")).state == "done"
    assert calls == ["quick", "quick", "full"]


def test_a_smaller_mode_does_not_replace_a_larger_result(settings: Request) -> None:
    only(ITEM, replace(settings, mode="full"))
    outcome = only(ITEM, settings)
    assert outcome.state == "kept"
    assert "full results" in outcome.text
    assert record(settings)["mode"] == "full"
    assert only(ITEM, replace(settings, again=True)).state == "done"
    assert record(settings)["mode"] == "quick"


@pytest.mark.parametrize("name", ["squares.csv", "line.png"])
def test_a_lost_file_is_made_again(settings: Request, name: str) -> None:
    only(DRAWN, settings)
    (settings.out / "squares" / name).unlink()
    assert only(DRAWN, settings).state == "done"
    assert (settings.out / "squares" / name).is_file()


def test_a_damaged_record_counts_as_not_done(settings: Request) -> None:
    only(ITEM, settings)
    path = settings.out / "squares" / "item.json"
    for text in ("{", "[]", '{"mode": "quick"}'):
        path.write_text(text)
        assert only(ITEM, settings).state == "done"


def test_files_of_an_earlier_result_go_away(settings: Request) -> None:
    only(DRAWN, settings)
    other = replace(ITEM, run=lambda context: Output(comparison=["nothing to show"]))
    only(other, replace(settings, seed=1))
    names = sorted(p.name for p in (settings.out / "squares").iterdir())
    assert names == ["comparison.txt", "item.json"]


def fail(context: Context) -> Output:
    raise ZeroDivisionError("by nothing")


def test_an_error_does_not_stop_the_others(settings: Request) -> None:
    broken = replace(ITEM, name="broken", run=fail)
    first, second = outcomes([broken, ITEM], settings)
    assert (first.state, second.state) == ("failed", "done")
    assert "ZeroDivisionError: by nothing" in first.text
    trace = settings.out / "broken" / "error.txt"
    assert "in fail" in trace.read_text()
    assert state_of(broken, settings) == "failed"
    assert only(replace(broken, run=squares), settings).state == "done"
    assert not trace.exists()


def test_an_error_keeps_the_earlier_result(settings: Request) -> None:
    only(ITEM, settings)
    before = record(settings)
    assert only(replace(ITEM, run=fail), replace(settings, again=True)).state == "failed"
    assert record(settings) == before
    assert only(ITEM, settings).state == "kept"


def test_an_error_while_drawing_leaves_no_half_result(settings: Request) -> None:
    def draw(axes: list[Axes]) -> None:
        raise ValueError("no ink")

    item = replace(ITEM, run=lambda context: Output(figures={"line": Figure(draw)}))
    assert only(item, settings).state == "failed"
    assert [p.name for p in (settings.out / "squares").iterdir()] == ["error.txt"]


def test_a_row_that_does_not_fit_its_header_fails(settings: Request) -> None:
    table = Table(("a", "b"), [(1, 2, 3)])
    outcome = only(replace(ITEM, run=lambda context: Output(tables={"t": table})), settings)
    assert outcome.state == "failed"
    assert "does not fit" in outcome.text


def test_missing_data_is_said_and_nothing_is_written(settings: Request) -> None:
    item = replace(ITEM, needs=("digits.npz",))
    assert state_of(item, settings) == "needs digits.npz"
    outcome = only(item, settings)
    assert outcome.state == "missing data"
    assert "digits.npz" in outcome.text
    assert "--data-dir" in outcome.text
    assert not (settings.out / "squares").exists()


def test_changed_data_makes_it_again(settings: Request) -> None:
    settings.data.mkdir()
    (settings.data / "digits.npz").write_bytes(b"1")
    item = replace(ITEM, needs=("digits.npz",))
    assert [only(item, settings).state for _ in range(2)] == ["done", "kept"]
    (settings.data / "digits.npz").write_bytes(b"12")
    assert only(item, settings).state == "done"


def test_an_item_can_find_out_late_that_data_is_missing(settings: Request) -> None:
    def run(context: Context) -> Output:
        context.option("imagenet")
        return Output()

    item = replace(ITEM, run=run, options={"imagenet": "a folder"})
    assert "--set imagenet=" in only(item, settings).text
    assert only(item, replace(settings, options={"imagenet": "x"})).state == "done"
    assert only(item, replace(settings, options={"imagenet": "x"})).state == "kept"
    assert only(item, replace(settings, options={"imagenet": "y"})).state == "done"


def test_context_names_the_file_that_is_missing(tmp_path: Path) -> None:
    context = Context("quick", {}, tmp_path, tmp_path, 0, 0, quiet)
    (tmp_path / "here").write_text("")
    assert context.file("here") == tmp_path / "here"
    with pytest.raises(MissingDataError, match="gone"):
        context.file("gone")
    assert issubclass(MissingDataError, UnicrError)


def test_work_is_found_again_until_asked_otherwise(settings: Request) -> None:
    def run(context: Context) -> Output:
        note = context.work / "note"
        old = note.read_text() if note.exists() else ""
        note.write_text(old + "x")
        if len(old) == 0:
            raise RuntimeError("interrupted")
        return Output(comparison=[note.read_text()])

    item = replace(ITEM, run=run)
    assert [only(item, settings).state for _ in range(2)] == ["failed", "done"]
    assert "xx" in (settings.out / "squares" / "comparison.txt").read_text()
    assert only(item, replace(settings, seed=1)).state == "failed"
    assert only(item, replace(settings, again=True)).state == "failed"


def test_interruption_passes_and_leaves_done_items(settings: Request) -> None:
    def run(context: Context) -> Output:
        raise KeyboardInterrupt

    stopped = replace(ITEM, name="stopped", run=run)
    with pytest.raises(KeyboardInterrupt):
        outcomes([ITEM, stopped], settings)
    assert only(ITEM, settings).state == "kept"
    assert not (settings.out / "stopped" / "item.json").exists()


KILLED = """
    import os, signal, sys
    from dataclasses import replace
    from pathlib import Path
    from test_framework import ITEM, drawn, quiet
    from unicr_paper import Figure, Request, run_items

    def die(*anything):
        os.kill(os.getpid(), signal.SIGKILL)

    def run(context):
        if sys.argv[2] == "run":
            die()
        result = drawn(context)
        if sys.argv[2] == "draw":
            return replace(result, figures={**result.figures, "last": Figure(die)})
        return result

    if sys.argv[2] == "move":
        move, moved = os.replace, []
        def some(source, target):
            moved.append(target)
            die() if len(moved) == 3 else move(source, target)
        os.replace = some
    out = Path(sys.argv[1])
    settings = Request(out=out, data=out, mode="quick", again=True)
    list(run_items([replace(ITEM, run=run)], settings, log=quiet))
"""


@pytest.mark.parametrize("moment", ["run", "draw", "move"])
def test_a_kill_leaves_a_finished_item_or_an_unfinished_one(settings: Request, moment: str) -> None:
    only(ITEM, settings)
    before = record(settings)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED), str(settings.out), moment],
        cwd=Path(__file__).parent,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    folder = settings.out / "squares"
    if moment == "move":
        assert not (folder / "item.json").exists()
    else:
        assert record(settings) == before
    assert only(DRAWN, replace(settings, again=moment != "move")).state == "done"
    assert sorted(p.name for p in folder.iterdir()) == sorted([*FILES, "item.json"])


def test_states_of_the_list(settings: Request) -> None:
    assert state_of(ITEM, settings) == "not yet"
    only(ITEM, settings)
    assert state_of(ITEM, settings).startswith("done (quick, ")
    assert state_of(ITEM, replace(settings, seed=5)).endswith(", other")


def test_names_choose_in_the_papers_order() -> None:
    items = {name: replace(ITEM, name=name) for name in ("formulas", "noises", "any-p")}

    def names(*words: str) -> list[str]:
        return [item.name for item in choose(words, items)]

    assert names("any-p", "formulas") == ["formulas", "any-p"]
    assert names("any-p,noises") == ["noises", "any-p"]
    assert names("all") == names("ALL", "noises") == list(items)


@pytest.mark.parametrize(("word", "near"), [("noise", "noises"), ("formula", "formulas")])
def test_an_unknown_name_suggests_the_nearest(word: str, near: str) -> None:
    items = {name: replace(ITEM, name=name) for name in ("formulas", "noises")}
    with pytest.raises(SpecError, match=f"{word}.*did you mean {near}"):
        choose([word], items)


def test_an_unknown_option_lists_the_known() -> None:
    items = {"squares": replace(ITEM, options={"imagenet": "a folder in ImageNet format"})}
    check_options({"imagenet": "x"}, items)
    with pytest.raises(SpecError, match=r"image-net.*imagenet \(a folder"):
        check_options({"image-net": "x"}, items)


def test_figures_have_their_panels(settings: Request) -> None:
    seen: list[int] = []

    def draw(axes: list[Axes]) -> None:
        seen.append(len(axes))

    figure = Figure(draw, rows=2, columns=3, width=3, height=2)
    only(replace(ITEM, run=lambda context: Output(figures={"grid": figure})), settings)
    assert seen == [6]


def test_seconds_are_those_of_the_item(settings: Request) -> None:
    only(ITEM, settings)
    seconds = record(settings)["seconds"]
    assert isinstance(seconds, float)
    assert 0 <= seconds < math.inf
