"""`unicr data fetch`: bring a well-known dataset to this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from unicr.cli._parameters import command

app = App(name="data", help="Download well-known datasets.\n\nExample: unicr data fetch cifar10")


@app.command
@command
def fetch(
    name: Literal["mnist", "fashion-mnist", "cifar10"],
    /,
    *,
    dir_: Annotated[Path | None, Parameter(name="--dir")] = None,
) -> None:
    """Download a dataset and check it; an interrupted download continues.

    Example: unicr data fetch cifar10

    Parameters
    ----------
    name
        Which dataset.
    dir_
        The folder for its files; the platform's data folder if left out.
    """
    from unicr import data

    folder = data.fetch(name, dir_)
    print(f"{name} is in {folder}")
    print(f"use it as --data {name if dir_ is None else folder}")
