"""A dataset certified through a selector: an ordinary run, whose g is one for every input."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from unicr.classifier import Selective
from unicr.errors import CertifyError, RunError
from unicr.extras import torch
from unicr.runs import Job, Manifest, Own, Row, Run, carried_out, difference, going_on
from unicr.select._certify import recounted, selective
from unicr.select._selector import Selector
from unicr.smoothing import Plan, Procedure, Radii
from unicr.smoothing.measures import SelectiveCertificate


def select_run(
    job: Job,
    folder: Path,
    *,
    selector: Selector,
    resume: bool = False,
    retry_failed: bool = False,
    on_result: Callable[[Row], None] | None = None,
) -> Run:
    """Certify every input of the job through its model's selector; the open run, sealed.

    The job's classifier is a `Selective`, its noise that of the selector; of its plan the rule is
    for the chosen classifier.
    """
    job = going_on(prepared(job, selector), folder)
    if job.lattice is not None:
        points = replace(job, noise=selector.finest).points
        job = replace(job, lattice=None if points is None else points.text)
    job.check()
    radii = selector.radii(job.norms, job.dim, job.searched, job.points)
    (run,) = carried_out(
        job,
        {folder: job.manifest(selector=selector.to_dict())},
        lambda one: selective(selector, job.plan, _of(radii, one.x)),
        resume=resume,
        retry_failed=retry_failed,
        on_result=on_result,
    )
    return run


def prepared(job: Job, settings: Selector) -> Job:
    """The job with the plan of selective certificates and the selector's noise."""
    if not isinstance(job.classifier, Selective):
        raise CertifyError(f"{job.classifier.name} is no selector: `unicr select` makes one")
    if len(job.classifier.members) != 1 + len(settings.choices):
        raise CertifyError(
            f"{len(settings.choices)} noises for {len(job.classifier.members) - 1} classifiers"
        )
    plan = settings.plan(job.plan.n0, job.plan.n, job.plan.alpha, job.plan)
    return replace(job, plan=plan, noise=settings.noise)


def _of(radii: Sequence[Radii], x: torch.Tensor | None) -> list[Radii]:
    """The radii of all members for one input: what moving it to the lattice costs is taken off."""
    assert x is not None
    return [one.of(x) for one in radii]


@dataclass(frozen=True)
class Recount:
    """What `runs.verify` and `runs.replay` need of a run with a selector."""

    settings: Selector
    manifest: Manifest

    @classmethod
    def of(cls, manifest: Manifest, own: Own) -> Recount:
        """From the settings of a run; noises that are code are refused as everywhere."""
        if manifest.selector is None:
            raise RunError("the run has no selector")
        settings = Selector.from_dict(manifest.selector, lambda text: own.noise(manifest, text))
        return cls(settings, manifest)

    @cached_property
    def radii(self) -> tuple[Radii, ...]:
        """The curves that the votes are read with, made when first asked for."""
        run = self.manifest
        dim = math.prod(run.shape)
        return self.settings.radii(run.parsed_norms, dim, run.searched, run.points)

    @property
    def noises(self) -> frozenset[str]:
        """The noises that a certificate may speak of."""
        return self.settings.noises

    def plan(self, n0: int, n: int, alpha: float) -> Plan:
        """The plan that the certificates need: their own rule, the votes of members."""
        return self.settings.plan(n0, n, alpha, self.manifest.plan)

    def start(self, radii: Sequence[Radii]) -> Procedure[SelectiveCertificate]:
        """The procedure of one input, whose radii these are."""
        return selective(self.settings, self.manifest.plan, radii)

    def again(
        self, manifest: Manifest
    ) -> Callable[[torch.Tensor], Procedure[SelectiveCertificate]]:
        """What makes the procedure of each input of a run, to replay it."""
        return lambda x: self.start(_of(self.radii, x))

    def check(self, row: Row) -> str | None:
        """None, or what of a stored certificate its own votes do not give again."""
        stored = row.certificate
        if stored is None:
            return None
        if not isinstance(stored, SelectiveCertificate):
            return "it is no certificate of a selector"
        radii = [one.when(moved=stored.moved) for one in self.radii]
        found = recounted(stored, lambda: self.start(radii))
        if isinstance(found, str):
            return found
        return difference(stored, found)
