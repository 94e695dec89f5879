"""`unicr c-opt`: which noise of a family trains and certifies the most robust classifier."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from unicr.cli._parameters import FAILED, Out, Unasked, command, read_ranges, spread
from unicr.cli.certify import PLACE, PointPlan
from unicr.errors import SpecError
from unicr.lab.train import Training
from unicr.runs import Place, Terms

if TYPE_CHECKING:
    from unicr.lab.c_opt import ShapeScore


@dataclass(frozen=True)
class PointTraining(Training):
    """A training whose noise the search sets, and whose seed is the search's."""

    noise: Annotated[str | None, Unasked] = None
    epochs: int = 12
    lr: float = 3e-3
    batch: Annotated[int, Parameter(name="--train-batch")] = 512
    val_share: float = 0.02
    seed: Annotated[int, Unasked] = 0
    norm: Annotated[str | None, Unasked] = None

    def __post_init__(self) -> None:
        """Nothing is checked before `fit`: torch need not load for `--help`."""

    def fit(self, seed: int) -> Training:
        """The training itself."""
        return Training(**{**vars(self), "seed": seed})


spread(PointTraining, "Training")
PLAN, TRAINING = PointPlan(), PointTraining()


@command
def c_opt(
    *,
    train: str,
    test: str,
    family: str | None = None,
    beta: list[float] | None = None,
    param: list[str] | None = None,
    sigma: list[float] | None = None,
    scale: list[float] | None = None,
    terms: Terms,
    out: Out,
    train_max: int | None = None,
    search: Literal["grid", "optuna"] = "grid",
    trials: int = 30,
    range_: list[str] | None = None,
    resume: bool = False,
    training: PointTraining = TRAINING,
    plan: PointPlan = PLAN,
    place: Place = PLACE,
) -> int:
    """Find the best noise for a classifier by training (C-OPT).

    For each noise of a family, the command trains a network with this noise and certifies it. Exit
    code 3 if some trainings failed. Example:

    unicr c-opt --train mnist_train.npz --test builtin:mnist --family gennorm \\
      --beta 1 1.5 2 --sigma 0.25 0.5 --norm 1 2 inf --out grid

    Parameters
    ----------
    train
        The training data, with labels.
    test
        The inputs to certify, with labels.
    family
        A name that `unicr noise list` shows, such as lapgauss, expmix or pareto; gennorm if left
        out.
    beta
        Values of the family's beta: --beta 0.5 1 2 is short for --param beta=0.5,1,2.
    param
        Values of a parameter of the family, name=a,b,c. Values of several parameters are combined.
    sigma
        Standard deviations. The robustness score of a shape combines them.
    scale
        Used instead of sigma for families without a variance.
    out
        The folder of the search.
    train_max
        Train on at most this many inputs.
    search
        grid, or optuna (extra unicr[optuna]): search within --range for the best score in the first
        norm.
    trials
        How many shapes optuna tries.
    range_
        Where optuna looks: name=low:high for each parameter.
    resume
        Continue a search that was interrupted, with the same options.
    """
    from unicr.data import load_dataset
    from unicr.lab.c_opt import COpt, Scales, grid, make_search, optuna_search
    from unicr.lab.c_opt import c_opt as over_grid
    from unicr.lab.report.copt import SearchBar, best_text, write_copt
    from unicr.noise.internal import usual_family

    kind = Scales(family or usual_family().name, *_sizes(sigma, scale))
    values = _parameters(beta, param)
    ranges = _ranges(range_)
    shapes = grid(values) if search == "grid" else []
    _check_search(search, values, ranges)
    settings = make_search(
        load_dataset(train, split="train"),
        load_dataset(test),
        most=train_max,
        training=training.fit(terms.seed or 0),
        plan=plan.fit(),
        **vars(terms),
        train_spec=train,
        test_spec=test,
    )
    lines: list[ShapeScore]
    with SearchBar(len(kind.sizes) * (trials if search == "optuna" else len(shapes))) as shown:
        copt = shown.of(COpt(settings, out, on_result=shown.add, **place.where))
        if search == "optuna":
            lines = optuna_search(copt, kind, ranges, trials=trials, resume=resume)
        else:
            lines = over_grid(copt, kind, shapes, resume=resume)
    norms = [norm.text for norm in settings.norms]
    print(f"{'searched' if terms.searched else 'proved'} radii\n")
    print(write_copt(lines, norms, out))
    print(f"\n{best_text(lines, norms)}")
    print(f"search in {out}", file=sys.stderr)
    return FAILED if any(line.failures for line in lines) else 0


def _sizes(
    sigma: list[float] | None, scale: list[float] | None
) -> tuple[tuple[float, ...], Literal["sigma", "scale"]]:
    if (sigma is None) == (scale is None):
        raise SpecError("give either --sigma or --scale, with one or more values")
    values = tuple(dict.fromkeys(sigma if sigma is not None else scale or ()))
    if not values:
        raise SpecError("--sigma or --scale has no value")
    return values, "scale" if sigma is None else "sigma"


def _parameters(beta: list[float] | None, param: list[str] | None) -> dict[str, list[float]]:
    """The values of each parameter, from --beta and --param."""
    short = [] if beta is None else [f"beta={','.join(map(repr, beta))}"]
    return dict(read_ranges([*short, *(param or [])], "--param", "name=0.5,1,2", ","))


def _ranges(texts: list[str] | None) -> dict[str, tuple[float, float]]:
    ranges = {}
    for name, (low, high) in read_ranges(texts, "--range", "name=0.5:5", ":", 2).items():
        if not low < high:
            raise SpecError(f"--range {name}: the first number must be below the second")
        ranges[name] = (low, high)
    return ranges


def _check_search(
    search: str, values: dict[str, list[float]], ranges: dict[str, tuple[float, float]]
) -> None:
    if search == "optuna" and (values or not ranges):
        raise SpecError(
            "--search optuna needs ranges, not --beta or --param: give --range name=0.5:5"
        )
    if search == "grid" and ranges:
        raise SpecError(
            "--range works only with --search optuna: for a grid give --beta or --param"
        )
