"""Small real runs for the tests of the report: planted pictures, a planted classifier, votes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from unicr.classifier import load_classifier
from unicr.data import Dataset, load_dataset
from unicr.noise import parse
from unicr.norms import parse_norm
from unicr.runs import Job, certify_run
from unicr.smoothing import Plan

SIDE = 8
TOO_BRIGHT = 0.72
REASON = "</script><script>boom()</script>"


def save_pictures(path: Path, count: int = 12, channels: int = 1, seed: int = 0) -> Path:
    """Grey levels from dark to bright with some texture; the label says whether above 1/2.

    The last one is brighter than `classify` bears.
    """
    rng = np.random.default_rng(seed)
    level = np.append(np.linspace(0.3, 0.69, count - 1), 0.8)
    texture = rng.uniform(-0.1, 0.1, size=(count, channels, SIDE, SIDE))
    x = np.clip(level[:, None, None, None] + texture, 0, 1).astype(np.float32)
    np.savez(path, x=x, y=(level > 0.5).astype(np.int64))
    return path


def classify(batch: torch.Tensor) -> torch.Tensor:
    """Bright (1) or dark (0); raises where a picture is too bright."""
    mean = batch.flatten(1).mean(dim=1)
    if mean.median() > TOO_BRIGHT:
        raise ValueError(REASON)
    return (mean > 0.5).long()


def make_run(folder: Path, data: str | Path | Dataset, **changes: Any) -> Path:
    """A run of `classify` in `folder`, which is returned."""
    settings: dict[str, Any] = {
        "noise": "gaussian(sigma=0.5)",
        "norms": ("1", "2", "inf"),
        "n": 400,
        "seed": 3,
        "classifier": classify,
        **changes,
    }
    dataset = data if isinstance(data, Dataset) else load_dataset(str(data))
    job = Job(
        classifier=load_classifier(settings["classifier"], num_classes=2),
        data=dataset,
        noise=parse(settings["noise"]),
        norms=tuple(map(parse_norm, settings["norms"])),
        plan=Plan(n=settings["n"]),
        seed=settings["seed"],
        limit=settings.get("limit"),
        data_spec=None if isinstance(data, Dataset) else str(data),
    )
    certify_run(job, folder).close()
    return folder
