"""Run items: skip what is done, go on after an error, keep everything that is finished."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import unicr
from unicr.errors import SpecError, did_you_mean
from unicr.folder import Folder, changes, plain
from unicr_paper._item import MODES, Context, Item, MissingDataError, Mode
from unicr_paper._write import RECORD, read_record, write_result

State = Literal["done", "kept", "missing data", "failed"]
ERROR = "error.txt"
COMPARED = ("sizes", "seed", "options", "data", "unicr")


@dataclass(frozen=True)
class Request:
    """What the user chose for all items: mode, folders, seed, workers, `--set` options."""

    out: Path
    data: Path
    mode: Mode = "default"
    seed: int = 0
    workers: int = 0
    again: bool = False
    options: Mapping[str, str] | None = None

    def of(self, item: Item) -> dict[str, Any]:
        """Everything that decides the result of `item`, as it stands in `item.json`."""
        chosen = self.options or {}
        return {
            "mode": self.mode,
            "sizes": plain(item.sizes[self.mode]),
            "seed": self.seed,
            "options": {name: chosen[name] for name in item.options if name in chosen},
            "data": {name: _stamp(self.data / name) for name in item.needs},
            "unicr": unicr.__version__,
        }


@dataclass(frozen=True)
class Ended:
    """How one item ended; `text` is the one line to show."""

    name: str
    state: State
    text: str


def _stamp(path: Path) -> list[int] | None:
    """Size and time of a file, so that other data is not taken for the same."""
    if not path.exists():
        return None
    facts = path.stat()
    return [facts.st_size, facts.st_mtime_ns]


def choose(names: Sequence[str], items: Mapping[str, Item]) -> list[Item]:
    """The items that `names` ask for, in the paper's order; `ALL` is every one.

    A name is an item's own, or its place in the paper: figure4, "Table 7".
    """
    words = [word for name in names for word in name.split(",") if word]
    places = {place: name for name, item in items.items() for place in places_of(item.source)}
    words = [places.get(word.lower().replace(" ", ""), word) for word in words]
    for word in words:
        if word.upper() != "ALL" and word not in items:
            hint = did_you_mean(word, items)
            raise SpecError(f"no item {word!r}: {hint}known are ALL, {', '.join(items)}")
    everything = any(word.upper() == "ALL" for word in words)
    return [item for name, item in items.items() if everything or name in words]


def places_of(source: str) -> list[str]:
    """The figures and tables that a source names: "Figures 6–8" is figure6, figure7, figure8."""
    places = []
    for kind, first, last in re.findall(r"(Figure|Table)s? (\d+)(?:–(\d+))?", source):
        places += [f"{kind.lower()}{i}" for i in range(int(first), int(last or first) + 1)]
    return places


def check_options(options: Mapping[str, str], items: Mapping[str, Item]) -> None:
    """An error if an option is one that no item knows."""
    known = {name: text for item in items.values() for name, text in item.options.items()}
    for name in options:
        if name not in known:
            listed = ", ".join(f"{key} ({text})" for key, text in known.items()) or "none"
            raise SpecError(f"no item takes --set {name}=…; known are: {listed}")


def state_of(item: Item, request: Request) -> str:
    """One word or line on where an item stands, for the list."""
    record = read_record(request.out / item.name)
    if record is not None:
        same = _same(record, request.of(item))
        return f"done ({record['mode']}, {record['seconds']:.0f} s)" + ("" if same else ", other")
    missing = [name for name in item.needs if not (request.data / name).exists()]
    if missing:
        return f"needs {', '.join(missing)}"
    return "failed" if (request.out / item.name / ERROR).is_file() else "not yet"


def _same(record: Mapping[str, Any], wanted: Mapping[str, Any], but: str = "") -> bool:
    old, new = ({key: of.get(key) for key in COMPARED} for of in (record, wanted))
    return not changes(old, new, {but})


def _kept(record: Mapping[str, Any] | None, wanted: Mapping[str, Any]) -> str | None:
    """Why a result that is there stays: it is this one, or a larger one, all else alike."""
    if record is None:
        return None
    if _same(record, wanted):
        return "done already (--fresh makes it again)"
    order = {mode: i for i, mode in enumerate(MODES)}
    larger = order.get(record.get("mode", ""), -1) > order[wanted["mode"]]
    if larger and _same(record, wanted, but="sizes"):
        return f"has {record['mode']} results already (--fresh replaces them)"
    return None


def run_items(
    chosen: Sequence[Item], request: Request, *, log: Callable[[str], None]
) -> Iterator[Ended]:
    """Run one after the other and say how each ended; only an interruption stops them."""
    for item in chosen:
        yield _run_one(item, request, log)


def _run_one(item: Item, request: Request, log: Callable[[str], None]) -> Ended:
    folder = request.out / item.name
    wanted = request.of(item)
    if not request.again and (text := _kept(read_record(folder), wanted)):
        return Ended(item.name, "kept", text)
    digest = hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:12]
    work = folder / "work" / digest
    if request.again:
        shutil.rmtree(work, ignore_errors=True)
    context = Context(
        mode=request.mode,
        sizes=item.sizes[request.mode],
        work=work,
        data=request.data,
        seed=request.seed,
        workers=request.workers,
        log=lambda text: log(f"{item.name}: {text}"),
        options=wanted["options"],
    )
    try:
        for name in item.needs:
            context.file(name)
        seconds, said = _make(item, context, folder, wanted)
    except MissingDataError as error:
        return Ended(item.name, "missing data", str(error))
    except Exception as error:
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / ERROR).write_text(traceback.format_exc(), encoding="utf-8")
        text = f"{type(error).__name__}: {error} (see {folder / ERROR})"
        return Ended(item.name, "failed", text)
    return Ended(item.name, "done", "\n".join([f"{seconds:.0f} s, in {folder}", *said]))


def _make(
    item: Item, context: Context, folder: Path, wanted: Mapping[str, Any]
) -> tuple[float, list[str]]:
    home = Folder(folder, "an item", RECORD)
    try:
        with home.write():
            context.work.mkdir(parents=True, exist_ok=True)
            context.log(f"{item.title} ({item.source})")
            start = time.monotonic()
            result = item.run(context)
            seconds = time.monotonic() - start
            record = {"item": item.name, **wanted, "seconds": round(seconds, 3)}
            write_result(item, result, home, record)
            (folder / ERROR).unlink(missing_ok=True)
    finally:
        for empty in (context.work, context.work.parent, folder):
            with contextlib.suppress(OSError):
                empty.rmdir()
    return seconds, [*result.comparison, *(f"note: {remark}" for remark in result.remarks)]
