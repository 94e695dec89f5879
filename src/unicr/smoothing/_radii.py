"""Radii in several norms for many inputs: curves where p_B = 1 − p_A, single radii elsewhere."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, lru_cache

from unicr.errors import CertifyError
from unicr.noise import Lattice, Noise
from unicr.noise.internal import Frame, LatticeNoise
from unicr.norms import Norm
from unicr.radius import Grade, RadiusCurve, certified_radius
from unicr.radius.internal import NOTHING_PROVED, Proof, find_weakest, name_guarantee
from unicr.smoothing._certificate import NormRadius
from unicr.smoothing._plan import Plan

# 1 − p_A where curves end, and how closely the least p_A for a radius is sought: it is rounded up.
LAST_TAIL = 1e-11
P_A_STEP = 1e-12


class Radii:
    """The radii that follow from the probabilities of one input, in each norm, for one noise and
    dimension.

    Radii are proved, or with `searched` the paper's approximate ones. With a `lattice` they are
    about the noise that is drawn on it: p_A and p_B are corrected by `charge`, its distance from
    the law (None if it has no bound). Each radius is reduced for moving inputs to the lattice, and
    then holds for every real change.
    """

    def __init__(
        self,
        noise: Noise,
        norms: Sequence[Norm],
        dim: int,
        *,
        searched: bool = False,
        lattice: Lattice | None = None,
    ) -> None:
        if not norms:
            raise CertifyError("at least one norm is needed")
        stretched = noise.frame is not None
        if noise.iid is None and noise.radial is None and not (stretched or noise.parts):
            raise CertifyError(
                f"{noise.text} has no radius curve, so certify cannot use it: compute single radii "
                "with unicr.radius.certified_radius(engine='montecarlo')"
            )
        self.noise, self.norms, self.dim, self.searched = noise, tuple(norms), dim, searched
        self.lattice, self.any_change = lattice, True
        self._curves = [RadiusCurve(noise, norm, dim) for norm in norms]
        # Noise Bξ has a second radius: what is proved for ξ holds for every δ in the norm of B⁻¹δ
        # (docs/theory.md#theorem-p).
        self._cores = [RadiusCurve(noise.core, norm, dim) for norm in norms if stretched]
        self._least: dict[float, float] = {}

    @cached_property
    def charge(self) -> float | None:
        """3dτ: d coordinates of total variation τ each, for the law and for the sampler deployed.

        A sample of d coordinates is within dτ of its law, so the votes bound p_A + dτ; twice as
        much again, and the class stays the most likely one under the sampler itself
        (docs/theory.md#lattice-noise).
        """
        tau = None if self.lattice is None else LatticeNoise(self.noise, self.lattice).tau
        return None if tau is None else 3 * self.dim * tau

    def charge_bounds(self, p_a: float, p_b: float) -> tuple[float, float]:
        """Bounds for the law of the noise from bounds for the sampler's."""
        if not self.charge:
            return p_a, p_b
        free, p_a = p_b < 1.0 - p_a, max(0.0, p_a - self.charge)
        return p_a, min(p_b + self.charge, 1.0 - p_a) if free else 1.0 - p_a

    def on(self, lattice: Lattice | None) -> Radii:
        """The same curves for noise on this lattice."""
        if lattice == self.lattice:
            return self
        twin = copy.copy(self)
        twin.lattice, twin._least = lattice, {}
        vars(twin).pop("charge", None)
        return twin

    def without_sampling(self) -> Radii:
        """The same radii where all draws are counted: nothing is paid for the law of a sampler, and
        they are for changes that lead from one lattice point to another.
        """
        twin = copy.copy(self)
        twin.any_change, twin.charge, twin._least = False, 0.0, {}
        return twin

    def at(
        self, p_a: float, p_b: float, more: Callable[[Norm], Proof] = lambda _: NOTHING_PROVED
    ) -> tuple[NormRadius, ...]:
        """The radius in every norm; zeros if p_A ≤ p_B.

        `more` gives radii that are proved from more than p_A and p_B.
        """
        both = zip(self.norms, self._curves, strict=True)
        balls = [self._read(norm, curve, p_a, p_b, more(norm)) for norm, curve in both]
        if (frame := self.noise.frame) is None:
            return tuple(balls)
        several = zip(balls, self.norms, self._cores, strict=True)
        return tuple(self._add_set(*three, frame, p_a, p_b) for three in several)

    def _add_set(
        self, ball: NormRadius, norm: Norm, core: RadiusCurve, frame: Frame, p_a: float, p_b: float
    ) -> NormRadius:
        """The ball, and under noise Bξ the set {‖B⁻¹δ‖_p < reach}, always what is proved."""
        known = self._read(norm, core, p_a, p_b, NOTHING_PROVED, of_set=True)
        grades = [Grade(one.grade) for one in (ball, known) if one.grade is not None]
        return replace(
            ball,
            reach=known.proved,
            log_volume=frame.log_volume(known.proved) if known.proved > 0 else None,
            frame=frame,
            grade=str(find_weakest(*grades)) if grades else None,
        )

    def _reduce(self, radius: float, norm: Norm, of_set: bool = False) -> float:
        """What a radius between lattice points is worth for the changes that are meant.

        Of noise Bξ inputs are moved on the lattice of B⁻¹x, so that a set pays what a plain radius
        does (docs/theory.md#parts-on-a-lattice).
        """
        if self.lattice is None or not self.any_change:
            return radius
        frame = self.noise.frame
        spread = None if frame is None or of_set else frame.spread(norm.p)
        return self.lattice.reduce(radius, norm.p, self.dim, spread)

    def _read(
        self,
        norm: Norm,
        curve: RadiusCurve,
        p_a: float,
        p_b: float,
        more: Proof,
        *,
        of_set: bool = False,
    ) -> NormRadius:
        """The radius in one norm, or a larger one that is proved by `more`."""
        if p_a <= p_b:
            return NormRadius(norm.text, 0.0, 0.0, 0.0, "abstain")
        if p_b >= 1.0 - p_a:
            proved, grade = float(curve(p_a)), curve.grade
            searched = proved if curve.exact else max(float(curve(p_a, searched=True)), proved)
        else:
            searched, proved, grade = _solve_free(curve.noise, norm, self.dim, p_a, p_b)
        radius = searched if self.searched else proved
        says = "exact" if searched == proved else name_guarantee(proved, searched)
        if not curve.bracketed:
            says = "approximate"
        grade = grade if proved > 0 else None
        if more.radius > proved:
            proved, grade, says = more.radius, more.grade, "approximate"
            radius, searched = max(radius, proved), max(searched, proved)
        ends = (radius, proved, searched)
        radius, proved, searched = (self._reduce(r, norm, of_set) for r in ends)
        shown = None if grade is None else str(grade)
        return NormRadius(norm.text, radius, proved, searched, says, shown)

    def first(self, p_a: float) -> float:
        """The radius in the first norm at p_A: what early stopping looks at."""
        p_a = self.charge_bounds(p_a, 1.0 - p_a)[0]
        radius = float(self._curves[0](p_a, searched=self.searched)) if p_a > 0.5 else 0.0
        return self._reduce(radius, self.norms[0])

    def find_least_p_a(self, radius: float) -> float:
        """The least p_A that certifies `radius` in the first norm, rounded up."""
        if radius not in self._least:
            self._least[radius] = self._invert(radius)
        return self._least[radius]

    def _invert(self, radius: float) -> float:
        low, high = 0.5, 1.0 - LAST_TAIL
        if self.first(high) < radius:
            return math.nextafter(1.0, 0.0)
        while high - low > P_A_STEP:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.first(middle) >= radius else (middle, high)
        return high

    def largest(self, plan: Plan) -> dict[str, float]:
        """The largest radius that the plan can give in each norm: every vote for one class.

        Builds every curve that certificates will be read from.
        """
        p_a = plan.rule.best(plan)
        bounds = self.charge_bounds(p_a, 1.0 - p_a)
        return {best.norm: best.radius for best in self.at(*bounds)}


@lru_cache(maxsize=65536)
def _solve_free(
    noise: Noise, norm: Norm, dim: int, p_a: float, p_b: float
) -> tuple[float, float, Grade | None]:
    """(searched, proved, its grade) for a free p_B, at least what the binary curve gives at p_A."""
    single = certified_radius(noise, norm, dim, p_a=p_a, p_b=p_b)
    searched, proved, grade = single.searched, single.proved, single.grade
    if p_a > 0.5:
        curve = RadiusCurve(noise, norm, dim)
        searched = max(searched, float(curve(p_a, searched=True)))
        if float(curve(p_a)) > proved:
            proved, grade = float(curve(p_a)), curve.grade
    return searched, proved, grade


@dataclass(frozen=True, eq=False)
class Curves:
    """`of(noise)` gives the radii of a noise; its curves are made when first asked for.

    `lattice` is that of the inputs and the noise.
    """

    norms: Sequence[Norm]
    dim: int
    _: KW_ONLY
    searched: bool = False
    lattice: Lattice | None = None
    _made: dict[Noise, Radii] = field(default_factory=dict, init=False, repr=False)

    def of(self, noise: Noise) -> Radii:
        """The radii of one noise."""
        if noise not in self._made:
            self._made[noise] = Radii(
                noise, self.norms, self.dim, searched=self.searched, lattice=self.lattice
            )
        return self._made[noise]
