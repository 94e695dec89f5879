"""The smoothed classifier: votes, bounds and certificates."""

from typing import TYPE_CHECKING

from unicr.binomial import lower_bound, upper_bound
from unicr.extras import lazy_names
from unicr.smoothing._anytime import anytime_lower_bound, log_wealth
from unicr.smoothing._batch import fitting, out_of_memory
from unicr.smoothing._certificate import ABSTAIN, Certificate, NormRadius
from unicr.smoothing._certify import Ask, Procedure, certification, converse
from unicr.smoothing._many import Certificates
from unicr.smoothing._measure import Counts, Measure, add
from unicr.smoothing._plan import Plan
from unicr.smoothing._radii import Radii
from unicr.smoothing._rule import Rule, Votes
from unicr.smoothing._smoothed import (
    AUTO,
    FINE,
    SmoothedClassifier,
    checked_nonce,
    chosen_lattice,
    clear_winner,
    norms_of,
    size_of,
)

if TYPE_CHECKING:
    from unicr.smoothing._module import SmoothedModel, SmoothedModule
else:  # subclasses of torch's modules: they load when they are asked for
    __getattr__ = lazy_names(
        __name__, dict.fromkeys(("SmoothedModel", "SmoothedModule"), "_module")
    )

__all__ = [
    "ABSTAIN",
    "AUTO",
    "FINE",
    "Ask",
    "Certificate",
    "Certificates",
    "Counts",
    "Measure",
    "NormRadius",
    "Plan",
    "Procedure",
    "Radii",
    "Rule",
    "SmoothedClassifier",
    "SmoothedModel",
    "SmoothedModule",
    "Votes",
    "add",
    "anytime_lower_bound",
    "certification",
    "checked_nonce",
    "chosen_lattice",
    "clear_winner",
    "converse",
    "fitting",
    "log_wealth",
    "lower_bound",
    "norms_of",
    "out_of_memory",
    "size_of",
    "upper_bound",
]
