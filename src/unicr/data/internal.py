"""What other parts of unicr use of this package and users should not: it may change."""

from unicr.data._dataset import from_arrays
from unicr.data._load import builtin_file

__all__ = ["builtin_file", "from_arrays"]
