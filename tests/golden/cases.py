"""The questions behind the golden files, and how today's code answers them.

A question is plain JSON, so that the files outlive every rebuild of the code; only the functions of
this module know how to ask. Users' densities are functions, named here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import stats

from unicr import noise
from unicr.noise import IID, Lattice, Noise
from unicr.norms import parse_norm
from unicr.radius import Evidence, Question, RadiusCurve, SecondLaw, certified_radius
from unicr.radius._cache import NUMERICS
from unicr.radius.internal import prove
from unicr.sample import integer_law
from unicr.smoothing import Curves, Plan, answer_all

Case = dict[str, Any]

DENSITIES: dict[str, Callable[[], Noise]] = {
    "user:quartic": lambda: noise.from_density(lambda x: -(x**4)),
    "user:cubic": lambda: noise.from_density(lambda x: -(np.abs(x) ** 3)),
    "user:logistic": lambda: noise.from_scipy(stats.logistic()),
    "user:student": lambda: noise.from_scipy(stats.t(4)),
    "user:gumbel": lambda: noise.from_scipy(stats.gumbel_r(0, 1)),
    "user:triangle": lambda: noise.from_scipy(stats.triang(0.5, -1, 2)),
    "user:two-modes": lambda: noise.from_density(
        lambda x: np.logaddexp(-0.5 * (x - 2) ** 2, -0.5 * (x + 2) ** 2)
    ),
    "user:parabola": lambda: noise.from_density(
        lambda x: np.log(np.maximum(1 - x * x, 1e-300)), support=(-1, 1)
    ),
    "truncated:laplace": lambda: noise.laplace(scale=1).truncated(3),
    "truncated:cauchy": lambda: noise.cauchy(scale=1).truncated(5),
    "anisotropic:gaussian": lambda: noise.Anisotropic(
        noise.gaussian(sigma=1), np.linspace(0.5, 2.0, 10)
    ),
}

IID_SPECS = (
    "gaussian(sigma=1)",
    "laplace(scale=1)",
    "gennorm(beta=0.75, scale=1)",
    "gennorm(beta=1.5, scale=1)",
    "gennorm(beta=3, scale=1)",
    "uniform(scale=1)",
    "cauchy(scale=1)",
    "pareto(beta=3, scale=1)",
    "sech(scale=1)",
    "expmix(beta=0.5, scale=1)",
    "lapgauss(beta=0.5, scale=1)",
    "splitting(scale=0.5)",
)
NORMS = ("0.5", "1", "1.5", "2", "3", "8", "inf")
# (dim, p_A, p_B): each family and norm takes three of them in turn, so that all meet all.
EVIDENCE = (
    (3072, 0.9, None),
    (1, 0.99, None),
    (784, 0.5001, None),
    (150528, 0.99, None),
    (10, 0.6, None),
    (3072, 0.9999, None),
    (2, 0.9, None),
    (784, 0.8, 0.05),
    (3, 0.999, None),
    (150528, 0.51, None),
    (3072, 0.4, 0.1),
    (100, 0.95, None),
    (1, 0.7, 0.1),
)


def noise_of(text: str, dim: int | None = None) -> Noise:
    """The noise that a question names; `{dim}` in it stands for the dimension."""
    if text in DENSITIES:
        return DENSITIES[text]()
    return noise.parse(text.replace("{dim}", str(dim)))


def radius_cases() -> Iterator[Case]:
    """Every question about one radius."""
    turn = 0
    for spec in IID_SPECS:
        for norm in NORMS:
            for _ in range(3):
                dim, p_a, p_b = EVIDENCE[turn % len(EVIDENCE)]
                turn += 1
                yield {"noise": spec, "norm": norm, "dim": dim, "p_a": p_a, "p_b": p_b}
    turn = 0
    for name in DENSITIES:
        if name.startswith("anisotropic"):
            for norm in ("0.5", "1", "2", "inf"):
                for p_a in (0.6, 0.99):
                    yield {"noise": name, "norm": norm, "dim": 10, "p_a": p_a, "p_b": None}
            continue
        for norm, dim, p_a in (
            ("2", 784, 0.9), ("1", 3072, 0.99), ("inf", 3072, 0.6), ("2", 1, 0.95),
        ):  # fmt: skip
            yield {"noise": name, "norm": norm, "dim": dim, "p_a": p_a, "p_b": None}
    for spec, dims in (
        ("spherical_gg(k=0, sigma=1, dim={dim})", (2, 784, 150528)),
        ("spherical_gg(k=380, sigma=1, dim={dim})", (784,)),
        ("spherical_gg(k=1500, sigma=0.5, dim={dim})", (3072,)),
        ("spherical_exp(k=1, sigma=1, dim={dim})", (3, 3072)),
        ("spherical_exp(k=2, sigma=1, dim={dim})", (784,)),
        ("ball(sigma=1, dim={dim})", (3, 784)),
        ("l1_exp(k=1, j=0, sigma=1, dim={dim})", (10, 784)),
        ("linf_exp(k=1, j=0, sigma=1, dim={dim})", (10, 784)),
        ("linf_exp(k=2, j=5, sigma=1, dim={dim})", (784,)),
        ("linf_pareto(a=794, sigma=1, dim={dim})", (784,)),
    ):
        for dim in dims:
            for norm in ("1", "2", "inf"):
                for p_a, p_b in ((0.5001, None), (0.9, None), (0.9999, None), (0.7, 0.1)):
                    yield {"noise": spec, "norm": norm, "dim": dim, "p_a": p_a, "p_b": p_b}


def answer_radius(case: Case) -> dict[str, Any]:
    """Both ends of the bracket, or the error of a question without an answer."""
    law = noise_of(case["noise"], case["dim"])
    found = certified_radius(law, case["norm"], case["dim"], p_a=case["p_a"], p_b=case["p_b"])
    return {"proved": found.proved, "searched": found.searched}


def two_law_cases() -> Iterator[Case]:
    """Radii from votes under a noise and under its part in a ball."""
    for spec in ("spherical_gg(k=380, sigma=0.5, dim=784)", "l1_exp(k=1, j=0, sigma=0.5, dim=784)"):
        for p_a, q_a in ((0.6, 0.7), (0.75, 0.85), (0.9, 0.97), (0.97, 0.995), (0.99, 0.9)):
            yield {"noise": spec, "share": 0.5, "p_a": p_a, "q_a": q_a}


def answer_two_laws(case: Case) -> dict[str, Any]:
    """The proved radius in the norm of the density."""
    law = noise.parse(case["noise"])
    assert law.radial is not None
    evidence = Evidence(case["p_a"], second=SecondLaw(case["q_a"], case["share"]))
    both = prove(Question(law, law.radial.order), evidence, laws=2).radius
    return {"proved": max(both, float(RadiusCurve(law, law.radial.order)(case["p_a"])))}


def curve_cases() -> Iterator[Case]:
    """Readings of curves that come with the package or have a closed form."""
    for spec, norm in (
        ("gaussian(sigma=0.5)", "2"), ("laplace(sigma=0.5)", "2"), ("laplace(sigma=1)", "1"),
        ("gennorm(beta=1.5, sigma=0.25)", "2"), ("gennorm(beta=3, sigma=1)", "2"),
        ("gaussian(sigma=0.25)", "inf"),
    ):  # fmt: skip
        for p_a in (0.500001, 0.55, 0.777, 0.95, 0.999, 0.9999999):
            yield {"noise": spec, "norm": norm, "dim": 3072, "p_a": p_a}


def answer_curve(case: Case) -> dict[str, Any]:
    """Both readings."""
    curve = RadiusCurve(noise.parse(case["noise"]), case["norm"], case["dim"])
    return {
        "proved": float(curve(case["p_a"])),
        "searched": float(curve(case["p_a"], searched=True)),
    }


def fresh_curve_cases() -> Iterator[Case]:
    """Curves that are stored on a user's disk: made again here, never read from there."""
    for spec, norm, dim in (
        ("laplace(scale=1)", "inf", 700), ("gennorm(beta=3, scale=1)", "inf", 100),
        ("cauchy(scale=1)", "inf", 50), ("linf_exp(k=1, j=0, scale=1, dim=100)", "1", 100),
        ("laplace(scale=1)", "2", 5),
    ):  # fmt: skip
        yield {"noise": spec, "norm": norm, "dim": dim, "numerics": NUMERICS}


def answer_fresh_curve(case: Case) -> dict[str, Any]:
    """What the curve reads at six p_A; the caller sees to an empty cache."""
    curve = RadiusCurve(noise.parse(case["noise"]), case["norm"], case["dim"])
    return {"proved": [float(curve(p)) for p in (0.50001, 0.6, 0.8, 0.95, 0.999, 0.99999)]}


def law_cases() -> Iterator[Case]:
    """Laws of the sampler: coarse and fine steps, users' densities among them."""
    users = ("user:quartic", "user:student", "user:gumbel", "user:two-modes", "truncated:laplace")
    for spec in (*IID_SPECS[:11], *users):
        for step in ("1/255", "1/65280", "2^-20"):
            yield {"noise": spec, "step": step}
    yield {"noise": "gaussian(sigma=0.25)", "step": "1/255"}
    yield {"noise": "laplace(scale=0.1)", "step": "2^-24"}
    yield {"noise": "uniform(scale=0.3)", "step": "1/255"}


def answer_law(case: Case) -> dict[str, Any]:
    """The bound of its error, and the thresholds that its random bits are compared with."""
    law_of = noise_of(case["noise"])
    assert isinstance(law_of, IID)
    law = integer_law(law_of, float(Lattice.parse(case["step"]).step))
    digest = hashlib.sha256()
    for array in (law.ends, law.starts, law.widths, law.kinds):
        digest.update(np.ascontiguousarray(array).tobytes())
    spots = [int(i) for i in np.linspace(0, len(law.ends) - 1, 9)]
    return {
        "tau": law.tau,
        "outcomes": len(law.starts),
        "digest": digest.hexdigest(),
        "thresholds": [str(int(law.ends[i])) for i in spots],
        "first_integers": [int(law.starts[i]) for i in spots],
    }


def certificate_cases() -> Iterator[Case]:
    """Whole certificates from given votes: noises, norms, rules, grids, inputs off the grid."""
    rows: list[tuple[str, list[str], dict[str, Any], list[int], list[int]]] = [
        ("gaussian(sigma=0.5)", ["2"], {}, [90, 8, 2], [950, 40, 10]),
        ("gaussian(sigma=0.25)", ["1", "2", "inf"], {}, [100], [1000]),
        ("gaussian(sigma=1)", ["2"], {"alpha": 0.01}, [51, 49], [560, 440]),
        ("gaussian(sigma=1)", ["2"], {}, [51, 49], [505, 495]),
        ("laplace(sigma=0.5)", ["1", "inf"], {}, [3, 97], [20, 980]),
        ("laplace(sigma=0.5)", ["1"], {"rule": {"name": "three"}}, [60, 30, 10], [620, 260, 120]),
        ("gaussian(sigma=0.5)", ["2"], {"rule": {"name": "three"}}, [50, 30, 20], [480, 300, 220]),
        ("uniform(scale=1)", ["1", "inf"], {}, [80, 20], [900, 100]),
        ("sech(sigma=0.5)", ["inf"], {}, [80, 20], [870, 130]),
        ("cauchy(scale=0.3)", ["inf"], {}, [99, 1], [990, 10]),
    ]
    for spec, norms, plan, selection, counts in rows:
        for lattice, moved in ((None, False), ("1/65280", True)):
            yield {
                "noise": spec, "norms": norms, "dim": 784, "lattice": lattice, "moved": moved,
                "plan": {"n0": 100, "n": 1000, "alpha": 0.001, **plan},
                "selection": selection, "counts": counts,
            }  # fmt: skip


def answer_certificate(case: Case) -> dict[str, Any]:
    """Class, bounds, charge and radii."""
    plan = Plan.from_dict(
        {"rule": {"name": "fixed"}, "procedure": {"name": "two_steps"}, **case["plan"]}
    )
    grid = None if case["lattice"] is None else Lattice.parse(case["lattice"])
    norms = [parse_norm(text) for text in case["norms"]]
    curves = Curves(norms, case["dim"], lattice=grid)
    answers = iter([case["selection"], case["counts"]])
    steps = plan.procedure.steps(plan, noise.parse(case["noise"]), curves)
    found = answer_all(steps, lambda _: np.asarray(next(answers), np.int64))
    return {
        "predict": found.predict,
        "p_a": found.p_a,
        "p_b": found.p_b,
        "charge": found.charge,
        "radii": {r.norm: [r.proved, r.searched] for r in found.radii},
    }


KINDS: dict[str, tuple[Callable[[], Iterator[Case]], Callable[[Case], dict[str, Any]]]] = {
    "radii": (radius_cases, answer_radius),
    "two_laws": (two_law_cases, answer_two_laws),
    "curves": (curve_cases, answer_curve),
    "numerics": (fresh_curve_cases, answer_fresh_curve),
    "laws": (law_cases, answer_law),
    "certificates": (certificate_cases, answer_certificate),
}
