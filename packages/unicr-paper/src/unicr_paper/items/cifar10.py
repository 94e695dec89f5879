"""CIFAR-10: certified accuracy and robustness score, fixed noise against I-OPT.

The model is a ResNet-20 tuned with Gaussian noise of σ = 0.25, or those of `--set weights=…`, the
paper's own among them; with several, the best σ counts at each radius, as in the paper. The logs of
the Gaussian baseline's authors for their ResNet-110 at σ = 0.5 stand beside, in every norm. The
table `top` has the layout of the paper's Table 3: averages of the largest radii, at each σ.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

from safetensors.torch import save_file

from unicr.classifier.internal import read_weights
from unicr.metrics import Scores, best_of
from unicr.noise import gaussian, laplace
from unicr.norms import l2, parse_norm
from unicr.runs import read_log, recertify, score_log, scores_of
from unicr.text import round_down
from unicr_paper import _certify
from unicr_paper._certify import (
    NORMS,
    Setup,
    Sides,
    make_sizes,
    percents,
    read_printed,
    with_inputs,
)
from unicr_paper._item import Context, Output, Table, item

TABLE = "Table 4"
# Laplace (l1) or Gaussian noise (l2, linf), then General Normal, I-OPT
PRINTED = read_printed(TABLE)
IMAGES = "cifar10_test.npz"
WEIGHTS = "cifar10_resnet20_ft_noise0.25.pt"
LOG = "logs/cifar10_resnet110_sigma_0.50.tsv"
SIGMA, LOG_SIGMA, DIM = 0.25, 0.5, 3072
MEAN, STD = [0.4914, 0.4822, 0.4465], [0.2023, 0.1994, 0.2010]  # of the paper's networks


@item(
    "cifar10",
    "certified accuracy and robustness score on CIFAR-10",
    TABLE,
    make_sizes(5, 50, 200, (0.5, 2, 2), (2, 2, 0.25)),
    make_sizes(200, 100, 1000, (0.5, 2, 2**0.5), (1.5, 2.5, 0.5)),
    make_sizes(500, 400, 4000, (0.25, 4, 2**0.25), (1, 3, 0.25)),
    needs=(IMAGES, LOG),
    options={
        "weights": "a state dict, or a folder of them; σ is the last number of a name",
        "model": "file.py:factory of the network, where it is no ResNet",
        "laplace": "the same for the Laplace noise of l1; those of `weights` if left out",
        "inputs": "how many images, in place of the mode's number",
    },
    order=5,
)
def run(context: Context) -> Output:
    context = with_inputs(context)
    images, models = str(context.file(IMAGES)), _models(context)
    pairs = _certify.compare_sigmas(context, models, images)
    baselines = []
    if "1" in pairs:  # the paper's baseline there
        trained = _models(context, "laplace") if "laplace" in context.options else models
        for sigma, arguments in trained.items():
            folder = _certify.own_folder(context, sigma, trained)
            setup = Setup(arguments, images, sigma)
            rows = _certify.certify(folder, setup, laplace(sigma=sigma), ("1",), "laplace")
            baselines.append(scores_of(rows, "1", "Laplace", _certify.ALPHA))
    logged = _score_log(context.file(LOG))
    sides = Sides.of({norm: list(several.values()) for norm, several in pairs.items()})
    output = _certify.report_comparison(sides, PRINTED, TABLE)
    sigmas = ", ".join(f"{sigma:g}" for sigma in models)
    plan = _certify.plan_of(context.sizes)
    most = max(models) * NormalDist().inv_cdf(plan.rule.best(plan))
    laplaces = [best_of(baselines)] if baselines else []
    return replace(
        output,
        tables={
            **output.tables,
            "published-log": _log_table(logged),
            "laplace": _laplace_table(laplaces),
            "top": _certify.top_table(pairs),
        },
        comparison=[
            *output.comparison,
            *map(_log_line, logged),
            *(_laplace_line(side, sigmas) for side in laplaces),
        ],
        remarks=[
            _certify.sizes_text(context.sizes, "test images, evenly spread over the 10,000"),
            "the paper: 500 images, 4,000 samples, ResNet-110 and the best of σ = 0.12, 0.25, 0.5 "
            f"and 1; here {next(iter(models.values()))['spec'].removeprefix('builtin:')}, σ = "
            f"{sigmas}, and no radius of the fixed Gaussian noise can exceed {most:.3f} in l1 and "
            "l2",
            f"published log: {len(logged[0].radius)} images, n = 100,000, σ = 0.5; its l1 and linf "
            "radii follow from the same p_A",
        ],
    )


def _models(context: Context, option: str = "weights") -> dict[float, dict[str, Any]]:
    """The networks by the σ of their training: those given, or the one of the data folder."""
    if option not in context.options:
        return {SIGMA: network(context)}
    files = _certify.weights_by_sigma(option, context.options[option])
    return {sigma: network(context, file) for sigma, file in files.items()}


def network(context: Context, path: Path | None = None) -> dict[str, Any]:
    """The arguments of `load_classifier`: the file's network without the layer that normalises.

    The layer comes first where the names of the network begin with 1, as in the files of the
    paper's authors, who keep their mean and std in code; `0.m` and `0.d` are theirs where present.
    """
    source = path or context.file(WEIGHTS)
    tensors = read_weights(source, trust=(source,))  # whoever runs the item chose the file
    sequence, given = "1.conv1.weight" in tensors or "0.m" in tensors, context.options.get("model")
    plain = {
        name.removeprefix("1.") if sequence else name: tensor.contiguous()
        for name, tensor in tensors.items()
        if not sequence or name.startswith("1.")
    }
    if given is None:
        plain = {name.replace("fc.", "linear."): tensor for name, tensor in plain.items()}
    depth = 6 * len({name.split(".")[1] for name in plain if name.startswith("layer1.")}) + 2
    name = f"{path.parent.name}-{path.stem}" if path else "resnet20"
    file = context.work / f"{name}.safetensors"
    file.parent.mkdir(parents=True, exist_ok=True)
    save_file(plain, file)
    normalises = "0.m" in tensors
    return {
        "spec": given or f"builtin:resnet{depth}",
        "weights": str(file),
        "mean": tensors["0.m"].flatten().tolist() if normalises else MEAN,
        "std": tensors["0.d"].flatten().tolist() if normalises else STD,
    }


def _score_log(path: Path) -> list[Scores]:
    """The published certificates in the paper's three norms."""
    rows, noise = read_log(path), gaussian(sigma=LOG_SIGMA)
    logs = {
        norm: rows if norm == l2.text else recertify(rows, noise, parse_norm(norm), DIM)
        for norm in NORMS
    }
    return [score_log(log, norm, "published log") for norm, log in logs.items()]


def _log_table(logged: list[Scores]) -> Table:
    rows = [
        (side.norm, radius, 100 * side.certified_accuracy(radius), theirs)
        for side in logged
        for radius, theirs in zip(PRINTED[side.norm].radii, PRINTED[side.norm].fixed, strict=True)
    ]
    return Table(("norm", "radius", "published_log", "paper_fixed"), rows)


def _laplace_table(sides: list[Scores]) -> Table:
    """Fixed Laplace noise in l1, proved radii (an exact theorem), beside the paper's."""
    paper = PRINTED["1"]
    rows = [
        (radius, 100 * side.certified_accuracy(radius), theirs)
        for side in sides
        for radius, theirs in zip(paper.radii, paper.fixed, strict=True)
    ]
    return Table(("radius", "laplace", "paper_fixed"), rows)


def _log_line(side: Scores) -> str:
    paper = PRINTED[side.norm]
    return (
        f"l{side.norm}, published ResNet-110 log at σ = 0.5 alone: {percents(side, paper.radii)} "
        f"%, average radius {round_down(side.average_radius, 4)}; the paper prints for the fixed "
        f"noise, best of four σ, {_certify.join_slashes(paper.fixed)} % and {paper.scores[0]} "
        f"({TABLE})"
    )


def _laplace_line(side: Scores, sigmas: str) -> str:
    """The paper's l1 baseline is Laplace noise: the same images certified with it."""
    return (
        f"l1 with fixed Laplace noise, σ = {sigmas}: {percents(side, PRINTED['1'].radii)} %, "
        f"robustness score {round_down(side.average_radius, 4)}"
    )
