"""What other parts of unicr use of this package and users should not: it may change."""

from unicr.train._examples import arrays_of
from unicr.train._folder import WEIGHTS, claim, read_record, write_json

__all__ = ["WEIGHTS", "arrays_of", "claim", "read_record", "write_json"]
