"""What an item of `unicr paper` is: one table or figure of the paper, made again.

To add one, write a file `unicr_paper/items/my_item.py`:

    @item(
        "my-item",
        "what it shows",
        "Table 4",
        {"inputs": 5, "n": 100},
        {"inputs": 20, "n": 1000},
        {"inputs": 500, "n": 4000},
        needs=("cifar10_test.npz",),
    )
    def run(context: Context) -> Output:
        setup = Setup("builtin:mnist-mlp-0.5", "builtin:mnist")
        rows = certify(context, setup, gaussian(sigma=0.5), ("1", "2"), "fixed")  # resumable
        scores = [scores_of(rows, norm, "ours", ALPHA) for norm in ("1", "2")]
        shares = {one.norm: one.certified_accuracy(0) for one in scores}
        return Output(
            tables={"accuracy": Table(("norm", "accuracy"), list(shares.items()))},
            figures={"accuracy": panels(["1", "2"], draw, x="l{} radius", y="accuracy")},
            comparison=["l2 at 0.25: ours 68 %, the paper 70 % (Table 4)"],
            remarks=["20 images of 10,000"],
        )

`run` computes and returns; it writes nothing except below `context.work`, where what an interrupted
item left (a run, a model) is found again by the next one with the same settings. Everything that
decides the result stands in `sizes`, `context.seed` and `context.options`. A size that is smaller
than the paper's is said in `remarks`; radii in a table are never rounded up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from unicr.errors import UnicrError

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
else:
    Axes = Any  # matplotlib loads when a figure is drawn

Mode = Literal["quick", "default", "full"]
MODES: tuple[Mode, ...] = ("quick", "default", "full")
Sizes = Mapping[str, Any]
Key = TypeVar("Key")


class MissingDataError(UnicrError):
    """A file that an item needs is not in the data folder, or an option is not given."""


@dataclass(frozen=True)
class Table:
    """One CSV file: a header and rows of texts and numbers, which are written in full."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Figure:
    """One picture, saved as PNG and SVG: `draw` gets rows × columns axes, in reading order."""

    draw: Callable[[list[Axes]], None]
    rows: int = 1
    columns: int = 1
    width: float = 6.4
    height: float = 4.2


def panels(
    keys: Sequence[Key],
    draw: Callable[[Axes, Key], None],
    *,
    x: str,
    y: str,
    rows: int = 1,
    size: tuple[float, float] = (4.5, 4.0),
    **others: Any,
) -> Figure:
    """A panel for each key with a legend; {} in a label is the key, `others` are for `Axes.set`."""

    def every(axes: list[Axes]) -> None:
        for panel, key in zip(axes, keys, strict=True):
            draw(panel, key)
            panel.set(xlabel=x.format(key), ylabel=y.format(key), **others)
            panel.legend()

    columns = len(keys) // rows
    return Figure(every, rows, columns, width=size[0] * columns, height=size[1] * rows)


@dataclass(frozen=True)
class Output:
    """What an item gives back: files by name (without ending), and what to say about them."""

    tables: Mapping[str, Table] = field(default_factory=dict)
    figures: Mapping[str, Figure] = field(default_factory=dict)
    comparison: Sequence[str] = ()
    remarks: Sequence[str] = ()


@dataclass(frozen=True)
class Context:
    """What an item may ask for while it runs."""

    mode: Mode
    sizes: Sizes
    work: Path
    data: Path
    seed: int
    workers: int
    log: Callable[[str], None]
    options: Mapping[str, str] = field(default_factory=dict)

    def file(self, name: str) -> Path:
        """The file or folder `name` of the data folder; the item is skipped where it is absent."""
        path = self.data / name
        if not path.exists():
            raise MissingDataError(f"needs {name}, which is not in {self.data} (--data-dir)")
        return path

    def option(self, name: str) -> str:
        """The value of `--set name=value`; the item is skipped where it was not given."""
        if name not in self.options:
            raise MissingDataError(f"needs --set {name}=…")
        return self.options[name]


@dataclass(frozen=True)
class Item:
    """One table or figure of the paper. `source` says which; `sizes` what each mode computes.

    `needs` are files of the data folder without which it cannot run. `options` are the names that
    `--set` may give it, each with a word on what it is. `order` is its place in the paper.
    """

    name: str
    title: str
    source: str
    run: Callable[[Context], Output]
    sizes: Mapping[Mode, Sizes]
    needs: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    order: int = 100


def item(
    name: str, title: str, source: str, quick: Sizes, default: Sizes, full: Sizes, **others: Any
) -> Callable[[Callable[[Context], Output]], Item]:
    """Make an item of the function below: what it is, and its sizes in the three modes."""
    sizes: Mapping[Mode, Sizes] = {"quick": quick, "default": default, "full": full}
    return lambda run: Item(name, title, source, run, sizes, **others)
