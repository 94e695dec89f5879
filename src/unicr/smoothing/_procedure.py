"""What a procedure is: the steps by which one input is certified, as questions for counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Self

from unicr.classifier import Classifier
from unicr.noise import Noise
from unicr.registry import Catalogue
from unicr.smoothing._certificate import Certificate
from unicr.smoothing._named import Registered
from unicr.smoothing._question import Steps

if TYPE_CHECKING:
    from unicr.smoothing._curves import Curves
    from unicr.smoothing._plan import Plan
    from unicr.smoothing._radii import Radii

EVERY_INPUT = "every input"  # scope of one g, certified at many points
THIS_INPUT = "this input's noise"  # scope of certificates that each speak of a g of their own


class Procedure(Registered, ABC):
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

    def fit(self, plan: Plan) -> Plan:
        """The plan with this procedure, and with what it needs of a plan."""
        return replace(plan, procedure=self)

    def check_plan(self, plan: Plan) -> None:
        """Raise CertifyError where the plan is none that `fit` makes."""
        return None

    def check(self, plan: Plan, radii: Radii) -> None:
        """Raise CertifyError where nothing can be claimed with this noise and these norms."""
        return None

    def check_model(self, classifier: Classifier) -> None:
        """Raise CertifyError where the procedure cannot ask this classifier."""
        return None

    on_own_grid: ClassVar[bool] = False
    """Whether radii are between the grid points of 8-bit images, not for every change."""

    def finest(self, noise: Noise) -> Noise:
        """The smallest of the noises, which the lattice must suit."""
        return noise

    def opened(self, open_noise: Callable[[Noise], Noise]) -> Self:
        """This procedure with noises that are code opened by `open_noise`, which may refuse."""
        return self


PROCEDURES: Catalogue[type[Procedure]] = Catalogue(
    "unicr.procedures", "unicr.smoothing.procedures", Procedure, classes=True
)
Procedure.catalogue = PROCEDURES
