"""One noise, described in words and drawn."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from unicr.errors import UnicrError
from unicr.lab.report.plots import figure
from unicr.noise import Noise
from unicr.values import Array


def describe(noise: Noise) -> dict[str, str]:
    """Facts and moments as short texts, in the order in which to print them."""
    facts = noise.facts

    def word(value: bool) -> str:
        return "yes" if value else "no"

    rows = {
        "noise": repr(noise),
        **({} if noise._file is None else {"called": repr(noise._file[1])}),
        "kind": "i.i.d. coordinates, any dimension"
        if noise.dim is None
        else f"joint density in dimension {noise.dim}",
        "sigma": f"{noise.sigma:.9g}" if math.isfinite(noise.sigma) else "none (infinite variance)",
        "symmetric": word(facts.symmetric),
        "log-concave": word(facts.log_concave),
        "unimodal": word(facts.unimodal),
        "bounded": word(facts.bounded),
        "finite variance": word(facts.finite_variance),
        "facts are": facts.source,
    }
    law, radial = noise.iid, noise.radial
    if law is not None:
        rows["scale"] = f"{law.scale:.9g}"
        rows["mean"] = f"{law.mean:.6g}" if math.isfinite(law.mean) else "none"
        rows["support"] = "[{:.6g}, {:.6g}]".format(*law.support)
        levels = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999)
        at = [0.0 if abs(x) < 1e-12 * law.scale else x for x in law.ppf(levels).tolist()]
        rows["quantiles"] = "  ".join(f"{u:g}: {x:.5g}" for u, x in zip(levels, at, strict=True))
    if radial is not None:
        rows["scale"] = f"{radial.scale:.9g}"
        rows["radius"] = "  ".join(
            f"{u:g}: {float(radial.length.ppf(u)):.5g}" for u in (0.01, 0.5, 0.99)
        )
    return rows


def density_line(noise: Noise, points: int, tail: float) -> tuple[Array, Array, str]:
    """The density of one coordinate (i.i.d. noise) or of the length (radial noise), and which.

    Beyond 10 % more than what lies between the two tails nothing is drawn; jumps are drawn as such.
    """
    law, radial = noise.iid, noise.radial
    if law is not None:
        low, high = float(law.ppf(tail)), float(law.isf(tail))
        margin = 0.1 * (high - low)
        x = np.linspace(low - margin, high + margin, points)
        edges = [e for b in law.breakpoints for e in (np.nextafter(b, -np.inf), b)]
        x = np.unique(np.concatenate([x, [e for e in edges if x[0] < e < x[-1]]]))
        return x, law.pdf(x), "one coordinate"
    if radial is not None:
        x = np.linspace(float(radial.length.ppf(1e-4)), float(radial.length.isf(1e-4)), points)
        return x, np.gradient(radial.length.cdf(x), x), "the length"
    raise UnicrError(f"{noise.text} has no one-dimensional density to draw")


def draw_density(noise: Noise, path: Path) -> None:
    """A picture of the density."""
    x, y, of = density_line(noise, 2001, 0.002)
    with figure(path) as axes:
        axes.plot(x, y, color="C0")
        axes.fill_between(x, y, alpha=0.15, color="C0")
        axes.set_xlabel("noise")
        axes.set_ylabel(f"density of {of}")
        axes.set_title(repr(noise))
        axes.set_ylim(bottom=0)
