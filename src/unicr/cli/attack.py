"""`unicr attack`: real attacks on the certified inputs of a run, at the radius and beyond it."""

from __future__ import annotations

import sys

from unicr.cli._options import (
    PLACE,
    RUN,
    Format,
    Max,
    MaybeWhole,
    Numbers,
    PlaceOptions,
    RunFolder,
    RunOptions,
    Searched,
    Whole,
    Words,
)

MISSED = 1


def attack(
    run: RunFolder,
    /,
    *,
    attack: list[str],
    norm: Words = None,
    factor: Numbers = None,
    max_: Max = None,
    searched: Searched = False,
    clip: bool = False,
    effort: float = 1.0,
    samples: Whole = 32,
    n: Whole = 1000,
    alpha: float = 0.001,
    seed: int = 0,
    fresh: bool = False,
    place: PlaceOptions = PLACE,
    batch: MaybeWhole = None,
    format_: Format = "table",
    data: str | None = None,
    options: RunOptions = RUN,
) -> int:
    """Attack every certified input of a run, at its radius and beyond.

    Exit code 1 if a class changed within its radius; a change counts when the votes show it
    significantly. Outcomes are kept in RUN/attacks.sqlite: what was done with the same settings is
    not done again. Example:

    unicr attack my-run --attack apgd square gaussian --norm 2 --max 20

    Parameters
    ----------
    attack
        One or more attacks, e.g. apgd square gaussian; a wrong name lists those that there are.
    norm
        Norms of the run; all of them if left out.
    factor
        Multiples of the radius: --factor 1 1.5 3 if left out.
    clip
        Keep perturbed inputs within [0, 1]; a certificate holds without that.
    effort
        Multiplies the steps, queries and tries of every attack.
    samples
        Noisy copies that an attack averages over.
    n
        Fresh samples that decide about the class of each perturbed input.
    alpha
        Significance level of a change of class: the probability to see one that is none.
    seed
        Seed of the attacks and of the judge's samples.
    fresh
        Throw stored outcomes of these attacks away and begin anew.
    batch
        Noisy inputs worked on at once; as in the run if left out.
    data
        Your own copy of the run's data.
    """
    from unicr.lab.attack import FACTORS, Settings, attack_run, defences, make
    from unicr.lab.report.attack import AttackBar, defence_table, left_out
    from unicr.runs import Run

    settings = Settings(
        samples=samples, votes=n, level=alpha, seed=seed, clip=clip, searched=searched
    )
    attacks = [make(name, effort) for name in dict.fromkeys(attack)]
    trusted = options.trusted(data)
    with Run(run) as opened:
        spec = opened.spec
    classifier = trusted.open_model(spec)
    dataset = trusted.open_data(spec, classifier)
    with AttackBar() as progress:
        outcomes, left = attack_run(
            run,
            classifier,
            dataset,
            attacks,
            settings=settings,
            norms=norm,
            factors=factor or FACTORS,
            limit=max_,
            again=fresh,
            batch=batch,
            model_arguments=trusted.model_arguments(spec),
            trusted=trusted,
            on_task=progress.add,
            on_plan=progress.plan,
            **place.arguments,
        )
    found = defences(outcomes)
    print(defence_table(found, format_))
    print(left_out(left), file=sys.stderr)
    return MISSED if any(one.changed and one.factor <= 1 for one in found) else 0
