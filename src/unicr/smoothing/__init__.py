"""The smoothed classifier: votes, bounds and certificates."""

from unicr.smoothing._anytime import anytime_lower_bound, log_wealth
from unicr.smoothing._bounds import binary_bounds, lower_bound, three_bounds, upper_bound
from unicr.smoothing._certificate import ABSTAIN, Certificate, NormRadius
from unicr.smoothing._plan import Plan
from unicr.smoothing._procedure import (
    Ask,
    Counts,
    Procedure,
    add,
    certificate,
    certification,
    converse,
)
from unicr.smoothing._radii import Radii
from unicr.smoothing._smoothed import SmoothedClassifier, norms_of

__all__ = [
    "ABSTAIN",
    "Ask",
    "Certificate",
    "Counts",
    "NormRadius",
    "Plan",
    "Procedure",
    "Radii",
    "SmoothedClassifier",
    "add",
    "anytime_lower_bound",
    "binary_bounds",
    "certificate",
    "certification",
    "converse",
    "log_wealth",
    "lower_bound",
    "norms_of",
    "three_bounds",
    "upper_bound",
]
