"""The plan of sampling: how many samples, by which procedure, and by which rule they stop.

A `Procedure` says which questions for counts certify one input; a `Rule` says how many samples to
take next and which bounds on (p_A, p_B) follow. `Plan` holds one of each with the sample sizes.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from unicr.classifier import Classifier
from unicr.errors import CertifyError
from unicr.noise import Noise
from unicr.registry import Catalogue, Registered
from unicr.smoothing._certificate import Certificate
from unicr.smoothing._question import Steps
from unicr.text import split_arguments

if TYPE_CHECKING:
    from unicr.smoothing._radii import Curves, Radii

EVERY_INPUT = "every input"  # scope of one g, certified at many points
WORTHWHILE = 0.51  # a p_A below this gives radii of no use
THIS_INPUT = "this input's noise"  # scope of certificates that each speak of a g of their own


@dataclass(frozen=True)
class Votes:
    """Fresh votes so far: for the class that the selection chose, for its runner-up, and all.

    `second` is None if there is no other class. `selection` are the votes that chose the class.
    """

    top: int
    second: int | None
    n: int
    selection: tuple[int, ...] = ()


class Setting(Registered, ABC):
    """A rule or a procedure: what a plan has beside its numbers."""

    def check_plan(self, plan: Plan) -> None:
        """Raise CertifyError if the plan's other settings do not fit this one."""
        return None


class Rule(Setting):
    """Subclasses are frozen dataclasses; `proof` says why `conclude` errs with at most α."""

    kind = "rule"
    proof: ClassVar[str]
    exact: ClassVar[bool] = False
    """Whether nothing is left to chance: α is 0 then."""
    bounds_p_b: ClassVar[bool] = False
    """Whether p_B has a bound of its own; else it is 1 − p_A."""
    among_noises: ClassVar[bool] = False
    """Whether the noise was chosen, out of several, by the very samples that certify."""

    def next(self, votes: Votes, plan: Plan, radii: Radii) -> int:
        """How many samples to take now; 0 if the votes are enough. All that are left, here."""
        return plan.n - votes.n

    def with_key(self, *words: object) -> Rule:
        """This rule with all that it draws taken from these words; itself if it draws nothing.

        A run gives its nonce among them, so that nobody can choose a lucky draw.
        """
        return self

    @abstractmethod
    def conclude(self, votes: Votes, plan: Plan, radii: Radii) -> tuple[float, float]:
        """(p_A, p_B) at total failure probability plan.alpha: p_A from below, p_B from above."""

    def best(self, plan: Plan) -> float:
        """The largest p_A that can ever be established: every sample votes for one class.

        This is that of n samples at the whole α: a rule that takes fewer, or shares α, has its own.
        """
        return math.exp(math.log(plan.alpha) / plan.n)


RULES: Catalogue[type[Rule]] = Catalogue("unicr.rules", "unicr.smoothing.rules", Rule, classes=True)
Rule.catalogue = RULES


class Procedure(Setting):
    """Subclasses are frozen dataclasses: their fields are all that decides the steps beside the
    plan, the run's noise and the radii. `certificate` may add fields: they are stored as well.

    Sampling, `unicr verify` and `unicr verify --replay` run the same steps; the first and the last
    on the model, the other on the stored transcript.
    """

    kind = "procedure"
    certificate: ClassVar[type[Certificate]] = Certificate
    scope: ClassVar[str] = EVERY_INPUT

    @abstractmethod
    def steps(self, plan: Plan, noise: Noise, curves: Curves) -> Steps[Certificate]:
        """Ask for counts, and conclude; `noise` is the run's own.

        With probability ≥ 1 − plan.alpha over the samples the certificate holds.
        """

    @classmethod
    def parse(cls, text: str) -> Self:
        """The procedure that `text` names; one whose arguments are noises reads them itself."""
        kind = cls.known().get(text.partition("(")[0].strip())
        given = None if kind is None else split_arguments(text, kind.name)
        if kind is not None and given is not None and given[1] == kind.name:
            made = kind.of_words([word for word in given[0] if word])
            if made is not None:
                return made
        return super().parse(text)

    @classmethod
    def of_words(cls, words: Sequence[str]) -> Self | None:
        """The procedure with these arguments as texts; None if they are numbers with names."""
        return None

    def fit(self, plan: Plan) -> Plan:
        """The plan with this procedure, and with what it needs of a plan."""
        return replace(plan, procedure=self)

    def check(self, plan: Plan, radii: Radii, model: Classifier | None = None) -> None:
        """Raise CertifyError if nothing can be claimed with this noise and these norms, or of
        this classifier.
        """
        return None

    choices: tuple[Noise, ...] = ()
    """The noises that it names beside the run's: the lattice must suit them all."""

    on_own_grid: ClassVar[bool] = False
    """Whether radii are between the grid points of 8-bit images, not for every change."""

    def open_noises(self, open_noise: Callable[[Noise], Noise]) -> Self:
        """This procedure with noises that are code opened by `open_noise`, which may refuse."""
        return self


PROCEDURES: Catalogue[type[Procedure]] = Catalogue(
    "unicr.procedures", "unicr.smoothing.procedures", Procedure, classes=True
)
Procedure.catalogue = PROCEDURES


def _fixed() -> Rule:
    from unicr.smoothing.rules.fixed import Fixed  # rules and procedures are made of this module

    return Fixed()


def _two_steps() -> Procedure:
    from unicr.smoothing.procedures.two_steps import TwoSteps

    return TwoSteps()


@dataclass(frozen=True)
class Plan:
    """How an input is sampled: n0 samples choose the class, and up to n fresh samples bound its
    probability.

    Parameters
    ----------
    n0
        Number of samples that choose the class.
    n
        Number of fresh samples that bound its probability (the largest number, for rules that stop
        early).
    alpha
        Failure probability of one certificate.
    rule
        How many samples to take. fixed: all n. three: all n, and bound p_B as well.
        'target(radius=0.5)': stop as soon as this radius in the first norm is certified, or
        clearly cannot be. 'pilot(share=0.01)': choose a smaller n for each input from its n0 votes
        (use n0 = 1000); this costs on average 1 % of the largest possible radius. randomised: the
        randomised Clopper-Pearson bound, slightly larger than the usual one. every: for splitting
        noise only, which has finitely many values: try all of them instead of sampling, so that
        no certificate is wrong by chance. Plugins can add rules.
    procedure
        How an input is certified. two_steps: choose a class, then bound its probability.
        'two_laws(share=0.5)': the DSRS method, for spherical noise and l1_exp: half of the n
        samples come from the same noise, but only from inside a ball that has this probability.
        It is used for inputs where it promises a larger radius. 'among(NOISE, NOISE, by=volume)':
        for each input, choose among these noises and --noise the one whose certified region has
        the largest volume, or by=radius (the default), contains the largest ball in the first norm.
    """

    n0: int = 100
    n: int = 100_000
    alpha: float = 0.001
    rule: Rule = field(default_factory=_fixed)
    procedure: Procedure = field(default_factory=_two_steps)

    def __post_init__(self) -> None:
        for name in ("n0", "n"):  # whole numbers of numpy too
            value = getattr(self, name)
            if isinstance(value, numbers.Integral) and not isinstance(value, bool):
                object.__setattr__(self, name, int(value))
        if not all(type(n) is int and n >= 1 for n in (self.n0, self.n)):
            raise CertifyError(
                f"n0={self.n0}, n={self.n}: both must be whole numbers of at least 1"
            )
        exact = self.rule.exact and self.alpha == 0
        if not (isinstance(self.alpha, float) and (0 < self.alpha < 1 or exact)):
            raise CertifyError(f"alpha={self.alpha!r} must lie strictly between 0 and 1")
        for setting in (self.rule, self.procedure):
            setting.check_plan(self)

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
                raise ValueError("it has more fields than a plan")
            return cls(**plain, rule=Rule.from_dict(rule), procedure=Procedure.from_dict(procedure))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, CertifyError):
                raise
            raise CertifyError(f"the plan {values!r} cannot be read: {error!r}") from None

    def check_samples(self) -> None:
        """Raise CertifyError where n is too small to certify anything."""
        if self.rule.best(self) < WORTHWHILE:
            raise CertifyError(
                f"n={self.n} samples at alpha={self.alpha:g} can certify nothing, even if all of "
                f"them agree: take {self._find_least_n()} or more"
            )

    def _find_least_n(self) -> int:
        """The fewest samples that can certify something: the best p_A rises with n."""

        def suffices(n: int) -> bool:
            return self.rule.best(replace(self, n=n)) >= WORTHWHILE

        high = self.n
        while not suffices(high):
            high *= 2
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if suffices(middle) else (middle, high)
        return high
