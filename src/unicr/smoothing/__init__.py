"""The smoothed classifier: votes, bounds and certificates."""

from unicr.smoothing._anytime import anytime_lower_bound, log_wealth
from unicr.smoothing._bounds import binary_bounds, lower_bound, three_bounds, upper_bound
from unicr.smoothing._certificate import ABSTAIN, Certificate, NormRadius
from unicr.smoothing._plan import Plan
from unicr.smoothing._radii import Radii
from unicr.smoothing._smoothed import SmoothedClassifier, norms_of

__all__ = [
    "ABSTAIN",
    "Certificate",
    "NormRadius",
    "Plan",
    "Radii",
    "SmoothedClassifier",
    "anytime_lower_bound",
    "binary_bounds",
    "log_wealth",
    "lower_bound",
    "norms_of",
    "three_bounds",
    "upper_bound",
]
