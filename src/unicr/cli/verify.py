"""`unicr verify`: check the certificates of a run without trusting the run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def verify(
    run: Path,
    *,
    replay: int = 0,
    model: str | None = None,
    data: str | None = None,
    weights: Path | None = None,
    device: str = "cpu",
    mean: Annotated[list[float] | None, Parameter(consume_multiple=True, negative="")] = None,
    std: Annotated[list[float] | None, Parameter(consume_multiple=True, negative="")] = None,
    trust: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Recompute every radius of a run from its vote counts. Exit code 1 if anything differs.

    Parameters
    ----------
    run
        The folder of the run.
    replay
        Also sample this many inputs again from their seeds, with the model and the data.
    model
        The model, where the one written in the run is not to be found.
    data
        The data, likewise.
    weights
        Weights for a model given as file.py:factory.
    device
        Where the model runs.
    mean
        As in `unicr certify`.
    std
        As in `unicr certify`.
    trust
        Allow a model file that runs code when loaded.
    """
    from unicr.runs import Store
    from unicr.runs import replay as sample_again
    from unicr.runs import verify as check

    problems = 0
    with Store(run) as store:
        checked = 0
        for problem in check(store):
            checked += 1
            if problem is not None:
                problems += 1
                print(f"input {problem.idx}: {problem.text}")
        print(f"{checked} inputs checked from their counts, {problems} do not hold")
        if replay:
            from unicr.classifier import load_classifier
            from unicr.data import load_dataset

            manifest = store.manifest()
            classifier = load_classifier(
                model or manifest["model"],
                weights=weights,
                device=device,
                mean=mean,
                std=std,
                trust=trust,
            )
            dataset = load_dataset(data or manifest["data"])
            different = 0
            for idx, text in sample_again(store, classifier, dataset, replay):
                if text is not None:
                    different += 1
                    print(f"input {idx}: {text}")
            print(f"{replay} inputs sampled again, {different} differ")
            problems += different
    return 1 if problems else 0
