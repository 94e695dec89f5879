"""When to stop sampling an input, and what its votes are worth then: one rule, one file.

A new rule is a new file here: `unicr certify --rule 'name(setting=1)'` and `unicr verify` find it
(`unicr.registry`). The imports below are for Python users only.
"""

from unicr.smoothing._plan import Rule, Votes
from unicr.smoothing.rules.every import Every
from unicr.smoothing.rules.fixed import Fixed
from unicr.smoothing.rules.pilot import Pilot
from unicr.smoothing.rules.randomised import Randomised
from unicr.smoothing.rules.target import Target
from unicr.smoothing.rules.three import ThreeTests
from unicr.smoothing.rules.union import Union

__all__ = [
    "Every",
    "Fixed",
    "Pilot",
    "Randomised",
    "Rule",
    "Target",
    "ThreeTests",
    "Union",
    "Votes",
]
