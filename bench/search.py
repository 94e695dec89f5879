"""I-OPT's two searches: the average radius that they certify, and the votes that they take."""

from __future__ import annotations

import numpy as np

from unicr import SmoothedClassifier
from unicr.classifier import load_classifier
from unicr.data import load_dataset
from unicr.i_opt import Axis, Grid, IOpt, Method
from unicr.noise import parse
from unicr.norms import l1, l2, linf
from unicr.smoothing import Counts, Curves, Plan, Request, answer_all

DIGITS = 100
NORMS = (l1, l2, linf)
METHODS: tuple[Method, ...] = ("hill", "compass")


def main() -> None:
    init = parse("gaussian(sigma=0.5)")
    axes = (Axis("sigma", 0.125, 2, 2**0.25), Axis("beta", 1, 3, 0.25))
    lattice = Grid.around(init, "gennorm", axes)
    data = load_dataset("builtin:mnist")
    smoothed = SmoothedClassifier(load_classifier("builtin:mnist-mlp-0.5"), init, seed=0)
    plan = Plan(n0=500, n=5000, alpha=0.001)
    curves = Curves(NORMS, 784)
    fixed = [smoothed.certify_with(data[i][0], plan, curves, i) for i in range(DIGITS)]
    base = np.mean([[r.radius for r in one.radii] for one in fixed], axis=0)
    print(f"{DIGITS} digits, mnist-mlp-0.5; fixed gaussian(sigma=0.5): l1 l2 linf {base.round(4)}")
    for method in METHODS:
        settings = IOpt(lattice, method=method)
        plan, first = settings.fit(plan), lattice.noise(lattice.centre)
        each = [Curves((norm,), 784, searched=True) for norm in NORMS]
        asked = 0
        found = []
        for i in range(DIGITS):
            x = data[i][0]

            def answer(ask: Request, x=x, i=i) -> Counts:  # type: ignore[no-untyped-def]
                nonlocal asked
                asked += ask.start == 0
                return smoothed.answer(ask, x, i)

            starts = [settings.steps(plan, first, curves) for curves in each]
            found.append([answer_all(steps, answer) for steps in starts])
        mean = np.mean([[c.radii[0].radius for c in three] for three in found], axis=0)
        print(
            f"{method}: l1 l2 linf {mean.round(4)}, over fixed {(mean / base).round(3)}; "
            f"{asked / DIGITS:.1f} noises looked at per digit, in three norms"
        )


if __name__ == "__main__":
    main()
