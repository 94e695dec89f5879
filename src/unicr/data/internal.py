"""What other parts of unicr use of this package and users should not: it may change."""

from unicr.data._dataset import digest_input as digest_input
from unicr.data._dataset import from_arrays as from_arrays
