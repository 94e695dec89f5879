"""`python -m bench` runs the `main` of every module of this folder, or of those that are named."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import bench


def main() -> None:
    names = sys.argv[1:] or [m.name for m in pkgutil.iter_modules(bench.__path__)]
    for name in names:
        if not name.startswith("_"):
            print(f"== {name}")
            importlib.import_module(f"bench.{name}").main()


if __name__ == "__main__":
    main()
