"""Is g(x + δ) still the certified class? Votes decide, and a binomial test says how surely."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from scipy import special

from unicr.smoothing import lower_bound, upper_bound

Verdict = Literal["kept", "undecided", "changed"]


def verdict(counts: Sequence[int], top: int, level: float) -> Verdict:
    """What the votes at x + δ prove about the class `top`, wrong with probability ≤ `level`.

    changed: some other class is more probable (one-sided tests of every other class against
    `top`, at level/(classes − 1) each). kept: every other class is less probable (all the tests
    must reject, so each may use the whole level). undecided: neither.
    """
    held = int(counts[top]) if top < len(counts) else 0
    other = max((int(c) for i, c in enumerate(counts) if i != top), default=0)
    if _tail(other, held) <= level / max(len(counts) - 1, 1):
        return "changed"
    return "kept" if _tail(held, other) <= level else "undecided"


def _tail(k: int, rest: int) -> float:
    """P(at least k heads in k + rest throws of a fair coin)."""
    return 1.0 if k == 0 else float(special.bdtrc(k - 1, k + rest, 0.5))


def agrees(counts: Sequence[int], top: int) -> bool:
    """Whether `top` has the most votes (on a tie the smaller class number wins, as in g)."""
    return top < len(counts) and list(counts).index(max(counts)) == top


def interval(k: int, n: int, alpha: float = 0.05) -> tuple[float, float]:
    """The two-sided Clopper–Pearson interval of a share k/n at confidence 1 − α."""
    return lower_bound(k, n, alpha / 2), upper_bound(k, n, alpha / 2)
