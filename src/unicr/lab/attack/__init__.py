"""Real attacks on the smoothed classifier: what a certificate promises, put to the test.

`ATTACKS` holds one class per attack: to add one, add its file here, or an entry point. `attack_run`
attacks the certified inputs of a run, and `defences` sums up how many kept their class.
"""

from __future__ import annotations

from unicr.lab.attack._base import Attack, AttackError, Targets, within
from unicr.lab.attack._defence import (
    FACTORS,
    Defence,
    Left,
    aims_of,
    attack_run,
    defences,
    starts_of,
    tasks_of,
)
from unicr.lab.attack._store import AttackStore, Outcome, check_outcomes
from unicr.lab.attack._study import Aim, Settings, Study, Task
from unicr.lab.attack._verdict import agrees, interval, verdict
from unicr.registry import Catalogue
from unicr.smoothing import SmoothedModel

ATTACKS: Catalogue[type[Attack]] = Catalogue("unicr.attacks", __name__, Attack, classes=True)


def make(name: str, effort: float = 1.0) -> Attack:
    """The attack of that name, with `effort` times its usual steps."""
    if name not in ATTACKS:
        raise AttackError(f"no attack {name!r}: there are {', '.join(ATTACKS)}")
    return ATTACKS[name]().scaled(effort)


__all__ = [
    "ATTACKS",
    "FACTORS",
    "Aim",
    "Attack",
    "AttackError",
    "AttackStore",
    "Defence",
    "Left",
    "Outcome",
    "Settings",
    "SmoothedModel",
    "Study",
    "Targets",
    "Task",
    "agrees",
    "aims_of",
    "attack_run",
    "check_outcomes",
    "defences",
    "interval",
    "make",
    "starts_of",
    "tasks_of",
    "verdict",
    "within",
]
