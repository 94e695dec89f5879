"""`unicr verify`: check the certificates of a run without trusting the run."""

from __future__ import annotations

from pathlib import Path

from unicr.cli._options import MODEL, ModelOptions


def verify(
    run: Path,
    *,
    replay: int = 0,
    model: str | None = None,
    data: str | None = None,
    loading: ModelOptions = MODEL,
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
        kind = ", searched radii" if store.manifest()["searched"] else ""
        print(f"{checked} inputs checked from their counts{kind}, {problems} do not hold")
        if replay:
            from unicr.data import load_dataset

            manifest = store.manifest()
            classifier = loading.load(model or manifest["model"])
            dataset = load_dataset(data or manifest["data"])
            different = 0
            for idx, text in sample_again(store, classifier, dataset, replay):
                if text is not None:
                    different += 1
                    print(f"input {idx}: {text}")
            print(f"{replay} inputs sampled again, {different} differ")
            problems += different
    return 1 if problems else 0
