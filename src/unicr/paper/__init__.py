"""The paper made again: every table and figure is an item, one short file each.

`ITEMS` holds them in the paper's order; how to write one is told in `_item.py`.
"""

from unicr.paper import (
    any_p,
    c_opt,
    cifar10,
    confidence,
    defence,
    formulas,
    gallery,
    i_opt,
    imagenet,
    noises,
    runtime,
    score_example,
    standard,
    visual,
)
from unicr.paper._item import (
    MODES,
    Context,
    Figure,
    Item,
    MissingDataError,
    Mode,
    Result,
    Table,
)
from unicr.paper._run import Outcome, Settings, check_options, choose, run_items, state_of

_MODULES = (
    formulas,
    noises,
    c_opt,
    i_opt,
    cifar10,
    imagenet,
    confidence,
    score_example,
    defence,
    runtime,
    any_p,
    gallery,
    standard,
    visual,
)
ITEMS: dict[str, Item] = {module.ITEM.name: module.ITEM for module in _MODULES}

__all__ = [
    "ITEMS",
    "MODES",
    "Context",
    "Figure",
    "Item",
    "MissingDataError",
    "Mode",
    "Outcome",
    "Result",
    "Settings",
    "Table",
    "check_options",
    "choose",
    "run_items",
    "state_of",
]
