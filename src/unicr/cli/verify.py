"""`unicr verify`: check the certificates of a run without trusting the run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from unicr.cli._options import RUN, RunFolder, RunOptions, Whole, Words
from unicr.errors import UNREADABLE, RunError, UnicrError, one_line, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unicr.classifier import Classifier
    from unicr.data import Dataset
    from unicr.runs import Run, Trusted


def verify(
    run: RunFolder,
    /,
    *,
    replay: Whole = 0,
    data: str | None = None,
    options: RunOptions = RUN,
    seal: Annotated[Words, Parameter(consume_multiple=False)] = None,
    key: Path | None = None,
) -> int:
    """Recompute every claim of a run from its votes.

    Exit code 0 only if everything holds. Nothing that comes with the run is executed: see --trust.
    Attacks and a guard's memory beside the run are checked too. Example:

    unicr verify my-run --replay 5

    Parameters
    ----------
    replay
        Also run this many inputs again, with the model and the data. They are chosen at random
        every time.
    data
        Your own copy of the data: inputs and labels are compared with the run's.
    seal
        A seal that you received separately: it must be that of the run (or of the attacks or the
        guard's memory in its folder). May be given several times.
    key
        A public SSH key (.pub): the run must be signed with it (`unicr seal RUN --key`).
    """
    from unicr.lab.report.tables import Bar
    from unicr.runs import Run, caught
    from unicr.runs import replay as sample_again
    from unicr.runs import verify as check

    if replay < 0:
        raise RunError(f"--replay {replay}: how many inputs to sample again, 0 or more")
    problems = 0

    def tell(texts: Iterator[object]) -> None:
        nonlocal problems
        for text in texts:
            problems += 1
            print(printable(str(text)))

    trusted = options.trusted(data)
    with Run(run) as opened:
        classifier, dataset = open_both(opened, trusted, model=replay > 0)
        tell(check(opened, trusted=trusted, data=dataset))
        rows = opened.records()
        failed = sum(row["claims"] is None for row in rows)
        print(
            f"{len(rows)} inputs checked from their counts, {problems} do not hold; "
            f"{failed} failed in the run"
        )
        claims = [row.certificate for row in opened.readable() if row.certificate is not None]
        unbounded = sum(c.lattice is not None and c.charge is None for c in claims)
        if unbounded:
            print(
                f"of {unbounded} inputs the noise was drawn by a sampler without a bound of its law"
            )
        tell(others(opened, trusted, classifier, replay))
        if classifier is not None and dataset is not None:
            found = sample_again(opened, classifier, dataset, replay, trusted=trusted)
            again = []
            with Bar("sampling inputs again", min(replay, len(rows))) as bar:
                for one in found:
                    again.append(one)
                    bar.update("sampling inputs again")
            different = [f"input {idx}: {text}" for idx, text in again if text is not None]
            tell(iter(different))
            print(f"{len(again)} of {len(rows)} inputs sampled again, {len(different)} differ")
            if again and not different:
                many = -(-len(rows) // 10)
                percent = math.floor(100 * caught(len(rows), len(again), many))
                rows_forged = f"{many} forged row{'s' if many > 1 else ''}"
                print(f"this replay would detect {rows_forged} with >= {percent} % probability")
    tell(sealed(run, seal, key))
    return 1 if problems else 0


def open_both(
    run: Run, trusted: Trusted, *, model: bool
) -> tuple[Classifier | None, Dataset | None]:
    """The model where it is asked for; the data then too, or where a copy of it was given."""
    classifier = trusted.open_model(run.spec) if model else None
    wanted = model or trusted.data is not None
    return classifier, trusted.open_data(run.spec, classifier) if wanted else None


def others(run: Run, trusted: Trusted, classifier: Classifier | None, replay: int) -> Iterator[str]:
    """What does not hold in the attacks and in the memory beside a run."""
    from unicr.guard import Regions, check_memory, replay_memory

    rows = {row.idx: row for row in run.readable()}
    for name in ("attacks.sqlite", "guard.sqlite"):
        if not (run.folder / name).is_file():
            continue
        try:
            if name == "attacks.sqlite":
                from unicr.lab.attack import AttackStore, check_outcomes

                with AttackStore(run.folder, create=False) as attacks:
                    found = list(check_outcomes(attacks, rows))
                    stored, now = attacks.stored_seal(), attacks.seal()
            else:
                with Regions(run.folder / name) as regions:
                    found = list(check_memory(regions, run.spec, rows, trusted))
                    if classifier is not None and not found:
                        found += replay_memory(regions, run.spec, classifier, replay, trusted)
                    stored, now = regions.stored_seal(), regions.seal()
            if stored not in (None, now):
                found.append("it was changed after it was sealed")
        except (UnicrError, *UNREADABLE) as error:
            found = [one_line(error)]
        yield from (f"{name}: {text}" for text in found)
        print(f"{name} checked, {len(found)} things do not hold")


def sealed(folder: Path, wanted: list[str] | None, key: Path | None) -> Iterator[str]:
    """Print the seals; what is not as it was told or signed."""
    from unicr.runs import Run, seals, signed_by

    now = seals(folder)
    for name, seal in now.items():
        print(f"seal of {name}: {seal}")
    with Run(folder) as run:
        if run.stored_seal() is None:
            print("the run was not sealed: it was not finished")
    for seal in wanted or []:
        if seal.strip().lower() not in now.values():
            yield f"the seal {seal} is of nothing in {folder}: something was changed"
    if key is None:
        return
    try:
        signed = signed_by(folder, key)
    except RunError as error:
        yield f"not signed with {key}: {error}"
        return
    for name, seal in now.items():
        if signed.get(name) == seal:
            print(f"{name} is signed with {key}")
        else:
            yield f"{name} is not what was signed with {key}"
