"""`unicr attack`: real attacks on the certified inputs of a run, at the radius and beyond it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from unicr.cli._options import PLACE, RUN, PlaceOptions, RunOptions, Whole, whole

MISSED = 1


def attack(
    run: Path,
    *,
    attack: Annotated[list[str], Parameter(consume_multiple=True, negative="")],
    norm: Annotated[list[str] | None, Parameter(consume_multiple=True, negative="")] = None,
    factor: Annotated[list[float] | None, Parameter(consume_multiple=True, negative="")] = None,
    max_: Annotated[int | None, Parameter(name="--max", converter=whole)] = None,
    searched: Annotated[bool, Parameter(negative="")] = False,
    clip: Annotated[bool, Parameter(negative="")] = False,
    effort: float = 1.0,
    samples: Whole = 32,
    n: Whole = 1000,
    level: float = 0.001,
    seed: int = 0,
    again: Annotated[bool, Parameter(negative="")] = False,
    place: PlaceOptions = PLACE,
    batch: Whole = 1024,
    format_: Annotated[Literal["markdown", "csv", "json"], Parameter(name="--format")] = "markdown",
    data: str | None = None,
    options: RunOptions = RUN,
) -> int:
    """Attack every certified input of a run. Exit code 1 if a class changed within its radius.

    A change counts when the votes show it significantly.
    Outcomes are kept in RUN/attacks.sqlite: what was done with the same settings is not done again.

    Parameters
    ----------
    run
        The folder of the run.
    attack
        One or more attacks, e.g. apgd square gaussian; a wrong name lists those that there are.
    norm
        Norms of the run; all of them if left out.
    factor
        Multiples of the radius: --factor 1 1.5 3 if left out.
    max_
        Attack at most this many certified inputs.
    searched
        Attack the searched radius, the paper's approximate one, instead of the proved one.
    clip
        Keep perturbed inputs within [0, 1]; a certificate holds without that.
    effort
        Multiplies the steps, queries and tries of every attack.
    samples
        Noisy copies that an attack averages over.
    n
        Fresh samples that decide about the class of each perturbed input.
    level
        Significance level of a change of class.
    seed
        Seed of the attacks and of the judge's samples.
    again
        Throw stored outcomes of these attacks away and begin anew.
    batch
        Noisy inputs per forward pass.
    format_
        markdown, csv or json.
    data
        Your own copy of the run's data.
    """
    from unicr.attack import FACTORS, Settings, attack_run, defences, make
    from unicr.report.attack import Progress, defence_table, left_out
    from unicr.runs import Run

    settings = Settings(
        samples=samples, votes=n, level=level, seed=seed, clip=clip, searched=searched
    )
    attacks = [make(name, effort) for name in dict.fromkeys(attack)]
    own = options.own(data)
    with Run(run) as opened:
        manifest = opened.manifest
    classifier = own.open_model(manifest)
    dataset = own.open_data(manifest, classifier)
    with Progress() as progress:
        outcomes, left = attack_run(
            run,
            classifier,
            dataset,
            attacks,
            settings=settings,
            norms=norm,
            factors=factor or FACTORS,
            limit=max_,
            again=again,
            batch=batch,
            model_arguments=own.model_arguments(manifest),
            own=own,
            workers=place.workers,
            ray=place.address,
            gpus=place.gpus,
            on_task=progress.add,
        )
    found = defences(outcomes)
    print(defence_table(found, format_))
    print(left_out(left), file=sys.stderr)
    return MISSED if any(one.changed and one.factor <= 1 for one in found) else 0
