"""The file of a selector: its noise and its choices, beside the weights of its models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unicr.classifier.internal import SELECTOR_FILE, read_selector
from unicr.noise import parse
from unicr.smoothing.procedures import Selector


def load_selector(path: Path, **settings: Any) -> Selector:
    """The noises of a selector.json, or of the folder that holds one."""
    values = read_selector(file_of(path))
    selecting, *choices = [parse(text) for text in (values["noise"], *values["choices"])]
    return Selector(selecting, tuple(choices), **settings)


def file_of(path: Path) -> Path:
    """The selector.json that a path names, as a file or by its folder."""
    path = path.expanduser()
    return path / SELECTOR_FILE if path.is_dir() else path
