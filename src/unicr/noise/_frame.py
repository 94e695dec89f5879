"""How a noise is stretched, ε = Bξ, and the sets {δ : ‖B⁻¹δ‖_p < R} that this makes of balls.

B is a scale for each coordinate (`Scales`) or a matrix (`Matrix`). All that a certificate takes
from it is rounded to the safe side (docs/theory.md#frames-in-floating-point).
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from unicr.errors import NoiseError
from unicr.values import Array

if TYPE_CHECKING:
    import torch

UNIT = 2.0**-53  # the largest relative error of one operation on doubles
# Relative, onto (or off) sums and norms of positive terms: numpy adds at most 2e7 of them in pairs,
# some 150 roundings, and powers and logarithms of numbers up to 1e300 are right to 700 more.
ROUNDING = 1e-12
MOST_ROWS = 4096  # of a matrix, which has as many columns: 134 MB
# A row of B times whole numbers is exact in double precision, in any order of the sum, while all
# partial sums are below 2^53: rows of B hold 26 bits, the whole numbers the other 27.
ROW_BITS = 26
MOST_STEPS = 1 << (53 - ROW_BITS)  # what the rows leave of 53 bits
CANDIDATES = (1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 0.1, 0.5)  # taken off an eigenvalue before it is tried
SMALLEST = 1e-300  # for what underflows
WORST = 0.01  # ‖I − XB‖ up to here: beyond, the matrix is too near to a singular one


class Frame(ABC):
    """B of a noise ε = Bξ in `dim` dimensions. `digest` is a SHA-256 of its numbers."""

    dim: int
    log_det: float
    """log |det B|, rounded down."""

    @property
    @abstractmethod
    def digest(self) -> str: ...

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frame) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dim} rows, {self.digest[:16]})"

    def log_volume(self, reach: float) -> float:
        """log of the volume of {‖B⁻¹δ‖_p < reach}, in units of the unit ball of ℓp; rounded down.

        As a logarithm: the volume itself leaves floating point in a few hundred dimensions.
        """
        if math.isinf(reach):
            return math.inf
        logs = self.dim * math.log(reach)
        return logs + self.log_det - ROUNDING * (1.0 + abs(logs) + abs(self.log_det))

    @abstractmethod
    def inner_factor(self, p: float) -> float:
        """c > 0 with ‖B⁻¹δ‖_p ≤ ‖δ‖_p/c for every δ, rounded down; 0 if none is known."""

    @abstractmethod
    def spread(self, p: float) -> float:
        """‖Bu‖_p is at most this for every u with coordinates between −1 and 1."""

    @abstractmethod
    def measure(self, change: Array, p: float) -> float:
        """‖B⁻¹δ‖_p, rounded up."""

    @abstractmethod
    def pull(self, x: Array) -> tuple[Array, float]:
        """B⁻¹x, and how far a coordinate may be from it."""

    @abstractmethod
    def push(self, z: torch.Tensor) -> torch.Tensor:
        """Bz for each row of doubles."""

    @abstractmethod
    def place(self, integers: torch.Tensor, step: float) -> torch.Tensor:
        """step·Bj for each row j of whole numbers: one function of j, whatever else is computed."""

    @property
    def most_steps(self) -> float:
        """Whole numbers up to this size are told apart by `place`."""
        return math.inf


def p_norm(values: Array, p: float) -> float:
    """‖v‖_p in plain floating point, without overflow."""
    sizes = np.abs(np.asarray(values, dtype=np.float64)).ravel()
    largest = float(sizes.max(initial=0.0))
    if math.isinf(p) or largest == 0 or not math.isfinite(largest):
        return largest
    return largest * float(np.sum((sizes / largest) ** p)) ** (1 / p)


def _up(value: float, p: float = 1.0) -> float:
    """A norm rounded up: the root of a sum takes the sum's error times 1/p."""
    return value * (1 + ROUNDING * max(1.0, 1 / p))


def measure(change: Array, p: float) -> float:
    """‖δ‖_p, rounded up."""
    return _up(p_norm(change, p), p)


class Scales(Frame):
    """B = diag(s): ε_i = s_i·ξ_i."""

    def __init__(self, scales: Array) -> None:
        self.scales, self.dim = scales, scales.size
        logs = np.log(scales)
        self.log_det = math.fsum(logs) - ROUNDING * (1.0 + math.fsum(np.abs(logs)))

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(b"scales" + self.scales.astype("<f8").tobytes()).hexdigest()

    def inner_factor(self, p: float) -> float:
        return float(self.scales.min())

    def spread(self, p: float) -> float:
        return _up(p_norm(self.scales, p), p)

    def measure(self, change: Array, p: float) -> float:
        return _up(p_norm(np.asarray(change, dtype=np.float64).ravel() / self.scales, p), p)

    def pull(self, x: Array) -> tuple[Array, float]:
        y = x / self.scales
        return y, UNIT * float(np.abs(y).max(initial=0.0)) + SMALLEST

    def push(self, z: torch.Tensor) -> torch.Tensor:
        import torch

        return z * torch.tensor(self.scales, device=z.device, dtype=z.dtype)

    def place(self, integers: torch.Tensor, step: float) -> torch.Tensor:
        return self.push(integers * step)


class Matrix(Frame):
    """B as it is used: its entries have so few digits that B times whole numbers is exact."""

    def __init__(self, matrix: Any) -> None:
        try:
            given = np.array(matrix, dtype=np.float64)
        except (TypeError, ValueError):
            raise NoiseError("the matrix must be a list of rows of numbers") from None
        if given.ndim != 2 or given.shape[0] != given.shape[1] or not given.size:
            raise NoiseError(
                f"the matrix must have as many rows as columns, but its shape is {given.shape}"
            )
        if len(given) > MOST_ROWS:
            raise NoiseError(
                f"the matrix has {len(given)} rows, but at most {MOST_ROWS} are allowed"
            )
        if not np.all(np.isfinite(given)):
            raise NoiseError("the matrix must have finite entries")
        self.dim = len(given)
        self.matrix = shorten(given)
        self.matrix.flags.writeable = False
        self._invert()

    def _invert(self) -> None:
        """X ≈ B⁻¹ with e ≥ ‖I − XB‖ in ℓ1 and ℓ∞, so that B⁻¹ = (XB)⁻¹X is known to 1/(1 − e)."""
        b = self.matrix
        try:
            x = np.linalg.inv(b)
        except np.linalg.LinAlgError:
            x = np.full_like(b, np.nan)
        # each entry of a product of n terms is off by at most n units of the sum of their sizes,
        # and a sum of positive terms by as much of itself
        gamma = (self.dim + 4) * UNIT
        off = np.abs(x @ b - np.eye(self.dim)) + 2 * gamma * (np.abs(x) @ np.abs(b) + 1.0)
        self._error = {p: _up(float(off.sum(axis).max())) for p, axis in ((1.0, 0), (math.inf, 1))}
        if not max(self._error.values()) <= WORST:  # NaN fails too
            raise NoiseError("the matrix is singular, or too close to a singular one")
        self.inverse = x
        sums = {1.0: float(np.abs(x).sum(0).max()), math.inf: float(np.abs(x).sum(1).max())}
        self._norms = {p: _up(sums[p]) / (1 - self._error[p]) * (1 + ROUNDING) for p in sums}

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(b"matrix" + self.matrix.astype("<f8").tobytes()).hexdigest()

    @cached_property
    def _square(self) -> tuple[Array, float]:
        """BBᵀ as computed, and a bound of the ℓ2 norm of its error."""
        b = self.matrix
        square = b @ b.T
        square = (square + square.T) / 2
        sizes = np.abs(b) @ np.abs(b).T
        # symmetric, so its ℓ2 norm is at most its ℓ∞ norm
        return square, _up(2 * (self.dim + 4) * UNIT * float(sizes.sum(1).max()))

    @cached_property
    def least(self) -> float:
        """σ with BBᵀ ⪰ σ²I, rounded down: the least stretch of any direction.

        A Cholesky factorisation of BBᵀ − sI that runs to its end in floating point is the exact
        one of a matrix at most γ/(1 − γ) times the trace away, so that all eigenvalues of BBᵀ are
        at least s minus that and minus the errors of BBᵀ and of s on its diagonal
        (Rump 2006; docs/theory.md#frames-in-floating-point).
        """
        square, error = self._square
        guess = float(np.linalg.eigvalsh(square)[0])
        gamma = (self.dim + 2) * UNIT
        diagonal = np.abs(np.diag(square))
        slack = _up(2 * gamma * (float(diagonal.sum()) + self.dim * guess))
        slack += _up(error + 2 * UNIT * (float(diagonal.max()) + guess))
        for share in CANDIDATES:
            shift = guess * (1 - share)
            if shift <= slack:
                break
            try:
                np.linalg.cholesky(square - shift * np.eye(self.dim))
            except np.linalg.LinAlgError:
                continue
            return math.sqrt((shift - slack) * (1 - ROUNDING)) * (1 - ROUNDING)
        return 1 / (math.sqrt(self._norms[1.0] * self._norms[math.inf]) * (1 + ROUNDING))

    def _inverse_norm(self, p: float) -> float:
        """‖B⁻¹‖ from ℓp to ℓp, rounded up: between ℓ1, ℓ2 and ℓ∞ by Riesz and Thorin."""
        known = {1.0: self._norms[1.0], 2.0: 1 / self.least, math.inf: self._norms[math.inf]}
        if p in known:
            return known[p] * (1 + ROUNDING)
        if p < 1:
            return math.inf
        low, high = (1.0, 2.0) if p < 2 else (2.0, math.inf)
        share = (1 / p - 1 / high) / (1 / low - 1 / high)  # 1/p = share/low + (1 − share)/high
        return known[low] ** share * known[high] ** (1 - share) * (1 + ROUNDING) ** 2

    def inner_factor(self, p: float) -> float:
        return (1 - ROUNDING) / self._inverse_norm(p)

    def spread(self, p: float) -> float:
        return _up(p_norm(np.abs(self.matrix).sum(1), p), p) * (1 + ROUNDING)

    @cached_property
    def log_det(self) -> float:  # type: ignore[override]
        """Half of log det BBᵀ by Cholesky, of which the backward error is taken off."""
        square, error = self._square
        try:
            factor = np.linalg.cholesky(square)
        except np.linalg.LinAlgError:
            return -math.inf
        slack = _up(2 * (self.dim + 2) * UNIT * float(np.trace(square)) + error)
        lost = slack / self.least**2 * (1 + ROUNDING)
        if not lost < 1:
            return -math.inf
        logs = np.log(np.diag(factor))
        rounding = ROUNDING * (1.0 + math.fsum(np.abs(logs)))
        return math.fsum(logs) - rounding + 0.5 * self.dim * math.log1p(-lost) * (1 + ROUNDING)

    def measure(self, change: Array, p: float) -> float:
        if p < 1:
            return math.inf
        delta = np.asarray(change, dtype=np.float64).ravel()
        y = self.inverse @ delta
        gamma = (self.dim + 4) * UNIT
        rest = np.abs(delta - self.matrix @ y)
        rest += 2 * gamma * (np.abs(delta) + np.abs(self.matrix) @ np.abs(y))
        return _up(p_norm(y, p)) + _up(self._inverse_norm(p) * _up(p_norm(rest, p)))

    def pull(self, x: Array) -> tuple[Array, float]:
        """Two steps of refinement; ‖y − B⁻¹x‖ ≤ ‖B⁻¹‖·‖x − By‖, the rest in long doubles."""
        delta, b = x.astype(np.longdouble), self.matrix.astype(np.longdouble)
        y = self.inverse @ x
        for _ in range(2):
            y = y + self.inverse @ (delta - b @ y).astype(np.float64)
        rest = np.abs(delta - b @ y).astype(np.float64)
        gamma = 2 * (self.dim + 4) * float(np.finfo(np.longdouble).eps)
        rest += UNIT * rest + gamma * (np.abs(x) + np.abs(self.matrix) @ np.abs(y)) + SMALLEST
        return y, _up(self._norms[math.inf] * float(rest.max()))

    @property
    def most_steps(self) -> float:
        return float(MOST_STEPS)

    def push(self, z: torch.Tensor) -> torch.Tensor:
        import torch

        return z @ torch.tensor(self.matrix, device=z.device, dtype=z.dtype).T

    def place(self, integers: torch.Tensor, step: float) -> torch.Tensor:
        # beyond `most_steps` numbers are cut: that too is one function of them
        return self.push(integers.clamp(-self.most_steps, self.most_steps)) * step


def shorten(matrix: Array) -> Array:
    """Each row rounded to multiples of a power of two, so that its sizes add up to `ROW_BITS` bits.

    A matrix that is so already is not changed.
    """
    widest = np.abs(matrix).sum(1)
    if not np.all(widest > 0):
        raise NoiseError("the matrix is singular, because it has a row of zeros")
    bits = ROW_BITS + 2 - np.ceil(np.log2(widest)).astype(np.int64)
    while True:
        whole = np.rint(np.ldexp(matrix, bits[:, None]))
        wide = np.abs(whole).sum(1) > 2.0**ROW_BITS
        if not wide.any():
            return np.ldexp(whole, -bits[:, None])
        bits = bits - wide


def factor_covariance(cov: Any) -> Array:
    """L with LLᵀ = cov, the lower Cholesky factor; NoiseError where cov is no covariance."""
    try:
        given = np.array(cov, dtype=np.float64)
    except (TypeError, ValueError):
        raise NoiseError("cov must be a list of rows of numbers") from None
    if given.ndim != 2 or given.shape[0] != given.shape[1] or not given.size:
        raise NoiseError(f"cov must have as many rows as columns, but its shape is {given.shape}")
    if len(given) > MOST_ROWS:
        raise NoiseError(f"cov has {len(given)} rows, but at most {MOST_ROWS} are allowed")
    if not np.all(np.isfinite(given)) or np.abs(given - given.T).max() > 1e-9 * np.abs(given).max():
        raise NoiseError("cov must be symmetric and have finite entries")
    try:
        return np.asarray(np.linalg.cholesky((given + given.T) / 2), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise NoiseError(
            "cov must be positive definite: its smallest eigenvalue must be above 0"
        ) from None
