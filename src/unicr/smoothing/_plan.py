"""How many samples to take, and what may be concluded from them: a fixed n, or stopping early."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from unicr.errors import CertifyError
from unicr.smoothing._anytime import anytime_lower_bound, log_wealth

Mode = Literal["fixed", "target", "tolerance"]


@dataclass(frozen=True)
class Plan:
    """Sampling settings. `mode` "fixed": n samples, Clopper–Pearson. "target": stop when the top
    class is certified at the radius `target` (in the first norm), or clearly is not. "tolerance":
    stop when the samples left up to n could raise the radius by at most `tolerance`. Both early
    stops use anytime bounds. `candidates` is the number of noises that one set of samples was to
    choose from: each is bounded at alpha / candidates, so that all bounds hold together.
    """

    n0: int = 100
    n: int = 100_000
    alpha: float = 0.001
    bound: Literal["single", "both"] = "single"
    mode: Mode = "fixed"
    target: float | None = None
    tolerance: float | None = None
    look_every: int = 500
    candidates: int = 1

    def __post_init__(self) -> None:
        if self.n0 < 1 or self.n < 1:
            raise CertifyError(f"n0={self.n0}, n={self.n}: both must be at least 1")
        if not 0 < self.alpha < 1:
            raise CertifyError(f"alpha={self.alpha!r} must lie strictly between 0 and 1")
        if self.bound not in ("single", "both"):
            raise CertifyError(f"bound={self.bound!r} must be 'single' or 'both'")
        if self.mode != "fixed" and self.bound == "both":
            raise CertifyError("adaptive sampling works with --bound single")
        if self.candidates < 1:
            raise CertifyError(f"candidates={self.candidates}: at least one noise")
        if self.candidates > 1 and (self.mode != "fixed" or self.bound != "single"):
            raise CertifyError("a union bound over noises works with fixed n and --bound single")
        if (self.mode == "target") != (self.target is not None):
            raise CertifyError(f"mode={self.mode!r} and target={self.target!r} do not go together")
        if self.target is not None and not self.target > 0:
            raise CertifyError(f"the target radius {self.target!r} must be above 0")
        if self.mode == "tolerance" and not (self.tolerance is not None and self.tolerance >= 0):
            raise CertifyError(f"the tolerance {self.tolerance!r} must not be negative")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest of a run."""
        return {k: getattr(self, k) for k in self.__dataclass_fields__}

    def best_p_a(self) -> float:
        """The largest p_A that this plan can ever establish: every sample votes for one class."""
        if self.mode == "fixed":
            share = self.alpha / (3 if self.bound == "both" else self.candidates)
            return math.exp(math.log(share) / self.n)
        return anytime_lower_bound(self.n, self.n, self.alpha)


def decided(
    plan: Plan, k: int, n: int, radius_of: Callable[[float], float], needed: float | None
) -> bool:
    """Whether sampling may stop after k votes for the top class out of n.

    `radius_of` maps p_A to a radius, `needed` is the p_A that the target radius takes.
    """
    if n >= plan.n:
        return True
    if plan.mode == "target":
        assert needed is not None
        limit = math.log(1 / plan.alpha)
        return (
            log_wealth(k, n, needed, above=True) >= limit
            or log_wealth(k, n, needed, above=False) >= limit
        )
    if plan.mode == "tolerance":
        assert plan.tolerance is not None
        now = radius_of(anytime_lower_bound(k, n, plan.alpha))
        best = radius_of(anytime_lower_bound(k + plan.n - n, plan.n, plan.alpha))
        return best - now <= plan.tolerance
    return False
