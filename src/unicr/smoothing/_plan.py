"""How many samples to take, by which procedure and rule: the settings of sampling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from unicr.errors import CertifyError
from unicr.smoothing._procedure import Procedure
from unicr.smoothing._rule import Rule
from unicr.smoothing.procedures.two_steps import TwoSteps
from unicr.smoothing.rules.fixed import Fixed

FIXED, TWO_STEPS = Fixed(), TwoSteps()


@dataclass(frozen=True)
class Plan:
    """n0 samples choose what to claim, up to n fresh ones test it, at failure probability α.

    `rule` says when to stop and which bounds follow, `procedure` which questions are asked.
    """

    n0: int = 100
    n: int = 100_000
    alpha: float = 0.001
    rule: Rule = FIXED
    procedure: Procedure = TWO_STEPS

    def __post_init__(self) -> None:
        if not all(isinstance(n, int) and n >= 1 for n in (self.n0, self.n)):
            raise CertifyError(f"n0={self.n0}, n={self.n}: whole numbers, both at least 1")
        exact = self.rule.exact and self.alpha == 0
        if not (isinstance(self.alpha, float) and (0 < self.alpha < 1 or exact)):
            raise CertifyError(f"alpha={self.alpha!r} must lie strictly between 0 and 1")
        self.rule.check(self)
        self.procedure.check_plan(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the spec of a run."""
        sizes = {"n0": self.n0, "n": self.n, "alpha": self.alpha}
        return {**sizes, "rule": self.rule.to_dict(), "procedure": self.procedure.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Plan:
        """The inverse of `to_dict`."""
        try:
            plain = {key: values[key] for key in ("n0", "n", "alpha")}
            rule, procedure = values["rule"], values["procedure"]
            if len(values) > 5:
                raise ValueError("it says more than a plan has")
            return cls(**plain, rule=Rule.from_dict(rule), procedure=Procedure.from_dict(procedure))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, CertifyError):
                raise
            raise CertifyError(f"the plan {values!r} cannot be read: {error!r}") from None

    def keyed(self, *words: object) -> Plan:
        """This plan with what its rule draws taken from these words."""
        rule = self.rule.keyed(*words)
        return self if rule is self.rule else replace(self, rule=rule)

    def best_p_a(self) -> float:
        """The largest p_A that this plan can ever establish."""
        return self.rule.best(self)
