"""What a run knows of its inputs, for a comparison of noises on average over them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from unicr.errors import RunError
from unicr.noise import Noise
from unicr.runs import NO_TRUST, Run
from unicr.values import Array


@dataclass(frozen=True)
class RunInputs:
    """What a run knows of its inputs: p_A (0 where wrong or abstained) and the σ they met."""

    p_a: Array
    sigma: Array
    noise: Noise
    dim: int
    norms: tuple[str, ...]

    @property
    def comparable(self) -> bool:
        """Whether the run's own noise can take part: it has a σ and a curve."""
        known = self.noise.iid is not None or self.noise.radial is not None
        return known and math.isfinite(self.noise.sigma)


def read_run(folder: Path) -> RunInputs:
    """The p_A of every input of a run, in the order of the inputs."""
    with Run(folder) as run:
        spec, rows = run.spec, list(run.rows())
    if not rows:
        raise RunError(f"{folder} has no results yet, so there is no p_A to compare at")
    law = NO_TRUST.noise(spec)
    sigma_of = cache(lambda text: NO_TRUST.noise(spec, text).sigma)
    p_a, sigma = np.zeros(len(rows)), np.full(len(rows), law.sigma)
    for i, row in enumerate(rows):
        certificate = row.certificate
        if certificate is None:
            continue
        if row.correct:
            p_a[i] = certificate.p_a
        if certificate.noise is not None:
            sigma[i] = sigma_of(certificate.noise)
    return RunInputs(p_a, sigma, law, spec.dim, spec.norm_texts)
