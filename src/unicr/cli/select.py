"""`unicr select`: a selector that chooses the noise for each input, to be certified with it."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from unicr.cli._parameters import Loading, Unasked, command, spread
from unicr.data import DataOptions
from unicr.errors import CertifyError
from unicr.lab.train import SelectorTraining


@dataclass(frozen=True)
class TrainingOptions(SelectorTraining):
    """The selector is trained where the models run."""

    device: Annotated[str, Unasked] = "cpu"


spread(TrainingOptions, "Training")
TRAINING, LOADING, READING = TrainingOptions(), Loading(), DataOptions()


@command
def select(
    *,
    model: list[str],
    noise: list[str],
    out: Path,
    data: str | None = None,
    by: str | None = None,
    selector_noise: str | None = None,
    norm: str = "2",
    max_: int | None = None,
    training: TrainingOptions = TRAINING,
    reading: DataOptions = READING,
    loading: Loading = LOADING,
) -> None:
    """Train a selector that chooses a noise for each input.

    Train it on inputs that were not used to train the models and that you will not certify. Or
    bring your own selector with --by. Example:

    unicr select --data held-out.npz --model builtin:mnist-mlp-0.5 builtin:mnist-mlp-1.0 \\
      --noise 'gaussian(sigma=0.5)' 'gaussian(sigma=1)' --out choice

    Parameters
    ----------
    model
        The classifier, or one for each noise, as in `unicr certify`.
    noise
        The noises to choose from, in order of size: 'gaussian(sigma=0.5)' 'gaussian(sigma=1)'.
    out
        The folder of the selector.
    data
        Training data with labels, in any form that `unicr certify --data` takes.
    by
        Your own selector instead of a trained one: file.py:name or a model file. Its output is the
        number (0, 1, …) of a noise.
    selector_noise
        The noise with which the selector itself is smoothed. If left out: Gaussian noise, as large
        as the largest of the noises.
    norm
        The norm in which the selector learns to make radii large.
    max_
        Train on at most this many inputs.
    """
    from unicr.classifier import load_classifier
    from unicr.lab.train import examples_of, train_selector, write_selector
    from unicr.noise import gaussian, parse
    from unicr.norms import parse_norm
    from unicr.select import Selector

    choices = tuple(parse(text) for text in noise)
    specs = model * len(choices) if len(model) == 1 else model
    if len(specs) != len(choices):
        raise CertifyError(
            f"there are {len(model)} models for {len(choices)} noises: give one model, or one for "
            "each noise"
        )
    largest = max(one.sigma for one in choices)
    if selector_noise is None and largest == float("inf"):
        raise CertifyError(
            "this noise has no sigma, so give the noise of the selector by --selector-noise"
        )
    own = gaussian(sigma=largest) if selector_noise is None else parse(selector_noise)
    settings = Selector(own, choices)
    models = [{"spec": spec, **vars(loading)} for spec in specs]
    if (by is None) == (data is None):
        raise CertifyError("give either --data to train a selector, or --by to use your own")
    loaded = {spec: load_classifier(spec, **vars(loading)) for spec in dict.fromkeys(specs)}
    if by is not None:
        load_classifier(by, trust=loading.trust)
        write_selector(out, settings, [{"spec": by}, *models])
        print(f"{out}/selector.json chooses among {len(choices)} noises by {by}")
        return
    settings_of_training = replace(training, device=loading.device or "cpu")
    examples = examples_of(reading.load(data or "", split="train"), max_)
    pairs = [(one, loaded[spec]) for one, spec in zip(models, specs, strict=True)]
    worths = train_selector(examples, pairs, settings, parse_norm(norm), out, settings_of_training)
    for text, mean in zip(noise, worths.mean(0).tolist(), strict=True):
        by = f"by {training.votes} votes each"
        print(f"{text}: average radius {mean:.4f} on the training inputs, {by}")
    print(f"the better one for each: {worths.amax(1).mean():.4f}")
    print(f"use it with: unicr certify --selector {out} …", file=sys.stderr)
