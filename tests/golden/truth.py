"""True radii near p_A = 1/2, by formulas that share nothing with the engines.

At p_A = .5001 the golden searched radii of spherical noise were what an engine of that time could
certify, up to 2 % below the true radius. Rows of radii.jsonl with `"truth"` hold the true one (or,
for a law without a formula, the radius that the line of slope −1 certifies, which is 1e-8 below),
and a test computes them again. So do rows of curves.jsonl whose noise has a closed form: a reading
of a curve is less than the radius, and a better curve may exceed an older reading.
"""

from __future__ import annotations

from typing import Any

import mpmath as mp
from scipy import special

from unicr.noise import Noise

DIGITS = 25


def true_radius(law: Noise, norm: str, p_a: float) -> float:
    """The binary ℓp radius of `spherical_gg`, `spherical_exp` or `ball`.

    p_A − 1/2 = total variation = P(|z₁| < s/2) is certified, because T(α) ≥ 1 − TV − α; for k = 0
    the closed form of Gaussian noise is used instead, and for a ball T(α) = 1 − TV − α.
    """
    radial = law.radial
    assert radial is not None
    with mp.workdps(DIGITS):
        dim, gain = mp.mpf(radial.dim), mp.mpf(p_a) - mp.mpf("0.5")
        k = mp.mpf(radial.numbers.get("k", 0.0))
        if radial.family == "spherical_gg" and k == 0:
            s = mp.sqrt(2) * mp.erfinv(2 * gain)
        else:
            s = _root(radial, dim, k, gain)
        factor = 1 if norm != "inf" else 1 / mp.sqrt(dim)
        return float(s * mp.mpf(radial.scale) * factor)


def closed_form_radius(noise: str, norm: str, dim: int, p_a: float) -> float | None:
    """σ·Φ⁻¹(p_A) of Gaussian noise in ℓ2, over √d in ℓ∞; b·log(1/(2(1 − p_A))) of Laplace in ℓ1.

    None for other noises and norms, which have no closed form.
    """
    name, _, size = noise.rstrip(")").partition("(sigma=")
    with mp.workdps(DIGITS):
        if name == "gaussian" and norm in {"2", "inf"}:
            quantile = mp.sqrt(2) * mp.erfinv(2 * mp.mpf(p_a) - 1)
            return float(mp.mpf(size) * quantile / (mp.sqrt(dim) if norm == "inf" else 1))
        if name == "laplace" and norm == "1":
            return float(-mp.mpf(size) / mp.sqrt(2) * mp.log(2 - 2 * mp.mpf(p_a)))
    return None


def _root(radial: Any, dim: Any, k: Any, gain: Any) -> Any:
    """The s at unit scale with P(|z₁| < s/2) = gain: z₁ = r·cos θ, θ and r independent.

    cos θ has the density c·(1 − y²)^((d−3)/2), three terms of whose series lie above it, so
    P(|z₁| < s/2) ≤ 2c·Σ ±binomial·(s/2)^m·E r^(−m)/m, m = 1, 3, 5, and s is not too large.
    """
    if radial.family == "ball":
        a = (dim + 1) / 2
        near = 2 - 4 * special.betaincinv(float(a), float(a), 0.5 - float(gain) / 2)
        return mp.findroot(lambda s: 1 - 2 * _lower(a, mp.mpf(1) / 2 - s / 4) - gain, near)
    # r^power/unit has the gamma law of this shape
    gg = radial.family == "spherical_gg"
    shape, power, unit = (dim / 2 - k, 2, 2) if gg else (dim / k, k, 1)
    density = mp.gamma(dim / 2) / mp.gamma((dim - 1) / 2) / mp.sqrt(mp.pi)

    def chance(s: Any) -> Any:
        total = mp.mpf(0)
        for n in range(3):
            m = 2 * n + 1
            if factor := mp.binomial((dim - 3) / 2, n) * (-1) ** n:
                moment = mp.gamma(shape - mp.mpf(m) / power) / mp.gamma(shape)
                total += factor * (s / 2) ** m / m * moment / mp.mpf(unit) ** (mp.mpf(m) / power)
        return 2 * density * total

    return mp.findroot(lambda s: chance(s) - gain, gain * mp.mpf("1e-6") / chance(mp.mpf("1e-6")))


def _lower(a: Any, x: Any) -> Any:
    return mp.betainc(a, a, 0, x, regularized=True)
