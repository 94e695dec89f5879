"""What one shifted coordinate adds to a hockey-stick function, as a kernel on the mesh.

(A_u − 1)W(ℓ) = ∫ K_u(w) g(ℓ − w) dw, where g is the density of W's log-ratio under Q and
K_u(w) = H_{e^w}(T_u) − (1 − e^w)₊ ≥ 0. Here W = G_s ⊗ Ψ with Ψ on the mesh, so g is a mixture of
normal densities of width s, and a point w between two mesh points is bounded by those two:
with v the distance from the nearer to zero, θ = v/h,

    φ_s(y − v) ≤ (1 − θ) e^(−v²/2s²) φ_s(y) + θ e^((h² − v²)/2s²) φ_s(y − h),

because e^(yv/s²) is convex in v. The relative loss is θ(1 − θ)h²/2s², whatever the size of u. A
normal density at a mesh point is in turn at most `tent` times the same density smeared over the
tent of that point, so that the whole inequality can be read off at mesh points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft, integrate, optimize

from unicr.noise import IID
from unicr.radius.bellman._chord import chord, gaps
from unicr.radius.bellman._mesh import Mesh
from unicr.tradeoff import RatioLaw, ratio_law
from unicr.values import Array

Complex = NDArray[np.complex128]
PARTS = 4  # each mesh cell is cut into so many
SPREAD = 3e-4
NARROW = 8  # a kernel of at most so many points on each side is applied directly
NEGLIGIBLE = 1e-15


@dataclass(frozen=True, eq=False)
class Kernel:
    """Weights on −reach … reach, where wide their transform (`size` points), L's infinite mass.

    `beyond` is what else the shift may add at any ℓ, per unit of mass.
    """

    weights: Array
    reach: int
    spectrum: Complex | None
    size: int
    infinite: float
    beyond: float

    @property
    def total(self) -> float:
        return float(np.sum(self.weights))


def _tails(values: Array) -> Array:
    return np.concatenate([np.cumsum(values[::-1])[::-1], [0.0]])


class Profile:
    """K_u on a grid of |w|: exact integrals of K and of wK over every part of a mesh cell."""

    def __init__(self, law: RatioLaw, step: float, cells: int) -> None:
        w = step / PARTS * np.arange(cells * PARTS + 1, dtype=np.float64)
        mass = law.mass * np.exp(np.minimum(-law.loss, 700.0))  # what is cut off is missing below
        missing = max(0.0, 1.0 - float(np.sum(mass)))
        self.width = step / PARTS
        upper, lower = law.loss > 0, law.loss < 0
        self.up = self._side(w, law.loss[upper], law.mass[upper], mass[upper], 1.0, 0.0)
        self.down = self._side(
            w, -law.loss[lower][::-1], law.mass[lower][::-1], mass[lower][::-1], -1.0, missing
        )

    def _side(
        self, w: Array, x: Array, q: Array, p: Array, sign: float, missing: float
    ) -> tuple[Array, Array, Array]:
        """(∫K, ∫(|w| − left end)K) over each part, and K at the grid points, one side of zero."""
        i = np.searchsorted(x, w, side="right")
        q0, q1, q2 = _tails(q)[i], _tails(q * x)[i], _tails(q * x * x)[i]
        p0 = _tails(p)[i] * np.exp(sign * w)
        first, second = q1 - w * q0, 0.5 * (q2 - 2 * w * q1 + w * w * q0)
        rest = missing * np.exp(-w) if missing > 0 else np.zeros_like(w)
        if sign > 0:
            value, once, twice = q0 - p0, first - q0 + p0, second - first + q0 - p0
        else:
            value, once, twice = p0 - q0, p0 - q0 - first, p0 - q0 - first - second
        value, once, twice = (np.maximum(v + rest, 0.0) for v in (value, once, twice))
        whole = np.maximum(once[:-1] - once[1:], 0.0)
        moment = np.clip(twice[:-1] - twice[1:] - self.width * once[1:], 0.0, whole * self.width)
        return whole, moment, value


def gap(profile: Profile, excess: float, reach: float) -> tuple[Array, Array]:
    """∫ min(excess, K_u(w)) dw over each part with |w| ≤ reach (K falls away from zero)."""

    def side(value: Array) -> Array:
        inside = profile.width * np.arange(len(value) - 1) <= reach
        return np.minimum(value[:-1], excess) * profile.width * inside

    return side(profile.up[2]), side(profile.down[2])


def tent(step: float, smooth: float) -> float:
    """b with φ_s ≤ b·(φ_s smeared over the tent of a mesh point, straight in γ)."""
    y = np.linspace(-step, step, 2001)
    left = (np.exp(y) - math.exp(-step)) / -math.expm1(-step)
    right = (math.exp(step) - np.exp(y)) / math.expm1(step)
    height = np.where(y <= 0, left, right)

    def smeared(tilt: float) -> float:
        return float(integrate.trapezoid(height * np.exp(tilt * y - y * y / (2 * smooth**2)), y))

    least = optimize.minimize_scalar(smeared, bounds=(-5.0, 5.0), method="bounded")
    return (1.0 + 1e-6) / smeared(float(least.x))


def weigh(parts: list[tuple[Array, Array]], step: float, smooth: float, cells: int) -> Array:
    """Weights on the mesh (0 … cells) of the masses and moments of one side, over all `parts`."""
    v = step / PARTS * (np.arange(cells * PARTS) % PARTS)
    cell = np.arange(cells * PARTS) // PARTS
    near = np.zeros(cells + 1)
    for whole, moment in parts:
        share = (v * whole + moment) / step
        close = (whole - share) * np.exp(-v * v / (2 * smooth**2))
        far = share * np.exp((step**2 - v * v) / (2 * smooth**2))
        near[:-1] += np.bincount(cell, close, cells)
        near[1:] += np.bincount(cell, far, cells)
    return near


class Kernels:
    """The kernels of a grid of shifts u_0 < u_1 < …, each with the gap of its two cells of u.

    Between two shifts, K_u ≤ chord of the two + min(excess, K_{u_{k+1}}): `gaps` bounds how far
    any event's probability can lie above its chord, and K grows with u for unimodal noise.
    For other noise χ is charged as it is, and to the first kernel also χ(u_0) for what is below.
    """

    def __init__(self, noise: IID, shifts: Array, mesh: Mesh, smooth: float) -> None:
        chords, within = gaps(noise, shifts)
        scale = tent(mesh.step, smooth)
        cells = mesh.count + 1  # what is farther acts less than one point beyond the mesh, see (j)
        grows = noise.facts.unimodal
        laws = [laws_of(noise, float(u)) for u in shifts]
        profiles = [[Profile(law, mesh.step, cells) for law in pair] for pair in laws]
        extra = [
            [gap(profile, float(excess) if grows else 0.0, float(reach)) for profile in pair]
            for pair, excess, reach in zip(profiles[1:], chords, within, strict=True)
        ]
        half = 0.5 * mesh.step / PARTS
        self.kernels: list[Kernel] = []
        for k, pair in enumerate(profiles):
            sides = []
            for sign, profile in enumerate(pair):
                around = [extra[i][sign] for i in (k - 1, k) if 0 <= i < len(extra)]
                extra_up = np.max([g[0] for g in around], axis=0)
                extra_down = np.max([g[1] for g in around], axis=0)
                up = weigh([profile.up[:2], (extra_up, half * extra_up)], mesh.step, smooth, cells)
                down = weigh(
                    [profile.down[:2], (extra_down, half * extra_down)], mesh.step, smooth, cells
                )
                weights = np.concatenate([down[:0:-1], up])
                weights[cells] += down[0]
                sides.append(weights)
            weights = scale * np.max(sides, axis=0)
            infinite = max(law.infinite for law in laws[k])
            beside = [i for i in (k - 1, k) if 0 <= i < len(chords)]
            uneven = 0.0
            if grows:
                above = [max(law.infinite for law in laws[i + 1]) for i in beside]
                infinite += max(
                    min(float(chords[i]), a) for i, a in zip(beside, above, strict=True)
                )
            else:
                uneven = max(float(chords[i]) for i in beside)
                uneven = max(uneven, chord(noise, float(shifts[0]))) if k == 0 else uneven
            self.kernels.append(_kernel(weights, mesh, infinite, uneven))


def laws_of(noise: IID, u: float) -> list[RatioLaw]:
    signs = (1.0,) if noise.facts.symmetric else (1.0, -1.0)
    return [ratio_law(noise, sign * u, SPREAD) for sign in signs]


def _kernel(weights: Array, mesh: Mesh, infinite: float, uneven: float) -> Kernel:
    middle, total = len(weights) // 2, float(np.sum(weights))
    used = np.flatnonzero(weights > NEGLIGIBLE * total)
    ends = (int(used[0]), int(used[-1])) if used.size else (middle, middle)
    reach = min(max(middle - ends[0], ends[1] - middle, 1), mesh.reach)
    inside = weights[middle - reach : middle + reach + 1]
    beyond = uneven + max(0.0, total - float(np.sum(inside)))
    spectrum, size = None, mesh.sizes[int(reach > mesh.near)]
    if reach > NARROW:
        line = np.zeros(size)
        line[: reach + 1] = inside[reach:]
        line[-reach:] = inside[:reach]
        spectrum = fft.rfft(line)
    return Kernel(inside, reach, spectrum, size, infinite, beyond)
