"""Make a selector: a network that learns, under its own noise, which choice certifies most.

What is learnt is the radius of the whole predictor. The radius of each choice on the training
inputs is estimated from a few votes; the network is then trained so that its own certified radius,
on the side of the better choice, reaches what that choice is worth. Nothing here is part of any
guarantee: a selector may be wrong, it only has to be stable.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

from unicr.classifier import Classifier, ModuleClassifier
from unicr.classifier.internal import SELECTOR_FILE, evaluating, try_device
from unicr.errors import CertifyError, RunError
from unicr.folder import Folder, write_json
from unicr.lab.train._examples import Examples
from unicr.lab.train._schedule import one_cycle
from unicr.lab.train._settings import SelectorTraining, TrainError, build
from unicr.lab.train._trainer import fix_seed, stream
from unicr.noise import Noise
from unicr.noise.internal import check_parses
from unicr.norms import Norm
from unicr.progress import tell
from unicr.smoothing import Radii
from unicr.smoothing.procedures import Selector

WEIGHTS = "selector.safetensors"
NOT_KEPT = (
    "device",
    "trust",
    "compile",
)  # arguments of a model that are its user's, not the selector's
GROUP = 32  # inputs whose noisy copies are classified together
STEADY = 0.05  # of a network's score: what its spread is never taken below
BEST = 0.9993  # the largest p_A that counts: about what 10,000 votes can show
BEYOND, SPARE = 0.1, 0.2  # slope of the loss where an input is given up, and when it is
LEAST = 0.02  # a stake below this share of the radius teaches nothing


@torch.no_grad()
def estimate_worth(
    model: Classifier, noise: Noise, norm: Norm, examples: Examples, training: SelectorTraining
) -> torch.Tensor:
    """About the radius of one choice on every training input; 0 if it is wrong."""
    radii = Radii(noise, [norm], math.prod(examples.shape))
    grid = torch.linspace(0.5, BEST, 2000, dtype=torch.float64)
    curve = torch.tensor([radii.first(p) for p in grid.tolist()])
    worth = torch.zeros(len(examples))
    for group, first in enumerate(range(0, len(examples), GROUP)):
        rows = torch.arange(first, min(first + GROUP, len(examples)))
        inputs, seed = examples.batch(rows).to(model.device), stream("worth", training.seed)
        noisy = _noisy(noise, inputs, training.votes, seed=seed, input_index=group)
        labels = examples.labels[rows].repeat_interleave(training.votes).to(model.device)
        share = _share(model, noisy, labels, training.votes).clamp(0.5, BEST)
        worth[rows] = curve[torch.searchsorted(grid, share.cpu(), right=True) - 1].float()
    return worth


def _noisy(noise: Noise, inputs: torch.Tensor, copies: int, **where: Any) -> torch.Tensor:
    """So many noisy copies of each input, one after the other; `where` says which samples."""
    n, *shape = inputs.shape
    drawn = noise.sample(n * copies, tuple(shape), device=inputs.device, **where)
    return noise.see(inputs[:, None] + drawn.view(n, copies, *shape)).flatten(0, 1)


def _share(model: Classifier, noisy: torch.Tensor, labels: torch.Tensor, n: int) -> torch.Tensor:
    """How probable each input's own class is, from n copies of each.

    Where the model has scores, by the mean and the spread of the class's lead, taken as Gaussian:
    that tells 0.99 from 0.999 with few copies. By votes elsewhere.
    """
    scores = None
    if isinstance(model, ModuleClassifier):
        with evaluating(model.module):
            scores = model.scores(noisy)
    if not isinstance(scores, torch.Tensor) or scores.ndim != 2 or scores.shape[1] < 2:
        hits = (model.predict(noisy) == labels).view(-1, n).sum(1).double()
        return (hits + 0.5) / (n + 1)
    scores = scores.double()
    true_score = scores.gather(1, labels[:, None])[:, 0]
    lead = (true_score - scores.scatter(1, labels[:, None], -torch.inf).amax(1)).view(-1, n)
    return torch.special.ndtr(lead.mean(1) / lead.std(1).clamp(min=1e-6))


def lost_radius(scores: torch.Tensor, worths: torch.Tensor, sigma: float) -> torch.Tensor:
    """How much radius a selector with these scores (inputs, copies, choices) gives away, smoothly.

    Each cut between neighbouring choices is a binary smoothed classifier whose score has mean m and
    spread s under noise, so about the l2 radius σ·m/s on its side; that should reach what the
    better side is worth. Where it does not, the two neighbours together still give the smaller of
    their radii, so no more than the stake can be lost: beyond that the loss grows slowly, and
    inputs that cannot be told apart do not spoil the rest.
    """
    total = torch.zeros(len(scores), device=scores.device)
    best = worths.amax(1)
    for cut in range(1, scores.shape[2]):
        margin = scores[..., cut:].logsumexp(2) - scores[..., :cut].logsumexp(2)
        reach = sigma * margin.mean(1) / (margin.std(1) + STEADY)
        high = worths[:, cut:].amax(1) >= worths[:, :cut].amax(1)
        stake = best - worths[:, cut - 1 : cut + 1].amin(1)
        short = (best - torch.where(high, reach, -reach)).clamp(min=0)
        limit = stake + SPARE * best
        short = torch.where(short < limit, short, limit + BEYOND * (short - limit))
        total = total + short * (stake > LEAST * best)
    return total


def train_network(
    worths: torch.Tensor,
    noise: Noise,
    examples: Examples,
    training: SelectorTraining,
    first: Classifier | None = None,
) -> nn.Module:
    """The network after all epochs; the same settings give the same weights on one machine.

    It begins with the weights of `first` as far as they fit: a classifier that knows the inputs
    under large noise knows much of what tells easy ones from hard ones.
    """
    device = try_device(training.device)
    size, seed = len(examples), stream("selecting", training.seed)
    with fix_seed(stream("selector", training.seed)):
        module = build(training.arch, examples.shape, worths.shape[1])
        if isinstance(first, ModuleClassifier):
            fresh, given = module.state_dict(), first.module.state_dict()
            fits = {k: v for k, v in given.items() if k in fresh and fresh[k].shape == v.shape}
            module.load_state_dict({**fresh, **fits})
        module.to(device)
        optimizer = torch.optim.AdamW(module.parameters(), weight_decay=0.01)
        steps = -(-size // training.batch)
        for epoch in range(training.epochs):
            order, total = torch.randperm(size), 0.0
            for step in range(steps):
                rows = order[step * training.batch : (step + 1) * training.batch]
                inputs = examples.batch(rows).to(device)
                where = {"input_index": epoch, "start": step * training.batch * training.copies}
                noisy = _noisy(noise, inputs, training.copies, seed=seed, **where)
                scores = module(noisy).view(len(rows), training.copies, -1)
                loss = lost_radius(scores, worths[rows].to(device), noise.sigma).mean()
                rate = one_cycle(epoch * steps + step, training.epochs * steps, training.lr)
                for group in optimizer.param_groups:
                    group["lr"] = rate
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                total += float(loss.detach()) * len(rows)
            if not math.isfinite(total):
                raise TrainError(
                    f"training of the selector diverged: use a lower rate than {training.lr:g}"
                )
            lost_now = f"{total / size:.4f} of radius lost"
            tell("training the selector", epoch + 1, training.epochs, lost_now)
    return module.eval()


def train_selector(
    examples: Examples,
    models: Sequence[tuple[dict[str, Any], Classifier]],
    settings: Selector,
    norm: Norm,
    folder: Path,
    training: SelectorTraining,
) -> torch.Tensor:
    """Train a selector into `folder`: selector.json and its weights. What each choice is worth.

    `models` are the arguments of `load_classifier` and what it gave, one for each choice.
    """
    refuse_selector(folder)
    worths = torch.stack(
        [
            estimate_worth(model, law, norm, examples, training)
            for (_, model), law in zip(models, settings.choices, strict=True)
        ],
        1,
    )
    module = train_network(worths, settings.noise, examples, training, models[-1][1])
    state = {name: value.cpu().contiguous() for name, value in module.state_dict().items()}
    spec = training.arch if ".py:" in training.arch else f"builtin:{training.arch}"
    about = {
        "norm": norm.text,
        "inputs": len(examples),
        "data": examples.digest,
        **asdict(training),
    }
    with tempfile.TemporaryDirectory() as made:
        weights = Path(made) / WEIGHTS
        save_file(state, weights, metadata={"about": f"selector, {settings.noise.text}"})
        selector = {"spec": spec, "weights": weights}
        write_selector(folder, settings, [selector, *(model for model, _ in models)], about)
    return worths


def refuse_selector(folder: Path) -> None:
    """A RunError if a folder has a selector: another one would not be what its runs name."""
    if (folder / SELECTOR_FILE).exists():
        raise RunError(f"{folder} already contains a selector: use another folder")


def write_selector(
    folder: Path,
    settings: Selector,
    models: Sequence[dict[str, Any]],
    about: dict[str, Any] | None = None,
) -> None:
    """selector.json: the selector's model and noise, then those of the choices.

    Files of weights are copied beside it, so that the folder can be moved as a whole.
    """
    if len(models) != 1 + len(settings.choices):
        raise CertifyError(
            f"there are {len(models) - 1} models for {len(settings.choices)} noises: give one "
            "model for each"
        )
    home = Folder(folder, "a selector", SELECTOR_FILE)
    with home.write():
        refuse_selector(folder)
        with home.replace_files() as fresh:
            written = []
            for i, model in enumerate(models):
                kept = {k: v for k, v in model.items() if v is not None and k not in NOT_KEPT}
                if "weights" in kept:
                    source = Path(kept["weights"]).expanduser()
                    target = fresh / (WEIGHTS if i == 0 else f"choice-{i - 1}{source.suffix}")
                    shutil.copyfile(source, target)
                    kept["weights"] = target.name
                written.append(kept)
            values = {
                "noise": check_parses(settings.noise),
                "choices": [check_parses(choice) for choice in settings.choices],
                "models": written,
                "made": about or {},
            }
            write_json(fresh / SELECTOR_FILE, values)
