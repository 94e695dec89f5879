"""The guarded predictor: an answer from memory where there is one, else a new certificate.

A noise that is chosen for each input certifies each input for its own smoothed classifier; the
memory makes one classifier of all of them (Alfarra et al. 2022; docs/theory.md#the-guard).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from unicr.classifier import Classifier
from unicr.data import Dataset
from unicr.errors import CertifyError, RunError
from unicr.extras import torch
from unicr.guard._memory import Answer, Memory
from unicr.noise import Lattice
from unicr.runs import NO_TRUST, Row, Spec, Trusted
from unicr.smoothing import Certificate, VoteCounter
from unicr.smoothing.procedures import Selector

# Chooses a noise for x and certifies x with it, on the noise stream of the number given.
Policy: TypeAlias = "Callable[[torch.Tensor, int], Certificate]"


def policy(spec: Spec, classifier: Classifier, seed: int, trusted: Trusted = NO_TRUST) -> Policy:
    """Return how a new point is certified: by the run's procedure, under the memory's seed.

    Parameters
    ----------
    spec
        The spec of the run.
    classifier
        Its base classifier.
    seed
        The seed of the memory's noise.
    trusted
        Files whose code may run.
    """
    if isinstance(spec.plan.procedure, Selector):
        raise RunError(
            "the certificates of a run with a selector hold for every input, so they need no guard"
        )
    spec = trusted.open(spec)
    plan, curves = spec.plan, spec.curves
    smoothed = VoteCounter(
        classifier,
        spec.noise,
        batch=spec.batch,
        channels_last=spec.channels_last,
        seed=seed,
        lattice=spec.lattice,
    )
    return lambda x, stream: smoothed.certify_with(x, plan, curves, stream)


class Guard:
    """Answers queries and never contradicts an earlier answer.

    `certify` certifies a new point with failure probability at most `alpha`. One thread at a time
    calls it. Two statements hold for every sequence of queries. A query in the region of an earlier
    one always gets the same answer. With probability at least 1 − `memory.spent`, every region is
    correct for the classifier smoothed with that region's noise. Queries are moved to the `lattice`
    first, as that classifier does, so regions are about lattice points.
    """

    def __init__(
        self,
        certify: Policy,
        memory: Memory,
        *,
        alpha: float = 0.001,
        lattice: Lattice | None = None,
    ) -> None:
        if not 0 < alpha < 1:
            raise CertifyError(f"alpha={alpha!r} must lie strictly between 0 and 1")
        self.memory, self.alpha, self.lattice = memory, alpha, lattice
        self._certify = certify
        self._one_at_a_time = threading.Lock()

    def __call__(self, x: Any) -> Answer:
        """The answer for one input. A new region is on the disk before its answer is given."""
        if self.lattice is not None and bool(torch.isfinite(torch.as_tensor(x)).all()):
            x = self.lattice.floats(self.lattice.integers(torch.as_tensor(x).cpu().numpy()))
        if (known := self.memory.look_up(x)) is not None:
            return known
        with self._one_at_a_time:
            if (known := self.memory.look_up(x)) is not None:
                return known
            stream = self.memory.reserve(self.alpha)
            point = self.memory.point(x)
            certificate = self._certify(torch.from_numpy(point.reshape(self.memory.shape)), stream)
            if certificate.alpha > self.alpha:
                raise CertifyError(
                    f"the certificate has alpha={certificate.alpha:g}, but the guard needs "
                    f"{self.alpha:g} for each certificate"
                )
            return self.memory.settle(point.reshape(self.memory.shape), certificate, stream)


@dataclass(frozen=True)
class Planted:
    """The outcome of planting the certificates of a run in a memory.

    `shrunk` holds (input, certified radius, radius kept); `overruled` the inputs that lie in the
    region of an earlier input of another class, whose certificates were left out; `known` counts
    those that were there already.
    """

    stored: int
    abstained: int
    known: int
    shrunk: tuple[tuple[int, float, float], ...]
    overruled: tuple[int, ...]


def plant(memory: Memory, rows: Iterable[Row], data: Dataset) -> Planted:
    """Give a memory the certificates of a run, in order, each shrunk against the earlier ones.

    Every input is looked up in `data` and compared with its hash. A second call continues where the
    first one stopped (docs/theory.md#the-guard).
    """
    stored = abstained = known = 0
    shrunk: list[tuple[int, float, float]] = []
    overruled: list[int] = []
    for row in rows:
        if row.certificate is None:
            continue
        if row.idx >= len(data) or data.digest_of(row.idx) != row.input_hash:
            raise RunError(f"input {row.idx} of {data.name} is not the input that was certified")
        answer = memory.plant(data[row.idx][0], row.certificate, row.idx)
        if answer is None:
            known += 1
        elif answer.source == "memory":
            overruled.append(row.idx)
        else:
            stored += 1
            abstained += row.certificate.abstained
            if answer.shrunk_from is not None:
                shrunk.append((row.idx, answer.shrunk_from, answer.radius))
    return Planted(stored, abstained, known, tuple(shrunk), tuple(overruled))
