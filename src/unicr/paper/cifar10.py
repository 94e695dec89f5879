"""CIFAR-10: certified accuracy and robustness score, fixed noise against I-OPT.

The model is a ResNet-20 tuned with Gaussian noise of σ = 0.25. The logs that the authors of the
Gaussian baseline published for their ResNet-110 at σ = 0.5 stand beside it, in every norm.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

from safetensors.torch import save_file

from unicr.classifier.internal import read_weights
from unicr.metrics import Scores
from unicr.noise import Gaussian, Laplace
from unicr.norms import l2, parse_norm
from unicr.paper import _certify
from unicr.paper._certify import NORMS, Setup, percents, printed, searching
from unicr.paper._item import Context, Output, Table, item
from unicr.runs import read_log, recertify, scores_of
from unicr.values import round_down

TABLE = "Table 4"
PRINTED = printed(TABLE)  # Laplace (l1) or Gaussian noise (l2, linf), then General Normal, I-OPT
IMAGES = "cifar10_test.npz"
WEIGHTS = "cifar10_resnet20_ft_noise0.25.pt"
LOG = "logs/cifar10_resnet110_sigma_0.50.tsv"
SIGMA, LOG_SIGMA, DIM = 0.25, 0.5, 3072


@item(
    "cifar10",
    "certified accuracy and robustness score on CIFAR-10",
    TABLE,
    searching(5, 50, 200, (0.5, 2, 2), (2, 2, 0.25)),
    searching(30, 100, 1000, (0.5, 2, 2**0.5), (1.5, 2.5, 0.5)),
    searching(500, 400, 4000, (0.25, 4, 2**0.25), (1, 3, 0.25)),
    needs=(IMAGES, WEIGHTS, LOG),
)
def run(context: Context) -> Output:
    setup = Setup(network(context), str(context.file(IMAGES)), SIGMA)
    sides = {norm: pair.scores() for norm, pair in _certify.compare(context, setup).items()}
    logged = _logged(context.file(LOG))
    found = _certify.compared(sides, PRINTED, TABLE)
    most = SIGMA * NormalDist().inv_cdf(_certify.plan_of(context.sizes).best_p_a())
    return replace(
        found,
        tables={**found.tables, "published-log": _log_table(logged)},
        comparison=[
            *found.comparison,
            *map(_log_line, logged),
            *([_laplace_line(context, setup)] if "1" in sides else []),
        ],
        remarks=[
            _certify.sizes_text(context.sizes, "test images, evenly spread over the 10,000"),
            "the paper: 500 images, 4,000 samples, ResNet-110 and the best of σ = 0.12, 0.25, 0.5 "
            "and 1; here one ResNet-20 tuned with σ = 0.25: the robustness score is that of one σ, "
            f"and no radius of the fixed Gaussian noise can exceed {most:.3f} in l1 and l2",
            f"published log: {len(logged[0].radius)} images, n = 100,000, σ = 0.5; its l1 and linf "
            "radii follow from the same p_A",
        ],
    )


def network(context: Context) -> dict[str, Any]:
    """The arguments of `load_classifier`: the file's network without the layer that normalises."""
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
    rows, noise = read_log(path), Gaussian(sigma=LOG_SIGMA)
    found = {
        norm: rows if norm == l2.text else recertify(rows, noise, parse_norm(norm), DIM)
        for norm in NORMS
    }
    return [scores_of(own, norm, "published log", None) for norm, own in found.items()]


def _log_table(logged: list[Scores]) -> Table:
    rows = [
        (side.norm, radius, 100 * side.certified_accuracy(radius), theirs)
        for side in logged
        for radius, theirs in zip(PRINTED[side.norm].radii, PRINTED[side.norm].fixed, strict=True)
    ]
    return Table(("norm", "radius", "published_log", "paper_fixed"), rows)


def _log_line(side: Scores) -> str:
    paper = PRINTED[side.norm]
    return (
        f"l{side.norm}, published ResNet-110 log at σ = 0.5 alone: {percents(side, paper.radii)} "
        f"%, average radius {round_down(side.average_radius, 4)}; the paper prints for the fixed "
        f"noise, best of four σ, {_certify.slashed(paper.fixed)} % and {paper.scores[0]} ({TABLE})"
    )


def _laplace_line(context: Context, setup: Setup) -> str:
    """The paper's l1 baseline is Laplace noise: the same images certified with it."""
    rows = _certify.certified(context, setup, Laplace(sigma=SIGMA), ("1",), "laplace")
    side = scores_of(rows, "1", "Laplace", _certify.ALPHA)
    return (
        f"l1 with fixed Laplace noise, σ = 0.25: {percents(side, PRINTED['1'].radii)} %, "
        f"average radius {round_down(side.average_radius, 4)}"
    )
