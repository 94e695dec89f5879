"""A predictor that remembers its certified regions, so that its answers never contradict them.

`docs/input-dependent.md` says what it guarantees and what it does not; the proofs are in
`docs/theory.md#the-guard`.
"""

from unicr.guard._check import check_memory, made_for, replay_memory
from unicr.guard._guard import Guard, Planted, Policy, plant, policy
from unicr.guard._memory import Answer, Memory, Regions
from unicr.guard._metric import Metric

__all__ = [
    "Answer",
    "Guard",
    "Memory",
    "Metric",
    "Planted",
    "Policy",
    "Regions",
    "check_memory",
    "made_for",
    "plant",
    "policy",
    "replay_memory",
]
