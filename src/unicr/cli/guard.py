"""`unicr guard`: answer queries from the certified regions of a run, without contradictions."""

from __future__ import annotations

import json
import sys
from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from unicr.cli._options import MODEL, ModelOptions

if TYPE_CHECKING:
    from unicr.classifier import Classifier
    from unicr.data import Dataset
    from unicr.guard import Guard, Memory, Planted, Policy
    from unicr.norms import Norm

FAILED = 3
DEFAULT = "guard.sqlite"
NOT_PART = frozenset({"batch", "workers", "device", "unicr", "max", "skip", "model", "data"})


def guard(
    run: Path,
    *,
    norm: str | None = None,
    memory: Path | None = None,
    data: str | None = None,
    max_: Annotated[int | None, Parameter(name="--max")] = None,
    seed: int | None = None,
    model: str | None = None,
    run_data: str | None = None,
    loading: ModelOptions = MODEL,
) -> int:
    """Answer queries so that no answer contradicts a certified region given out before.

    The certificates of the run are the first regions of the memory. Every answer is a JSON line on
    stdout; the summary goes to stderr. Exit code 3 if some queries got no answer.

    Parameters
    ----------
    run
        The folder of a run.
    norm
        The norm of the regions: one of the run's (the only one, if there is just one).
    memory
        The file that keeps the regions (guard.sqlite in the folder of the run).
    data
        The queries: as in `unicr certify`, or an .npy file with a single input.
    max_
        Answer at most this many queries.
    seed
        Seed of the noise for new points, for a new memory. Random unless given: who knows it can
        choose queries on which the samples mislead.
    model
        The model, where the one written in the run is not to be found.
    run_data
        The data of the run, likewise.
    """
    from unicr.data import load_dataset
    from unicr.errors import CertifyError, RunError
    from unicr.guard import Guard, Memory, plant
    from unicr.runs import Store

    if max_ is not None and max_ < 0:
        raise CertifyError(f"max={max_}: a number of queries, 0 or more")
    with Store(run) as store:
        manifest = store.manifest()
        if not manifest:
            raise RunError(f"{run} was never started: it has no manifest")
        chosen = one_norm(manifest["norms"], norm)
        made_for = {k: v for k, v in manifest.items() if k not in NOT_PART}
        file = run / DEFAULT if memory is None else memory
        shape = manifest["shape"]
        with Memory(file, norm=chosen, shape=shape, made_for=made_for, seed=seed) as regions:
            seeds = load_dataset(run_data or manifest["data"])
            report(plant(regions, store.rows(), seeds), regions, searched=manifest["searched"])
            if data is None:
                return 0
            queries = read_queries(data, shape)
            classifier = loading.load(model or manifest["model"])
            if classifier.digest != manifest["model_hash"]:
                raise RunError("the model is another one than the run's (its hash differs)")
            certify = policy(manifest, classifier, regions)
            answering = Guard(certify, regions, alpha=manifest["plan"]["alpha"])
            return answer_all(answering, queries, max_)


def one_norm(norms: list[str], wanted: str | None) -> Norm:
    """The norm of the regions, which must be one that the run has radii in."""
    from unicr.errors import RunError
    from unicr.norms import parse_norm

    if wanted is None and len(norms) > 1:
        raise RunError(f"the run has radii in the norms {', '.join(norms)}: say which with --norm")
    norm = parse_norm(norms[0] if wanted is None else wanted)
    if norm.text not in norms:
        raise RunError(f"the run has no radii in {norm}: it has the norms {', '.join(norms)}")
    return norm


def policy(manifest: dict[str, Any], classifier: Classifier, memory: Memory) -> Policy:
    """How a new point is certified: like the run, by its one noise or by a search for each."""
    from unicr.guard import ChosenNoise, FixedNoise
    from unicr.i_opt import IOpt
    from unicr.noise import parse
    from unicr.norms import parse_norm
    from unicr.smoothing import Plan

    if "i_opt" in manifest:
        return ChosenNoise(
            classifier,
            IOpt.from_dict(manifest["i_opt"]),
            memory.norm,
            memory.shape,
            Plan(**manifest["plan"]),
            seed=memory.seed,
            searched=manifest["searched"],
            batch=manifest["batch"],
        )
    return FixedNoise(
        classifier,
        parse(manifest["noise"]),
        [parse_norm(text) for text in manifest["norms"]],
        memory.shape,
        Plan(**manifest["plan"]),
        seed=memory.seed,
        searched=manifest["searched"],
        batch=manifest["batch"],
    )


def read_queries(spec: str, shape: list[int]) -> Dataset:
    """The dataset that `spec` names; an .npy file may hold a single input."""
    import numpy as np

    from unicr.data import load_dataset
    from unicr.errors import DataError

    path = Path(spec).expanduser()
    if path.suffix == ".npy" and path.is_file():
        try:
            values = np.load(path, allow_pickle=False)
        except (ValueError, OSError) as error:
            raise DataError(f"{path} cannot be read: {error}") from None
        if list(values.shape) == shape:
            return load_dataset(values[None])
    return load_dataset(spec)


def report(planted: Planted, memory: Memory, *, searched: bool) -> None:
    """What the run gave the memory, on stderr."""
    from unicr.radius import round_down

    kind = "searched radii, not proved ones" if searched else "proved radii"
    say(
        f"{planted.stored} inputs of the run planted ({planted.abstained} abstained, radius 0), "
        f"{planted.known} were there; regions in {memory.norm}, {kind}"
    )
    if planted.shrunk:
        most = max(planted.shrunk, key=lambda one: one[1] - one[2])
        say(
            f"{len(planted.shrunk)} shrunk to stay clear of another answer, at most (input "
            f"{most[0]}) from {round_down(most[1], 4)} to {round_down(most[2], 4)}"
        )
    if planted.overruled:
        some = ", ".join(map(str, planted.overruled[:5]))
        say(
            f"{len(planted.overruled)} left out: they lie in a region of another class "
            f"(inputs {some}{', …' if len(planted.overruled) > 5 else ''})"
        )


def answer_all(guard: Guard, queries: Dataset, most: int | None) -> int:
    """One JSON line for each query, and the summary."""
    from unicr.errors import UnicrError

    counts = {"memory": 0, "fresh": 0}
    abstained = shrunk = failed = 0
    for idx in range(len(queries) if most is None else min(most, len(queries))):
        try:
            answer = guard(queries[idx][0])
        except (UnicrError, OSError) as error:
            failed += 1
            print(json.dumps({"idx": idx, "class": None, "reason": str(error)}), flush=True)
            continue
        counts[answer.source] += 1
        abstained += answer.label < 0
        shrunk += answer.shrunk_from is not None
        print(json.dumps({"idx": idx, **answer.to_dict()}), flush=True)
    say(
        f"{sum(counts.values())} answers: {counts['memory']} from memory, {counts['fresh']} new "
        f"({shrunk} shrunk); {abstained} abstained, {failed} without an answer"
    )
    say(f"{len(guard.memory)} regions; {confidence(guard.memory.spent)}")
    return FAILED if failed else 0


def confidence(spent: float) -> str:
    """What Σα leaves, rounded against the guard."""
    total = Decimal(repr(spent)).quantize(Decimal("1e-6"), ROUND_CEILING)
    left = f"at least {1 - total}" if total < 1 else "not bounded any more"
    return (
        f"failure probabilities add up to {total}: the probability that all certificates hold "
        f"is {left}"
    )


def say(text: str) -> None:
    """A line on stderr: stdout is for answers."""
    print(text, file=sys.stderr)
