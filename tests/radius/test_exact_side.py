"""Radii and readings are below the exact ones: closed forms, brute force, planted trade-offs."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy import optimize, special

from unicr import noise
from unicr.errors import RadiusError
from unicr.law import Table
from unicr.noise import IID, Anisotropic
from unicr.norms import Norm, l1, linf
from unicr.radius import Evidence, Question, RadiusCurve, SecondLaw, certified_radius
from unicr.radius._boundary import find_first_root
from unicr.radius._cache import load_or_make, pack_steps, unpack_steps
from unicr.radius._readings import LAST_TAIL, Readings
from unicr.radius._result import reconcile
from unicr.radius._steps import prove_steps
from unicr.radius.bellman._chord import bound_gaps
from unicr.radius.bellman._kernel import Kernel
from unicr.radius.bellman._mesh import Mesh
from unicr.radius.bellman._sheet import ProvedFlow, Sheet, _bound_lags
from unicr.radius.bellman._stencil import (
    GRID_END,
    GRID_STEP,
    compute_terms,
    dominates,
    find_stencils,
)
from unicr.radius.bellman._verify import Flow, compute_surcharge, pay_lacks
from unicr.radius.theorems import few as box_by_box
from unicr.radius.theorems import two_laws
from unicr.radius.theorems.cubes import _make_least_overlap
from unicr.tradeoff import ClosedForm, RatioLaw, TradeOff, compute_tradeoff
from unicr.tradeoff.internal import TwoParts, compute_margin
from unicr.values import Array

RNG = np.random.default_rng(11)


def staircase(seed: int) -> tuple[Array, Array]:
    """A few steps, some close together, some far apart, in any order."""
    rng = np.random.default_rng(seed)
    alpha = 0.5 * np.exp(-np.sort(rng.uniform(0.001, 24, rng.integers(2, 12))))
    alpha = np.append(alpha, alpha[0] * (1 - 1e-7))
    return alpha, np.cumsum(rng.exponential(size=alpha.size)) if seed % 2 else rng.random(
        alpha.size
    )


@pytest.mark.parametrize("seed", range(8))
def test_no_reading_is_above_the_last_step_before_it(seed: int) -> None:
    alpha, radius = staircase(seed)
    found = Readings(alpha, radius)
    rng = np.random.default_rng(seed + 100)
    p = 1 - 0.5 * np.exp(-rng.uniform(0, 25, 60_000))
    p = np.unique(np.concatenate([p, 1 - alpha, 1 - alpha * (1 + 1e-12), 1 - alpha * (1 - 1e-12)]))
    p = p[(p >= 0.5) & (p < 1)]
    read = found.read(p)
    reached = alpha[None, :] >= (1 - p)[:, None]  # a step holds for every larger p
    proved = np.max(np.where(reached, radius[None, :], 0.0), axis=1)
    # a step at x is met by p to a rounding of 1 − p
    just = np.max(np.where(alpha[None, :] * (1 + 1e-9) >= (1 - p)[:, None], radius, 0.0), axis=1)
    near = 1 - p > 1e-11
    assert np.all(read[near] <= just[near])
    assert np.mean(read <= proved) > 0.999
    assert np.all(np.diff(read) >= 0)
    assert found.read(1.0) == pytest.approx(np.max(radius), rel=1e-12)
    assert np.all(found.read(np.array([0.0, 0.3, 0.5])) == 0)
    wide = p > 1 - 0.5 * math.exp(-23)
    assert np.mean(read[wide]) >= 0.5 * np.mean(proved[wide])


def test_beyond_the_end_a_curve_stays_and_at_one_it_is_what_it_is_told() -> None:
    found = Readings(np.array([0.1, LAST_TAIL]), np.array([1.0, 7.0]), math.inf)
    assert float(found.read(1 - LAST_TAIL / 8)) <= 7.0
    assert float(found.read(1.0)) == math.inf
    with pytest.raises(RadiusError, match="probability"):
        found.read([0.5, 1.2])


@pytest.mark.parametrize("seed", range(4))
def test_a_shipped_curve_gives_no_more_than_was_packed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    alpha = np.sort(0.5 * np.exp(-rng.uniform(0.01, 24, 900)))[::-1]
    radius = -special.ndtri(alpha) * rng.uniform(0.9, 1.0, alpha.size)
    radius = np.maximum.accumulate(radius)
    back_alpha, back_radius = unpack_steps(pack_steps(alpha, radius))
    for a, r in zip(back_alpha, back_radius, strict=True):
        assert r <= np.max(radius[alpha >= a], initial=0.0)
    assert back_radius.size > 1000


def gaussian(r: float) -> TradeOff:
    return ClosedForm(noise.gaussian(sigma=1), r)


def test_walks_from_radius_to_radius_prove_no_more_than_the_truth() -> None:
    """T of Gaussian noise: r is proved at α where r ≤ −Φ⁻¹(α), and nowhere else."""
    first, last = -float(special.ndtri(1 - 0.501)), -float(special.ndtri(1e-11))
    alpha, radius = prove_steps(gaussian, first, last)
    used = (alpha > 0) & (radius > 0)
    truth = -special.ndtri(alpha[used])
    assert np.all(radius[used] <= truth * (1 + 1e-9) + 1e-12)
    assert np.mean(radius[used] / np.maximum(truth, 1e-9)) > 0.999


def test_a_curve_between_its_nodes_is_below_single_radii(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNICR_CACHE_DIR", str(tmp_path))
    law = noise.laplace(scale=0.731)
    curve = RadiusCurve(law, linf, 5)
    for p in 1 - 0.5 * np.exp(-RNG.uniform(0.1, 12, 12)):
        exact = optimize.brentq(
            lambda r, p=p: compute_margin(compute_tradeoff(law, [(r, 5)]), p, 1 - p),
            1e-9,
            60,
            xtol=1e-12,
        )
        assert 0.99 * exact <= float(curve(p)) <= exact * (1 + 1e-9)


def test_the_first_root_is_the_end_that_holds() -> None:
    for root, power in product((0.3, 1.0, 47.0), (1.0, 3.0)):

        def value(r: float, root: float = root, power: float = power) -> float:
            return 1.0 - float(r / root) ** power

        for monotone in (True, False):
            found = find_first_root(value, 1.0, 0.7, monotone=monotone)
            assert root * (1 - 3e-5) <= found <= root

    for root, depth in product((0.3, 0.9, 2.0), (1e-3, 1e-4, 1e-9)):
        # hardly below zero, and no deeper: a chord from there lands far beyond the root
        def shallow(r: float, root: float = root, depth: float = depth) -> float:
            return max(1.0 - r / root, 0.0) if r <= root else -depth

        for monotone in (True, False):
            found = find_first_root(shallow, 1.0, 0.7, monotone=monotone)
            assert root * (1 - 3e-5) <= found <= root


def test_one_dimension_is_the_worse_of_two_signs() -> None:
    """A law that is not symmetric: F is known, and so is where each sign falls to one half."""
    law = noise.parse("laplace(scale=1).truncated(-0.5, 3)")
    assert isinstance(law, IID)
    for p_a in (0.6, 0.9, 0.99):
        up = float(law.ppf(p_a)) - float(law.ppf(0.5))  # the half-line {z < F⁻¹(p_A)} moves up
        down = float(law.ppf(0.5)) - float(law.isf(p_a))
        found = certified_radius(law, 2, 1, p_a=p_a)
        assert min(up, down) * (1 - 1e-4) <= found.proved <= min(up, down)


def many_scales(count: int) -> Anisotropic:
    scales = np.geomspace(0.5, 2.0, count) * (1 + 0.001 * np.sin(np.arange(count)))
    return Anisotropic(noise.laplace(scale=1), scales)


def test_scales_of_their_own_are_rounded_to_smaller_ones() -> None:
    """ℓ∞: every coordinate moves by r, each at its own scale; 70 of them, composed one by one."""
    law = many_scales(70)
    found = certified_radius(law, linf, 70, p_a=0.9).proved

    def left(r: float) -> float:
        return compute_margin(
            compute_tradeoff(law.base, [(r / float(s), 1) for s in law.entries]), 0.9, 0.1
        )

    assert left(found) >= 0
    assert left(1.05 * found) < 0
    # 48 scales stand for 70: what is rounded down costs something, so less would be unsound
    assert left(1.001 * found) > 0
    one = float(law.entries.min()) * -math.log(2 * 0.1)
    assert certified_radius(law, l1, 70, p_a=0.9).proved == pytest.approx(one, rel=1e-12)


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0, 8.0, math.inf])
def test_gaussian_scales_of_their_own_by_the_worst_direction(p: float) -> None:
    """‖δ/s‖₂ over the ℓp ball, by trying: nothing tried is beyond, and something comes close."""
    scales = np.array([0.5, 1.0, 1.3, 2.0])
    law, p_a = Anisotropic(noise.gaussian(sigma=1), scales), 0.9
    found = certified_radius(law, Norm(p), 4, p_a=p_a).proved
    gap = float(special.ndtri(p_a))

    def reach(x: Array) -> float:
        x = np.abs(x)
        size = np.max(x) if math.isinf(p) else np.sum(x**p) ** (1 / p)
        return float(np.linalg.norm(x / size / scales))

    tried = [reach(x) for x in np.abs(RNG.normal(size=(4000, 4))) ** 3]
    tried += [reach(x) for x in np.eye(4)] + [reach(np.ones(4))]
    if 2 < p < math.inf:
        tried.append(reach(scales ** (-2 / (p - 2))))
    assert found <= gap / max(tried) * (1 + 1e-12)
    assert found >= gap / max(tried) * (1 - 1e-9)


@pytest.mark.parametrize("p", [0.5, 1.0, 1.05, 1.2, 1.7, 3.0, math.inf])
def test_uniform_noise_by_the_smallest_shift_of_a_box(p: float) -> None:
    """The nearest δ with Π(1 − |δ_i|/2λ) = v*: nothing tried is nearer."""
    dim, p_a, p_b = 5, 0.9, 0.04
    found = certified_radius(noise.uniform(scale=0.5), Norm(p), dim, p_a=p_a, p_b=p_b).proved
    log_v = math.log(1 - (p_a - p_b) / 2)
    share = np.concatenate([RNG.dirichlet(np.full(dim, 0.3), 6000), np.eye(dim), [[1 / dim] * dim]])
    big = np.linspace(1 / dim, 1, 4000)[:, None]
    share = np.concatenate([share, np.hstack([big, np.repeat((1 - big) / (dim - 1), dim - 1, 1)])])
    delta = -np.expm1(share * log_v)
    sizes = delta.max(axis=1) if math.isinf(p) else np.sum(delta**p, axis=1) ** (1 / p)
    assert found <= np.min(sizes) * (1 + 1e-9)
    assert found >= np.min(sizes) * (1 - 1e-3)


@pytest.mark.parametrize(
    ("p", "dim", "p_a"), [(1.0690677966101694, 100, 0.9695640222190571), (1.1, 20, 0.95)]
)
def test_uniform_noise_where_one_big_coordinate_ties_with_equal_ones(
    p: float, dim: int, p_a: float
) -> None:
    """One big coordinate and the rest equal, 200,001 of them on the boundary: none is nearer."""
    found = certified_radius(noise.uniform(scale=0.5), Norm(p), dim, p_a=p_a).proved
    total = -math.log(1.5 - p_a)
    big = total * np.linspace(1 / dim, 1, 200_001)
    sizes = (-np.expm1(-big)) ** p + (dim - 1) * (-np.expm1(-(total - big) / (dim - 1))) ** p
    nearest = float(np.min(sizes)) ** (1 / p)
    assert nearest * (1 - 1e-7) < found < nearest


class Planted(TradeOff):
    """T⁻¹(1/2) is a quarter where a perturbation is harmless, and nothing where it is not."""

    bound = "lower"

    def __init__(self, harmless: bool) -> None:
        self.harmless = harmless

    def beta(self, alpha: ArrayLike) -> Array:
        return np.asarray(0.5 if self.harmless else 0.0)

    def alpha(self, beta: ArrayLike) -> Array:
        return np.asarray(0.25 if self.harmless else 1e-9)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
def test_boxes_find_a_corner_between_the_directions_that_were_tried(
    p: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Harm where both coordinates are large: monotone, and no tried direction meets its corner."""
    a, b = 0.8, 0.53

    def moved(law: Any, shifts: list[tuple[float, int]], **_: Any) -> Planted:
        sizes = [*sorted((abs(size) for size, _ in shifts), reverse=True), 0.0, 0.0]
        harm = (sizes[0] >= a and sizes[1] >= b) or sizes[0] >= 30
        return Planted(not harm)

    monkeypatch.setattr(box_by_box, "compute_tradeoff", moved)
    bound = box_by_box.match(Question(noise.laplace(scale=1), Norm(p), 2))
    assert bound is not None
    found = bound.radius(Evidence(0.8))
    truth = (a**p + b**p) ** (1 / p)
    assert 0.9 * truth <= found <= truth


@pytest.mark.parametrize("p", [1.5, 2.0, 5.0])
def test_the_least_overlap_of_cubes_is_below_that_of_any_shift(p: float) -> None:
    dim, r = 7, 0.9
    b = np.linspace(0.4, 6.0, 300)
    gap = 0.1 * np.abs(np.sin(9 * b))
    least = _make_least_overlap(p, dim, r)(b, gap)
    tried = np.abs(RNG.normal(size=(400, dim))) ** RNG.uniform(0.2, 4, (400, 1))
    tried = np.concatenate([tried, np.eye(dim)[:1], np.ones((1, dim))])
    tried *= r / np.sum(tried**p, axis=1, keepdims=True) ** (1 / p)
    with np.errstate(divide="ignore"):
        sizes = np.maximum(tried[:, :, None] - gap, 0.0) / (2 * b)
        logs = np.sum(np.log1p(-np.minimum(sizes, 1.0)), axis=1)
    assert np.all(least <= np.min(logs, axis=0) + 1e-12)
    assert np.mean(np.exp(least)) > 0.2 * np.mean(np.exp(np.min(logs, axis=0)))


def test_the_least_overlap_of_cubes_is_rounded_down_between_the_sizes_that_are_tried() -> None:
    """Small shifts: the worst moves every coordinate alike, by a size that is none of those."""
    close = []
    for p, dim, b in product((1.5, 2.0, 3.0), (3, 10, 47, 200), (5.0, 30.0)):
        worst = dim * math.log1p(-(dim ** (-1 / p)) / (2 * b))
        least = float(_make_least_overlap(p, dim, 1.0)(np.array([b]), np.zeros(1))[0])
        assert least <= worst
        close.append(least / worst - 1)
    assert max(close) < 0.02


def test_a_proof_above_what_was_found_is_an_error() -> None:
    assert reconcile(1.0, "x", 1.0 - 1e-5, "search", 1e-4) == 1.0
    assert reconcile(0.5, "x", 1.0, "search", 1e-4) == 1.0
    with pytest.raises(RadiusError, match="one of the two is wrong"):
        reconcile(1.0, "x", 0.99, "search", 1e-3)


def test_a_proved_radius_is_rounded_down_and_not_up() -> None:
    """Closed forms to forty digits: Gaussian and Laplace noise at any scale, near ½ and near 1."""
    with mpmath.workdps(40):
        for scale in (0.1, 0.3, 7.7):
            for p_a in (0.5 + 1e-9, 0.5000001, 0.7, 0.99, 1 - 1e-9):
                tail = 1 - mpmath.mpf(p_a)
                normal = -mpmath.sqrt(2) * mpmath.erfinv(2 * tail - 1) * mpmath.mpf(scale)
                double = -mpmath.log(2 * tail) * mpmath.mpf(scale)
                found = certified_radius(noise.gaussian(sigma=scale), 2, 3, p_a=p_a).proved
                assert (1 - 1e-5) * normal <= found <= normal
                found = certified_radius(noise.laplace(scale=scale), 1, 3, p_a=p_a).proved
                assert (1 - 1e-5) * double <= found <= double


def test_probabilities_are_used_as_given() -> None:
    law = noise.gaussian(sigma=1)
    assert certified_radius(law, 2, 3, p_a=0.5).proved == 0.0
    assert certified_radius(law, 2, 3, p_a=0.4, p_b=0.4).guarantee == "abstain"
    free = certified_radius(law, 2, 3, p_a=0.6, p_b=0.1).proved
    assert free == pytest.approx(0.5 * (special.ndtri(0.6) - special.ndtri(0.1)), rel=1e-12)
    held = certified_radius(law, 2, 3, p_a=0.6, p_b=0.9)  # p_B is at most 1 − p_A
    assert held.proved == pytest.approx(special.ndtri(0.6), rel=1e-12)


def test_two_laws_promise_no_half_space_more_than_it_has() -> None:
    """f = {z₁ < t}: p_A = F(t), and q_A from its share within the ball; the truth is t."""
    dim = 6
    law = noise.l1_exp(k=1, j=0, scale=1, dim=dim)
    rng = np.random.default_rng(3)
    length = special.gammaincinv(dim, 0.5 * rng.random(400_000))  # ‖z‖₁ within the ball of half
    weight = rng.exponential(size=(400_000, dim))
    first = length * weight[:, 0] / weight.sum(axis=1) * rng.choice([-1, 1], 400_000)
    for t in (0.2, 0.6, 1.2, 2.0):
        p_a = float(noise.laplace(scale=1).cdf(t))
        q_a = float(np.mean(first < t)) + 0.004  # five standard deviations of 400,000 samples
        second = SecondLaw(min(q_a, 1.0), 0.5)
        found = certified_radius(law, 1, dim, p_a=p_a, second=second).proved
        assert certified_radius(law, 1, dim, p_a=p_a).proved <= t
        assert t * (1 - 1e-3) <= found <= t + 0.02
        # the half-space has at least any smaller q_A as well
        for less in (0.0, 0.3, 0.6, 0.9):
            weak = SecondLaw(less * float(np.mean(first < t)), 0.5)
            assert certified_radius(law, 1, dim, p_a=p_a, second=weak).proved <= t
    strong = SecondLaw(0.999, 0.5)
    one = certified_radius(law, 1, dim, p_a=0.8, second=strong).proved
    assert one > 1.02 * certified_radius(law, 1, dim, p_a=0.8).proved
    wide = certified_radius(law, linf, dim, p_a=0.8, second=strong).proved
    assert one / dim * (1 - 1e-9) <= wide <= one


def test_beyond_a_length_two_laws_pay_the_total_variation_of_the_rest_of_the_way() -> None:
    """Laplace noise: a shift by s along one coordinate has total variation 1 − e^(−s/2)."""
    dim, share = 6, 0.5
    law = noise.l1_exp(k=1, j=0, scale=1, dim=dim)
    bound = two_laws.match(Question(law, l1, dim))
    assert bound is not None
    lengths, tables = two_laws.LENGTHS_OF_ORDER[1.0], two_laws.load_tables(law, share)
    size = law.sigma
    seen = set()
    for p_a, q_a in ((0.8, 0.99), (0.8, 0.995), (0.9, 0.97), (0.9, 0.999), (0.7, 0.95)):
        r = bound.radius(Evidence(p_a, second=SecondLaw(q_a, share))) / size
        i = int(np.searchsorted(lengths, r * (1 + 1e-12), side="right")) - 1
        parts = TwoParts(*(tables[key][i] for key in ("t", "inside", "outside")))
        left = parts.least(p_a, q_a, share, 0) - 0.5
        assert left >= 0
        assert -math.expm1(-(r - lengths[i]) * size / 2) <= left
        seen.add(r > lengths[i] * (1 + 1e-9))
    assert True in seen


def sticks(u: Array, t: Array) -> Array:
    """H_γ(T_u) of Gaussian noise, γ = e^t."""
    u = np.maximum(u, 1e-12)
    return np.asarray(special.ndtr(-t / u + u / 2) - np.exp(t) * special.ndtr(-t / u - u / 2))


@pytest.mark.parametrize("close", [False, True])
def test_a_chord_of_shifts_is_charged_all_that_lies_above_it(close: bool) -> None:
    law = noise.gaussian(sigma=1)
    edges = np.array([0.3, 0.5, 1.1, 2.0])
    excess, reach = bound_gaps(law, edges, close=close)
    t = np.linspace(-4, 4, 801)
    for i in range(3):
        a, b = edges[i], edges[i + 1]
        worst = np.zeros_like(t)
        for share in np.linspace(0.05, 0.95, 19):
            chord = (1 - share) * sticks(np.array(a), t) + share * sticks(np.array(b), t)
            worst = np.maximum(worst, sticks(np.array((1 - share) * a + share * b), t) - chord)
        assert np.max(worst) <= excess[i]
        assert np.max(worst) >= 0.1 * excess[i]
        assert np.all(worst[np.abs(t) > reach[i]] <= 1e-12)
        assert np.max(np.abs(t[worst > 1e-9])) > 0.3 * reach[i]


def test_a_flow_without_convexity_is_refused() -> None:
    mesh = Mesh(0.1, -1.0, 1.0)
    masses = np.zeros((2, mesh.count))
    masses[:, 10], still = 1.0, Kernel(np.zeros(3), 1, None, 0, 0.0, 0.0)
    costs, shares, nodes = np.array([0.1, 0.2]), np.zeros(1), np.array([0.0, 2.0])

    def check() -> object:
        flow = Flow(nodes, masses, np.zeros((1, mesh.count)))
        return compute_surcharge(flow, [still, still], costs, shares, mesh, 1.0)

    check()
    masses[1, 4] = -1e-9
    with pytest.raises(ValueError, match="at least 0"):
        check()


def test_a_kernel_that_leaves_mass_out_owes_it_at_every_point() -> None:
    """A flow that stands still, mass 2: each shift may add .01 of it, so Ξ rises by .02 a step."""
    mesh = Mesh(0.1, -1.0, 1.0)
    masses = np.zeros((2, mesh.count))
    masses[:, 10] = 2.0
    costs, nodes = np.array([0.1, 0.2]), np.array([0.0, 2.0])
    flow = Flow(nodes, masses, np.zeros((1, mesh.count)))
    kernels = [Kernel(np.zeros(3), 1, None, 0, 0.0, 0.01)] * 2
    fine, extra = compute_surcharge(flow, kernels, costs, np.zeros(1), mesh, 1.0)
    budgets = np.linspace(0.0, 0.8, 81)
    for cost in costs:
        rise = np.interp(budgets + cost, fine, extra) - np.interp(budgets, fine, extra)
        assert np.all(rise >= 0.02 * (1 - 1e-12))
    assert extra[-1] <= 0.02 * 2.0 / 0.1 * 1.01


def test_a_step_out_of_a_steep_cell_is_paid_from_its_end() -> None:
    """Ξ rises by 2 in the first cell and lacks 5 there, and both are 0 in the cells beyond."""
    nodes, costs = np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, 1.2])
    lack = np.array([[5.0, 0.0, 0.0], [5.0, 0.0, 0.0]])
    fine, extra = pay_lacks(nodes, costs, np.zeros(1), lack, np.array([2.0, 0.0, 0.0]))
    start = np.linspace(0.0, 1.0 - 1e-9, 200)
    for cost in costs:
        rise = np.interp(start + cost, fine, extra) - np.interp(start, fine, extra)
        assert np.all(rise >= 5.0 * (1 - 1e-12))
    assert extra[-1] < 20.0


def test_beyond_what_was_verified_a_part_says_nothing() -> None:
    part = ProvedFlow(
        1.0, np.array([0.0, 2.0]), np.array([[0.1], [0.3]]), np.array([[0.0]]),
        (np.array([0.0, 2.0]), np.array([0.0, 0.02])), 1.0, 1,
    )  # fmt: skip
    found = part.read(np.array([0.0, 0.5, 1.0, 1.0001, 1.9]), slice(None))[:, 0]
    assert found.tolist() == pytest.approx([0.1, 0.155, 0.21, math.inf, math.inf])


def test_the_budget_of_the_rest_is_that_of_the_smallest_first_coordinate() -> None:
    """Every piece of u₁, at its left end: r^p − u₁^p is largest there."""
    sheet = Sheet.__new__(Sheet)
    sheet.p, sheet.dim, sheet.kappa, sheet.largest = 2.0, 5, 0.01, [0.0, 0.3, 0.9]
    budgets, (low, high) = sheet._cut_cell(1, 1.0)
    for budget, a, b in zip(budgets, low, high, strict=True):
        assert b > a
        first = 0.3 + a * 0.6
        assert budget >= 1 - first**2 + 4 * 0.01 - 1e-12
        assert budget <= (1 - first**2) * (1 + 1e-9) + 4 * 0.01 + 1e-12
    assert (low[0], high[-1]) == (0.0, 1.0)
    assert sheet._cut_cell(0, 1.0)[0].tolist() == [1.0 + 5 * 0.01]


def test_a_stencil_is_checked_between_its_points() -> None:
    """Lowered until it just holds at the points of the grid: between them it does not."""
    step, smooth, place = 0.012, 0.03, 0.5
    c = find_stencils(step, smooth, 8)[4]
    x = np.linspace(-GRID_END, GRID_END, 1 + round(2 * GRID_END / GRID_STEP))
    value, _ = compute_terms(x, place, step, smooth)
    assert dominates(c, place, step, smooth)
    least = float(np.min(c @ value / (1.0 + 1e-13 * (np.abs(c) @ value + 1.0))))
    assert least > 1
    for shrunk, holds in ((1.0, True), ((1 + 1e-12) / least, False)):
        assert dominates(c * shrunk, place, step, smooth) is holds


def test_kept_arrays_are_read_again_only_for_their_own_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNICR_CACHE_DIR", str(tmp_path))
    made: list[int] = []

    def make() -> dict[str, Array]:
        made.append(1)
        return {"radius": np.array([float(len(made))])}

    assert load_or_make("x", "a", make)["radius"].tolist() == [1.0]
    assert load_or_make("x", "a", make)["radius"].tolist() == [1.0]
    (path,) = tmp_path.rglob("*.npz")
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **arrays | {"radius": np.array([9.0])})
    assert load_or_make("x", "a", make)["radius"].tolist() == [2.0]


def constant_flow(value: float) -> Any:
    return SimpleNamespace(read=lambda budgets, columns: np.full((len(budgets), 3), value))


@pytest.mark.parametrize(("unimodal", "covered"), [(False, 0.3 + 0.05), (True, 0.3)])
def test_a_cell_of_first_coordinates_is_covered_by_its_chord_or_its_larger_end(
    unimodal: bool, covered: float
) -> None:
    """Flows of .1 and .3, and .05 above their chord: .5 less the most of it is what is allowed."""
    sheet = SimpleNamespace(
        flows=[None, constant_flow(0.1), constant_flow(0.3)],
        gaps=[1.0, 0.05],
        mesh=SimpleNamespace(gamma=np.ones(3)),
        unit=SimpleNamespace(facts=SimpleNamespace(unimodal=unimodal)),
        _cut_cell=lambda i, r: (np.ones(2), (np.array([0.0, 0.5]), np.array([0.5, 1.0]))),
    )
    found = Sheet._bound_cell(sheet, 1, 1.0, None)  # type: ignore[arg-type]
    assert found == pytest.approx(0.5 - covered, abs=1e-12)


def test_steps_of_a_curve_lie_below_every_cell_at_their_radius() -> None:
    """Two cells, the second one binding from the middle on: between the radii that are asked for
    all cells, none allows more than it does at the next one.
    """
    lines = ((0.3, 0.1), (0.42, 0.35), (0.5, 0.49))
    sheet = SimpleNamespace(
        r=1.0, largest=[0.0, 0.1, 0.2, 1.0], gaps=np.zeros(3), split=lambda i: False,
        _bound_cell=lambda i, r, levels: lines[i][0] - lines[i][1] * r,
    )  # fmt: skip
    alpha, radius = Sheet.prove_steps(sheet, 0.3)  # type: ignore[arg-type]
    assert (radius[0], radius[-1]) == pytest.approx((0.3, 1.0))
    assert len(radius) > 100
    for a, r in zip(alpha, radius, strict=True):
        assert a <= min(top - fall * r for top, fall in lines) + 1e-15
    assert alpha[-1] == 0.5 - 0.49


def test_how_far_a_cost_lags_behind_has_a_closed_form_for_squares() -> None:
    """λ − s(λ) = λ(1 − λ)d/(a + b) between a and b = a + d: d/(4(a + b)) in the middle."""
    u = np.array([0.1, 0.11, 0.13, 0.2])
    exact = np.diff(u) / (4 * (u[1:] + u[:-1]))
    lags = _bound_lags(u, u**2 + 0.01, 2.0)
    assert np.all(exact <= lags)
    assert np.all(lags <= 1.0011 * exact)
    assert np.all(_bound_lags(u, u**0.5, 0.5) == 0.0)


def test_a_flow_begins_above_both_signs_of_the_first_coordinate() -> None:
    """H of either law, atom by atom: the first is above in the middle, the second has an infinite
    part and is above on the right.
    """
    laws = [
        RatioLaw(np.array([-0.6, 0.4]), np.array([0.3, 0.7]), 0.0),
        RatioLaw(np.array([-0.2, 0.1, 1.1]), np.array([0.5, 0.3, 0.1]), 0.1),
    ]
    mesh = Mesh(0.02, -2.0, 2.0)
    sheet = SimpleNamespace(mesh=mesh, _list_first_laws=lambda i: laws)
    start, never = Sheet._make_start(sheet, 1, 0.05)  # type: ignore[arg-type]
    found = mesh.sum_values(start) + never
    for law in laws:
        above = np.maximum(law.mass - np.outer(mesh.gamma, law.mass * np.exp(-law.loss)), 0.0)
        exact = law.infinite + above.sum(axis=1)
        assert np.all(exact <= found)
    assert np.max(found) <= 1.2


def test_tables_of_two_laws_are_kept_for_one_noise_and_one_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept: dict[str, dict[str, Array]] = {}

    def keep(kind: str, key: str, make: object) -> dict[str, Array]:
        return kept.setdefault(key, {})

    monkeypatch.setattr(two_laws, "load_or_make", keep)
    for text in ("spherical_gg(k=2, scale=1, dim=5)", "spherical_gg(k=2, scale=1, dim=6)"):
        for share in (0.25, 0.5):
            two_laws.load_tables.__wrapped__(noise.parse(text), share)
    assert len(kept) == 4


@pytest.mark.parametrize("above", [1e-14, 1e-12, 1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("shape", ["cosh", "power", "quartic with ends"])
def test_a_table_has_no_larger_radius_just_above_one_half_than_its_density_allows(
    shape: str, above: float
) -> None:
    """R = F⁻¹(p_A): the mass between 0 and R is p_A − 1/2, and near 0 the density is p(0)."""
    logpdf, ends = {
        "cosh": (lambda x: -np.cosh(x), math.inf),
        "power": (lambda x: -(np.abs(x) ** 1.3), math.inf),
        "quartic with ends": (lambda x: np.where(np.abs(x) <= 1, -(x**4), -np.inf), 1.0),
    }[shape]
    law = noise.from_density(logpdf, support=(-ends, ends), name=shape)
    p_a = 0.5 + above
    radius = certified_radius(law, 1, 5, p_a=p_a).proved
    unit = law.unit_law
    assert isinstance(unit, Table)
    pieces = unit.pieces
    at_zero = int(np.flatnonzero(pieces.knots == 0)[0])
    place, lower = mpmath.mpf(radius), mpmath.mpf(0)
    for i in range(at_zero, len(pieces.start)):  # ∫ p over 0 … R, with 40 digits
        a, b, first, last = (
            mpmath.mpf(float(v))
            for v in (pieces.knots[i], pieces.knots[i + 1], pieces.start[i], pieces.end[i])
        )
        if a >= place:
            break
        slope, width = (last - first) / (b - a), min(b, place) - a
        lower += mpmath.exp(first) * (mpmath.expm1(slope * width) / slope if slope else width)
    half = mpmath.fsum(
        mpmath.exp(mpmath.mpf(float(first)))
        * mpmath.mpf(float(w))
        * (mpmath.expm1(mpmath.mpf(float(rise))) / mpmath.mpf(float(rise)) if rise else 1)
        for first, w, rise in zip(
            pieces.start[at_zero:], pieces.width[at_zero:], pieces.rise[at_zero:], strict=True
        )
    )
    if math.isfinite(pieces.rates[1]):
        half -= mpmath.exp(mpmath.mpf(float(pieces.end[-1]))) / mpmath.mpf(pieces.rates[1])
    assert lower / half / 2 <= mpmath.mpf(p_a) - mpmath.mpf("0.5")


@pytest.mark.parametrize("above", [3e-11, 1e-10, 1e-9, 1e-8])
def test_places_far_from_zero_are_rounded_and_radii_below_the_truth(above: float) -> None:
    """Gumbel noise around 10^7, where doubles are 2e-9 apart; its density is ln 2/2 at the median.

    Both signs have the radius (p_A − 1/2)/p(median), but for a share of the size of p_A − 1/2.
    """
    law = noise.from_density(lambda x: -(x - 1e7) - np.exp(1e7 - x), points=[1e7], name="far")
    true = above / (0.5 * math.log(2))
    assert certified_radius(law, 2, 1, p_a=0.5 + above).proved <= true * (1 + 1e-5)
