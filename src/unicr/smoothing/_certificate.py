"""A certificate: what was sampled, what follows from it, and how much of that is proved."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unicr.errors import CertifyError
from unicr.noise.internal import Frame, measure
from unicr.norms import parse_norm
from unicr.smoothing._question import BOUND, CHOOSE, EMPTY, Transcript
from unicr.tables import to_html
from unicr.text import round_down

ABSTAIN = -1


@dataclass(frozen=True)
class NormRadius:
    """The radius in one norm: the claimed `radius`, with `proved` and `searched`.

    `grade` says how `proved` was computed (`unicr.radius.Grade`); None if nothing is proved.

    For stretched noise Bξ more than a ball is proved: every δ with ‖B⁻¹δ‖_p < `reach`, where B is
    the `frame`. `log_volume` is the logarithm of the volume of that set, if the unit ball of ℓp has
    volume 1 (docs/theory.md#theorem-p).
    """

    norm: str
    radius: float
    proved: float
    searched: float
    guarantee: str
    grade: str | None = None
    reach: float | None = None
    log_volume: float | None = None
    frame: Frame | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values; an infinite radius is the text "inf", a frame its digest."""
        radii = {k: getattr(self, k) for k in ("radius", "proved", "searched")}
        region: dict[str, Any] = {}
        if self.reach is not None:
            radii |= {"reach": self.reach, "log_volume": self.log_volume}
            region = {"frame": None if self.frame is None else self.frame.digest}
        numbers = {k: "inf" if v == math.inf else v for k, v in radii.items()}
        words = {"guarantee": self.guarantee, "grade": self.grade}
        return {"norm": self.norm, **numbers, **words, **region}

    @classmethod
    def from_dict(cls, values: dict[str, Any], frames: Iterable[Frame] = ()) -> NormRadius:
        """The inverse of `to_dict`; a frame is found among `frames` by its digest."""
        region = {k: values.get(k) for k in ("reach", "log_volume")}
        known = {frame.digest: frame for frame in frames}
        return cls(
            norm=values["norm"],
            radius=float(values["radius"]),
            proved=float(values["proved"]),
            searched=float(values["searched"]),
            guarantee=values["guarantee"],
            grade=values["grade"],
            **{k: None if v is None else float(v) for k, v in region.items()},
            frame=known.get(values.get("frame", "")),
        )

    def contains(self, change: Any) -> bool:
        """Whether this change keeps the class for sure; rounded so that a yes is never wrong."""
        sizes = np.abs(np.asarray(change, dtype=np.float64)).ravel()
        if not np.all(np.isfinite(sizes)):
            return False
        exponent = parse_norm(self.norm).p
        inside = measure(sizes, exponent) < min(self.radius, self.proved)
        if inside or self.frame is None or not self.reach:
            return inside
        return self.frame.measure(np.asarray(change), exponent) < self.reach


@dataclass(frozen=True, repr=False)
class Certificate:
    """With probability ≥ 1 − α over the samples: every ‖δ‖_p below the radius keeps `predict`.

    `predict` is −1 if the procedure abstained (all radii are 0). `n0` samples chose the class, and
    `n` fresh samples bound its probability. `transcript` holds every request for samples with its
    answer; the whole certificate follows from it. `p_b` is an upper bound for every other class.
    `noise` is the text of the noise that was chosen for this input, or None if the run has one
    noise.

    Inputs are moved to the points of a `lattice` (its step) before noise is added. The radii allow
    for that and hold for every δ. If `between_points` is true (every offset of splitting noise was
    counted), they hold only for δ between two lattice points. `charge` is what was subtracted from
    p_A and added to p_B for the error of the sampler, or None if this error has no bound. If the
    noise came from a `seed` instead of a nonce, it is predictable, and the certificate is an
    experiment.
    """

    predict: int
    p_a: float
    p_b: float
    n0: int
    n: int
    alpha: float
    radii: tuple[NormRadius, ...]
    noise: str | None = None
    lattice: str | None = None
    between_points: bool = False
    charge: float | None = None
    seed: int | None = None
    transcript: Transcript = EMPTY

    @property
    def counts(self) -> tuple[int, ...]:
        """The votes, by class, of the fresh samples under this noise that bound the probability."""
        return self.transcript.counts(BOUND, self.noise)

    @property
    def selection(self) -> tuple[int, ...]:
        """The votes under this noise that chose the class."""
        of = next((e.counted for e in self.transcript if e.purpose == BOUND), None)
        return self.transcript.counts(CHOOSE, self.noise, of)

    @property
    def abstained(self) -> bool:
        """Whether no class could be certified."""
        return self.predict == ABSTAIN

    @property
    def promise(self) -> str:
        """What the certificate promises, in one line. Radii that are not proved are marked."""
        if self.abstained:
            return "nothing: the smoothed classifier abstains"
        radii = " or ".join(
            f"‖δ‖_{r.norm} < {round_down(r.radius)}"
            + ("" if r.radius <= r.proved else f" (searched; proved only {round_down(r.proved)})")
            + ("" if not r.reach else f" or ‖B⁻¹δ‖_{r.norm} < {round_down(r.reach)}")
            for r in self.radii
        )
        where = f" between points of the grid {self.lattice}" if self.between_points else ""
        seeded = "" if self.seed is None else f"; noise of seed {self.seed}: an experiment"
        if self.lattice is not None and self.charge is None:
            seeded += "; the error of this noise's sampler has no bound"
        doubt = f", except with probability {self.alpha:g} over the samples{seeded}"
        return f"class {self.predict} for every change δ{where} with {radii}" + (
            doubt if self.alpha else ", without any doubt: nothing was sampled"
        )

    def contains(self, change: Any, norm: str | float | None = None) -> bool:
        """Whether the certificate proves that this change δ keeps the class, by a ball or by the
        larger set of stretched noise, in one norm or in any. A change on the border is not
        contained.
        """
        several = self.radii
        if norm is not None:
            self.radius(norm)  # its error lists the norms
            several = tuple(r for r in self.radii if r.norm == parse_norm(norm).text)
        if self.between_points:
            raise CertifyError(
                "this certificate has no radius for every change: its radii hold only for changes "
                "between points of the grid"
            )
        return not self.abstained and any(r.contains(change) for r in several)

    def to_dict(self) -> dict[str, Any]:
        """Plain values in one row; each norm has its columns radius_l2, proved_l2, …"""
        values: dict[str, Any] = {"predict": self.predict}
        for bracket in self.radii:
            for name in ("radius", "proved", "searched", "guarantee", "grade"):
                values[f"{name}_l{bracket.norm}"] = getattr(bracket, name)
            if bracket.reach is not None:
                values[f"reach_l{bracket.norm}"] = bracket.reach
                values[f"log_volume_l{bracket.norm}"] = bracket.log_volume
        for name in ("p_a", "p_b", "n0", "n", "alpha"):
            values[name] = getattr(self, name)
        if self.lattice is not None:
            values["lattice"] = self.lattice
        if self.noise is not None:
            values["noise"] = self.noise
        return values

    def __repr__(self) -> str:
        radii = ", ".join(
            f"l{bracket.norm} {round_down(bracket.radius, 6)}" for bracket in self.radii
        )
        outcome = "abstains" if self.predict == ABSTAIN else f"class {self.predict}, {radii}"
        return f"Certificate({outcome}; p_A {round_down(self.p_a, 6)}, n {self.n})"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.promise)}</p>{to_html([self.to_dict()])}"

    def radius(self, norm: str | float | None = None) -> float:
        """The certified radius in one of its norms (the only one, if there is just one)."""
        if norm is None:
            if len(self.radii) != 1:
                raise CertifyError(
                    "this certificate has several norms, so say which one: "
                    f"{', '.join(r.norm for r in self.radii)}"
                )
            return self.radii[0].radius
        wanted = parse_norm(norm).text
        if (bracket := self.in_norm(wanted)) is None:
            there = ", ".join(r.norm for r in self.radii)
            raise CertifyError(
                f"this certificate has no radius in the norm {wanted}; it has {there}"
            )
        return bracket.radius

    def in_norm(self, text: str) -> NormRadius | None:
        """The radius in one norm with its bracket, or None."""
        return next((bracket for bracket in self.radii if bracket.norm == text), None)
