"""What other parts of unicr use of this package and users should not: it may change."""

from unicr.train._examples import arrays_of
from unicr.train._folder import WEIGHTS, claim, read_record, write_json
from unicr.train._schedule import one_cycle
from unicr.train._settings import build
from unicr.train._trainer import seeded, stream

__all__ = [
    "WEIGHTS",
    "arrays_of",
    "build",
    "claim",
    "one_cycle",
    "read_record",
    "seeded",
    "stream",
    "write_json",
]
