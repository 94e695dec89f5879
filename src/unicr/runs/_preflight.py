"""A look at a job before hours are spent on it: are the inputs and the model what they seem?

A few inputs go through the model once, without noise and with one draw of it. Nothing here decides
a result: what a run samples is not touched, and what goes wrong is left for the run to tell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

import numpy as np

from unicr.data import Dataset
from unicr.errors import UnicrError, listed
from unicr.extras import torch
from unicr.noise import Noise
from unicr.runs._job import Job

LOOKED = 16
CHANCE = 1.5  # times 1/classes: no better than this is near chance


def preflight(job: Job) -> Iterator[str]:
    """What to tell before the run: accuracies on a few inputs, and warnings."""
    if (warning := range_warning(job.data, job.noise)) is not None:
        yield f"warning: {warning}"
    try:
        right = _right(job)
    except Exception:  # a stranger's model may raise anything; the run says what, input by input
        return
    if right is None:
        yield (
            "warning: no label with the inputs: they all count as wrong; give --labels or "
            "--label-column"
        )
        return
    names = job.data.classes or ()
    if job.classifier.classes is None and any(isinstance(one, str) for one in names):
        said = listed(f"{i} {one!r}" for i, one in enumerate(names))
        yield f"the model names no classes, so labels are numbered as the data has them: {said}"
    clean, noisy = (float(np.mean(one)) for one in right)
    inputs = len(right[0])
    yield (
        f"base accuracy on {inputs} of the inputs: {clean:.0%} without noise, {noisy:.0%} with one "
        "draw of it"
    )
    classes = job.classifier.num_classes
    if classes and inputs >= LOOKED and max(clean, noisy) <= CHANCE / classes:
        yield (
            f"warning: that is near chance ({classes} classes): are the inputs as the model "
            "expects them (--mean, --std), and are the labels numbered as its own?"
        )


def _right(job: Job) -> tuple[list[bool], list[bool]] | None:
    """Which of a few inputs are right without noise and with it; None where none has a label."""
    found: tuple[list[bool], list[bool]] = ([], [])
    for index in job.indices[:LOOKED]:
        try:
            x, label = job.data[index]
        except (UnicrError, OSError):
            continue
        if label < 0:
            continue
        noisy = job.noise.sample(1, seed=(job.seed or 0) + 1, input_index=index, base=x)
        answers = job.classifier.predict(torch.stack([x, noisy[0].to(x)]))
        for one, answer in zip(found, answers, strict=True):
            one.append(int(answer) == label)
    return found if found[0] else None


def range_warning(data: Dataset, noise: Noise) -> str | None:
    """A warning where inputs look normalised or in 0…255 while σ is meant for [0, 1]."""
    inputs = [x.numpy().ravel() for x in islice(data.readable(), LOOKED)]
    if not inputs or not math.isfinite(noise.sigma):
        return None
    values = np.concatenate(inputs)
    low, high = float(values.min()), float(values.max())
    if high > 16 and noise.sigma < 0.05 * high:
        return f"inputs reach {high:g}, sigma is {noise.sigma:g}: is the noise meant for [0, 1]?"
    if len(data.shape) == 3 and low < -0.2:
        return (
            f"inputs range from {low:.2g} to {high:.2g}, as if they were normalised: noise and "
            "radius live in input space, give raw inputs and --mean/--std"
        )
    return None
