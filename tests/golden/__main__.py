"""Make the golden files again: `python -m tests.golden [KIND …]`.

One JSON line for each question, written as it is answered; questions that have a line already are
passed over, so an interrupted run goes on. Remove a file to make it anew.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from tests.golden.cases import KINDS
from unicr.errors import UnicrError

HERE = Path(__file__).parent


def main(kinds: list[str]) -> None:
    """Answer every question of these kinds, or of all."""
    for kind in kinds or KINDS:
        cases, answer = KINDS[kind]
        path = HERE / f"{kind}.jsonl"
        lines = path.read_text("utf-8").splitlines() if path.is_file() else []
        known = {json.dumps(json.loads(line)["case"]) for line in lines}
        for case in cases():
            if json.dumps(case) in known:
                continue
            start = time.process_time()
            try:
                result = answer(case)
            except UnicrError as error:
                result = {"error": type(error).__name__}
            # Questions that take longer are asked by the slow tests only.
            spent = time.process_time() - start
            quick = spent < (3.0 if kind in ("numerics", "laws") else 0.3)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"case": case, "quick": quick, **result}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
