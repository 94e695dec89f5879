"""What is counted of a noisy copy: one kind of count, one file."""

from unicr.smoothing._measure import Measure
from unicr.smoothing.measures.classes import ClassVotes, CleanVote
from unicr.smoothing.measures.member import MemberVotes
from unicr.smoothing.measures.offsets import OffsetVotes

__all__ = ["ClassVotes", "CleanVote", "Measure", "MemberVotes", "OffsetVotes"]
