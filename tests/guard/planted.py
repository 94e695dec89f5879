"""Certificates and regions that are known by construction, and brute force to compare with."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import torch
from numpy.typing import NDArray

from unicr.guard import Memory
from unicr.norms import parse_norm
from unicr.smoothing import Certificate, NormRadius


def certificate(
    label: int,
    radius: float,
    *,
    norm: str = "2",
    proved: float | None = None,
    noise: str | None = None,
    alpha: float = 0.001,
) -> Certificate:
    """A certificate that claims this class and radius."""
    low = radius if proved is None else proved
    guarantee = "abstain" if label < 0 else "exact" if low == radius else "approximate"
    one = NormRadius(norm, radius, low, radius, guarantee)
    return Certificate(label, 0.9, 0.1, 1, 1, alpha, (one,), noise)


def claims(
    rule: Callable[[NDArray[np.float64]], tuple[int, float]], norm: str = "2"
) -> Callable[[torch.Tensor, int], Certificate]:
    """A policy that certifies the class and radius that `rule` gives."""

    def certify(x: torch.Tensor, input_index: int) -> Certificate:
        label, radius = rule(x.numpy().astype(np.float64).ravel())
        return certificate(label, radius, norm=norm, noise=f"gaussian(sigma={radius + 1})")

    return certify


def memory(dim: int = 2, norm: str = "2", **more: object) -> Memory:
    """A memory in this process."""
    return Memory(None, norm=parse_norm(norm), shape=(dim,), **more)  # type: ignore[arg-type]


def exact(norm: str, a: NDArray[np.float32], b: NDArray[np.float32]) -> Fraction:
    """ρ(a, b) for l1 and linf, ρ² for l2, without rounding."""
    sizes = [abs(Fraction(float(x)) - Fraction(float(y))) for x, y in zip(a, b, strict=True)]
    if norm == "inf":
        return max(sizes)
    return sum((v if norm == "1" else v * v for v in sizes), Fraction(0))


def nearer(norm: str, distance: Fraction, reach: float) -> bool:
    """Whether a distance of `exact` is below a reach, without rounding."""
    if math.isinf(reach):
        return True
    bound = Fraction(reach)
    return distance < (bound * bound if norm == "2" else bound)
