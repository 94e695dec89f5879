"""Run time of one radius against the size of the input, for the engines of this package."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from unicr.noise import parse
from unicr.norms import parse_norm
from unicr.radius import RadiusCurve, certified_radius
from unicr_paper._certify import NORMS
from unicr_paper._item import Axes, Context, Output, Table, item, panels
from unicr_paper._radii import LARGE, SMALL, sample_radius

SIZES = {"24×24": 576, "3×32×32": 3072, "3×224×224": 150_528}
NOISE, P_A, PRINTED = "gennorm(beta=1.5, sigma=1)", 0.9, 10.0
READS = 100_000
ENGINES = ("composition", "Monte Carlo", "reading a curve")
FIRST = "composition, first radius of the noise"
OTHER = "laplace(sigma=1)"


class Timing(NamedTuple):
    """One radius: time on the clock, and time that this process had a processor."""

    engine: str
    norm: str
    input: str
    dim: int
    wall_seconds: float
    cpu_seconds: float
    radius: float


@item(
    "runtime",
    "run time of one radius against the input size",
    "Figure 11",
    {"norms": ("2",), "inputs": ("24×24", "3×32×32"), "curves": False, **SMALL},
    {"norms": ("2",), "inputs": tuple(SIZES), "curves": False, **SMALL},
    {"norms": NORMS, "inputs": tuple(SIZES), "curves": True, **LARGE},
    order=10,
)
def run(context: Context) -> Output:
    law = parse(NOISE)
    rows = []
    for make in _engines(OTHER, "2", 4, context.sizes, 0).values():
        make()  # libraries load and kernels compile: not the time of a radius
    norm, name = context.sizes["norms"][0], context.sizes["inputs"][0]
    first = _engines(NOISE, norm, SIZES[name], context.sizes, context.seed)[ENGINES[0]]
    rows.append(Timing(FIRST, norm, name, SIZES[name], *_time(first)))
    for norm in context.sizes["norms"]:
        for name in context.sizes["inputs"]:
            dim = SIZES[name]
            for engine, make in _engines(NOISE, norm, dim, context.sizes, context.seed).items():
                context.log(f"{engine}, l{norm}, {name}")
                rows.append(Timing(engine, norm, name, dim, *_time(make)))
            if context.sizes["curves"]:
                context.log(f"a curve, l{norm}, {name}")
                rows.append(_time_reading(RadiusCurve(law, norm, dim), norm, name))

    def draw(axes: Axes, norm: str) -> None:
        for engine in (*ENGINES, FIRST):
            drawn = [row for row in rows if (row.engine, row.norm) == (engine, norm)]
            if drawn:
                axes.plot(
                    [r.dim for r in drawn], [r.cpu_seconds for r in drawn], "o-", label=engine
                )
        axes.axhline(PRINTED, color="grey", linestyle=":", label="the paper's 10 s (RTX 3080)")
        axes.set(title=str(parse_norm(norm)), xscale="log", yscale="log")

    sizes = context.sizes
    x, y = "dimension of the input", "CPU seconds per radius"
    return Output(
        tables={"seconds": Table(Timing._fields, rows)},
        figures={"runtime": panels(sizes["norms"], draw, x=x, y=y, size=(5, 4.2))},
        comparison=_compare(rows),
        remarks=[
            f"{NOISE}, p_A = {P_A}; one thread of this machine's CPU, time of the processor (wall "
            "time stands in the table); the paper: an RTX 3080 and its own code",
            "the composition engine gives searched and proved radius; Monte Carlo is the paper's "
            f"algorithm with {sizes['samples']} samples, {sizes['particles']} particles and "
            f"{sizes['iterations']} iterations, and proves nothing",
        ],
    )


def _time_reading(curve: RadiusCurve, norm: str, name: str) -> Timing:
    """The time of one radius where its curve is known: what every image after the first costs."""
    curve(P_A)
    wall, cpu, radius = _time(lambda: float(curve([P_A] * READS)[0]))
    return Timing(ENGINES[2], norm, name, curve.dim, wall / READS, cpu / READS, radius)


def _engines(
    noise: str, norm: str, dim: int, sizes: Mapping[str, Any], seed: int
) -> dict[str, Callable[[], float]]:
    law = parse(noise)
    return {
        ENGINES[0]: lambda: certified_radius(law, norm, dim, p_a=P_A, engine="numeric").searched,
        ENGINES[1]: lambda: sample_radius(noise, norm, dim, P_A, sizes, seed),
    }


def _time(make: Callable[[], float]) -> tuple[float, float, float]:
    """(wall seconds, CPU seconds, value)."""
    wall, cpu = time.perf_counter(), time.process_time()
    value = make()
    return time.perf_counter() - wall, time.process_time() - cpu, value


def _compare(rows: list[Timing]) -> list[str]:
    """The slowest radius of each engine beside the paper's bound, and ratios of the engines."""
    lines = []
    for engine in ENGINES[:2]:
        most = max((row for row in rows if row.engine == engine), key=lambda row: row.cpu_seconds)
        lines.append(
            f"{engine}: at most {most.cpu_seconds:.3g} CPU seconds (l{most.norm}, {most.input}); "
            f"the paper: under {PRINTED:g} s on average"
        )
    first = next(row for row in rows if row.engine == FIRST)
    lines.append(
        f"{FIRST}, with what its proofs share from then on: {first.cpu_seconds:.3g} CPU seconds"
    )
    times = {(row.engine, row.norm, row.input): row.cpu_seconds for row in rows}
    ratios = [
        f"l{norm} {name} {times[ENGINES[1], norm, name] / seconds:.3g}"
        for (engine, norm, name), seconds in times.items()
        if engine == ENGINES[0]
    ]
    lines.append(f"Monte Carlo time / composition time: {', '.join(ratios)}")
    return lines
