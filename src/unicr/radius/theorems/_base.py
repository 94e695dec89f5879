"""What a theorem is: its letter on the theory page, what it needs, and the radius it gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from unicr.noise import IID, Anisotropic, Gaussian, Noise
from unicr.norms import Norm
from unicr.radius._spectrum import Spectrum
from unicr.tradeoff import TradeOff
from unicr.values import Array

CHECKED = ", ranges of the log-ratio checked numerically"


@dataclass(frozen=True)
class Proof:
    """A radius, the theorem that gives it, and what computed it."""

    radius: float
    theorem: str
    engine: str = "theorem"


NOTHING = Proof(0.0, "none", "none")


class Theorem(ABC):
    """A radius that holds for every direction, for the noises, norms and dimensions it applies to.

    `needs` says in words what `applies` asks. Only `applies` and `radius` must be given.
    """

    letter: ClassVar[str]
    words: ClassVar[str]
    needs: ClassVar[str]
    engine: ClassVar[str] = "theorem"

    @property
    def name(self) -> str:
        """As results print it."""
        return f"({self.letter}) {self.words}"

    @abstractmethod
    def applies(self, noise: Noise, norm: Norm, dim: int) -> bool:
        """Whether the theorem says anything here."""

    @abstractmethod
    def radius(self, noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> float:
        """The radius that holds for every direction; 0 where nothing is gained."""

    def proof(self, noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float) -> Proof:
        """The radius with the words that go with it."""
        return Proof(self.radius(noise, norm, dim, p_a, p_b), self.name, self.engine)

    def tight(self, noise: Noise, norm: Norm, dim: int) -> bool:
        """Whether the radius is the true one."""
        return False

    def directions(self, noise: Noise, norm: Norm, dim: int) -> tuple[Spectrum, ...] | None:
        """The worst directions, one of which attains a tight radius; None where not a spectrum."""
        return None

    def closed(self, noise: Noise, norm: Norm, dim: int) -> Callable[[Array], Array] | None:
        """The binary radius as a function of 1 − p_A, where it has a closed form."""
        return None

    def tradeoff(self, noise: Noise, norm: Norm, dim: int, r: float) -> TradeOff | None:
        """A function below T_δ for every ‖δ‖_p ≤ r, where the theorem has one: curves use it."""
        return None

    def curve(self, unit: Noise, norm: Norm, dim: int) -> tuple[Array, Array] | None:
        """(1 − p_j, r_j), r_j proved at p_j and rising: a whole binary curve at once; or None."""
        return None


def trust(noise: IID) -> str:
    """What a theorem's name must add: nothing where every fact it needs is known by formula."""
    if noise.facts.source != "analytic":
        return f", facts {noise.facts.source}"
    return "" if noise.facts.log_concave else CHECKED


def half_gap(quantile: Callable[[float], float], p_a: float, p_b: float) -> float:
    """(Q(p_A) − Q(p_B))/2 for the quantile function Q of a symmetric law, exact in the tail."""
    upper = -quantile(1.0 - p_a)
    return upper if p_b >= 1.0 - p_a else 0.5 * (upper - quantile(p_b))


def from_l2(norm: Norm, dim: int) -> float:
    """The factor from R_2 to R_p where only ‖δ‖₂ matters: the worst δ is one-hot or all-equal."""
    return 1.0 if norm.p <= 2 else float(dim) ** (1 / norm.p - 0.5)


def base_of(noise: Noise) -> Noise:
    """The i.i.d. noise under a scale per coordinate, or the noise itself."""
    return noise.base if isinstance(noise, Anisotropic) else noise


def symmetric_log_concave(noise: Noise) -> bool:
    """Whether each coordinate is, up to its scale."""
    base = base_of(noise)
    return isinstance(base, IID) and base.facts.symmetric and base.facts.log_concave


def symmetric_unimodal(noise: Noise) -> bool:
    """Whether each coordinate is, up to its scale."""
    base = base_of(noise)
    return isinstance(base, IID) and base.facts.symmetric and base.facts.unimodal


def is_gaussian(noise: Noise) -> bool:
    """Whether each coordinate is, up to its scale."""
    return isinstance(base_of(noise), Gaussian)
