"""`unicr select`: a selector that chooses the noise for each input, to be certified with it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from unicr.cli._options import MODEL, TRAINING, DataOptions, Max, ModelOptions, Whole
from unicr.errors import CertifyError

Texts = Annotated[list[str], Parameter(consume_multiple=True, negative="")]


def select(
    *,
    model: Texts,
    noise: Texts,
    out: Path,
    data: str | None = None,
    by: str | None = None,
    selector_noise: str | None = None,
    norm: str = "2",
    arch: str = "mlp",
    reading: DataOptions = TRAINING,
    loading: ModelOptions = MODEL,
    epochs: Whole = 10,
    lr: float = 1e-3,
    batch: Whole = 128,
    copies: Whole = 8,
    votes: Whole = 64,
    seed: int = 0,
    max_: Max = None,
) -> None:
    """Make a selector that gives each input its noise, for certify.

    Train it on inputs that neither the models were trained on nor you certify later, or bring your
    own with --by. Example:

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
        Your own selector instead of a trained one, file.py:name or a model file: it gives each
        input the number (0, 1, …) of a noise.
    selector_noise
        The noise that the selector itself is smoothed with; Gaussian, as large as the largest of
        the noises, if left out.
    norm
        The norm whose radii it learns to enlarge.
    arch
        mlp, resnet8, resnet20, … or file.py:factory for a module of your own.
    epochs
        Passes over the data.
    lr
        The highest learning rate.
    batch
        Inputs per step.
    copies
        Noisy copies of each input in a step.
    votes
        Votes of each classifier on each training input, to estimate its radius there.
    seed
        Seed of weights, order and noise.
    """
    from unicr.classifier import load_classifier
    from unicr.data import load_dataset
    from unicr.lab.train import SelectorTraining, examples_of, train_selector, write_selector
    from unicr.noise import gaussian, parse
    from unicr.norms import parse_norm
    from unicr.select import Selector

    choices = tuple(parse(text) for text in noise)
    specs = model * len(choices) if len(model) == 1 else model
    if len(specs) != len(choices):
        raise CertifyError(f"{len(model)} models for {len(choices)} noises: one, or one for each")
    largest = max(one.sigma for one in choices)
    if selector_noise is None and largest == float("inf"):
        raise CertifyError(
            "a noise without a sigma: --selector-noise must say what the selector has"
        )
    own = gaussian(sigma=largest) if selector_noise is None else parse(selector_noise)
    settings = Selector(own, choices)
    models = [loading.arguments(spec) for spec in specs]
    if (by is None) == (data is None):
        raise CertifyError("give either --data to train a selector, or --by to bring your own")
    loaded = {spec: loading.load(spec) for spec in dict.fromkeys(specs)}
    if by is not None:
        load_classifier(by, trust=loading.trust)
        write_selector(out, settings, [{"spec": by}, *models])
        print(f"{out}/selector.json chooses among {len(choices)} noises by {by}")
        return
    assert data is not None
    lesson = SelectorTraining(
        arch=arch, epochs=epochs, lr=lr, batch=batch, copies=copies, votes=votes, seed=seed,
        device=loading.device,
    )  # fmt: skip
    examples = examples_of(load_dataset(data, **vars(reading)), max_)
    pairs = [(one, loaded[spec]) for one, spec in zip(models, specs, strict=True)]
    worths = train_selector(examples, pairs, settings, parse_norm(norm), out, lesson)
    for text, mean in zip(noise, worths.mean(0).tolist(), strict=True):
        print(f"{text}: average radius {mean:.4f} on the training inputs, by {votes} votes each")
    print(f"the better one for each: {worths.amax(1).mean():.4f}")
    print(f"use it with: unicr certify --selector {out} …", file=sys.stderr)
