"""What is counted, and what the counts certify: one kind of certificate, one file."""

from unicr.smoothing._measure import Measure
from unicr.smoothing.measures.classes import ClassVotes
from unicr.smoothing.measures.member import MemberVotes, SelectiveCertificate
from unicr.smoothing.measures.offsets import OffsetVotes, exactly
from unicr.smoothing.measures.two_laws import TwoLawCertificate, TwoLawVotes

__all__ = [
    "ClassVotes",
    "Measure",
    "MemberVotes",
    "OffsetVotes",
    "SelectiveCertificate",
    "TwoLawCertificate",
    "TwoLawVotes",
    "exactly",
]
