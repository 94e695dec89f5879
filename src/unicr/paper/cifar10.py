"""CIFAR-10: certified accuracy and robustness score, fixed noise against I-OPT.

The model is a ResNet-20 tuned with Gaussian noise of σ = 0.25. The logs that the authors of the
Gaussian baseline published for their ResNet-110 at σ = 0.5 stand beside it, in every norm.
"""

from __future__ import annotations

from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from unicr.noise import Gaussian, Laplace
from unicr.norms import l2, parse_norm
from unicr.paper import _versus
from unicr.paper._item import Context, Item, Result, Table
from unicr.paper._versus import NORMS, Printed, Setup
from unicr.radius import round_down

if TYPE_CHECKING:
    from unicr.metrics import Scores

TABLE = "Table 4"
RADII = (0.5, 1.0, 1.5, 2.0, 2.5)
# Table 4 of the paper: Laplace (l1) or Gaussian noise (l2, linf), then General Normal with I-OPT
PRINTED = {
    "1": Printed(
        RADII, (39.2, 17.2, 10.0, 6.0, 2.8), (45.8, 22.4, 14.8, 8.2, 3.6), (0.5606, 0.7027)
    ),
    "2": Printed(
        RADII, (38.6, 17.4, 8.6, 3.4, 1.6), (48.4, 26.8, 16.6, 6.8, 2.0), (0.5392, 0.7141)
    ),
    "inf": Printed(
        (2 / 255, 4 / 255, 6 / 255, 8 / 255, 10 / 255),
        (43.6, 21.8, 10.8, 5.6, 2.6),
        (53.4, 30.4, 21.2, 13.2, 5.6),
        (0.0098, 0.0136),
    ),
}
IMAGES = "cifar10_test.npz"
WEIGHTS = "cifar10_resnet20_ft_noise0.25.pt"
LOG = "logs/cifar10_resnet110_sigma_0.50.tsv"
SIGMA, LOG_SIGMA, DIM = 0.25, 0.5, 3072


def run(context: Context) -> Result:
    from unicr.smoothing import Plan

    setup = Setup(network(context), str(context.file(IMAGES)), SIGMA)
    pairs = _versus.compare(context, setup)
    scores = {norm: pair.scores() for norm, pair in pairs.items()}
    logged = _logged(context.file(LOG))
    tables = {
        "accuracy": _versus.accuracy_table(scores, PRINTED),
        "scores": _versus.score_table(scores, PRINTED),
        "published-log": _log_table(logged),
    }
    comparison = [*_versus.lines(scores, PRINTED, TABLE), *map(_log_line, logged)]
    plan = Plan(n0=context.sizes["n0"], n=context.sizes["n"], alpha=_versus.ALPHA)
    most = SIGMA * NormalDist().inv_cdf(plan.best_p_a())
    if "1" in pairs:
        comparison.append(_laplace_line(context, setup))
    return Result(
        tables=tables,
        figures={"accuracy": _versus.accuracy_figure(scores, PRINTED)},
        comparison=comparison,
        remarks=[
            _versus.sizes_text(context, "test images, evenly spread over the 10,000"),
            "the paper: 500 images, 4,000 samples, ResNet-110 and the best of σ = 0.12, 0.25, 0.5 "
            "and 1; here one ResNet-20 tuned with σ = 0.25: the robustness score is that of one σ, "
            f"and no radius of the fixed Gaussian noise can exceed {most:.3f} in l1 and l2",
            f"published log: {len(logged[0].radius)} images, n = 100,000, σ = 0.5; its l1 and linf "
            "radii follow from the same p_A",
        ],
    )


def network(context: Context) -> dict[str, Any]:
    """The arguments of `load_classifier`: the file's network without the layer that normalises."""
    from safetensors.torch import save_file

    from unicr.classifier.internal import read_weights

    tensors = read_weights(context.file(WEIGHTS))
    plain = {
        name.removeprefix("1."): tensor.contiguous()
        for name, tensor in tensors.items()
        if name.startswith("1.")
    }
    file = context.work / "resnet20.safetensors"
    save_file(plain, file)
    return {
        "spec": "builtin:resnet20",
        "weights": str(file),
        "mean": tensors["0.m"].flatten().tolist(),
        "std": tensors["0.d"].flatten().tolist(),
    }


def _logged(path: Path) -> list[Scores]:
    """The published certificates in the paper's three norms."""
    from unicr.runs import read_log, recertify, scores_of

    rows = read_log(path)
    noise = Gaussian(sigma=LOG_SIGMA)
    return [
        scores_of(
            rows if norm == l2.text else recertify(rows, noise, parse_norm(norm), DIM),
            norm,
            "published log",
            None,
        )
        for norm in NORMS
    ]


def _log_table(logged: list[Scores]) -> Table:
    rows = [
        (side.norm, radius, 100 * side.certified_accuracy(radius), theirs)
        for side in logged
        for radius, theirs in zip(PRINTED[side.norm].radii, PRINTED[side.norm].fixed, strict=True)
    ]
    return Table(("norm", "radius", "published_log", "paper_fixed"), rows)


def _log_line(side: Scores) -> str:
    paper = PRINTED[side.norm]
    assert paper.scores is not None
    return (
        f"l{side.norm}, published ResNet-110 log at σ = 0.5 alone: "
        f"{_versus.percents(side, paper.radii)} %, average radius "
        f"{round_down(side.average_radius, 4)}; the paper prints for the fixed noise, best of "
        f"four σ, {'/'.join(f'{v:.1f}' for v in paper.fixed)} % and {paper.scores[0]} ({TABLE})"
    )


def _laplace_line(context: Context, setup: Setup) -> str:
    """The paper's l1 baseline is Laplace noise: the same images certified with it."""
    from unicr.runs import scores_of

    rows = _versus.fixed_rows(context, setup, Laplace(sigma=SIGMA), ("1",), "laplace")
    side = scores_of(rows, "1", "Laplace", _versus.ALPHA)
    return (
        f"l1 with fixed Laplace noise, σ = 0.25: {_versus.percents(side, RADII)} %, average "
        f"radius {round_down(side.average_radius, 4)}"
    )


ITEM = Item(
    name="cifar10",
    title="certified accuracy and robustness score on CIFAR-10",
    source=TABLE,
    run=run,
    sizes={
        "quick": {
            "inputs": 5,
            "n0": 50,
            "n": 200,
            "norms": NORMS,
            "sigma": (0.5, 2, 2),
            "beta": (2, 2, 0.25),
        },
        "default": {
            "inputs": 30,
            "n0": 100,
            "n": 1000,
            "norms": NORMS,
            "sigma": (0.5, 2, 2**0.5),
            "beta": (1.5, 2.5, 0.5),
        },
        "full": {
            "inputs": 500,
            "n0": 400,
            "n": 4000,
            "norms": NORMS,
            "sigma": (0.25, 4, 2**0.25),
            "beta": (1, 3, 0.25),
        },
    },
    needs=(IMAGES, WEIGHTS, LOG),
)
