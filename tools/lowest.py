"""The lowest versions that pyproject.toml promises, as a constraints file on stdout.

torch stays at the version of constraints.txt: an older one cannot be had everywhere without
several GB of CUDA packages. The tools that test are the developers' own.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
BOUND = re.compile(r"([A-Za-z0-9_.-]+)>=([0-9.]+)")


def lowest(requirements: list[str]) -> dict[str, str]:
    """The version after `>=` of every requirement; a requirement without one is an error."""
    found = {}
    for text in requirements:
        match = BOUND.fullmatch(text)
        if match is None:
            raise SystemExit(f"{text!r} in pyproject.toml has no lower bound")
        found[match[1]] = match[2]
    return found


def main() -> None:
    """Print the constraints."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for name, version in lowest(
        [*project["dependencies"], *extras["torch"], *extras["plots"]]
    ).items():
        if name != "torch":
            print(f"{name}=={version}")
    for text in extras["dev"]:
        if text.startswith(("pytest==", "hypothesis==")):
            print(text)
    print((ROOT / "constraints.txt").read_text().splitlines()[-1])


if __name__ == "__main__":
    main()
