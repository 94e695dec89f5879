"""`unicr verify`: check the certificates of a run without trusting the run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from unicr.cli._parameters import Repeated, command
from unicr.cli._reopen import RUN, RunOptions
from unicr.errors import UNREADABLE, RunError, UnicrError, one_line, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from unicr.classifier import Classifier
    from unicr.data import Dataset
    from unicr.runs import Row, Run, Spec, Trusted


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
        Prove every radius again without curves that are stored on this machine: up to a minute
        each. By default only the largest radius of each noise and norm is proved again in this way.
    seal
        A checksum (seal) that you received separately. It must be the one of the run, or of the
        results of `unicr attack` or `unicr guard` in its folder. May be given several times.
    key
        A public SSH key (.pub): the run must be signed with it (`unicr seal RUN --key`).
    timestamp_ca
        Certificates (PEM) of time-stamp authorities that you trust. One of them must have dated the
        run and, if there is one, the commitment (`unicr seal RUN --timestamp`).
    commitment
        The commitment (SHA-256 of all settings) that you received before the run was made. It must
        be the run's commitment.
    nonce
        The random number (64 hexadecimal digits) that you gave, or that a public beacon gave. It
        must be the run's nonce.
    """
    from unicr.progress import Bar
    from unicr.runs import Run, compute_detection, prove_again, read_public_key
    from unicr.runs import replay as sample_again
    from unicr.runs import verify as check

    if replay < 0:
        raise RunError(f"--replay {replay} must be at least 0")
    if key is not None:
        read_public_key(key)
    problems = 0

    def tell(texts: Iterable[object]) -> None:
        nonlocal problems
        for text in texts:
            problems += 1
            print(printable(str(text)))

    trusted = options
    with Run(run) as opened:
        wanted = replay > 0 or trusted.model is not None
        classifier, dataset = open_model_and_data(opened, trusted, model=wanted)
        findings = list(check(opened, trusted=trusted, data=dataset, model=classifier))
        tell(findings)
        rows = opened.records()
        failed = sum(row["claims"] is None for row in rows)
        bad = {one.idx for one in findings if one.idx is not None}
        whole = sum(one.idx is None for one in findings)
        print(summarise(len(rows), failed, len(bad), whole))
        proofs = list(prove_again(opened, trusted=trusted, every=prove, skip=bad))
        tell(f"{what}: {wrong}" for what, wrong in proofs if wrong is not None)
        if proofs:
            proved = "1 radius" if len(proofs) == 1 else f"{len(proofs)} radii"
            print(f"{proved} proved again without stored curves")
        own = trusted.model is not None and trusted.data is not None
        spec, readable = trusted.open(opened.spec), opened.readable()
        for line in describe_run(spec, classifier, dataset, own=own):
            print(printable(line))
        tell(compare_told(spec, commitment, nonce))
        claims = [row.certificate for row in readable if row.certificate is not None]
        unbounded = sum(c.lattice is not None and c.charge is None for c in claims)
        if unbounded:
            print(f"{unbounded} inputs: the error of the noise sampler has no computed bound")
        tell(check_beside(opened, readable, trusted, classifier, replay))
        if classifier is not None and dataset is not None:
            found = sample_again(opened, classifier, dataset, replay, trusted=trusted)
            again = []
            with Bar("sampling inputs again", min(replay, len(rows))) as bar:
                for one in found:
                    again.append(one)
                    bar.update("sampling inputs again")
            different = [f"input {idx}: {text}" for idx, text in again if text is not None]
            tell(iter(different))
            same = f"{len(different)} differ" if different else "the same votes"
            print(f"{len(again)} of {len(rows)} inputs sampled again: {same}")
            if again and not different:
                many = -(-len(rows) // 10)
                percent = math.floor(100 * compute_detection(len(rows), len(again), many))
                rows_forged = f"{many} forged row{'s' if many > 1 else ''}"
                print(
                    f"this replay would detect {rows_forged} with {percent} % probability or more"
                )
        tell(check_seals(opened, seal, key, timestamp_ca))
    return 1 if problems else 0


def summarise(rows: int, failed: int, bad: int, whole: int) -> str:
    """What was recomputed, and how much of it does not hold: certificates, and the run itself."""
    hold = "all hold" if not bad else f"{bad} {'does' if bad == 1 else 'do'} not hold"
    if rows > failed or bad:
        text = f"{count_things(rows - failed, 'certificate')} recomputed from their votes: {hold}"
    else:
        text = "there is no certificate to recompute"
    if failed:
        text += f"; {count_things(failed, 'input')} failed in the run"
    return text + (f"\n{count_things(whole, 'problem')} with the run as a whole" if whole else "")


def count_things(many: int, what: str) -> str:
    """A number of things: `no problems`, `1 problem`, `2 problems`."""
    return f"{many or 'no'} {what}{'' if many == 1 else 's'}"


def open_model_and_data(
    run: Run, trusted: Trusted, *, model: bool
) -> tuple[Classifier | None, Dataset | None]:
    """The model where it is asked for; the data then too, or where a copy of it was given."""
    classifier = trusted.open_model(run.spec) if model else None
    wanted = model or trusted.data is not None
    return classifier, trusted.open_data(run.spec, classifier) if wanted else None


def describe_run(
    spec: Spec, model: Classifier | None, data: Dataset | None, *, own: bool
) -> Iterator[str]:
    """What was certified and where its noise is from, for whoever knows what it should be."""
    yield f"inputs: {spec.inputs_text}"
    whose = "your model and data" if own else "the model and data that the run names"
    checked = "not compared with a model and data"
    if model is not None and data is not None:
        checked = f"computed again from {whose}"
    yield f"commitment: {spec.commitment}, {checked}"
    if not spec.has_numbers:
        yield "the noise is code, so the commitment does not cover all of it"
    yield f"noise from {spec.draw_text}"


def compare_told(spec: Spec, commitment: str | None, nonce: str | None) -> Iterator[str]:
    """Print what is as it was told before the run; what is not is a finding."""
    if commitment is not None:
        if commitment.strip().lower() != spec.commitment:
            yield f"the commitment is {spec.commitment}, not the one that you received"
        else:
            print("the commitment is the one that you received")
    if nonce is not None:
        if nonce.strip().lower() != spec.nonce:
            yield f"the nonce is {spec.nonce}, not the one that you gave"
        else:
            print("the nonce is the one that you gave")


def check_beside(
    run: Run, readable: Sequence[Row], trusted: Trusted, classifier: Classifier | None, replay: int
) -> Iterator[str]:
    """What does not hold in the attacks and in the memory beside a run with these rows."""
    from unicr.guard import Regions, check_memory, replay_memory

    rows = {row.idx: row for row in readable}
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
        limit = "; its votes are not sampled again" if name == "attacks.sqlite" else ""
        print(f"{name} checked: {count_things(len(found), 'problem')}{limit}")


def check_seals(
    run: Run, wanted: list[str] | None, key: Path | None, roots: Path | None
) -> Iterator[str]:
    """Print the seals and dates; what is not as it was told, signed or dated."""
    from unicr.runs import (
        STATEMENT,
        check_signature,
        check_stamp,
        compute_seals,
        statement_problems,
    )

    folder = run.folder
    now = compute_seals(folder)
    for name, seal in now.items():
        print(f"seal of {name}: {seal}")
    if run.stored_seal() is None:
        print("the run was never sealed")
    for seal in wanted or []:
        if seal.strip().lower() not in now.values():
            yield f"no file in {folder} has the seal {seal}: it was changed, or is another run"
        else:
            print("the seal that you gave is right")
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
                print(f"{file.name} existed at {found.time} (says {found.authority})")
        except RunError as error:
            yield str(error)
    if roots is not None and len(files) < 2 and run.spec.nonce_origin == "given":
        yield "the run says that its nonce was given, but no commitment.json was dated before it"
    if dates != sorted(dates):
        yield "the commitment was dated after the run"
