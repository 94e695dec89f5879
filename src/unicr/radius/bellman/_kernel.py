"""What one shifted coordinate adds to a hockey-stick function, as a kernel on the mesh.

(A_u − 1)W(ℓ) = ∫ K_u(w) g(ℓ − w) dw, where g is the density of W's log-ratio under Q and
K_u(w) = H_{e^w}(T_u) − (1 − e^w)₊ ≥ 0. Here W = G_s ⊗ Ψ with Ψ on the mesh, so g is a mixture of
normal densities of width s. A point w between two of a finer mesh, η apart, at the share λ of the
way, is bounded by those two:

    φ_s(y − w) ≤ e^(λ(1 − λ)η²/2s²) ((1 − λ) φ_s(y − w_0) + λ φ_s(y − w_1)),

because φ_s(y − w) e^((w − m)²/2s²) is convex in w, m the middle. A normal density at a point of the
finer mesh is bounded in turn by those of mesh points, smeared over their tents (`_stencil.py`), so
that the whole inequality can be read off at mesh points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from unicr.noise import IID
from unicr.radius.bellman._chord import bound_gaps
from unicr.radius.bellman._mesh import Mesh
from unicr.radius.bellman._stencil import find_stencils
from unicr.tradeoff import RatioLaw, make_ratio_law
from unicr.values import Array

Complex = NDArray[np.complex128]
PARTS = 8  # each mesh cell is cut into so many: the loss per step is (h/8)²/8s² = 3e-4 of it
KERNEL_SPREAD = 3e-4  # variance that atoms of L may add (`make_ratio_law`): K is then above
LONG_UNIT = float(np.finfo(np.longdouble).eps) / 2  # of one addition in long double
# Onto K of a finite pair, at any point: its masses and places were divided by sums and moved by
# logarithms, some units of 1e-16 each.
STEP_ROUNDING = 4e-15
NARROW = 7  # a kernel of at most so many points on each side is applied directly
# Of the sum of all weights: smaller ones at the ends are left out, and the largest is charged.
NEGLIGIBLE_WEIGHT = 1e-15


@dataclass(frozen=True, eq=False)
class Kernel:
    """Weights on −reach … reach, where wide their transform (`size` points), L's infinite mass.

    `beyond` is what else the shift may add at any ℓ, per unit of mass: K beyond the weights is at
    most what it is at their ends, and g has no more than that mass.
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

    @property
    def size_of_terms(self) -> float:
        """Σ|weights|."""
        return float(np.sum(np.abs(self.weights)))


def _sum_tails(values: Array) -> Array:
    """Sums from each value to the last, cumulated in long double: off by a unit of it per term."""
    sums = np.cumsum(values[::-1], dtype=np.longdouble)[::-1]
    return np.append(sums.astype(np.float64), 0.0)


def _exp_remainder(z: Array, k: int) -> Array:
    """z^k/k! + z^(k+1)/(k + 1)! + …, e^z without its first k terms, for |z| < 1."""
    result = np.ones_like(z)
    for n in range(k + 12, k, -1):  # parts are narrower than 0.02: 12 terms leave below 1e-20
        result = 1.0 + z * result / n
    return z**k / math.factorial(k) * result


class Profile:
    """K_u on a grid of |w|: exact integrals of K and of wK over every part of a mesh cell.

    The law of L has been made easier to tell apart (docs/theory.md#lemma-4), so K is from above.
    """

    def __init__(self, law: RatioLaw, step: float, cells: int) -> None:
        w = step / PARTS * np.arange(cells * PARTS + 1, dtype=np.float64)
        # e^700 is finite in double precision; P-mass that is cut off there counts as lost below
        mass = law.mass * np.exp(np.minimum(-law.loss, 700.0))
        lost = max(0.0, 1.0 - float(np.sum(mass)))  # P-mass at L = −∞
        self.width = step / PARTS
        upper, lower = law.loss > 0, law.loss < 0
        self.up = self._side(w, law.loss[upper], law.mass[upper], mass[upper], 1.0, 0.0)
        self.down = self._side(
            w, -law.loss[lower][::-1], law.mass[lower][::-1], mass[lower][::-1], -1.0, lost
        )

    def _side(
        self, w: Array, x: Array, q: Array, p: Array, sign: float, lost: float
    ) -> tuple[Array, Array, Array]:
        """(∫K, ∫(|w| − left end)K) over each part, and K at the grid points, one side of zero.

        An atom at y > 0 from w has k(y) = ±(1 − e^∓y) of K there. In a part of width D one beyond
        its end, y from that end, gives ∫₀^D k(y + s) ds = ∫₀^D k + k(y) k(D), and for ∫(D − s)k(y +
        s) ds the same integrated once more. In this form nothing cancels, however small K is.
        """
        i = np.searchsorted(x, w, side="right")
        tail, far = _sum_tails(q)[i], -sign * np.asarray(self.width)
        value = np.maximum(sign * (tail - _sum_tails(p)[i] * np.exp(sign * w)), 0.0)
        once, twice = _exp_remainder(far, 2), -sign * _exp_remainder(far, 3)
        whole = tail[1:] * once - value[1:] * sign * np.expm1(far)
        moment = tail[1:] * twice + value[1:] * once
        part = np.searchsorted(w, x, side="left") - 1
        inside = part < len(whole)
        part, mass, near = part[inside], q[inside], -sign * (x[inside] - w[part[inside]])
        whole += np.bincount(part, mass * _exp_remainder(near, 2), len(whole))
        moment += np.bincount(part, -sign * mass * _exp_remainder(near, 3), len(whole))
        gone = lost * np.exp(-w)
        whole += gone[:-1] * -math.expm1(-self.width)  # a difference of the two loses digits
        moment += gone[1:] * _exp_remainder(np.asarray(self.width), 2)
        return whole, np.clip(moment, 0.0, whole * self.width), value + gone


def integrate_gap(profile: Profile, excess: float, reach: float) -> tuple[Array, Array]:
    """∫ min(excess, K_u(w)) dw over each part with |w| ≤ reach (K falls away from zero).

    See docs/theory.md#theorem-j.
    """

    def side(value: Array) -> Array:
        inside = profile.width * np.arange(len(value) - 1) <= reach
        return np.minimum(value[:-1], excess) * profile.width * inside

    return side(profile.up[2]), side(profile.down[2])


def move_to_fine_mesh(up: tuple[Array, Array], down: tuple[Array, Array], width: float) -> Array:
    """The masses of both sides, each part's moved to its two ends, from the lowest point up."""
    sides = []
    for whole, moment in (up, down):
        share = moment / width
        side = np.append(whole - share, 0.0)
        side[1:] += share
        sides.append(side)
    line = np.concatenate([sides[1][:0:-1], sides[0]])
    line[len(sides[1]) - 1] += sides[1][0]
    return line


def fold_stencils(masses: Array, table: Array) -> Array:
    """Weights of mesh points for masses on the finer mesh, zero in the middle of both."""
    parts = len(table)
    rows = np.append(masses, np.zeros(parts - 1)).reshape(-1, parts)
    line = np.sum([np.convolve(rows[:, m], table[m]) for m in range(parts)], axis=0)
    return np.append(0.0, line)  # a stencil reaches one point farther up than down


class Kernels:
    """The kernels of a grid of shifts u_0 < u_1 < …, each with the gap of its two cells of u.

    (A_u − 1)Φ is at most G_s ⊗ (kernel ∗ ν) (docs/theory.md#theorem-j).

    Between two shifts, K_u ≤ chord of the two + min(excess, K_{u_{k+1}}): `gaps` bounds how far
    any event's probability can lie above its chord, and K grows with u for unimodal noise.
    For other noise the excess is charged as it is, and to the first kernel also that below u_0.
    """

    def __init__(self, noise: IID, shifts: Array, mesh: Mesh, smooth: float) -> None:
        chords, within = bound_gaps(noise, shifts)
        cells, width = mesh.count, mesh.step / PARTS
        table = find_stencils(mesh.step, smooth, PARTS)
        # λ(1 − λ)η²/2s² ≤ η²/8s²: what moving a point to the finer mesh costs (see the module)
        scale = math.exp(width**2 / (8 * smooth**2)) / mesh.step
        grows = noise.facts.unimodal
        laws = [make_both_laws(noise, float(u)) for u in shifts]
        profiles = [[Profile(law, mesh.step, cells) for law in pair] for pair in laws]
        extra = [
            [
                integrate_gap(profile, float(excess) if grows else 0.0, float(reach))
                for profile in pair
            ]
            for pair, excess, reach in zip(profiles[1:], chords, within, strict=True)
        ]
        ends = [
            max(profile.up[2][-1] + profile.down[2][-1] for profile in pair) for pair in profiles
        ]
        below = float(bound_gaps(noise, np.array([0.0, shifts[0]]))[0][0])
        self.kernels: list[Kernel] = []
        for k, pair in enumerate(profiles):
            signs = []
            for sign, profile in enumerate(pair):
                around = [extra[i][sign] for i in (k - 1, k) if 0 <= i < len(extra)]
                more = [np.max([both[side] for both in around], axis=0) for side in (0, 1)]
                up, down = (
                    (side[0] + add, side[1] + 0.5 * width * add)
                    for side, add in zip((profile.up, profile.down), more, strict=True)
                )
                signs.append(move_to_fine_mesh(up, down, width))
            weights = fold_stencils(scale * np.max(signs, axis=0), table)
            infinite = max(law.infinite for law in laws[k])
            beside = [i for i in (k - 1, k) if 0 <= i < len(chords)]
            uneven = max(ends[k : k + 2])
            # two cumulated sums of the atoms; a weight is at most a few K (Σ|c_j| of a stencil)
            uneven += 8 * LONG_UNIT * max(law.loss.size for law in laws[k])
            if grows:
                above = [max(law.infinite for law in laws[i + 1]) for i in beside]
                infinite += max(
                    min(float(chords[i]), a) for i, a in zip(beside, above, strict=True)
                )
            else:
                charged = max(float(chords[i]) for i in beside)
                uneven += max(charged, below) if k == 0 else charged
            self.kernels.append(_make_kernel(weights, mesh, infinite, uneven))


def make_step_kernels(pairs: list[list[RatioLaw]], mesh: Mesh, smooth: float) -> list[Kernel]:
    """A kernel for each step, above those of all its pairs; nothing lies between two steps.

    The pairs are finite, and narrower than the mesh (docs/theory.md#jumps-apart).
    """
    width = mesh.step / PARTS
    table = find_stencils(mesh.step, smooth, PARTS)
    scale = math.exp(width**2 / (8 * smooth**2)) / mesh.step
    kernels = []
    for pair in pairs:
        profiles = [Profile(law, mesh.step, mesh.count) for law in pair]
        signs = [move_to_fine_mesh(profile.up[:2], profile.down[:2], width) for profile in profiles]
        weights = fold_stencils(scale * np.max(signs, axis=0), table)
        uneven = max(float(profile.up[2][-1] + profile.down[2][-1]) for profile in profiles)
        uneven += 8 * LONG_UNIT * max(law.loss.size for law in pair) + STEP_ROUNDING
        kernels.append(_make_kernel(weights, mesh, max(law.infinite for law in pair), uneven))
    return kernels


def make_both_laws(noise: IID, u: float) -> list[RatioLaw]:
    signs = (1.0,) if noise.facts.symmetric else (1.0, -1.0)
    return [make_ratio_law(noise, sign * u, KERNEL_SPREAD) for sign in signs]


def _make_kernel(weights: Array, mesh: Mesh, infinite: float, uneven: float) -> Kernel:
    middle, large = len(weights) // 2, np.maximum(weights, 0.0)
    used = np.flatnonzero(np.abs(weights) > NEGLIGIBLE_WEIGHT * float(np.sum(large)))
    ends = (int(used[0]), int(used[-1])) if used.size else (middle, middle)
    reach = min(max(middle - ends[0], ends[1] - middle, 1), mesh.reach)
    inside = weights[middle - reach : middle + reach + 1]
    dropped = np.concatenate([large[: middle - reach], large[middle + reach + 1 :]])
    outside = float(np.max(dropped, initial=0.0))  # Σ ν_j w_{ℓ − j} is at most the largest w
    spectrum, size = None, mesh.sizes[int(reach > mesh.near)]
    if reach > NARROW:
        line = np.zeros(size)
        line[: reach + 1] = inside[reach:]
        line[-reach:] = inside[:reach]
        spectrum = fft.rfft(line)
    return Kernel(inside, reach, spectrum, size, infinite, uneven + outside)
