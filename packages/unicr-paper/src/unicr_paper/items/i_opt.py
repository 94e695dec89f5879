"""I-OPT: the average of the largest radii, with one fixed noise and with a noise for each input."""

from __future__ import annotations

from collections.abc import Sequence

from unicr.text import round_down
from unicr_paper._certify import (
    COLUMNS,
    SHARES,
    SIDES,
    Pair,
    Setup,
    compare,
    make_sizes,
    read_printed,
    sizes_text,
    top_means,
)
from unicr_paper._item import Axes, Context, Output, Table, item, panels

TABLE = "Table 3"
PRINTED = read_printed(TABLE)  # ImageNet, ResNet-50, σ = 1: the fixed Gaussian noise, then I-OPT


@item(
    "i-opt",
    "average of the largest radii with input noise optimisation",
    TABLE,
    make_sizes(10, 100, 500, (0.5, 2, 2**0.5), (1.75, 2.25, 0.25), ("1", "inf")),
    make_sizes(100, 500, 5000, (0.25, 4, 2**0.25), (1, 3, 0.25)),
    make_sizes(1000, 1000, 10_000, (0.25, 4, 2**0.25), (1, 3, 0.25)),
    order=4,
)
def run(context: Context) -> Output:
    setup = Setup("builtin:mnist-mlp-1.0", "builtin:mnist", 1.0)
    pairs = compare(context, setup)
    means = {norm: top_means(pair.scores()) for norm, pair in pairs.items()}
    rows = [
        (norm, *values)
        for norm, pair in pairs.items()
        for values in zip(
            SHARES, *means[norm], *top_means(pair.upper_scores()), *_paper(norm), strict=True
        )
    ]

    def draw(axes: Axes, norm: str) -> None:
        for i, (name, ours) in enumerate(zip(SIDES, means[norm], strict=True)):
            paper = _paper(norm)[i]
            axes.plot(SHARES, ours, "o-", color=f"C{i}", label=f"{name}, MNIST here")
            axes.plot(SHARES, paper, "x:", color=f"C{i}", label=f"{name}, ImageNet, the paper")

    x, y = "share of the inputs with the largest radii, %", "average l{} radius"
    return Output(
        tables={
            "top": Table(("norm", "top_percent", *COLUMNS), rows),
            "noises": _noises(pairs),
        },
        figures={"top": panels(list(means), draw, x=x, y=y)},
        comparison=[_line(norm, *sides) for norm, sides in means.items()],
        remarks=[
            sizes_text(
                context.sizes, "MNIST digits and the built-in perceptron trained with σ = 1"
            ),
            "the paper: ImageNet and a ResNet-50, whose weights and images are not free to ship; "
            "the gain compares, the radii themselves do not. An input that is wrong or abstained "
            "counts as 0",
        ],
    )


def _paper(norm: str) -> tuple[Sequence[float], Sequence[float]]:
    return PRINTED[norm].fixed, PRINTED[norm].chosen


def _noises(pairs: dict[str, Pair]) -> Table:
    """Which noise was chosen for each input, and what it brought."""
    rows = []
    for norm, pair in pairs.items():
        for row, other in zip(pair.fixed, pair.chosen, strict=True):
            noise = "" if other.certificate is None else other.certificate.noise
            rows.append((norm, row.idx, noise, row.radius(norm), other.radius(norm)))
    return Table(("norm", "input", "noise", "fixed", "i_opt"), rows)


def _line(norm: str, fixed: list[float], chosen: list[float]) -> str:
    def join_radii(values: Sequence[float], unit: float) -> str:
        return "/".join(round_down(value * unit, 3) for value in values)

    unit = 255 if norm == "inf" else 1
    theirs = [100 * (b / a - 1) for a, b in zip(*_paper(norm), strict=True)]
    gains = [100 * (b / a - 1) if a else 0.0 for a, b in zip(fixed, chosen, strict=True)]
    return (
        f"l{norm}{' × 255' if unit > 1 else ''}, top 20/40/60/80/100 %: fixed "
        f"{join_radii(fixed, unit)}, I-OPT {join_radii(chosen, unit)}, gain "
        f"{'/'.join(f'{gain:+.1f}' for gain in gains)} %; the paper's gain "
        f"{'/'.join(f'{gain:+.1f}' for gain in theirs)} % ({TABLE})"
    )
