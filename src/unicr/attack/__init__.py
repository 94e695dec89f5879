"""Real attacks on the smoothed classifier: what a certificate promises, put to the test.

`ATTACKS` holds one class per attack; `attack_run` attacks the certified inputs of a run, and
`defences` sums up how many kept their class.
"""

from __future__ import annotations

from unicr.attack._base import Attack, AttackError, Targets, within
from unicr.attack._defence import (
    FACTORS,
    Defence,
    Left,
    aims_of,
    attack_run,
    defences,
    starts_of,
    tasks_of,
)
from unicr.attack._smoothed import SmoothedModel
from unicr.attack._store import AttackStore, Outcome
from unicr.attack._study import Aim, Settings, Study, Task
from unicr.attack._verdict import agrees, interval, verdict
from unicr.attack.apgd import Apgd
from unicr.attack.gaussian import Gaussian
from unicr.attack.hopskipjump import HopSkipJump
from unicr.attack.pgd import Pgd
from unicr.attack.procedural import Procedural
from unicr.attack.square import Square
from unicr.attack.wasserstein import Wasserstein

ATTACKS: dict[str, type[Attack]] = {
    kind.name: kind for kind in (Apgd, Pgd, Square, HopSkipJump, Wasserstein, Procedural, Gaussian)
}


def make(name: str, effort: float = 1.0) -> Attack:
    """The attack of that name, with `effort` times its usual steps."""
    if name not in ATTACKS:
        raise AttackError(f"no attack {name!r}: there are {', '.join(ATTACKS)}")
    return ATTACKS[name]().scaled(effort)


__all__ = [
    "ATTACKS",
    "FACTORS",
    "Aim",
    "Apgd",
    "Attack",
    "AttackError",
    "AttackStore",
    "Defence",
    "Gaussian",
    "HopSkipJump",
    "Left",
    "Outcome",
    "Pgd",
    "Procedural",
    "Settings",
    "SmoothedModel",
    "Square",
    "Study",
    "Targets",
    "Task",
    "Wasserstein",
    "agrees",
    "aims_of",
    "attack_run",
    "defences",
    "interval",
    "make",
    "starts_of",
    "tasks_of",
    "verdict",
    "within",
]
