"""ImageNet: certified accuracy at the paper's radii, fixed noise against I-OPT.

The model is an EfficientNet-lite0 that tools/train_imagenet.py taught to stand noise, on images
that it never saw; or any images and any model that `unicr certify` takes. Of several σ, each with
weights of its own or all with the same, the best one counts at each radius, as in the paper.
Neither images nor weights are shipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from unicr.classifier.internal import read_weights
from unicr.errors import SpecError
from unicr.text import read_list
from unicr_paper import efficientnet
from unicr_paper._certify import (
    Sides,
    compare_sigmas,
    make_sizes,
    read_printed,
    report_comparison,
    sizes_text,
    top_table,
    weights_by_sigma,
    with_inputs,
)
from unicr_paper._item import Context, MissingDataError, Output, item

TABLE = "Table 5"
PRINTED = read_printed(TABLE)  # Gaussian noise, then General Normal with I-OPT
IMAGES = "imagenet100_224.npz"
OPTIONS = {
    "folder": f"images by class in sub-folders, or .npz; {IMAGES} of the data folder if left out",
    "model": "as unicr certify --model takes it; EfficientNet-lite0 if left out",
    "weights": "a state dict, or a folder of them; σ is the last number of a name",
    "mean": "per channel, 0.485,0.456,0.406",
    "std": "per channel, 0.229,0.224,0.225",
    "precision": "bf16 or fp16; EfficientNet-lite0 has bf16",
    "sigma": "of the fixed Gaussian noise, one or several, where no name of weights says it",
    "inputs": "how many images, in place of the mode's number",
}


@item(
    "imagenet",
    "certified accuracy and robustness score on ImageNet",
    TABLE,
    make_sizes(3, 20, 50, (0.5, 2, 2), (2, 2, 0.25), ("2", "inf")),
    # Fixed noise and I-OPT take 2,350 passes an image, each 5 ms of a core with `half_lite0`: 150
    # images at three σ are 45 minutes of two cores.
    make_sizes(150, 50, 1000, (0.5, 2, 2**0.5), (2, 2, 0.25)),
    make_sizes(500, 200, 1000, (0.25, 4, 2**0.25), (1, 3, 0.25)),
    options=OPTIONS,
    order=6,
)
def run(context: Context) -> Output:
    context = with_inputs(context)
    models, images = _models(context), context.options.get("folder")
    if images is None:
        if not (context.data / IMAGES).exists():
            raise MissingDataError(f"needs --set folder=…, or {IMAGES} in {context.data}")
        images = str(context.data / IMAGES)
    pairs = compare_sigmas(context, models, images)
    sides = Sides.of({norm: list(several.values()) for norm, several in pairs.items()})
    output = report_comparison(sides, PRINTED, TABLE)
    inputs = len(next(iter(sides.proved.values()))[0].radius)
    spec = next(iter(models.values()))["spec"]
    name = efficientnet.NAMES.get(spec, spec)
    return replace(
        output,
        tables={**output.tables, "top": top_table(pairs)},
        remarks=[
            f"{inputs} images of {images}, model {name}, σ = "
            f"{', '.join(f'{sigma:g}' for sigma in models)}; the paper: 500 images, 1,000 "
            "samples, ResNet-50 and the best of σ = 0.25, 0.5 and 1",
            sizes_text(context.sizes, "images at most, evenly spread"),
        ],
    )


def _models(context: Context) -> dict[float, dict[str, Any]]:
    """The arguments of `load_classifier` by σ."""
    given = context.options
    usual = "model" not in given
    if usual and "weights" not in given:
        raise MissingDataError(
            "needs --set weights=… of an EfficientNet-lite0 (tools/train_imagenet.py makes them), "
            "or --set model=…"
        )
    if usual and find_spec("efficientnet_lite_pytorch") is None:
        raise MissingDataError(f"needs efficientnet-lite-pytorch: {efficientnet.INSTALL}")
    numbers = {name: _numbers(name, given.get(name)) for name in ("mean", "std", "sigma")}
    arguments: dict[str, Any] = {
        "spec": given.get("model"),
        "mean": numbers["mean"] or (efficientnet.MEAN if usual else None),
        "std": numbers["std"] or (efficientnet.STD if usual else None),
        "precision": given.get("precision", "bf16" if usual else None),
    }
    if "weights" not in given:
        return dict.fromkeys(numbers["sigma"] or (0.5,), arguments)
    if numbers["sigma"] is not None:
        files = dict.fromkeys(numbers["sigma"], given["weights"])
    else:
        files = {s: str(f) for s, f in weights_by_sigma("weights", given["weights"]).items()}
    return {
        sigma: {
            **arguments,
            "spec": given.get("model") or _architecture(file),
            "weights": file,
            "trust": file,  # whoever runs the item chose the files
        }
        for sigma, file in files.items()
    }


def _architecture(file: str) -> str:
    """Which EfficientNet-lite0 the weights are of: in `half_lite0` a pool comes first."""
    path = Path(file).expanduser()
    if not path.is_file():
        raise MissingDataError(f"needs --set weights=…: there is no {file}")
    names = read_weights(path, trust=(path,))
    behind = all(name.startswith("1.") for name in names)
    return efficientnet.HALF if behind else efficientnet.SPEC


def _numbers(name: str, text: str | None) -> Sequence[float] | None:
    """The numbers of an option, or None if it was not given."""
    if text is None:
        return None
    try:
        values = tuple(read_list(text))
    except SpecError:
        raise SpecError(f"--set {name}={text}: numbers with commas between them") from None
    if name == "sigma" and not (values and min(values) > 0):
        raise SpecError(f"--set sigma={text}: numbers above 0")
    return values
