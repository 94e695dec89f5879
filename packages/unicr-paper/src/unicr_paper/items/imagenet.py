"""ImageNet: certified accuracy at the paper's radii, for a folder and a model that the user gives.

Neither images nor weights can be shipped; whatever `load_dataset` and `load_classifier` read will
do: a folder with one sub-folder of images per class, or an .npz file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from unicr.errors import SpecError
from unicr.text import read_list
from unicr_paper._certify import Setup, compare, compared, printed, searching, sizes_text
from unicr_paper._item import Context, Output, item

TABLE = "Table 5"
PRINTED = printed(TABLE)  # Gaussian noise, then General Normal with I-OPT
OPTIONS = {
    "folder": "images by class in sub-folders, or .npz",
    "model": "as unicr certify --model takes it",
    "weights": "a state dict for the model, if it needs one",
    "mean": "per channel, 0.485,0.456,0.406",
    "std": "per channel, 0.229,0.224,0.225",
    "sigma": "of the fixed Gaussian noise, 0.5 if left out",
}


@item(
    "imagenet",
    "certified accuracy and robustness score on a folder in ImageNet format",
    TABLE,
    searching(3, 20, 50, (0.5, 2, 2), (2, 2, 0.25), ("2", "inf")),
    searching(20, 100, 400, (0.25, 4, 2**0.5), (1.5, 2.5, 0.25)),
    searching(500, 200, 1000, (0.25, 4, 2**0.25), (1, 3, 0.25)),
    options=OPTIONS,
    order=6,
)
def run(context: Context) -> Output:
    given = context.options
    arguments: dict[str, Any] = {
        "spec": context.option("model"),
        "weights": given.get("weights"),
        "trust": given.get("weights"),  # whoever runs the item chose the file
        "mean": _numbers("mean", given.get("mean")),
        "std": _numbers("std", given.get("std")),
    }
    (sigma,) = _numbers("sigma", given.get("sigma")) or (0.5,)
    setup = Setup(arguments, context.option("folder"), sigma)
    sides = {norm: pair.scores() for norm, pair in compare(context, setup).items()}
    inputs = len(next(iter(sides.values()))[0].radius)
    return replace(
        compared(sides, PRINTED, TABLE),
        remarks=[
            f"{inputs} images of {setup.data}, model {arguments['spec']}, one σ = {sigma:g}; the "
            "paper: 500 images, 1,000 samples, ResNet-50 and the best of σ = 0.25, 0.5 and 1",
            sizes_text(context.sizes, "images at most, evenly spread"),
        ],
    )


def _numbers(name: str, text: str | None) -> Sequence[float] | None:
    """The numbers of an option, or None where it was not given."""
    if text is None:
        return None
    try:
        values = tuple(read_list(text))
    except SpecError:
        raise SpecError(f"--set {name}={text}: numbers with commas between them") from None
    if name == "sigma" and not (len(values) == 1 and values[0] > 0):
        raise SpecError(f"--set sigma={text}: one number above 0")
    return values
