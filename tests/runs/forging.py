"""What a forger does to a run folder after a change: seal it again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from unicr.runs import compute_seals


def reseal(folder: Path) -> None:
    """Give every file of a folder the seal of what is in it now."""
    for name, seal in compute_seals(folder).items():
        with closing(sqlite3.connect(folder / name)) as db, db:
            db.execute("DELETE FROM sealed")
            db.execute("INSERT INTO sealed VALUES (?)", (seal,))
