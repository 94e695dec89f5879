"""`unicr verify`: check the certificates of a run without trusting the run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from unicr.cli._parameters import Repeated, command
from unicr.cli._reopen import RUN, RunOptions
from unicr.errors import UNREADABLE, RunError, UnicrError, one_line, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from unicr.classifier import Classifier
    from unicr.data import Dataset
    from unicr.runs import Run, Spec, Trusted


@command
def verify(
    run: Path,
    /,
    *,
    replay: int = 0,
    prove: bool = False,
    seal: Annotated[list[str] | None, Repeated] = None,
    key: Path | None = None,
    timestamp_ca: Path | None = None,
    commitment: str | None = None,
    nonce: str | None = None,
    options: RunOptions = RUN,
) -> int:
    """Recompute every claim of a run from its votes.

    Exit code 0 only if everything holds. No code from the run is executed unless you allow it with
    --trust. Results of `unicr attack` and `unicr guard` in the folder are checked too. Example:

    unicr verify my-run --replay 5

    Parameters
    ----------
    run
        The folder of the run.
    replay
        Also run this many inputs again, with the model and the data. They are chosen at random
        every time.
    prove
        Prove every radius again without stored curves: up to a minute each. By default only the
        largest radius of each noise and norm is proved again, where this machine stored its curve.
    seal
        A seal that you received separately: it must be that of the run (or of the attacks or the
        guard's memory in its folder). May be given several times.
    key
        A public SSH key (.pub): the run must be signed with it (`unicr seal RUN --key`).
    timestamp_ca
        Certificates (PEM) of time-stamp authorities that you believe: the run, and the commitment
        if there is one, must be dated by one of them (`unicr seal RUN --timestamp`).
    commitment
        The commitment that you were told before the run was made: it must be the run's.
    nonce
        The nonce that you gave, or the beacon's: it must be the run's.
    """
    from unicr.progress import Bar
    from unicr.runs import Run, caught, prove_again
    from unicr.runs import replay as sample_again
    from unicr.runs import verify as check

    if replay < 0:
        raise RunError(f"--replay {replay}: how many inputs to sample again, 0 or more")
    problems = 0

    def tell(texts: Iterable[object]) -> None:
        nonlocal problems
        for text in texts:
            problems += 1
            print(printable(str(text)))

    trusted = options
    with Run(run) as opened:
        wanted = replay > 0 or trusted.model is not None
        classifier, dataset = open_both(opened, trusted, model=wanted)
        findings = list(check(opened, trusted=trusted, data=dataset, model=classifier))
        tell(findings)
        rows = opened.records()
        failed = sum(row["claims"] is None for row in rows)
        bad = {one.idx for one in findings if one.idx is not None}
        whole = sum(one.idx is None for one in findings)
        print(
            f"{len(rows)} inputs checked from their counts, {len(bad)} do not hold; "
            f"{failed} failed in the run"
        )
        if whole:
            print(
                f"of the run as a whole, {whole} {'thing does' if whole == 1 else 'things do'} "
                "not hold"
            )
        proofs = list(prove_again(opened, trusted=trusted, every=prove, skip=bad))
        tell(f"{what}: {wrong}" for what, wrong in proofs if wrong is not None)
        if proofs:
            print(f"{len(proofs)} radii proved again without stored curves")
        for line in about(trusted.open(opened.spec), classifier, dataset):
            print(printable(line))
        tell(told_before(trusted.open(opened.spec), commitment, nonce))
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
    tell(sealed(run, seal, key, timestamp_ca))
    return 1 if problems else 0


def open_both(
    run: Run, trusted: Trusted, *, model: bool
) -> tuple[Classifier | None, Dataset | None]:
    """The model where it is asked for; the data then too, or where a copy of it was given."""
    classifier = trusted.open_model(run.spec) if model else None
    wanted = model or trusted.data is not None
    return classifier, trusted.open_data(run.spec, classifier) if wanted else None


def about(spec: Spec, model: Classifier | None, data: Dataset | None) -> Iterator[str]:
    """What was certified and where its noise is from, for whoever knows what it should be."""
    yield f"about {spec.inputs_text}"
    if model is not None and data is not None:
        yield f"commitment {spec.commitment}, computed from your model and data"
    else:
        yield f"commitment {spec.commitment}, as the run states model and data"
    yield f"noise of the {spec.draw_text}"


def told_before(spec: Spec, commitment: str | None, nonce: str | None) -> Iterator[str]:
    """What is not as it was told before the run."""
    if commitment is not None and commitment.strip().lower() != spec.commitment:
        yield f"the commitment is {spec.commitment}, not the one that you were told"
    if nonce is not None and nonce.strip().lower() != spec.nonce:
        yield f"the nonce is {spec.nonce}, not the one that you gave"


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


def sealed(
    folder: Path, wanted: list[str] | None, key: Path | None, roots: Path | None
) -> Iterator[str]:
    """Print the seals and dates; what is not as it was told, signed or dated."""
    from unicr.runs import (
        STATEMENT,
        Run,
        check_signature,
        check_stamp,
        seals,
        statement_problems,
    )

    now = seals(folder)
    for name, seal in now.items():
        print(f"seal of {name}: {seal}")
    with Run(folder) as run:
        if run.stored_seal() is None:
            print("the run has no seal")
    for seal in wanted or []:
        if seal.strip().lower() not in now.values():
            yield f"the seal {seal} is of nothing in {folder}: something was changed"
    if key is None and roots is None:
        return
    yield from statement_problems(folder)
    files = [one for one in (folder / "commitment.json", folder / STATEMENT) if one.is_file()]
    dates = []
    for file in files:
        try:
            # the statement has the commitment's digest: a signature of its own is welcome
            if key is not None and (file.name == STATEMENT or Path(f"{file}.sig").is_file()):
                check_signature(file, key)
                print(f"{file.name} is signed with {key}")
        except RunError as error:
            yield f"not signed with {key}: {error}"
        try:
            if roots is not None:
                found = check_stamp(file, roots)
                dates.append(found.time)
                print(f"{file.name} was there at {found.time} (by {found.authority})")
        except RunError as error:
            yield str(error)
    if dates != sorted(dates):
        yield "the commitment was dated after the run"
