# mypy: disable-error-code="no-untyped-call, operator"
"""The verifier of theorem (j) against brute force: random flows and kernels, random (E, u, ℓ).

Nothing here is shared with `_verify.py`: functions are sums of sticks on a dense set of γ that goes
beyond the mesh, increments are a matrix, shifts between two of the grid are chords of those.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import fft, special

from unicr import noise as N
from unicr.radius.bellman import _verify
from unicr.radius.bellman._kernel import Kernel, Kernels
from unicr.radius.bellman._mesh import Mesh
from unicr.radius.bellman._verify import Flow, compute_surcharge
from unicr.values import Array

STEP = 0.1
BEYOND = 16  # points of room on both sides of the mesh
ROUNDING = 1e-12
KINDS = ("wild", "rises", "falls", "alike", "low", "high", "signed")


@dataclass(frozen=True, eq=False)
class Case:
    mesh: Mesh
    flow: Flow
    kernels: list[Kernel]
    p: float
    kappa: float
    shifts: Array
    costs: Array
    limit: float

    @property
    def shares(self) -> Array:
        lam = np.linspace(0, 1, 4001)[:, None]
        return np.max(lam - self.lag(np.arange(len(self.shifts) - 1), lam), axis=0) + 1e-6

    def lag(self, k: NDArray[np.int64], lam: Array) -> Array:
        """The share of the cost at the share λ of the way from shift k to the next."""
        low, high = self.shifts[k] ** self.p, self.shifts[k + 1] ** self.p
        at = (1 - lam) * self.shifts[k] + lam * self.shifts[k + 1]
        result: Array = (at**self.p - low) / (high - low)
        return result

    def masses(self, budgets: Array) -> Array:
        t, m, b = self.flow.nodes, self.flow.masses, self.flow.bends
        e = np.clip(np.searchsorted(t, budgets, side="right") - 1, 0, len(t) - 2)
        tau = ((budgets - t[e]) / (t[e + 1] - t[e]))[:, None]
        return (1 - tau) * m[e] + tau * m[e + 1] - tau * (1 - tau) * b[e]


def _kernel(
    rng: np.random.Generator, mesh: Mesh, reach: int, size: float, *, signed: bool
) -> Kernel:
    a = np.arange(-reach, reach + 1)
    weights = size * rng.random(2 * reach + 1) * np.exp(-rng.choice([0.1, 1.0]) * np.abs(a))
    if signed:  # as stencils have them
        weights *= np.where(np.abs(a) <= reach // 2, -1.0, 0.01)
    room, spectrum = mesh.sizes[int(reach > mesh.near)], None
    if reach > 8:
        line = np.zeros(room)
        line[a] = weights
        spectrum = fft.rfft(line)
    infinite, beyond = rng.choice([0, 0.5, size]), rng.choice([0, 0, size])
    return Kernel(weights, reach, spectrum, room, float(infinite), float(beyond))


def _case(seed: int, p: float, kind: str) -> Case:
    rng = np.random.default_rng(seed)
    mesh = Mesh(STEP, -rng.uniform(0.6, 1.5), rng.uniform(0.8, 2.5))
    n, count, cells = mesh.count, int(rng.integers(2, 7)), int(rng.integers(3, 14))
    kappa = float(rng.choice([0.003, 0.03, 0.2]))
    shifts = np.cumsum(rng.uniform(0.05, 0.4, count))
    if kind == "alike":  # no loss between shifts hides what `_short` does
        shifts[1:] = shifts[0] * (1 + 1e-9 * np.arange(1, count))
    costs = shifts**p + kappa
    costs[0] = costs[0] if kind == "alike" else kappa
    limit = float(costs[-1] * rng.uniform(0.3, 2.0) + costs[0])
    last = limit + float(np.max(np.diff(costs)[costs[:-1] <= limit])) * (1 + 1e-9)
    nodes = np.append(0.0, np.cumsum(rng.choice([0.02, 0.3, 1.0], cells)))
    nodes *= last / nodes[-1]
    nodes[-1] = last
    rows = rng.random((cells + 1, n)) ** 3 * (rng.random((cells + 1, n)) < 0.6)
    if kind in ("rises", "falls"):
        rows = np.cumsum(rows * rng.choice([1.0, 0.05], (cells + 1, 1)), axis=0)
        rows = rows[::-1] if kind == "falls" else rows
    if kind in ("low", "high", "signed"):
        rows *= 1e-3
        rows[:, -int(kind == "high")] = 1.0
    if kind == "alike":  # what steps to this node lacks the whole left side
        rows[int(rng.integers(1, cells + 1))] = 0.0
    roots = np.sqrt(rows)
    most = (roots[1:] + roots[:-1]) ** 2
    bends = (
        most
        * rng.choice([0, 0.1, 1])
        * np.minimum(rng.uniform(rng.choice([-2, 0]), 1.5, most.shape), 1.0)
    )
    size = rng.choice([1e-3, 0.05])
    kernels = [
        _kernel(
            rng,
            mesh,
            int(rng.integers(1, min(mesh.reach, BEYOND - 1))),
            size * u,
            signed=kind == "signed",
        )
        for u in shifts
    ]
    if kind == "alike":
        kernels = kernels[:1] * count
    return Case(mesh, Flow(nodes, rows, bends), kernels, p, kappa, shifts, costs, limit)


def _sticks(case: Case) -> tuple[Array, list[Array]]:
    """Ψ at γ = 0 and at the points of a wider mesh, per mass; what each shift adds there."""
    mesh = case.mesh
    j = np.arange(mesh.first - BEYOND, mesh.last + BEYOND + 1)
    own = np.arange(mesh.first, mesh.last + 1)
    gamma = np.append(0.0, np.exp(STEP * j))
    sticks = np.maximum(1 - gamma[:, None] / np.exp(STEP * own), 0.0)
    added = []
    for kernel in case.kernels:
        apart = j[:, None] - own
        inside = np.abs(apart) <= kernel.reach
        matrix = np.where(inside, kernel.weights[np.where(inside, apart + kernel.reach, 0)], 0.0)
        added.append(np.vstack([np.zeros(len(own)), matrix]))
    return sticks, added


def _asked(case: Case, seed: int) -> tuple[Array, NDArray[np.int64], Array, Array]:
    """Random (E, k, λ) within the limit, among them all kinds of ends; the virtual cost."""
    rng = np.random.default_rng(seed + 1000)
    size, t = 1500, case.flow.nodes
    k = rng.integers(0, len(case.shifts) - 1, size)
    lam = rng.choice([0.0, 1.0, 0.5, -1.0], size)
    lam = np.where(lam < 0, rng.random(size), lam)
    s = case.lag(k, lam)
    c = case.costs[k] + s * (case.costs[k + 1] - case.costs[k])
    budgets = np.choose(
        rng.integers(0, 5, size),
        [
            rng.random(size) * (case.limit - c),
            rng.choice(t, size),
            rng.choice(t, size) - c,
            case.limit - c,
            rng.choice(t, size) - case.costs[k + 1],
        ],
    )
    kept = (budgets >= 0) & (budgets + c <= case.limit)
    return budgets[kept], k[kept], lam[kept], c[kept]


def _lack(case: Case, budgets: Array, k: NDArray[np.int64], lam: Array, cost: Array) -> Array:
    """max over γ of the left side minus the right one, without Ξ."""
    sticks, added = _sticks(case)
    masses, later = case.masses(budgets), case.masses(budgets + cost)
    assert np.min(masses) > -ROUNDING
    psi = masses @ sticks.T
    total = np.sum(case.masses(np.linspace(0, case.flow.nodes[-1], 3001)), axis=1).max()
    left = psi.copy()
    for i, kernel in enumerate(case.kernels):
        weight = np.where(k == i, 1 - lam, 0.0) + np.where(k + 1 == i, lam, 0.0)
        more = masses @ added[i].T + kernel.infinite * (total - psi) + kernel.beyond * total
        left += weight[:, None] * more
    result: Array = np.max(left - later @ sticks.T, axis=1)
    return result


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 6.0])
def test_nothing_that_is_missing_is_overlooked(
    kind: str, p: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Array] = []
    pay = _verify.pay_lacks

    def listen(t: Array, costs: Array, shares: Array, lack: Array, falls: Array) -> object:
        seen.append(lack)
        return pay(t, costs, shares, lack, falls)

    monkeypatch.setattr(_verify, "pay_lacks", listen)
    tight = 0.0
    for seed in range(12):
        case = _case(seed, p, kind)
        fine, extra = compute_surcharge(
            case.flow, case.kernels, case.costs, case.shares, case.mesh, case.limit
        )
        lacks = seen[-1]
        budgets, k, lam, cost = _asked(case, seed)
        short = _lack(case, budgets, k, lam, cost)
        paid = np.interp(budgets + cost, fine, extra) - np.interp(budgets, fine, extra)
        assert np.all(short <= paid + ROUNDING)
        real = np.where(k + lam > 0, ((1 - lam) * case.shifts[k] + lam * case.shifts[k + 1]), 0.0)
        real = np.maximum(real**p + case.kappa, cost)
        kept = budgets + real <= case.limit
        later = _lack(case, budgets[kept], k[kept], lam[kept], real[kept])
        risen = np.interp(budgets + real, fine, extra) - np.interp(budgets, fine, extra)
        assert np.all(later <= risen[kept] + ROUNDING)
        sticks, ladder = _sticks(case)[0], np.linspace(0, case.flow.nodes[-1], 400)
        level = case.masses(ladder) @ sticks.T + np.interp(ladder, fine, extra)[:, None]
        assert np.min(np.diff(level, axis=0)) > -ROUNDING
        if p < 1:  # there the rise of Ξ that keeps Φ from falling is needed as well
            continue
        t = case.flow.nodes
        sides: tuple[Literal["left", "right"], ...] = ("left", "right")
        for side in sides:  # a node belongs to both of its cells
            e = np.clip(np.searchsorted(t, budgets, side=side) - 1, 0, len(t) - 2)
            due = (1 - lam) * lacks[k, e] + lam * lacks[k + 1, e]
            assert np.all(short <= due + ROUNDING)
            tight = max(tight, float(np.max(short / np.maximum(due, 1e-9))))
    assert p < 1 or tight > 0.8  # the brute force comes close: it would see a fault


@pytest.mark.parametrize("p", [1.0, 1.05, 3.0])
@pytest.mark.parametrize("corner", [0.5, 0.9, None])
def test_between_two_shifts_a_falling_flow_owes_its_kinks(p: float, corner: float | None) -> None:
    """Slopes −1 − η, then −η, or a parabola: a lag of the cost would earn η, yet may be none."""
    u, lam = np.array([1.0, 3.0]), np.linspace(0, 1, 1001)
    costs = u**p + 0.1
    width = float(costs[1] - costs[0])
    s = ((u[0] + lam * (u[1] - u[0])) ** p - u[0] ** p) / width
    share = float(np.max(lam - s))
    end = float(costs[1] + width + 1.0)
    mesh, still = Mesh(STEP, -1.0, 1.0), [Kernel(np.zeros(3), 1, None, 0, 0.0, 0.0)] * 2
    for eta in (0.0, 0.5, 0.9, 1.0, 1.5):
        if corner is None:
            nodes = np.array([0.0, 1e-7, end])
        else:
            nodes = np.array([0.0, 1e-7, costs[0] + corner * width, end])
        steep = eta / (4 * share) if share > 0 else eta
        masses, bends = np.zeros((len(nodes), 21)), np.zeros((len(nodes) - 1, 21))
        height = (steep + 1.0) * end
        masses[:, 10] = height + 1.0 - steep * nodes - np.minimum(nodes, nodes[-2])
        if corner is None:
            masses[-1, 10] -= 0.9 * end
            bends[1, 10] = 0.9 * end
        case = Case(mesh, Flow(nodes, masses, bends), still, p, 0.1, u, costs, float(costs[1]))
        seen: list[Array] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_verify, "pay_lacks", lambda *a, seen=seen: seen.append(a[3]))
            compute_surcharge(case.flow, still, costs, np.array([share]), mesh, case.limit)
        tops = case.masses(costs[0] + s * width)[:, 10]
        short = masses[0, 10] - tops  # at γ = 0 and E = 0
        spare = (1 - lam) * seen[0][0, 0] + lam * seen[0][1, 0] - short
        assert np.min(spare) > -ROUNDING * height
        assert share > 0 or corner == 0.9 or np.min(spare) < 1e-6 * height


def _stick(s: float, x: Array) -> Array:
    """The hockey-stick function of a Gaussian pair at ℓ = x."""
    result: Array = special.ndtr(s / 2 - x / s) - np.exp(x) * special.ndtr(-s / 2 - x / s)
    return result


def _gaussian(u: float, s: float, x: Array) -> Array:
    return _stick(math.hypot(u, s), x)


def _laplace(u: float, s: float, x: Array) -> Array:
    """L = ±u with masses ½ and ½e^−u, 2z − u between them."""
    z, w = np.polynomial.legendre.leggauss(24)
    z, w = 0.5 * u * (z + 1), 0.5 * u * w
    result = 0.5 * _stick(s, x - u) + 0.5 * math.exp(-u) * _stick(s, x + u)
    for at, weight in zip(z, w * 0.5 * np.exp(z - u), strict=True):
        result += weight * _stick(s, x - 2 * at + u)
    return result


def _uniform(u: float, s: float, x: Array) -> Array:
    return (1 - u / 2) * _stick(s, x) + u / 2


REAL = {
    "gaussian": (N.gaussian(sigma=1), [_gaussian]),
    "laplace": (N.laplace(scale=1), [_laplace]),
    "exponential": (
        N.from_density(lambda x: -x, support=(0, math.inf)),
        [
            lambda u, s, x: _stick(s, x - u),
            lambda u, s, x: math.exp(-u) * _stick(s, x + u) - math.expm1(-u),
        ],
    ),
    "uniform": (N.uniform(scale=1), [_uniform]),
}


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("p", [0.7, 2.0, 4.0])
def test_no_coordinate_of_a_real_noise_breaks_the_inequality(name: str, p: float) -> None:
    """A_uΦ(E) + Ξ(E) ≤ Φ(E + c(u)) + Ξ(E + c(u)), A_u by formula, for every u, also below u_0."""
    law, signs = REAL[name]
    rng = np.random.default_rng(7)
    s, kappa = 0.1, 3e-3
    mesh = Mesh(s / 5, -1.6, 2.0)
    shifts = np.geomspace(0.04, 0.5, 14)
    costs = shifts**p + kappa
    costs[0] = kappa
    kernels = Kernels(law.unit, shifts, mesh, s).kernels
    limit = 2.5 * float(costs[-1])
    case = Case(
        mesh, Flow(np.zeros(1), mesh.points, mesh.points), kernels, p, kappa, shifts, costs, limit
    )
    nodes = 1.6 * limit * np.linspace(0, 1, 17) ** 1.5
    spread = 0.05 + 0.25 * nodes[:, None] / limit
    rows = np.exp(-((mesh.points - spread / 2) ** 2) / (2 * spread))
    rows /= np.sum(rows, axis=1, keepdims=True)
    rows *= 1 + 0.02 * rng.random(rows.shape)
    roots = np.sqrt(rows)
    bends = 0.2 * (roots[1:] + roots[:-1]) ** 2 * rng.uniform(-1, 1, (16, mesh.count))
    case = replace(case, flow=Flow(nodes, rows, bends))
    fine, extra = compute_surcharge(case.flow, kernels, costs, case.shares, mesh, limit)
    for _ in range(40):
        u = float(rng.choice([rng.uniform(0, 0.5), rng.uniform(0, 0.05), 0.5]))
        cost = u**p + kappa
        budgets = np.append(rng.uniform(0, limit - cost, 3), [0.0, limit - cost])
        x = rng.uniform(-4.0, 4.5, 60)[:, None] - mesh.points
        after = case.masses(budgets + cost) @ _stick(s, x).T
        paid = np.interp(budgets + cost, fine, extra) - np.interp(budgets, fine, extra)
        for sign in signs:
            before = case.masses(budgets) @ sign(u, s, x).T
            assert np.max(before - after - paid[:, None]) <= ROUNDING


def test_what_is_not_a_number_is_refused() -> None:
    """NaN in a kernel left a slack of 0: comparisons with it are false."""
    case = _case(0, 2.0, "wild")
    rest = (case.costs, case.shares, case.mesh, case.limit)
    kernel = replace(case.kernels[0], weights=np.full(3, np.nan), reach=1, spectrum=None)
    with pytest.raises(ValueError, match="finite"):
        compute_surcharge(case.flow, [kernel, *case.kernels[1:]], *rest)
    bends = case.flow.bends.copy()
    bends[1, 2] = np.nan
    with pytest.raises(ValueError, match="finite"):
        compute_surcharge(replace(case.flow, bends=bends), case.kernels, *rest)
    with pytest.raises(ValueError, match="reach"):
        compute_surcharge(replace(case.flow, nodes=0.9 * case.flow.nodes), case.kernels, *rest)


def test_what_a_kernel_takes_away_at_the_first_point_pays_for_nothing_left_of_it() -> None:
    """Φ falls by x at the first point, where the kernel takes x away; farther left it adds x."""
    mesh, reach, x = Mesh(STEP, -1.0, 1.0), 14, 1e-3
    far, near = np.zeros(mesh.count), np.zeros(mesh.count)
    far[10], near[0] = 1.0, 1.0
    lower = 1 - math.exp(-STEP * 10)  # what the first point loses when all mass goes there
    masses = np.array([(1 - x * e / lower) * far + x * e / lower * near for e in range(5)])
    weights = np.zeros(2 * reach + 1)
    weights[reach - 10 : reach + 1] = -x
    weights[:3] = x
    kernel = Kernel(weights, reach, None, 0, 0.0, 0.0)
    shifts = np.array([1.0, 1.0 + 1e-9])
    flow = Flow(np.arange(5.0), masses, np.zeros((4, mesh.count)))
    case = Case(mesh, flow, [kernel, kernel], 1.0, 1e-9, shifts, shifts, 3.0)
    fine, extra = compute_surcharge(flow, case.kernels, shifts, np.zeros(1), mesh, case.limit)
    budgets = np.linspace(0, 1.9, 20)
    zero, one = np.zeros(20, np.int64), np.ones(20)
    short = _lack(case, budgets, zero, 0 * one, one)
    paid = np.interp(budgets + 1, fine, extra) - np.interp(budgets, fine, extra)
    assert np.max(short) > 1.1 * x
    assert np.all(short <= paid + ROUNDING)
