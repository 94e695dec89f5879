"""I-OPT for the eye: an image, its noisy copies before and after, and both densities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unicr.data import load_dataset
from unicr.noise import Noise, gaussian, parse
from unicr.text import round_down
from unicr_paper._certify import Pair, Setup, compare, make_sizes, sizes_text
from unicr_paper._item import Axes, Context, Figure, Output, Table, item
from unicr_paper.items import cifar10

FIGURE = "Figure 14"
PRINTED = ((1.24, 1.48), (0.35, 1.30))  # radii before and after that the paper's text prints
COLUMNS = ("data", "norm", "input", "before", "after", "radius_before", "radius_after")


@dataclass(frozen=True)
class Example:
    """One input and norm: the two noises and their radii."""

    data: str
    norm: str
    index: int
    image: Any
    before: Noise
    after: Noise
    radii: tuple[float, float]


QUICK = ((0.5, 2, 2), (2, 2, 0.25), ("1", "inf"))
USUAL = ((0.25, 4, 2**0.5), (1.5, 2.5, 0.25))


@item(
    "visual",
    "images, noise and densities before and after I-OPT",
    FIGURE,
    {"MNIST": make_sizes(4, 50, 200, *QUICK), "CIFAR-10": make_sizes(2, 50, 200, *QUICK)},
    {"MNIST": make_sizes(50, 500, 5000, *USUAL), "CIFAR-10": make_sizes(5, 100, 1000, *USUAL)},
    {
        "MNIST": make_sizes(500, 1000, 10_000, *USUAL),
        "CIFAR-10": make_sizes(100, 400, 4000, *USUAL),
    },
    order=14,
)
def run(context: Context) -> Output:
    digits = Setup("builtin:mnist-mlp-0.5", "builtin:mnist", 0.5)
    examples = _examples(context, "MNIST", digits)
    needed = (cifar10.IMAGES, cifar10.WEIGHTS)
    absent = [name for name in needed if not (context.data / name).exists()]
    if not absent:
        images = str(context.file(cifar10.IMAGES))
        setup = Setup(cifar10.network(context), images, cifar10.SIGMA)
        examples += _examples(context, "CIFAR-10", setup)

    def draw(axes: list[Axes]) -> None:
        for i, example in enumerate(examples):
            _draw(axes[4 * i : 4 * i + 4], example, context.seed)

    rows = [
        (
            example.data,
            example.norm,
            example.index,
            example.before.text,
            example.after.text,
            *example.radii,
        )
        for example in examples
    ]
    paper = " and ".join(f"{a} → {b}" for a, b in PRINTED)
    remarks = [
        f"{name}: {sizes_text(context.sizes[name], 'inputs; those that won most are shown')}"
        for name in dict.fromkeys(example.data for example in examples)
    ]
    if absent:
        remarks.append(f"no CIFAR-10 images: {', '.join(absent)} not in the data folder")
    return Output(
        tables={"examples": Table(COLUMNS, rows)},
        figures={"examples": Figure(draw, len(examples), 4, width=11, height=2.4 * len(examples))},
        comparison=[
            f"{example.data} input {example.index}, l{example.norm}: radius "
            f"{round_down(example.radii[0], 4)} → "
            f"{round_down(example.radii[1], 4)} (the paper's ImageNet examples: {paper}, {FIGURE})"
            for example in examples
        ],
        remarks=remarks,
    )


def _examples(context: Context, name: str, setup: Setup) -> list[Example]:
    """For each norm the input whose radius I-OPT enlarged most, among those certified rightly."""
    data = load_dataset(setup.data)
    pairs = compare(_of(context, name), setup)
    return [_best(name, pair, data, setup.sigma) for pair in pairs.values()]


def _of(context: Context, name: str) -> Context:
    """The same item for one of its datasets."""
    return replace(context, work=context.work / name, sizes=context.sizes[name])


def _best(name: str, pair: Pair, data: Any, sigma: float) -> Example:
    def gain(i: int) -> float:
        if not (pair.fixed[i].correct and pair.chosen[i].correct):
            return -1.0
        return pair.chosen[i].radius(pair.norm) - pair.fixed[i].radius(pair.norm)

    i = max(range(len(pair.fixed)), key=gain)
    fixed, chosen = pair.fixed[i], pair.chosen[i]
    before = gaussian(sigma=sigma)
    chosen_noise = None if chosen.certificate is None else chosen.certificate.noise
    after = before if chosen_noise is None else parse(chosen_noise)
    return Example(
        data=name,
        norm=pair.norm,
        index=fixed.idx,
        image=data[fixed.idx][0],
        before=before,
        after=after,
        radii=(fixed.radius(pair.norm), chosen.radius(pair.norm)),
    )


def _draw(axes: list[Axes], example: Example, seed: int) -> None:
    """Image, noisy before, noisy after, densities."""
    shown = [example.image]
    for noise in (example.before, example.after):
        drawn = noise.sample(1, seed=seed, input_index=example.index, base=example.image)
        shown.append(drawn[0])
    before, after = (round_down(radius, 3) for radius in example.radii)
    words = ("image", f"before, R = {before}", f"I-OPT, R = {after}")
    for panel, image, text in zip(axes, shown, words, strict=False):
        pixels = np.clip(np.moveaxis(np.asarray(image), 0, -1), 0, 1)
        panel.imshow(pixels.squeeze(), cmap="gray", vmin=0, vmax=1)
        panel.set_title(f"{example.data}, l{example.norm}: {text}", fontsize=8)
        panel.set_axis_off()
    wide = 3 * max(example.before.sigma, example.after.sigma)
    x = np.linspace(-wide, wide, 401)
    for noise, text in ((example.before, "before"), (example.after, "I-OPT")):
        if noise.iid is not None:
            axes[3].plot(x, noise.iid.pdf(x), label=f"{text}: {noise.text}")
    axes[3].set_xlabel("noise of one pixel")
    axes[3].legend(fontsize=6)
