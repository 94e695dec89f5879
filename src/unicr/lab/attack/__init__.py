"""Real attacks on the smoothed classifier: what a certificate promises, put to the test.

`ATTACKS` holds one class per attack: to add one, add its file here, or an entry point. `attack_run`
attacks the certified inputs of a run, and `defences` sums up how many kept their class. The
settings are light; all else loads torch when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unicr.extras import lazy_names
from unicr.lab.attack._settings import FACTORS, AttackError, Settings

if TYPE_CHECKING:
    from unicr.lab.attack._base import ATTACKS, Attack, Targets, make, within
    from unicr.lab.attack._defence import (
        Defence,
        Skipped,
        aims_of,
        attack_run,
        defences,
        starts_of,
        tasks_of,
    )
    from unicr.lab.attack._store import AttackStore, Outcome, check_outcomes
    from unicr.lab.attack._study import Aim, Study, Task
    from unicr.lab.attack._verdict import agrees, interval, verdict
    from unicr.smoothing import SmoothedModel
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "ATTACKS": "_base",
            "Attack": "_base",
            "Targets": "_base",
            "make": "_base",
            "within": "_base",
            "Defence": "_defence",
            "Skipped": "_defence",
            "aims_of": "_defence",
            "attack_run": "_defence",
            "defences": "_defence",
            "starts_of": "_defence",
            "tasks_of": "_defence",
            "AttackStore": "_store",
            "Outcome": "_store",
            "check_outcomes": "_store",
            "Aim": "_study",
            "Study": "_study",
            "Task": "_study",
            "agrees": "_verdict",
            "interval": "_verdict",
            "verdict": "_verdict",
            "SmoothedModel": "_base",
        },
    )

__all__ = [
    "ATTACKS",
    "FACTORS",
    "Aim",
    "Attack",
    "AttackError",
    "AttackStore",
    "Defence",
    "Outcome",
    "Settings",
    "Skipped",
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
