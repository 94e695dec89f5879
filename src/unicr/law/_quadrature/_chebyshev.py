"""Which fixed matrices turn a panel's node values into coefficients, means and derivatives?

Every panel is sampled at the same Chebyshev nodes of [0, 1], so that integrating or
differentiating it is one product with a constant matrix.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import chebyshev

from unicr.values import Array, IntArray

EPS = float(np.finfo(np.float64).eps)
N = 20  # nodes of a panel: an analytic density is resolved to rounding on a few dozen panels
_COS = np.cos(np.pi * (np.arange(N)[::-1] + 0.5) / N)
# Chebyshev points of [0, 1], and the matrix from values there to coefficients.
NODES: Array = np.asarray((_COS + 1.0) / 2.0, dtype=np.float64)
TO_COEF: Array = np.asarray(  # by the discrete cosine transform, the constant term halved
    chebyshev.chebvander(_COS, N - 1).T * 2.0 / N, np.float64
)
TO_COEF[0] /= 2.0


def _make_averaging_matrix(from_right: bool) -> Array:
    """Node values of g -> Chebyshev coefficients of its mean over [0, z] (or over [z, 1])."""
    xi, weight = np.polynomial.legendre.leggauss(12)
    tau, weight = (xi + 1.0) / 2.0, weight / 2.0
    z = 1.0 - (1.0 - NODES)[:, None] * tau if from_right else NODES[:, None] * tau
    rows = np.einsum("i,jik->jk", weight, chebyshev.chebvander(2.0 * z - 1.0, N - 1))
    return np.asarray(TO_COEF @ (rows @ TO_COEF), dtype=np.float64)


# Means over [0, z] and over [z, 1]: from values at the nodes to coefficients.
MEAN_LEFT = _make_averaging_matrix(False)
MEAN_RIGHT = _make_averaging_matrix(True)  # the same from the other end
# From values at the nodes: the mean over [0, 1], and the derivative at the nodes.
WEIGHTS: Array = chebyshev.chebval(1.0, np.eye(N)) @ MEAN_LEFT
DERIVATIVE: Array = (  # 2 since [−1, 1] is twice as long as [0, 1]
    chebyshev.chebvander(_COS, N - 2) @ chebyshev.chebder(np.eye(N)) * 2.0 @ TO_COEF
)


def clenshaw(coefficients: Array, index: IntArray, z: Array) -> Array:
    """Chebyshev series (rows = degree, columns = panel) of panel index[i] at z[i] in [0, 1]."""
    y2 = 4.0 * z - 2.0
    b1 = coefficients[N - 1].take(index)
    b2 = np.zeros_like(b1)
    for k in range(N - 2, 0, -1):
        new = y2 * b1
        new -= b2
        new += coefficients[k].take(index)
        b2, b1 = b1, new
    return np.asarray(coefficients[0].take(index) + (y2 / 2.0) * b1 - b2, dtype=np.float64)
