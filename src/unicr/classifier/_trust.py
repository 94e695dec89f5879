"""Files that can carry code are opened only where the user names them.

Pickles, TorchScript and exported programs can run their author's code while they are read. No scan
of such a file is believed: a reader that sees another entry than the scan did (torch's zip reader
ignores the case of names) runs what the scan passed. Torch's restricted unpickler (`weights_only`)
is not believed either: crafted files ran code in it twice (CVE-2025-32434, CVE-2026-24747).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from unicr.errors import ModelError
from unicr.files import is_among

Trust = str | Path | Iterable[str | Path] | None


def trusted_files(trust: Trust) -> tuple[Path, ...]:
    """The files that a user named, as paths; a bare yes or no names none and is refused."""
    if isinstance(trust, bool):
        raise ModelError(f"trust={trust}: name the files that may run code, trust=['model.pt2']")
    named = [trust] if isinstance(trust, str | Path) else trust or ()
    return tuple(Path(one).expanduser() for one in named)


def check_trusted(file: Path, trust: Iterable[Path], kind: str, safe: str) -> None:
    """Refuse a file that can carry code and was not named; `safe` is an ending that cannot."""
    if not is_among(file, trust):
        name = shlex.quote(str(file))
        raise ModelError(
            f"{file} is {kind}: opening it can run code of its author. If you trust that person, "
            f"name the file (--trust {name}). No trust is needed for .onnx, .safetensors, hf:DIR; "
            f"`unicr convert {name} --trust {name} -o {shlex.quote(file.stem + safe)}` makes one"
        )
