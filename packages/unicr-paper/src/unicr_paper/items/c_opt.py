"""C-OPT: the robustness score on MNIST where a General Normal noise both trains and certifies."""

from __future__ import annotations

from unicr.data import load_dataset
from unicr.lab.c_opt import COpt, Scales, ShapeScore, c_opt, grid, make_search
from unicr.lab.report.copt import SearchBar
from unicr.lab.train import Training
from unicr.smoothing import read_norms
from unicr.text import round_down
from unicr_paper._certify import NORMS, TABLES, plan_of
from unicr_paper._item import Axes, Context, Output, Table, item, panels

TABLE = "Table 2"
PRINTED = {norm: TABLES[TABLE][norm] for norm in NORMS}
BETAS = TABLES[TABLE]["betas"]
SIGMAS = (0.12, 0.25, 0.5, 1)
TRAIN, TEST = "mnist_train.npz", "mnist_test.npz"
QUICK = {"norms": ("1", "inf"), "train": 2000, "epochs": 2, "n": 1000}
USUAL = {"norms": NORMS, "train": None, "epochs": 12, "n": 1000}


@item(
    "c-opt",
    "robustness score against β, trained and certified with it",
    TABLE,
    {"betas": (1, 2), "sigmas": (0.5,), "inputs": 30, **QUICK},
    {"betas": (0.75, 1, 1.5, 2, 2.25), "sigmas": (0.5, 1), "inputs": 200, **USUAL},
    {"betas": BETAS, "sigmas": SIGMAS, "inputs": 1000, **USUAL},
    needs=(TRAIN, TEST),
    order=3,
)
def run(context: Context) -> Output:
    points, sizes = _found(context), context.sizes
    norms = sizes["norms"]
    scores = {
        norm: {dict(point.shape)["beta"]: point.scores[norm] for point in points} for norm in norms
    }
    paper = {norm: dict(zip(BETAS, PRINTED[norm], strict=True)) for norm in norms}
    rows = [
        (beta, norm, "" if score is None else score, paper[norm][beta])
        for norm in norms
        for beta, score in scores[norm].items()
    ]

    def draw(axes: Axes, norm: str) -> None:
        ours = {beta: score for beta, score in scores[norm].items() if score is not None}
        axes.plot(list(ours), list(ours.values()), "o-", label="here")
        axes.plot(BETAS, PRINTED[norm], "x:", label="the paper")

    return Output(
        tables={"scores": Table(("beta", "norm", "score", "paper"), rows)},
        figures={"scores": panels(norms, draw, x="β", y="robustness score against l{}")},
        comparison=[_line(norm, scores[norm]) for norm in norms],
        remarks=[
            f"{sizes['inputs']} MNIST test digits (the paper: 1,000), n = {sizes['n']} (the "
            f"paper: 1,000), sigma {', '.join(f'{s:g}' for s in sizes['sigmas'])} (the paper: "
            "0.12, 0.25, 0.5, 1; fewer make every score smaller)",
            f"a perceptron 784-512-256-10, {sizes['epochs']} epochs on "
            f"{sizes['train'] or 'all 60,000'} training digits; the paper does not print its own",
            *(f"training failed: {reason}" for point in points for reason in point.failures),
        ],
    )


def _found(context: Context) -> list[ShapeScore]:
    """The grid in the item's work folder, gone on with where it was interrupted."""
    sizes = context.sizes
    train, test = str(context.file(TRAIN)), str(context.file(TEST))
    search = make_search(
        load_dataset(train),
        load_dataset(test),
        most=sizes["train"],
        training=Training(noise=None, arch="mlp", epochs=sizes["epochs"], seed=context.seed),
        norms=read_norms(sizes["norms"]),
        plan=plan_of(sizes),
        seed=context.seed,
        searched=True,
        limit=sizes["inputs"],
        train_spec=train,
        test_spec=test,
    )

    shapes, sigmas = grid({"beta": sizes["betas"]}), tuple(sizes["sigmas"])
    with SearchBar(len(shapes) * len(sigmas)) as shown:
        copt = COpt(search, context.work, workers=context.workers, on_result=shown.add)
        return c_opt(shown.of(copt), Scales("gennorm", sigmas), shapes, resume=True)


def _line(norm: str, scores: dict[float, float | None]) -> str:
    """The best β of ours, and the paper's own for the same β, with the paper's best."""
    ours = {beta: score for beta, score in scores.items() if score is not None}
    theirs = dict(zip(BETAS, PRINTED[norm], strict=True))
    top = max(theirs, key=lambda beta: theirs[beta])
    if not ours:
        return f"l{norm}: every shape has a training that failed"
    best = max(ours, key=lambda beta: ours[beta])
    return (
        f"l{norm}: best β = {best:g} with {round_down(ours[best], 4)} of {len(ours)} β (the paper "
        f"has {theirs[best]:.4f} there); the paper's best β = {top:g} with {theirs[top]:.4f} "
        f"({TABLE})"
    )
