"""How one input is certified: one procedure, one file.

A new procedure is a new file here: runs, `unicr verify` and its replay find it by its name.
"""

from unicr.smoothing._plan import EVERY_INPUT, THIS_INPUT, Procedure
from unicr.smoothing.procedures._grid import Axis, Grid
from unicr.smoothing.procedures.among import Among
from unicr.smoothing.procedures.i_opt import IOpt, Method, share_answers
from unicr.smoothing.procedures.offsets import Offsets, OffsetVotes
from unicr.smoothing.procedures.selector import MemberVotes, SelectiveCertificate, Selector
from unicr.smoothing.procedures.two_laws import TwoLawCertificate, TwoLawVotes
from unicr.smoothing.procedures.two_steps import TwoSteps

__all__ = [
    "EVERY_INPUT",
    "THIS_INPUT",
    "Among",
    "Axis",
    "Grid",
    "IOpt",
    "MemberVotes",
    "Method",
    "OffsetVotes",
    "Offsets",
    "Procedure",
    "SelectiveCertificate",
    "Selector",
    "TwoLawCertificate",
    "TwoLawVotes",
    "TwoSteps",
    "share_answers",
]
