"""One page that shows runs to a reader: self-contained, offline, with every number rounded down."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unicr.classifier import ModelOptions
from unicr.errors import UnicrError
from unicr.folder import replace_file
from unicr.lab.report.html._data import collect
from unicr.lab.report.html._page import page
from unicr.runs import Trusted

__all__ = ["write_report"]


def write_report(
    runs: Sequence[Path],
    path: Path,
    *,
    data: str | None = None,
    images: bool = True,
    max_images: int = 500,
    trust: Sequence[Path] = (),
    force: bool = False,
) -> list[str]:
    """Write the report of `runs` (folders) to `path`; returns what the reader should know of it.

    Runs are compared, and a robustness score is given, among runs on the very same inputs. `data`
    names the inputs where the run's own name no longer leads to them; at most `max_images` inputs
    are drawn for each set of inputs. Only files in `trust` are executed, whatever a run names. A
    run whose seal is broken is refused; with `force` its name says so.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise UnicrError(
            f"cannot write {path.name}: the report is an HTML page, so its name must end in .html"
        )
    if not path.absolute().parent.is_dir():
        raise UnicrError(f"cannot write {path}: the folder {path.parent} does not exist")
    if max_images < 0:
        raise UnicrError(f"max_images={max_images} must be at least 0")
    trusted = Trusted(data=data, loading=ModelOptions(trust=tuple(trust)))
    most = max_images if images else 0
    content = collect(runs, trusted=trusted, max_images=most, force=force)
    with replace_file(path) as file:
        file.write_text(page(content), encoding="utf-8")
    return list(content["notes"])
