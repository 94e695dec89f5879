"""`unicr c-opt`: which noise of a family trains and certifies the most robust classifier."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from unicr.cli._options import (
    FAILED,
    N0,
    PLACE,
    Alpha,
    Device,
    Max,
    MaybeWhole,
    Mean,
    N,
    Nonce,
    Norms,
    Numbers,
    OutFolder,
    PlaceOptions,
    Resume,
    Searched,
    Skip,
    Std,
    Whole,
    Words,
    named,
)
from unicr.errors import SpecError

if TYPE_CHECKING:
    from unicr.lab.c_opt import ShapeScore

SEED = "Seed of training (0 without) and, as an experiment, of the noise of certificates."


def c_opt(
    *,
    train: str,
    test: str,
    family: str | None = None,
    beta: Numbers = None,
    param: Words = None,
    sigma: Numbers = None,
    scale: Numbers = None,
    norm: Norms,
    out: OutFolder,
    arch: str = "mlp",
    epochs: Whole = 12,
    lr: float = 3e-3,
    train_batch: Whole = 512,
    val_share: float = 0.02,
    patience: MaybeWhole = None,
    train_max: MaybeWhole = None,
    n0: N0 = 100,
    n: N = 1000,
    alpha: Alpha = 0.001,
    searched: Searched = False,
    max_: Max = None,
    skip: Skip = 1,
    nonce: Nonce = None,
    seed: Annotated[int | None, Parameter(help=SEED)] = None,
    device: Device = "cpu",
    mean: Mean = None,
    std: Std = None,
    place: PlaceOptions = PLACE,
    search: Literal["grid", "optuna"] = "grid",
    trials: Whole = 30,
    range_: Annotated[Words, Parameter(name="--range")] = None,
    resume: Resume = False,
) -> int:
    """Find the best noise for a classifier by training (C-OPT).

    Every noise of a family trains a network and certifies it. Exit code 3 if some trainings
    failed. Example:

    unicr c-opt --train mnist_train.npz --test builtin:mnist --family gennorm \\
      --beta 1 1.5 2 --sigma 0.25 0.5 --norm 1 2 inf --out grid

    Parameters
    ----------
    train
        The training data, with labels.
    test
        The inputs to certify, with labels.
    family
        A name that `unicr noise list` shows, such as lapgauss, expmix or pareto; gennorm without
        it.
    beta
        Values of the family's beta: --beta 0.5 1 2 is short for --param beta=0.5,1,2.
    param
        Values of the family's parameters, name=a,b,c; several are combined with each other.
    sigma
        Standard deviations; the robustness score of a shape goes over all of them.
    scale
        In place of sigma, for families without a variance.
    arch
        mlp, resnet8, resnet20, resnet56, resnet110, or file.py:factory.
    epochs
        Passes over the training data.
    lr
        The highest learning rate.
    train_batch
        Inputs per step of training.
    val_share
        Share of the training inputs held out; the epoch with the best accuracy on them is kept.
    patience
        Stop a training after this many epochs without a better accuracy.
    train_max
        Train on at most this many inputs.
    search
        grid, or optuna (the extra unicr[optuna]) within --range, by the score in the first norm.
    trials
        How many shapes optuna tries in all.
    range_
        Where optuna looks: name=low:high for each parameter.
    """
    from unicr.data import load_dataset
    from unicr.lab.c_opt import COpt, Scales, grid, optuna_search, search_of
    from unicr.lab.c_opt import c_opt as over_grid
    from unicr.lab.report.copt import SearchBar, best_text, write_copt
    from unicr.lab.train import Training
    from unicr.noise.internal import usual_family
    from unicr.smoothing import Plan, norms_of

    kind = Scales(family or usual_family().name, *_sizes(sigma, scale))
    values = _parameters(beta, param)
    ranges = _ranges(range_)
    shapes = grid(values) if search == "grid" else []
    _check_search(search, values, ranges)
    settings = search_of(
        load_dataset(train, split="train"),
        load_dataset(test),
        most=train_max,
        training=Training(
            noise=None,
            arch=arch,
            epochs=epochs,
            lr=lr,
            batch=train_batch,
            val_share=val_share,
            patience=patience,
            seed=seed or 0,
            device=device,
            mean=None if mean is None else tuple(mean),
            std=None if std is None else tuple(std),
        ),
        norms=norms_of(norm),
        plan=Plan(n0=n0, n=n, alpha=alpha),
        seed=seed,
        nonce=nonce,
        searched=searched,
        skip=skip,
        limit=max_,
        train_spec=train,
        test_spec=test,
    )
    lines: list[ShapeScore]
    with SearchBar(len(kind.sizes) * (trials if search == "optuna" else len(shapes))) as shown:
        copt = shown.of(COpt(settings, out, on_result=shown.add, **place.arguments))
        if search == "optuna":
            lines = optuna_search(copt, kind, ranges, trials=trials, resume=resume)
        else:
            lines = over_grid(copt, kind, shapes, resume=resume)
    norms = [one.text for one in settings.norms]
    print(f"{'searched' if searched else 'proved'} radii\n")
    print(write_copt(lines, norms, out))
    print(f"\n{best_text(lines, norms)}")
    print(f"search in {out}", file=sys.stderr)
    return FAILED if any(line.failures for line in lines) else 0


def _sizes(sigma: Numbers, scale: Numbers) -> tuple[tuple[float, ...], Literal["sigma", "scale"]]:
    if (sigma is None) == (scale is None):
        raise SpecError("give one of --sigma and --scale, with one or more values")
    values = tuple(dict.fromkeys(sigma if sigma is not None else scale or ()))
    if not values:
        raise SpecError("--sigma or --scale has no value")
    return values, "scale" if sigma is None else "sigma"


def _parameters(beta: Numbers, param: Words) -> dict[str, list[float]]:
    """The values of each parameter, from --beta and --param."""
    short = [] if beta is None else [f"beta={','.join(map(repr, beta))}"]
    return dict(named([*short, *(param or [])], "--param", "name=0.5,1,2", ","))


def _ranges(texts: Words) -> dict[str, tuple[float, float]]:
    ranges = {}
    for name, (low, high) in named(texts, "--range", "name=0.5:5", ":", 2).items():
        if not low < high:
            raise SpecError(f"--range {name}: the first number must be below the second")
        ranges[name] = (low, high)
    return ranges


def _check_search(
    search: str, values: dict[str, list[float]], ranges: dict[str, tuple[float, float]]
) -> None:
    if search == "optuna" and (values or not ranges):
        raise SpecError(
            "optuna searches within ranges: give --range name=0.5:5, not --beta/--param"
        )
    if search == "grid" and ranges:
        raise SpecError("--range is for --search optuna: give --beta or --param for a grid")
