"""What a run is asked to do: model, data, noise and plan, and where the work is done."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unicr.classifier import (
    Classifier,
    ModelOptions,
    Normalised,
    check_fit,
    load_classifier,
    match_data,
)
from unicr.classifier.internal import split_devices
from unicr.data import DataOptions, Dataset
from unicr.errors import BatchError, CertifyError, UnicrError, listed
from unicr.extras import torch
from unicr.noise import Lattice, Noise, parse
from unicr.norms import Norm
from unicr.runs._commit import digest_of_inputs, read_lines
from unicr.runs._spec import DRAWN, GIVEN, LOADING, Spec, check_reads_back
from unicr.smoothing import (
    AUTO,
    Plan,
    Request,
    VoteCounter,
    check_nonce,
    find_finest,
    lattice_for,
    read_norms,
)

CHUNK = 10_000  # samples of a task; a lost worker costs at most this many
REAL = "none"  # in place of a lattice: real-valued noise
LOOKED_AT = 16  # inputs that the lattice and the warnings before a run look at
CHANCE = 1.5  # times 1/classes: an accuracy no better than this is near chance
COLOURS = (3, 4)  # channels of a colour image
SPOILS = 0.2  # of the accuracy: a model that loses so much, down to chance, fails under noise
BYTES = 16  # a value above this is no pixel in [0, 1], nor a normalised one


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Which inputs are certified in which norms, and where the noise comes from.

    Parameters
    ----------
    norms
        The lp norms of the radii, all from the same votes: 1, 2, inf, 0.5, …
    skip
        Certify every skip-th input only.
    limit
        Certify at most this many inputs.
    searched
        Report searched radii (the paper's approximate ones) instead of proved ones.
    lattice
        Inputs and noise are rounded to multiples of this step, so that their sum is exact. auto: so
        fine that a radius loses less than 1e-4 sigma. A number such as 2^-20 or 1/255: a larger
        step makes radii smaller. none: no rounding; a certificate then does not cover the rounding
        errors of the sum.
    nonce
        64 hexadecimal digits that decide the noise, from an auditor or a public randomness beacon;
        drawn at random if left out.
    seed
        Random seed of the noise, instead of a nonce. For experiments: the noise is predictable.
    batch
        Noisy copies in one forward pass. If left out, unicr measures which number is fastest.
    """

    norms: tuple[Norm, ...]
    skip: int = 1
    limit: int | None = None
    searched: bool = False
    lattice: str | None = AUTO
    nonce: str | None = None
    seed: int | None = None
    batch: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "norms", read_norms(self.norms))
        if self.lattice == REAL:
            object.__setattr__(self, "lattice", None)
        if self.seed is not None and self.nonce is not None:
            raise CertifyError("give either --seed, for experiments, or --nonce, not both")
        if self.batch is not None and self.batch < 1:
            raise CertifyError(f"batch={self.batch} must be at least 1")
        if self.skip < 1:
            raise CertifyError(
                f"skip={self.skip} must be at least 1: it certifies every skip-th input"
            )
        if self.limit is not None and self.limit < 1:
            raise CertifyError(f"max={self.limit} must be at least 1")

    @property
    def terms(self) -> dict[str, Any]:
        """All of it as it is written down, but for the nonce."""
        return {
            "norms": [norm.text for norm in self.norms],
            "seed": self.seed,
            "searched": self.searched,
            "skip": self.skip,
            "max": self.limit,
            "lattice": self.lattice,
        }


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the work is done. This does not change any result.

    Parameters
    ----------
    workers
        Number of worker processes. 0: this process alone, which already uses all cores for torch
        models. Use more for Python functions and scikit-learn models. With ray: number of actors.
    ray
        A Ray cluster: auto (also without a value), HOST:PORT, ray://HOST:PORT, or local, which
        starts one on this machine.
    gpus
        GPUs that each Ray worker reserves; may be a fraction.
    chunk
        Largest number of samples in one task (with workers or ray).
    """

    workers: int = 0
    ray: str | bool | None = None
    gpus: float = 0
    chunk: int = CHUNK

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise CertifyError(
                f"workers={self.workers} must be 0, for this process, or the number of processes"
            )
        if self.chunk < 1:
            raise CertifyError(f"chunk={self.chunk} must be at least 1")
        if self.gpus and not self.ray:
            raise CertifyError(
                f"gpus={self.gpus:g} is for a Ray cluster: give its address with ray, or choose "
                "GPUs of this machine with device (cuda:0,cuda:1)"
            )

    @property
    def where(self) -> dict[str, Any]:
        """What `execute` takes: workers, the address of the cluster, GPUs."""
        address = "auto" if self.ray is True else self.ray or None
        return {"workers": self.workers, "ray": address, "gpus": self.gpus}


@dataclass(frozen=True)
class Job(Terms, Place):
    """A run to be made: everything that decides its results, and where the work is done.

    `data_spec` and `noise_spec` are the texts that named data and noise. `data_arguments` and
    `model_arguments` are the arguments of `load_dataset` and `load_classifier`. The spec stores
    them, and workers load the model with them; without them the model is pickled. `require` lists
    the requirements on the run (`Requirement`). If each norm has a separate run, `all_norms` lists
    all norms that use the same votes.
    """

    classifier: Classifier
    data: Dataset
    noise: Noise
    plan: Plan = field(default_factory=Plan)
    data_spec: str | None = None
    noise_spec: str | None = None
    data_arguments: dict[str, Any] | None = None
    model_arguments: dict[str, Any] | None = None
    channels_last: bool | None = None
    nonce_origin: str | None = None
    require: tuple[str, ...] = ()
    all_norms: tuple[Norm, ...] | None = None

    def __post_init__(self) -> None:
        Terms.__post_init__(self)
        Place.__post_init__(self)
        if self.seed is None:
            origin = self.nonce_origin or (DRAWN if self.nonce is None else GIVEN)
            nonce = secrets.token_hex(32) if self.nonce is None else self.nonce
            object.__setattr__(self, "nonce", check_nonce(nonce))
            object.__setattr__(self, "nonce_origin", origin)
        else:
            object.__setattr__(self, "nonce_origin", None)  # a seed has no origin
        if len(self.devices) > 1 and (self.workers or self.ray):
            raise CertifyError(
                f"--device {','.join(self.devices)} starts one process on each device: leave "
                "--workers and --ray out"
            )

    @classmethod
    def open(
        cls,
        model: str,
        data: str,
        noise: str | Noise,
        plan: Plan,
        terms: Terms,
        loading: ModelOptions,
        reading: DataOptions,
        place: Place,
    ) -> Job:
        """The job with the model and the data that these texts name, opened."""
        arguments = {"spec": model, **vars(loading)}  # plain values: they are sent to workers
        classifier = load_classifier(**arguments)
        return cls(
            classifier=classifier,
            data=match_data(classifier, reading.load(data)),
            noise=noise if isinstance(noise, Noise) else parse(noise),
            noise_spec=noise if isinstance(noise, str) else None,
            plan=plan,
            data_spec=data,
            data_arguments=vars(reading),
            model_arguments=arguments,
            **vars(terms),
            **vars(place),
        )

    @cached_property
    def devices(self) -> list[str]:
        """Where the model is: one process works on each of several (`--device cuda:0,cuda:1`)."""
        named = (self.model_arguments or {}).get("device")
        return split_devices(self.classifier.device if named is None else named)

    @cached_property
    def indices(self) -> list[int]:
        """Which inputs are certified."""
        return list(islice(range(0, len(self.data), self.skip), self.limit))

    @cached_property
    def _counter(self) -> VoteCounter:
        """Measures passes, and draws nothing: their size belongs to the commitment, and the noise
        of the run follows from that (`smoothed`).
        """
        return VoteCounter(
            self.classifier,
            self.noise,
            batch=self.batch,
            channels_last=self.channels_last,
            seed=self.seed,
            nonce=self.nonce,
            lattice=self.points,
        )

    @cached_property
    def smoothed(self) -> VoteCounter:
        """The smoothed classifier that the run is about."""
        return self._counter.follow(self.spec.commitment)

    @cached_property
    def points(self) -> Lattice | None:
        """The lattice of the run."""
        if self.lattice != AUTO:
            return None if self.lattice is None else Lattice.parse(self.lattice)
        inputs = [x for _, x, _ in self.examples] or [torch.zeros(self.data.shape)]
        choices = self.plan.procedure.choices
        finest = find_finest((self.noise, *choices)) if choices else self.noise
        own = self.plan.procedure.on_own_grid
        return lattice_for(inputs, finest, self.norms, own=own)

    @cached_property
    def examples(self) -> list[tuple[int, torch.Tensor, int]]:
        """(number, input, label) of the first inputs that can be read and are finite.

        The lattice, the trial of the model and the warnings before a run look at them.
        """
        examples: list[tuple[int, torch.Tensor, int]] = []
        for index in self.indices:
            with suppress(UnicrError, OSError, MemoryError):  # told when its turn comes
                x, label = self.data[index]
                if bool(torch.isfinite(x).all()):
                    examples.append((index, x, label))
            if len(examples) == LOOKED_AT:
                break
        return examples

    @cached_property
    def largest(self) -> dict[str, float]:
        """The largest radius that can come out in each norm; builds the curves.

        Refuses a model that does not fit the data, and plans that can certify nothing.
        """
        plan = self.plan
        plan.check_samples()
        check_fit(self.classifier, self.data, self.typical)
        radii = self.spec.curves.of(self.noise)
        plan.procedure.check(plan, radii, self.classifier)
        # The first vote shows whether labels depend on what else is in a pass. Whatever else goes
        # wrong with it is told when the input's turn comes.
        (vote,) = self.smoothed.answer_many([(Request(1, 0), self.typical, 0)])
        if isinstance(vote, BatchError):
            raise vote
        return radii.largest(plan)

    def resume(self, old: Spec) -> Job:
        """This job with the noise that a run was begun with: its nonce, lattice and batches.

        A seed or a nonce that was given must be the run's.
        """
        changed: dict[str, Any] = {}
        if self.seed is None:
            if self.nonce_origin == GIVEN and self.nonce != old.nonce:
                began = f"seed {old.seed}" if old.nonce is None else f"nonce {old.nonce}"
                raise CertifyError(
                    f"--nonce {self.nonce} is not the one of this run, which was started with "
                    f"{began}: leave --nonce out to continue, or use another folder"
                )
            origin = old.nonce_origin
            changed = {"seed": old.seed, "nonce": old.nonce, "nonce_origin": origin}
        if self.lattice == AUTO:
            changed["lattice"] = old.lattice and old.lattice.text
        changed |= {"batch": old.batch, "channels_last": old.channels_last}
        return replace(self, **changed, require=self.require or old.require)

    @cached_property
    def typical(self) -> torch.Tensor:
        """An input of the run, to try the model on."""
        return self.examples[0][1] if self.examples else self.data.sample()

    def warnings(self) -> Iterator[str]:
        """What looks wrong with inputs and model, checked before the run."""
        inputs, sigma = [x for _, x, _ in self.examples], self.noise.sigma
        if inputs and math.isfinite(sigma):
            low, high = min(float(x.min()) for x in inputs), max(float(x.max()) for x in inputs)
            if high > BYTES and sigma < 0.05 * high:
                yield f"inputs reach {high:g}, sigma is {sigma:g}: is the noise meant for [0, 1]?"
            elif inputs[0].ndim == 3 and low < -0.2:
                yield (
                    f"inputs range from {low:.2g} to {high:.2g}, as if they were normalised: noise "
                    "and radius live in input space, give raw inputs and --mean/--std"
                )
        shape = tuple(inputs[0].shape) if inputs else ()
        if len(shape) == 3 and shape[2] in COLOURS and shape[0] not in (1, *COLOURS):
            yield (
                f"inputs have shape {shape}: if their last axis are the channels, "
                "put it first (np.moveaxis(x, -1, -3)), as torch expects it"
            )
        right = self.accuracies
        if right is None:
            return
        if self.precision_time is not None and self.precision_time > 1:
            yield (
                "with --precision a pass takes longer on this machine, "
                f"{self.precision_time:.2f} x the time of one without it: leave it out"
            )
        if not right.inputs:
            yield "no labels came with the inputs: no accuracy; give --labels or --label-column"
        classes = self.classifier.num_classes
        near_chance = max(right.clean, right.noisy) <= CHANCE / (classes or 1)
        if classes and right.inputs >= LOOKED_AT and near_chance:
            yield (
                f"{right.text}, which is near chance ({classes} classes): are the inputs as the "
                "model expects them (--mean, --std), and are the labels numbered as its own?"
            )
        elif classes and right.inputs >= LOOKED_AT and right.fails_under_noise(classes):
            yield (
                f"{right.text}, which is near chance ({classes} classes): use a smaller sigma, or "
                "a model that was trained with this noise (`unicr train`)"
            )

    def facts(self) -> Iterator[str]:
        """Facts about the run, known before it starts."""
        if isinstance(self.classifier, Normalised):
            yield f"the model normalises its inputs: {self.classifier.text}"
        names = self.data.classes or ()
        if self.classifier.classes is None and any(isinstance(name, str) for name in names):
            numbers = listed(f"{i} {name!r}" for i, name in enumerate(names))
            yield f"the model names no classes, so labels are numbered as in the data: {numbers}"
        if self.accuracies is not None and self.accuracies.inputs:
            yield self.accuracies.text
        if self.precision_time is not None:
            share = self.precision_time
            yield f"with --precision a pass takes {share:.2f} x the time of one without it"

    @cached_property
    def precision_time(self) -> float | None:
        """What a pass takes with fewer bits, as a share of what it takes without; None: no fewer.

        Measured here, because processors differ.
        """
        if (self.model_arguments or {}).get("precision") is None or self.accuracies is None:
            return None
        return self._counter.compare_time(self.classifier.at_own_precision(), self.typical)

    @cached_property
    def accuracies(self) -> Accuracies | None:
        """How often the model is right on a few inputs; None if it raises, which the run tells.

        Of the noise one copy behind all those that a plan may ask for.
        """
        behind, right = self.plan.n0 + self.plan.n, []
        try:
            for index, x, label in self.examples:
                if label >= 0:
                    answers = self._counter.classify_with_copy(x, index, behind)
                    right.append([answer == label for answer in answers])
        except Exception:  # a stranger's model may raise anything; the run says what
            return None
        clean, noisy = np.mean(right, axis=0).tolist() if right else (0.0, 0.0)
        return Accuracies(len(right), clean, noisy)

    @cached_property
    def spec(self) -> Spec:
        """All that decides the run, made once; resuming must agree with it."""
        if self.noise_spec != self.noise.text:  # else it was read from that very text
            check_reads_back(self.noise)
        classes = self.classifier.classes or self.data.classes
        sharing, asks = max(self.workers, len(self.devices)), (self.plan.n0, self.plan.n)
        passes = self._counter.choose_passes(self.typical, sharing, asks)
        spec = Spec(
            model=self.classifier.name,
            model_hash=self.classifier.digest,
            model_digests=dict(self.classifier.digests),
            classes=tuple(classes) if classes else None,
            data=self.data_spec or self.data.source,
            data_size=len(self.data),
            inputs=digest_of_inputs(read_lines(self.data, self.skip, self.limit).values()),
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
            loading=_keep_given(self.model_arguments, LOADING),
            reading=_keep_given(self.data_arguments, ("labels", "label_column")),
        )
        # What a rule draws follows from the commitment, which is of everything else.
        plan = spec.keyed_plan
        return spec if plan is self.plan else replace(spec, plan=plan)


class Accuracies(NamedTuple):
    """How often a model is right on a few inputs, without noise and with one draw of it."""

    inputs: int
    clean: float
    noisy: float

    @property
    def text(self) -> str:
        """Both in words."""
        return (
            f"base accuracy on {self.inputs} of the inputs: {self.clean:.0%} without noise, "
            f"{self.noisy:.0%} with one draw of it"
        )

    def fails_under_noise(self, classes: int) -> bool:
        """Whether the noise leaves little more than chance of a higher accuracy."""
        return self.noisy <= 1 / classes + SPOILS / 2 and self.clean >= self.noisy + SPOILS


def _keep_given(arguments: dict[str, Any] | None, names: Iterable[str]) -> dict[str, Any]:
    """Those arguments that were given, as JSON has them."""
    given = {name: (arguments or {}).get(name) for name in names}
    given = {k: list(v) if isinstance(v, tuple) else v for k, v in given.items()}
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in given.items()
        if value is not None
    }
