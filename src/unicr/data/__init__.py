"""Inputs and labels for certification, from arrays, images, tables and well-known archives.

`load_dataset` reads every form that unicr knows; `fetch` downloads the usual benchmark sets.
Inputs are float32, images are channels first in [0, 1], and a missing label is -1.
"""

from __future__ import annotations

from unicr.data._dataset import NO_LABEL, Dataset, as_input
from unicr.data._fetch import ARCHIVES, data_folder, fetch
from unicr.data._load import load_dataset
from unicr.data._reader import DataAsked, Reader

__all__ = [
    "ARCHIVES",
    "NO_LABEL",
    "DataAsked",
    "Dataset",
    "Reader",
    "as_input",
    "data_folder",
    "fetch",
    "load_dataset",
]
