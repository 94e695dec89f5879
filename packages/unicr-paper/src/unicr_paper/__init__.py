"""The paper made again: every table and figure is an item, one short file each.

`ITEMS` holds them in the paper's order; how to write one is told in `_item.py`.
"""

from unicr.registry import Catalogue
from unicr_paper._item import (
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
from unicr_paper._run import Ended, Request, check_options, choose, run_items, state_of

ITEMS: Catalogue[Item] = Catalogue(
    "unicr.items", f"{__name__}.items", Item, sort=lambda item: (item.order, item.name)
)

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
