"""`unicr seal`: one number that stands for all of a run, a signature and a date."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from unicr.cli._parameters import command

SigningKey = Annotated[
    Path | None,
    Parameter(
        name="--key",
        help="A private SSH key (ssh-keygen -t ed25519): write a signature (.sig). Others check it "
        "with the public key: `unicr verify RUN --key KEY.pub`.",
    ),
]
Authority = Annotated[
    str | None,
    Parameter(
        name="--timestamp",
        help="The address (http…) of a time-stamp authority (RFC 3161). It gets a SHA-256, and its "
        "dated answer is stored (.tsr). Others check it: `unicr verify RUN --timestamp-ca "
        "ROOTS.pem`.",
    ),
]


@command
def seal(run: Path, /, *, key: SigningKey = None, timestamp: Authority = None) -> None:
    """Print the seals (checksums) of a run, sign and time-stamp them.

    A seal is a SHA-256 over every setting and every result. Send it separately
    from the run: `unicr verify RUN --seal HEX` compares it. With --key or --timestamp,
    RUN/statement.json names every file with its digest, and is signed and dated. If the folder
    holds a commitment and no run yet, the commitment is signed and dated.
    Example: unicr seal my-run --key ~/.ssh/id_ed25519

    Parameters
    ----------
    run
        The folder of the run.
    """
    from unicr.runs import compute_seals, read_commitment

    if (run / "run.sqlite").is_file():
        for name, digest in compute_seals(run).items():
            print(f"{name} {digest}")
    elif (found := read_commitment(run)) is not None:
        print(f"commitment {found[0]}")
    sign_and_date(run, key, timestamp)


def sign_and_date(folder: Path, key: Path | None, authority: str | None) -> None:
    """Sign and date the statement of a run, or a commitment, where that is asked for."""
    from unicr.runs import file_to_sign, sign, stamp

    if key is None and authority is None:
        return
    file = file_to_sign(folder)
    if key is not None:
        print(f"signed in {sign(file, key)}")
    if authority is not None:
        print(f"dated in {stamp(file, authority)}")
