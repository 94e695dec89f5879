"""The paper made again: every table and figure is an item, one short file each.

`ITEMS` holds them in the paper's order; how to write one is told in `_item.py`.
"""

from importlib import import_module

from unicr.paper._item import (
    MODES,
    Context,
    Figure,
    Item,
    MissingDataError,
    Mode,
    Output,
    Table,
    item,
    panels,
)
from unicr.paper._run import Ended, Request, check_options, choose, run_items, state_of

_MODULES = (
    *("formulas", "noises", "c_opt", "i_opt", "cifar10", "imagenet", "confidence"),
    *("score_example", "defence", "runtime", "any_p", "gallery", "standard", "visual"),
)
_EVERY: list[Item] = [import_module(f"unicr.paper.{name}").run for name in _MODULES]
ITEMS = {item.name: item for item in _EVERY}

__all__ = [
    "ITEMS",
    "MODES",
    "Context",
    "Ended",
    "Figure",
    "Item",
    "MissingDataError",
    "Mode",
    "Output",
    "Request",
    "Table",
    "check_options",
    "choose",
    "item",
    "panels",
    "run_items",
    "state_of",
]
