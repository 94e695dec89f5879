"""What a run is asked to do: model, data, noise and plan, and where the work is done."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from unicr.classifier import Classifier, check_fit
from unicr.classifier.internal import split_devices
from unicr.data import Dataset
from unicr.errors import BatchError, CertifyError, UnicrError
from unicr.extras import torch
from unicr.noise import Lattice, Noise
from unicr.noise.internal import check_parses
from unicr.norms import Norm
from unicr.runs._commit import inputs_digest
from unicr.runs._schedule import CHUNK
from unicr.runs._spec import DRAWN, GIVEN, LOADING, Execution, Spec
from unicr.smoothing import (
    AUTO,
    Curves,
    Passes,
    Plan,
    VoteCounter,
    checked_nonce,
    lattice_for,
)

LOOKED_AT = 16  # inputs that choose the lattice
WORTHWHILE = 0.51  # a p_A below this gives radii of no use


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What is certified of a dataset and how: every `skip`-th input, at most `limit` of them."""

    norms: tuple[Norm, ...]
    plan: Plan
    seed: int | None = None
    searched: bool = False
    skip: int = 1
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.skip < 1:
            raise CertifyError(f"skip={self.skip}: every how many-th input, at least 1")
        if self.limit is not None and self.limit < 1:
            raise CertifyError(f"max={self.limit}: at least one input")

    def among(self, size: int) -> list[int]:
        """Which of `size` inputs are certified."""
        return list(islice(range(0, size, self.skip), self.limit))

    @property
    def terms(self) -> dict[str, Any]:
        """All of it as it is written down."""
        return {
            "norms": [norm.text for norm in self.norms],
            "plan": self.plan.to_dict(),
            "seed": self.seed,
            "searched": self.searched,
            "skip": self.skip,
            "max": self.limit,
        }


@dataclass(frozen=True)
class Job(Terms):
    """Everything that decides the results of a run, then where the work is done.

    `data_spec` is how the data was named, `data_arguments` and `model_arguments` are those of
    `load_dataset` and `load_classifier`: the spec keeps them, and workers load the model with
    them; without, it is pickled. `ray` is the address of a cluster ("local" starts one here),
    `gpus` what each of its workers reserves. `batch` is how many noisy copies one forward pass has
    and `channels_last` their order in memory (both are measured where left out), `chunk` the most
    samples of one task.

    Noise is drawn on `lattice` (its text; "auto" for one so fine that radii hold for every change,
    None for real-valued noise) from a `nonce`, drawn where none is given, or for experiments from
    a `seed`. `require` is what the run is to show (`Requirement`), `all_norms` what the same votes
    serve where each norm has a run of its own.
    """

    classifier: Classifier
    data: Dataset
    noise: Noise
    data_spec: str | None = None
    data_arguments: dict[str, Any] | None = None
    model_arguments: dict[str, Any] | None = None
    batch: int | None = None
    channels_last: bool | None = None
    workers: int = 0
    ray: str | None = None
    gpus: float = 0
    chunk: int = CHUNK
    nonce: str | None = None
    nonce_origin: str | None = None
    lattice: str | None = AUTO
    require: tuple[str, ...] = ()
    all_norms: tuple[Norm, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.seed is not None and self.nonce is not None:
            raise CertifyError("give --seed, for experiments, or --nonce, not both")
        if self.seed is None:
            origin = self.nonce_origin or (DRAWN if self.nonce is None else GIVEN)
            nonce = secrets.token_hex(32) if self.nonce is None else self.nonce
            object.__setattr__(self, "nonce", checked_nonce(nonce))
            object.__setattr__(self, "nonce_origin", origin)
        if self.workers < 0:
            raise CertifyError(f"workers={self.workers}: 0 for this process, or their number")
        if len(self.devices) > 1 and (self.workers or self.ray is not None):
            raise CertifyError(
                f"--device {','.join(self.devices)} has one process on each: leave --workers and "
                "--ray out"
            )
        if self.batch is not None and self.batch < 1:
            raise CertifyError(f"batch={self.batch}: at least one sample in a pass")
        if self.chunk < 1:
            raise CertifyError(f"chunk={self.chunk}: at least one sample in a task")

    @property
    def devices(self) -> list[str]:
        """Where the model is: one process works on each of several (`--device cuda:0,cuda:1`)."""
        named = (self.model_arguments or {}).get("device")
        return split_devices(self.classifier.device if named is None else named)

    @property
    def indices(self) -> list[int]:
        """Which inputs are certified."""
        return self.among(len(self.data))

    @property
    def dim(self) -> int:
        """How many values an input has."""
        return math.prod(self.data.shape)

    @cached_property
    def curves(self) -> Curves:
        """The radii of every noise of the run; curves are made once."""
        return Curves(self.norms, self.dim, searched=self.searched, lattice=self.points)

    @cached_property
    def smoothed(self) -> VoteCounter:
        """The smoothed classifier that the run is about, made once."""
        return VoteCounter(self.classifier, self.noise, **self.spec.smoothing)

    @cached_property
    def points(self) -> Lattice | None:
        """The lattice of the run."""
        if self.lattice != AUTO:
            return None if self.lattice is None else Lattice.parse(self.lattice)
        some: list[torch.Tensor] = []
        for index in self.indices:
            with suppress(UnicrError, OSError, MemoryError):  # told when its turn comes
                x = self.data[index][0]
                some += [x] if bool(torch.isfinite(x).all()) else []
            if len(some) == LOOKED_AT:
                break
        some = some or [torch.zeros(self.data.shape)]
        finest = self.plan.procedure.finest(self.noise)
        own = self.plan.procedure.on_own_grid
        return lattice_for(some, finest, self.norms, own=own)

    @cached_property
    def largest(self) -> dict[str, float]:
        """The largest radius that can come out in each norm; builds the curves.

        Refuses a model that does not fit the data, and plans that can certify nothing.
        """
        self.check()
        return self.curves.of(self.noise).largest(self.plan)

    def resume(self, old: Spec) -> Job:
        """This job with the noise that a run was begun with: its nonce, lattice and batches.

        A seed or a nonce that was given must be the run's.
        """
        changed: dict[str, Any] = {}
        if self.seed is None:
            if self.nonce_origin == GIVEN and self.nonce != old.nonce:
                began = f"seed {old.seed}" if old.nonce is None else f"nonce {old.nonce}"
                raise CertifyError(
                    f"--nonce {self.nonce}: the run was begun with {began}, and all of its noise "
                    "follows from that; leave --nonce out to go on, or take another folder"
                )
            origin = old.nonce_origin
            changed = {"seed": old.seed, "nonce": old.nonce, "nonce_origin": origin}
        if self.lattice == AUTO:
            changed["lattice"] = old.lattice and old.lattice.text
        changed |= {"batch": old.batch, "channels_last": old.channels_last}
        return replace(self, **changed, require=self.require or old.require)

    def check(self) -> None:
        """The model takes the inputs, one by one, and the samples suffice for something."""
        self.plan.procedure.check_model(self.classifier)
        check_fit(self.classifier, self.data)
        try:
            self.smoothed.votes(self.data.sample(), 1, start=0)
        except BatchError:
            raise
        except Exception:  # told when the input's turn comes
            pass
        if self.plan.best_p_a() < WORTHWHILE:
            raise CertifyError(
                f"n={self.plan.n} samples at alpha={self.plan.alpha:g} can certify nothing, even "
                f"if all of them agree (p_A would be {self.plan.best_p_a():.4f}): take more samples"
            )

    @cached_property
    def spec(self) -> Spec:
        """All that decides the run, made once; resuming must agree with it."""
        check_parses(self.noise)  # whoever reads the run must be able to read its noise
        classes = self.classifier.classes or self.data.classes
        passes = self._choose_passes()
        draft = Spec(
            model=self.classifier.name,
            model_hash=self.classifier.digest,
            model_digests=dict(self.classifier.digests),
            classes=tuple(classes) if classes else None,
            data=self.data_spec or self.data.source,
            data_size=len(self.data),
            inputs=inputs_digest(self.data, self.skip, self.limit),
            split=(self.data_arguments or {}).get("split"),
            shape=tuple(self.data.shape),
            noise=self.noise,
            norms=self.norms,
            all_norms=self.all_norms or self.norms,
            plan=self.plan,
            seed=self.seed,
            nonce=self.nonce,
            nonce_origin=self.nonce_origin,
            require=self.require,
            lattice=self.points,
            searched=self.searched,
            skip=self.skip,
            max=self.limit,
            batch=passes.size,
            channels_last=passes.channels_last,
            loading=_plain(self.model_arguments, LOADING),
            reading=_plain(self.data_arguments, ("labels", "label_column")),
        )
        return replace(draft, plan=draft.keyed_plan)

    def _choose_passes(self) -> Passes:
        """The size and layout of passes, which the commitment has."""
        some = VoteCounter(
            self.classifier,
            self.noise,
            batch=self.batch,
            channels_last=self.channels_last,
            lattice=self.points,
            nonce="0" * 64,
        )
        sharing, asks = max(self.workers, len(self.devices)), (self.plan.n0, self.plan.n)
        return some.choose_passes(self.data.sample(), sharing, asks)

    @property
    def execution(self) -> Execution:
        """Where and when the work is done."""
        return Execution.now(self.workers, ",".join(self.devices))


def _plain(arguments: dict[str, Any] | None, names: Iterable[str]) -> dict[str, Any]:
    """Those arguments that were given, as JSON has them."""
    found = {name: (arguments or {}).get(name) for name in names}
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in found.items()
        if value is not None and value is not False
    }
