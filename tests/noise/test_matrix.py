"""Noise stretched by a matrix: exact samples, verified bounds of the matrix, Mahalanobis' ball."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
import torch
from mpmath import mp

from unicr import noise
from unicr.errors import NoiseError
from unicr.noise import Lattice
from unicr.noise._frame import Frame, Scales
from unicr.noise.internal import LatticeNoise, Matrix
from unicr.radius import Grade, RadiusCurve, certified_radius
from unicr.values import Array

COV = [[2.0, 0.5], [0.5, 1.0]]
NORMS = (1.0, 1.4, 2.0, 3.0, math.inf)


def matrices() -> list[Array]:
    """Well and badly conditioned ones, of 2 to 12 rows."""
    rng = np.random.default_rng(5)
    several = [np.array(COV), np.diag([1e-3, 1.0, 1e3])]
    several += [rng.normal(size=(d, d)) for d in (2, 5, 12)]
    q, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    return [*several, q @ np.diag(np.geomspace(1e-4, 1, 6)) @ q.T]


def exact_inverse(matrix: Array) -> Array:
    """B⁻¹ of the very doubles, by 60 digits, rounded once."""
    with mp.workdps(60):
        inverse = mp.matrix(matrix.tolist()) ** -1
        return np.array(inverse.tolist(), dtype=object)


def exact_norm(values: Array, p: float) -> float:
    with mp.workdps(60):
        sizes = [abs(mp.mpf(v)) for v in values]
        if math.isinf(p):
            return float(max(sizes))
        return float(mp.fsum(s ** mp.mpf(p) for s in sizes) ** (1 / mp.mpf(p)))


def check_volume(frame: Frame, log_det: mp.mpf, loss: float) -> None:
    """log of |det B|·reach^d, rounded down."""
    for reach in (1e-3, 0.7, 40.0):
        exact = log_det + frame.dim * mp.log(mp.mpf(reach))
        assert exact - loss - 1e-9 * (1 + abs(exact)) <= frame.log_volume(reach) <= exact


def test_bounds_of_scales_are_on_the_safe_side_of_sixty_digits() -> None:
    rng = np.random.default_rng(4)
    for dim in (1, 2, 7, 40):
        frame = Scales(rng.uniform(0.05, 3.0, dim))
        check_volume(frame, mp.fsum(mp.log(mp.mpf(float(s))) for s in frame.scales), 0.0)
        for p in (0.5, *NORMS):
            assert exact_norm(frame.scales, p) <= frame.spread(p) <= frame.spread(0.5)
            worst = np.eye(dim)[np.argmin(frame.scales)]
            for delta in (worst, *rng.normal(size=(5, dim))):
                with mp.workdps(60):
                    both = zip(delta, frame.scales, strict=True)
                    pulled = [mp.mpf(d) / mp.mpf(s) for d, s in both]
                    y, error = frame.pull(delta)
                    assert max(abs(mp.mpf(a) - b) for a, b in zip(y, pulled, strict=True)) <= error
                length = exact_norm(np.array(pulled, dtype=object), p)
                assert length <= frame.measure(delta, p) <= length * (1 + 1e-10)
                assert length <= exact_norm(delta, p) / frame.inner_factor(p) * (1 + 1e-14)
            assert frame.measure(worst, p) >= (1 - 1e-14) / frame.inner_factor(p)


def test_a_matrix_that_is_nearly_singular_is_refused() -> None:
    """Neighbouring Fibonacci numbers have the determinant 1 or −1, and a large condition."""
    assert Matrix([[1597.0, 987.0], [987.0, 610.0]]).least > 0
    with pytest.raises(NoiseError, match="singular"):
        Matrix([[14930352.0, 9227465.0], [9227465.0, 5702887.0]])


@pytest.mark.parametrize("which", range(6))
def test_bounds_of_a_matrix_are_on_the_safe_side_of_sixty_digits(which: int) -> None:
    frame = Matrix(matrices()[which])
    b, rng = frame.matrix, np.random.default_rng(which)
    with mp.workdps(60):
        square = mp.matrix(b.tolist()) * mp.matrix(b.tolist()).T
        least = mp.sqrt(min(mp.eigsy(square, eigvals_only=True)))
        log_det = mp.log(abs(mp.det(mp.matrix(b.tolist()))))
        loss = 1e-6 + 1e-14 * np.linalg.cond(b) ** 2  # BBᵀ squares the condition
        assert least * (1 - loss) <= frame.least <= least
        assert log_det - frame.dim * loss <= frame.log_det <= log_det
    inverse = exact_inverse(b)
    for p in NORMS:
        for delta in [*np.eye(frame.dim), *rng.normal(size=(20, frame.dim))]:
            length = exact_norm(inverse @ delta, p)
            measured = frame.measure(delta, p)
            assert length <= measured <= length * (1 + 1e-6)
            assert exact_norm(delta, p) >= frame.inner_factor(p) * length * (1 - 1e-14)
            image = b @ np.sign(delta)
            assert np.linalg.norm(image, p) <= frame.spread(p) * (1 + 1e-12)
    for x in rng.normal(size=(5, frame.dim)):
        y, error = frame.pull(x)
        with mp.workdps(60):
            off = max(abs(mp.mpf(a) - b) for a, b in zip(y, inverse @ x, strict=True))
        assert off <= error
    check_volume(frame, log_det, frame.dim * loss)
    # each norm's worst direction is nearly attained where it is known
    rows = np.abs(inverse.astype(float))
    assert frame.inner_factor(math.inf) == pytest.approx(1 / rows.sum(1).max(), rel=1e-6)
    assert frame.inner_factor(1.0) == pytest.approx(1 / rows.sum(0).max(), rel=1e-6)


@pytest.mark.parametrize("which", range(6))
def test_a_matrix_times_whole_numbers_is_exact(which: int) -> None:
    frame, rng = Matrix(matrices()[which]), np.random.default_rng(which)
    most = int(frame.most_steps)
    j = rng.integers(-most, most, (7, frame.dim))
    j[0] = most
    step = 2.0**-20
    placed = frame.place(torch.from_numpy(j.astype(np.float64)), step).numpy()
    for row, values in zip(j, placed, strict=True):
        for i, value in enumerate(values):
            exact = sum(
                Fraction(float(b)) * int(k) for b, k in zip(frame.matrix[i], row, strict=True)
            )
            assert Fraction(float(value)) == exact * Fraction(step)
    assert np.array_equal(Matrix(frame.matrix).matrix, frame.matrix)
    y, error = frame.pull(placed[1])
    assert np.abs(y - j[1] * step).max() <= error < 2.0**-8 * step * 1e4


@pytest.mark.parametrize(
    ("cov", "reason"),
    [
        ([[1, 2], [2, 1]], "positive definite"),
        ([[1, 0.5], [0.4, 1]], "symmetric"),
        ([[1, 0]], "as many rows"),
        ([[1, math.nan], [math.nan, 1]], "finite"),
        (3.0, "as many rows"),
        ("a", "numbers"),
    ],
)
def test_what_is_no_covariance_is_named(cov: object, reason: str) -> None:
    with pytest.raises(NoiseError, match=reason):
        noise.gaussian.with_covariance(cov)
    with pytest.raises(NoiseError, match="singular"):
        noise.Anisotropic(noise.laplace(sigma=1), matrix=[[1, 1], [1, 1]])


def test_gaussian_noise_with_a_covariance() -> None:
    law = noise.gaussian.with_covariance(COV)
    assert (
        noise.parse(law.text) == law == noise.from_data(json.loads(json.dumps(noise.to_data(law))))
    )
    assert law.sigma == pytest.approx(math.sqrt(1.5), rel=1e-6)
    n = 40_000
    z = law.sample(n, seed=2, dtype=torch.float64).numpy()
    # a sample covariance of n normal pairs: 5.5 of its deviations, three entries, below 1e-6
    spread = np.sqrt((np.outer(np.diag(COV), np.diag(COV)) + np.square(COV)) / n)
    assert np.all(np.abs(z.T @ z / n - COV) < 5.5 * spread)
    at = np.array([[0.3, -1.2]])
    sigma = np.array(COV)
    exact = -0.5 * at[0] @ np.linalg.solve(sigma, at[0]) - math.log(
        2 * math.pi * math.sqrt(np.linalg.det(sigma))
    )
    assert float(law.log_prob(torch.from_numpy(at))[0]) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("p_a", [0.6, 0.9, 0.999])
def test_the_l2_radius_is_that_of_the_weakest_direction(p_a: float) -> None:
    """f(z) = [v·z < t], v the eigenvector of λ_min: the class changes at √λ_min·Φ⁻¹(p_A)."""
    law = noise.gaussian.with_covariance(COV)
    least = math.sqrt(np.linalg.eigvalsh(law.entries @ law.entries.T)[0])
    exact = least * NormalDist().inv_cdf(p_a)
    found = certified_radius(law, 2, p_a=p_a)
    assert exact * (1 - 1e-8) < found.radius <= exact * (1 + 1e-15)
    assert found.guarantee == "exact"
    assert exact * 0.999 < float(RadiusCurve(law, 2)(p_a)) <= found.radius
    for p in (0.5, 1, 1.5, 4, "inf"):
        other = certified_radius(law, p, p_a=p_a)
        assert other.radius > 0
        assert other.grade is Grade.FLOATING_POINT  # the least stretch is computed
        assert float(RadiusCurve(law, p)(p_a)) <= other.radius
        # no linear classifier w·z < t breaks it: the worst δ of the ball moves w·z by r‖w‖_q
        for w in ([1, 0], [0, 1], [1, 1], [1, -1], [0.38, -0.92]):
            q = 1 / (1 - 1 / other.norm.p) if 1 < other.norm.p < math.inf else math.inf
            dual = np.linalg.norm(w, 1 if math.isinf(other.norm.p) else q)
            deviation = math.sqrt(np.array(w) @ np.array(COV) @ np.array(w))
            assert other.radius * dual <= deviation * NormalDist().inv_cdf(p_a) * (1 + 1e-6)


def test_a_stretched_law_is_exact_in_l2_for_gaussian_noise_alone() -> None:
    stretched = noise.Anisotropic(noise.uniform(sigma=1), matrix=[[2.0, 0.5], [0.0, 1.0]])
    for law, p in ((stretched, 2), (noise.gaussian.with_covariance(COV), math.inf)):
        assert certified_radius(law, p, p_a=0.9).guarantee == "approximate"


def test_an_input_beyond_the_exact_whole_numbers_of_a_matrix_is_refused() -> None:
    model = LatticeNoise(noise.gaussian.with_covariance(COV), Lattice.parse("2^-20"))
    most = 2.0**-20 * model.noise.frame.most_steps / 2  # type: ignore[union-attr]
    direction = model.noise.frame.matrix @ np.array([1.0, 0.0])  # type: ignore[union-attr]
    assert model.integers(0.99 * most * direction)[0] < model.noise.frame.most_steps / 2  # type: ignore[union-attr]
    with pytest.raises(NoiseError, match="too far"):
        model.integers(1.01 * most * direction)
