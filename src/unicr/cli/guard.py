"""`unicr guard`: answer queries from the certified regions of a run, without contradictions."""

from __future__ import annotations

import json
import sys
from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from unicr.cli._parameters import FAILED, command
from unicr.cli._reopen import RUN, RunOptions
from unicr.errors import CertifyError, DataError, UnicrError, listed

if TYPE_CHECKING:
    from unicr.data import Dataset
    from unicr.guard import Guard, Memory, Planted

DEFAULT = "guard.sqlite"


@command
def guard(
    run: Path,
    /,
    *,
    norm: str | None = None,
    memory: Path | None = None,
    queries: str | None = None,
    max_: int | None = None,
    seed: int | None = None,
    options: RunOptions = RUN,
) -> int:
    """Answer queries without contradicting earlier certificates.

    Each answer is stored with its radius; a later input within that radius gets the same class. The
    certificates of the run are stored first. Every answer is a JSON line on stdout; the summary
    goes to stderr. Exit code 3 if some queries got no answer. Example:

    unicr guard my-run --norm 2 --queries builtin:mnist --max 30

    Parameters
    ----------
    run
        The folder of the run.
    norm
        The norm of the regions: one of the run's (the only one, if there is just one).
    memory
        The file that keeps the regions (guard.sqlite in the folder of the run).
    queries
        The inputs to answer: anything that `unicr certify --data` takes, or an .npy file with one
        input.
    max_
        Answer at most this many queries.
    seed
        Random seed of the noise for new points, when a memory is created. Drawn at random if left
        out. Keep it secret:
        somebody who knows it can choose inputs that get wrong certificates.
    """
    from unicr.guard import Guard, Memory, made_for, plant, policy
    from unicr.norms import parse_norm
    from unicr.runs import Run

    if max_ is not None and max_ < 0:
        raise CertifyError(f"--max {max_} must be at least 0")
    with Run(run) as opened:
        spec = opened.spec
        chosen = parse_norm(spec.one_norm(norm))
        file = run / DEFAULT if memory is None else memory
        holds_for = made_for(spec)
        with Memory(file, norm=chosen, shape=spec.shape, made_for=holds_for, seed=seed) as regions:
            planted = plant(regions, opened.rows(), options.open_data(spec))
            report(planted, regions, searched=spec.searched)
            if queries is None:
                return 0
            inputs = read_queries(queries, list(spec.shape))
            certify = policy(spec, options.open_model(spec), regions.seed, options)
            guard = Guard(certify, regions, alpha=spec.plan.alpha, lattice=spec.lattice)
            return answer_all(guard, inputs, max_)


def read_queries(spec: str, shape: list[int]) -> Dataset:
    """The dataset that `spec` names; an .npy file may hold a single input."""
    import numpy as np

    from unicr.data import load_dataset

    path = Path(spec).expanduser()
    if path.suffix == ".npy" and path.is_file():
        try:
            values = np.load(path, allow_pickle=False)
        except (ValueError, OSError) as error:
            raise DataError(f"cannot read {path}: {error}") from None
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
        say(
            f"{len(planted.overruled)} left out: they lie in a region of another class "
            f"(inputs {listed(planted.overruled, 5)})"
        )


def answer_all(guard: Guard, queries: Dataset, most: int | None) -> int:
    """One JSON line for each query, and the summary."""
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
