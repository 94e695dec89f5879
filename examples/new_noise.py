"""For a researcher: a noise of your own, from its density to radii, a curve and a certificate.

    python examples/new_noise.py --out new-noise

The noise is Laplace with the tip rounded off, log p(x) = −a·√(1 + x²) + const: exponential tails,
smooth at 0. The script says what the package found out about it, compares it with Gaussian and
Laplace noise of the same σ, checks one radius by plain sampling, draws p_A–R curves and certifies a
few digits. The same noise on the command line is `examples/new_noise.py:rounded_laplace`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unicr import SmoothedClassifier, noise
from unicr.classifier import load_classifier
from unicr.data import load_dataset
from unicr.lab.optimality import compare_noises
from unicr.lab.report.curves import write_curves
from unicr.noise import IID
from unicr.radius import RadiusCurve, certified_radius, round_down

Array = NDArray[np.float64]
SHARPNESS = 2.0
PROBABILITIES = (0.6, 0.9, 0.99, 0.999)


def log_density(x: Array) -> Array:
    """The logarithm of the density, up to a constant."""
    return np.asarray(-SHARPNESS * np.sqrt(1 + np.square(x)))


rounded_laplace = noise.from_density(log_density, sigma=1.0, name="rounded Laplace")


def share_kept(law: IID, radius: float, p_a: float, samples: int) -> float:
    """How often the worst classifier still answers A at distance `radius`, by plain sampling.

    For log-concave noise and ℓ1 the worst classifier answers A where the first coordinate is below
    F⁻¹(p_A). At x it gives A with probability p_A; at distance R it must be down to one half.
    """
    threshold = float(law.ppf(p_a))
    first = law.sample(samples, 1, seed=7).numpy().ravel()
    return float(np.mean(first + radius <= threshold))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("new-noise"))
    parser.add_argument("--dim", type=int, default=784)
    parser.add_argument("--digits", type=int, default=3)
    parser.add_argument("--samples", type=int, default=10_000)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    law = rounded_laplace
    print(f"facts: {law.facts}")
    print(f"sigma {law.sigma:.6f}, scale {law.scale:.6f}")

    rivals = {
        "rounded": law,
        "gaussian": noise.gaussian(sigma=1),
        "laplace": noise.laplace(sigma=1),
    }
    for norm in (1, "inf"):
        print(f"\nl{norm}, dimension {options.dim}, sigma 1")
        for comparison in compare_noises(list(rivals.values()), norm, options.dim, PROBABILITIES):
            standings = dict(zip(rivals, comparison.standings, strict=True))
            radii = ", ".join(f"{k} {round_down(s.searched, 5)}" for k, s in standings.items())
            best = [name for name, standing in standings.items() if standing.possible]
            print(f"  p_A {comparison.p_a}: {radii}; {comparison.verdict}: {', '.join(best)}")

    found = certified_radius(law, 1, options.dim, p_a=0.9)
    kept = share_kept(law, found.proved, 0.9, 200_000)
    proof = f"{found.guarantee}, by {found.theorem}, {found.grade}"
    print(f"\nl1 at p_A 0.9: {round_down(found.proved)}, {proof}")
    print(f"at that distance the worst classifier keeps {kept:.3f} of its votes (0.5 expected)")

    picture = options.out / "curves.png"
    write_curves([RadiusCurve(one, "inf", options.dim) for one in rivals.values()], picture)
    print(f"\ncurves in linf: {picture}")

    model, data = load_classifier("builtin:mnist-mlp-0.5"), load_dataset("builtin:mnist")
    smoothed = SmoothedClassifier(model, law.with_sigma(0.5))
    for i in range(options.digits):
        x, label = data[i]
        one = smoothed.certify(x, norm=[1, "inf"], n=options.samples, input_index=i)
        radii = ", ".join(f"l{r.norm} {round_down(r.radius, 4)}" for r in one.radii)
        print(f"digit {i}, label {label}: class {one.predict}, {radii}")


if __name__ == "__main__":
    main()
