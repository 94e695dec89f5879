"""`unicr attack`: real attacks on the certified inputs of a run, at the radius and beyond it."""

from __future__ import annotations

import sys
from pathlib import Path

from unicr.cli._parameters import Format, command, spread
from unicr.cli._reopen import RUN, RunOptions
from unicr.lab.attack import FACTORS, Settings
from unicr.runs import Place, Run

spread(Settings, "How the attacks are judged")
spread(Place, "Where the work is done")
SETTINGS, PLACE = Settings(), Place()
MISSED = 1  # exit code: a class changed within its radius


@command
def attack(
    run: Path,
    /,
    *,
    attack: list[str],
    norm: list[str] | None = None,
    factor: list[float] | None = None,
    max_: int | None = None,
    effort: float = 1.0,
    fresh: bool = False,
    batch: int | None = None,
    format_: Format = "table",
    settings: Settings = SETTINGS,
    place: Place = PLACE,
    options: RunOptions = RUN,
) -> int:
    """Attack every certified input of a run, at its radius and beyond.

    Exit code 1 if the votes show a significant change of class within a radius. Outcomes are stored
    in RUN/attacks.sqlite; an attack with the same settings is not repeated. Example:

    unicr attack my-run --attack apgd square gaussian --norm 2 --max 20

    Parameters
    ----------
    run
        The folder of the run.
    attack
        One or more attacks, e.g. apgd square gaussian; a wrong name prints the list.
    norm
        Norms of the run; all of them if left out.
    factor
        Multiples of the radius: --factor 1 1.5 3 if left out.
    max_
        Attack at most this many inputs.
    effort
        Multiplies the steps, queries and tries of every attack.
    fresh
        Delete the stored outcomes of these attacks and start again.
    batch
        Noisy inputs in one forward pass; as in the run if left out.
    """
    from unicr.lab.attack import attack_run, defences, make
    from unicr.lab.report.attack import AttackBar, defence_table, describe_skipped

    attacks = [make(name, effort) for name in dict.fromkeys(attack)]
    with Run(run) as opened:
        spec = opened.spec
    classifier = options.open_model(spec)
    dataset = options.open_data(spec, classifier)
    with AttackBar() as progress:
        outcomes, skipped = attack_run(
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
            model_arguments=options.model_arguments(spec),
            trusted=options,
            on_task=progress.add,
            on_plan=progress.plan,
            **place.where,
        )
    results = defences(outcomes)
    print(defence_table(results, format_))
    print(describe_skipped(skipped), file=sys.stderr)
    return MISSED if any(result.changed and result.factor <= 1 for result in results) else 0
