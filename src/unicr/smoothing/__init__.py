"""The smoothed classifier: votes, bounds and certificates."""

from typing import TYPE_CHECKING

from unicr.binomial import lower_bound, upper_bound
from unicr.extras import lazy_names
from unicr.noise.internal import find_finest, lattice_for
from unicr.smoothing._anytime import anytime_lower_bound, log_wealth
from unicr.smoothing._batch import Passes, out_of_memory
from unicr.smoothing._certificate import ABSTAIN, Certificate, NormRadius
from unicr.smoothing._closed import CODE, ClosedNoise, read_noise
from unicr.smoothing._many import Certificates
from unicr.smoothing._plan import EVERY_INPUT, THIS_INPUT, Plan, Procedure, Rule, Votes
from unicr.smoothing._question import (
    Counts,
    Exchange,
    Measure,
    Request,
    Steps,
    Transcript,
    add,
    answer_all,
    recompute,
    record,
)
from unicr.smoothing._radii import Curves, Radii
from unicr.smoothing._smoothed import (
    AUTO,
    VoteCounter,
    check_nonce,
    clear_winner,
    read_norms,
    stream_key,
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
    "CODE",
    "EVERY_INPUT",
    "THIS_INPUT",
    "Certificate",
    "Certificates",
    "ClosedNoise",
    "Counts",
    "Curves",
    "Exchange",
    "Measure",
    "NormRadius",
    "Passes",
    "Plan",
    "Procedure",
    "Radii",
    "Request",
    "Rule",
    "SmoothedModel",
    "SmoothedModule",
    "Steps",
    "Transcript",
    "VoteCounter",
    "Votes",
    "add",
    "answer_all",
    "anytime_lower_bound",
    "check_nonce",
    "clear_winner",
    "find_finest",
    "lattice_for",
    "log_wealth",
    "lower_bound",
    "out_of_memory",
    "read_noise",
    "read_norms",
    "recompute",
    "record",
    "stream_key",
    "upper_bound",
]
