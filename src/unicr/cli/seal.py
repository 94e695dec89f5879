"""`unicr seal`: one number that stands for all of a run, and a signature under it."""

from __future__ import annotations

from pathlib import Path

from unicr.cli._parameters import command


@command
def seal(run: Path, /, *, key: Path | None = None) -> None:
    """Print the seals of a run folder, and sign them with an SSH key.

    A seal is a SHA-256 over every setting and every result. Give it to whoever gets the run, by
    another way than the run: `unicr verify RUN --seal HEX` compares.
    Example: unicr seal my-run --key ~/.ssh/id_ed25519

    Parameters
    ----------
    run
        The folder of the run.
    key
        A private SSH key (ssh-keygen -t ed25519): write the signature into RUN/run.sig. Others
        check it with the public key: `unicr verify RUN --key KEY.pub`.
    """
    from unicr.runs import seals, sign

    for name, digest in seals(run).items():
        print(f"{name} {digest}")
    if key is not None:
        print(f"signed in {sign(run, key)}")
