"""`unicr c-opt`: which noise of a family trains and certifies the most robust classifier."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from unicr.cli._options import PLACE, MaybeWhole, Numbers, PlaceOptions, Whole, whole

if TYPE_CHECKING:
    from unicr.c_opt import ShapeScore, Trained

Words = Annotated[list[str] | None, Parameter(consume_multiple=True, negative="")]
FAILED = 3


def c_opt(
    *,
    train: str,
    test: str,
    family: str = "gennorm",
    beta: Numbers = None,
    param: Words = None,
    sigma: Numbers = None,
    scale: Numbers = None,
    norm: Annotated[list[str], Parameter(consume_multiple=True, negative="")],
    out: Path,
    arch: str = "mlp",
    epochs: Whole = 12,
    lr: float = 3e-3,
    train_batch: Whole = 512,
    val_share: float = 0.02,
    patience: MaybeWhole = None,
    train_max: MaybeWhole = None,
    n0: Annotated[int, Parameter(name="--n0", converter=whole)] = 100,
    n: Whole = 1000,
    alpha: float = 0.001,
    searched: Annotated[bool, Parameter(negative="")] = False,
    max_: Annotated[int | None, Parameter(name="--max", converter=whole)] = None,
    skip: Whole = 1,
    seed: int = 0,
    device: str = "cpu",
    mean: Numbers = None,
    std: Numbers = None,
    place: PlaceOptions = PLACE,
    search: Literal["grid", "optuna"] = "grid",
    trials: Whole = 30,
    range_: Annotated[
        list[str] | None, Parameter(name="--range", consume_multiple=True, negative="")
    ] = None,
    resume: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Train and certify with each noise of a family. Exit code 3 if some trainings failed.

    Parameters
    ----------
    train
        The training data, with labels.
    test
        The inputs to certify, with labels.
    family
        gennorm, lapgauss, expmix, pareto, …: a name that `unicr noise list` shows.
    beta
        Values of the family's beta: --beta 0.5 1 2 is short for --param beta=0.5,1,2.
    param
        Values of the family's parameters, name=a,b,c; several are combined with each other.
    sigma
        Standard deviations; the robustness score of a shape goes over all of them.
    scale
        In place of sigma, for families without a variance.
    norm
        One or more norms, from the same votes: --norm 1 2 inf.
    out
        The folder of the search.
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
    n0
        Samples that choose the class.
    n
        Fresh samples that bound its probability.
    alpha
        Failure probability of one certificate.
    searched
        Score by the searched radius, the paper's approximate one, instead of the proved one.
    max_
        Certify at most this many inputs.
    skip
        Certify every skip-th input only.
    seed
        Seed of weights and noise.
    device
        Where the models run.
    mean
        The networks are given (x - mean)/std, per channel; noise and radius stay in input space.
    std
        See mean.
    search
        grid, or optuna (the extra unicr[optuna]) within --range, by the score in the first norm.
    trials
        How many shapes optuna tries in all.
    range_
        Where optuna looks: name=low:high for each parameter.
    resume
        Go on with a search that was interrupted.
    """
    from unicr.c_opt import COpt, Scales, grid, optuna_search, search_of
    from unicr.c_opt import c_opt as over_grid
    from unicr.data import load_dataset
    from unicr.report.copt import best_text, write_copt
    from unicr.smoothing import Plan, norms_of
    from unicr.train import Training

    kind = Scales(family, *_sizes(sigma, scale))
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
            seed=seed,
            device=device,
            mean=None if mean is None else tuple(mean),
            std=None if std is None else tuple(std),
        ),
        norms=norms_of(norm),
        plan=Plan(n0=n0, n=n, alpha=alpha),
        seed=seed,
        searched=searched,
        skip=skip,
        limit=max_,
        train_spec=train,
        test_spec=test,
    )
    copt = COpt(
        settings,
        out,
        workers=place.workers,
        ray=place.address,
        gpus=place.gpus,
        on_result=_announce,
    )
    lines: list[ShapeScore]
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


def _announce(result: Trained) -> None:
    """One line for each point that is done, with the accuracy of its training."""
    if result.failed is not None:
        words = f"failed: {result.failed}"
    elif result.best is not None and result.best["accuracy"] is not None:
        words = f"accuracy {result.best['accuracy']:.1%} under noise, certified"
    else:
        words = "trained and certified"
    print(f"{result.point.name}: {words}", file=sys.stderr, flush=True)


def _sizes(
    sigma: list[float] | None, scale: list[float] | None
) -> tuple[tuple[float, ...], Literal["sigma", "scale"]]:
    from unicr.errors import SpecError

    if (sigma is None) == (scale is None):
        raise SpecError("give one of --sigma and --scale, with one or more values")
    values = tuple(dict.fromkeys(sigma if sigma is not None else scale or ()))
    if not values:
        raise SpecError("--sigma or --scale has no value")
    return values, "scale" if sigma is None else "sigma"


def _parameters(beta: list[float] | None, param: list[str] | None) -> dict[str, list[float]]:
    """The values of each parameter, from --beta and --param."""
    from unicr.errors import SpecError

    values: dict[str, list[float]] = {} if beta is None else {"beta": beta}
    for text in param or []:
        name, _, numbers = text.partition("=")
        if name in values:
            raise SpecError(f"the values of {name} are given twice")
        try:
            values[name] = [float(word) for word in numbers.split(",")]
        except ValueError:
            raise SpecError(f"cannot read --param {text!r}: write name=0.5,1,2") from None
    return values


def _ranges(texts: list[str] | None) -> dict[str, tuple[float, float]]:
    from unicr.errors import SpecError

    ranges = {}
    for text in texts or []:
        name, _, numbers = text.partition("=")
        try:
            low, high = map(float, numbers.split(":"))
        except ValueError:
            raise SpecError(f"cannot read --range {text!r}: write name=0.5:5") from None
        if not low < high:
            raise SpecError(f"--range {text!r}: the first number must be below the second")
        ranges[name] = (low, high)
    return ranges


def _check_search(
    search: str, values: dict[str, list[float]], ranges: dict[str, tuple[float, float]]
) -> None:
    from unicr.errors import SpecError

    if search == "optuna" and (values or not ranges):
        raise SpecError(
            "optuna searches within ranges: give --range name=0.5:5, not --beta/--param"
        )
    if search == "grid" and ranges:
        raise SpecError("--range is for --search optuna: give --beta or --param for a grid")
