"""The smoothed classifier g: sample, vote, bound, certify (Cohen et al.'s two steps, any noise)."""

from __future__ import annotations

import copy
import functools
import hashlib
import math
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, Self

import numpy as np
from scipy import special

from unicr.classifier import Classifier, check_shape, load_classifier
from unicr.classifier.internal import Tally
from unicr.errors import CertifyError, ModelError
from unicr.extras import torch
from unicr.noise import Lattice, Noise
from unicr.noise.internal import LatticeNoise, derive, lattice_for
from unicr.norms import Norm, l2, parse_norm
from unicr.smoothing._batch import (
    MOST_ON_CPU,
    USUAL,
    Ask,
    Draw,
    Passes,
    Runner,
    check_alone,
    choose_passes,
    count_votes,
    keep_memory,
    one_thread_each,
    pool,
)
from unicr.smoothing._certificate import ABSTAIN, Certificate
from unicr.smoothing._plan import Plan
from unicr.smoothing._question import CLASSES, Counts, Measure, Request, answer_all
from unicr.smoothing._radii import Curves
from unicr.tables import facts_to_html

PASSES_EACH = 16  # of a thread: the last ones, of which some threads have none, are few among them
AUTO = "auto"  # a lattice so fine that radii hold for every change


class VoteCounter:
    """g(x) = the class that f most often gives to x + ε.

    `model` is a classifier of `unicr.classifier`, a torch module, or a function. x is moved to a
    `lattice`, and noise is drawn on it, which makes sums exact. `lattice` is a `Lattice` or its
    text, "auto" (so fine that radii hold for every change), or None for real-valued noise. The
    noise of a sample follows from a key, the input and the number of the sample; the batch size
    does not matter. The key is SHA-256 of the `commitment` (64 hexadecimal digits that fix a run,
    see `unicr.runs.Spec`; by default a digest of the model) and the `nonce` (64 hexadecimal digits;
    drawn at random by default). For experiments a `seed` replaces it; the noise is then
    predictable. `batch` is the number of noisy copies in one forward pass, and `channels_last`
    their order in memory; both are measured before the first vote if left out.
    """

    def __init__(
        self,
        model: Classifier | torch.nn.Module | Any,
        noise: Noise,
        *,
        num_classes: int | None = None,
        batch: int | None = None,
        channels_last: bool | None = None,
        seed: int | None = None,
        nonce: str | None = None,
        lattice: Lattice | str | None = AUTO,
        commitment: str | None = None,
    ) -> None:
        self.classifier = model if isinstance(model, Classifier) else load_classifier(model)
        self.noise = noise
        self.num_classes = num_classes or self.classifier.num_classes
        if batch is not None and batch < 1:
            raise CertifyError(f"batch={batch} must be at least 1")
        if seed is not None and nonce is not None:
            raise CertifyError("give either a seed, for experiments, or a nonce, not both")
        self.batch, self.channels_last, self.seed = batch, channels_last, seed
        drawn = secrets.token_hex(32) if nonce is None and seed is None else nonce
        self.nonce = None if drawn is None else check_nonce(drawn)
        written = isinstance(lattice, str) and lattice != AUTO
        self._lattice = Lattice.parse(lattice) if written and lattice is not None else lattice
        if self.nonce is None:
            self._key = derive("seed", str(seed), "")
        else:
            own = hashlib.sha256(self.classifier.digest.encode()).hexdigest()
            self._key = stream_key(commitment or own, self.nonce)
        self._alone = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.classifier.name!r}, {self.noise!r})"

    def _repr_html_(self) -> str:
        lattice = self._lattice.text if isinstance(self._lattice, Lattice) else self._lattice
        facts = {"model": self.classifier.name, "noise": repr(self.noise), "lattice": lattice}
        names = ("num_classes", "batch", "channels_last", "seed", "nonce")
        return facts_to_html(facts | {name: getattr(self, name) for name in names})

    def follow(self, commitment: str) -> Self:
        """This counter with the noise of a run that has this commitment; passes stay measured.

        The noise of an experiment follows from its seed, whatever the commitment.
        """
        if self.nonce is None:
            return self
        twin = copy.copy(self)
        twin._key = stream_key(commitment, self.nonce)
        return twin

    def lattice_of(
        self, x: torch.Tensor, norms: Iterable[Norm] = (l2,), *, own: bool = False
    ) -> Lattice | None:
        """The lattice that inputs are moved to; the first input decides what "auto" means.

        `own` asks for the grid that 8-bit images have by themselves.
        """
        if self._lattice == AUTO:
            self._lattice = lattice_for([x], self.noise, norms, own=own)
        assert not isinstance(self._lattice, str)
        return self._lattice

    def votes(
        self,
        x: torch.Tensor,
        n: int,
        *,
        start: int,
        input_index: int = 0,
        noise: Noise | None = None,
        measure: Measure = CLASSES,
    ) -> Counts:
        """How often each class was given to the noisy copies number start … start + n − 1 of x.

        `noise` takes the place of the classifier's own, for these votes only; `measure` may count
        something else than classes. Every forward pass has the same number of copies and, where
        the model can be copied, one thread: a label does not depend on what else is asked. A model
        whose labels do is refused, as far as one pass shows it.
        """
        return self.answer(Request(n, start, noise, measure), x, input_index)

    def answer_many(
        self, asked: Sequence[tuple[Request, torch.Tensor, int]]
    ) -> list[Counts | Exception]:
        """The votes that each (question, input, number of the input) asks for, or what failed.

        Questions are answered side by side; no answer depends on the others.
        """
        answers: list[Counts | Exception] = [np.zeros(0, dtype=np.int64)] * len(asked)
        asks: dict[int, Ask] = {}
        for i, (question, x, input_index) in enumerate(asked):
            try:
                if question.counted.noisy:
                    asks[i] = self._ask(question, x, input_index)
                else:
                    answers[i] = self._count_clean(question, x)
            except Exception as error:
                answers[i] = error
        if asks:
            passes = Passes(self.batch or 1, bool(self.channels_last))
            several = list(asks.values())
            counted = count_votes(several, self._runners, passes, self.num_classes)
            for i, answer in zip(asks, counted, strict=True):
                answers[i] = answer
        return answers

    def answer(self, question: Request, x: torch.Tensor, input_index: int) -> Counts:
        """The votes that a procedure asks for."""
        (answer,) = self.answer_many([(question, x, input_index)])
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _ask(self, question: Request, x: torch.Tensor, input_index: int) -> Ask:
        """How the votes of a question are drawn; the first one settles the passes."""
        x = self._check_input(x)
        noise = self.noise if question.noise is None else question.noise
        noise.check_input(x)
        passes, shape = self.choose_passes(x, asks=(question.n,)), tuple(x.shape)
        first, *_ = self._runners  # made while torch still has all its threads
        self.lattice_of(x)  # the first input settles it too
        make = functools.cache(partial(self._make_draw, question.counted, noise, x, input_index))
        draw: Draw = lambda out, start: make()(out, start)  # noqa: E731  by the thread that needs it
        if self.classifier.device.type != "cpu":
            draw = make()
        if question.n and passes.size > 1 and not self._alone:
            with one_thread_each():
                noisy = first.fill(draw, question.start, shape, passes)
                check_alone(self.classifier, noisy, x.to(noisy.device, torch.float32))
            self._alone = True
        return Ask(draw, shape, question.n, question.start, question.counted, noise.in_threads)

    def _count_clean(self, question: Request, x: torch.Tensor) -> Counts:
        """The vote of the input itself, as it stands on the grid."""
        x = self._check_input(x)
        if (lattice := self.lattice_of(x)) is not None:
            x = torch.from_numpy(lattice.floats(lattice.integers(x.cpu().numpy())))
        batch = x[None].to(self.classifier.device, torch.float32)
        tally, labels = Tally(self.classifier.name), question.counted.labels(self.classifier, batch)
        tally.add(labels, question.counted.size(self.classifier, self.num_classes))
        return tally.read().numpy()

    def classify_with_copy(self, x: torch.Tensor, input_index: int, number: int) -> tuple[int, int]:
        """The labels of an input and of its noisy copy of this number, in a pass of the two."""
        both = torch.stack([x, x]).to(self.classifier.device, torch.float32)
        self._make_draw(CLASSES, self.noise, x, input_index)(both[1:], number)
        clean, noisy = self.classifier.predict(both).tolist()
        return clean, noisy

    def choose_passes(
        self, x: torch.Tensor, sharing: int = 1, asks: Sequence[int] = (USUAL,)
    ) -> Passes:
        """The size and layout of all passes, settled by an input such as x before any vote.

        `sharing` processes will work beside each other, and an input gets questions of `asks`
        votes. What is not given is measured.
        """
        if self.batch is None:
            x = self._check_input(x).to(self.classifier.device, torch.float32)
            layouts = (
                self.channels_last is None and x.ndim == 3 and self.classifier.has_convolutions
            )
            if x.device.type == "cpu":
                keep_memory()
            passes = choose_passes(
                tuple(x.shape),
                x.device,
                partial(self._measure, x),
                layouts=layouts,
                sharing=sharing,
                asks=[n for n in asks if n] or (USUAL,),
            )
            self.batch = passes.size
            self.channels_last = bool(self.channels_last or passes.channels_last)
        return Passes(self.batch, bool(self.channels_last))

    def _measure(self, x: torch.Tensor, passes: Passes) -> float:
        """Seconds of an input where every thread has a pass."""
        runners = self._runners  # made while torch still has all its threads
        if len(runners) == 1:
            return runners[0].time_pass(x, passes, one_thread=False)
        with one_thread_each():
            times = pool().map(lambda one: one.time_pass(x, passes, one_thread=True), runners)
            return float(np.mean(list(times)))

    def compare_time(self, other: Classifier, x: torch.Tensor) -> float:
        """What a pass takes, as a share of what it takes with another classifier."""
        passes, x = self.choose_passes(x), x.to(self.classifier.device, torch.float32)
        both = Runner(self.classifier), Runner(other)
        on_cpu = self.classifier.device.type == "cpu"
        with one_thread_each():
            rounds = [[one.time_pass(x, passes, one_thread=on_cpu) for one in both] for _ in "1234"]
        own, others = np.min(rounds[1:], axis=0)  # the first one gets ready
        return float(own / others)

    def _make_draw(self, counted: Measure, noise: Noise, x: torch.Tensor, input_index: int) -> Draw:
        """What fills a batch with the copies of x that are counted, from number `start` on."""
        lattice = self.lattice_of(x)
        if (copies := counted.copies(noise, lattice, x, self._key)) is not None:
            return copies
        if lattice is None:
            x = x.to(self.classifier.device, torch.float32)
            seed = int.from_bytes(self._key, "little") if self.seed is None else self.seed
            return lambda out, start: noise.sample(
                len(out), seed=seed, input_index=input_index, start=start, base=x, out=out
            )
        drawn = LatticeNoise(noise, lattice)
        base = drawn.integers(x.cpu().numpy())
        key = derive(self._key, input_index, base.astype("<i8").tobytes())
        return drawn.copies(base, key=key)

    @functools.cached_property
    def _runners(self) -> list[Runner]:
        """One classifier and buffer for each thread: single-threaded passes side by side are faster
        than one after the other on all cores, where noise and model wait for each other.
        """
        runners = [Runner(self.classifier)]
        if self.classifier.device.type == "cpu":
            keep_memory()
            for _ in range(torch.get_num_threads() - 1):
                twin = self.classifier.replica()
                if twin is None:
                    return runners[:1]
                runners.append(Runner(twin))
        return runners

    def _check_input(self, x: torch.Tensor) -> torch.Tensor:
        """The input as it was given, where it is finite: float64 is not rounded before the grid."""
        x = torch.as_tensor(x)
        if not bool(torch.isfinite(x).all()):
            raise CertifyError(
                "the input has a value that is not finite (NaN or infinity), so it cannot be "
                "certified"
            )
        return x

    def predict_many(
        self, inputs: Iterable[torch.Tensor], *, n: int, alpha: float, input_index: int = 0
    ) -> list[int]:
        """The class of g at each input, or −1. Each is wrong with probability at most α
        (`clear_winner`). If n is so small that it would always abstain, it is refused.
        """
        if 2.0 ** (1 - n) > alpha > 0:
            least = math.ceil(1 - math.log2(alpha))
            raise CertifyError(
                f"n={n} votes decide nothing at alpha={alpha:g}, even if all agree: use {least} or "
                "more"
            )
        classes: list[int] = []
        question, waiting = Request(n, 0), enumerate(inputs, input_index)
        while together := list(islice(waiting, self.overlap(n))):
            for counts in self.answer_many([(question, x, i) for i, x in together]):
                if isinstance(counts, Exception):
                    raise counts
                classes.append(clear_winner(counts, alpha))
        return classes

    def overlap(self, n: int) -> int:
        """How many questions of n votes each, answered at once, keep all threads busy."""
        return max(1, self.passes_at_once // self.count_passes(n))

    def count_passes(self, n: int) -> int:
        """How many forward passes n votes take."""
        return max(1, math.ceil(n / (self.batch or MOST_ON_CPU)))

    @property
    def passes_at_once(self) -> int:
        """How many passes should be asked for at once, so that no thread waits for long."""
        return PASSES_EACH * len(self._runners)

    def certify_one(
        self,
        x: torch.Tensor,
        norm: Norm | float | str | Iterable[Norm | float | str] = 2,
        plan: Plan | None = None,
        searched: bool = False,
        input_index: int = 0,
    ) -> Certificate:
        """The certificate of g at one input, in one or several norms, from the same votes."""
        plan, norms = plan or Plan(), read_norms(norm)
        plan.check_samples()
        own = plan.procedure.on_own_grid
        lattice = self.lattice_of(self._check_input(x), norms, own=own)
        curves = Curves(norms, x.numel(), searched=searched, lattice=lattice)
        self.choose_passes(x, asks=(plan.n0, plan.n))
        return self.certify_with(x, plan, curves, input_index)

    def try_input(self, x: torch.Tensor) -> ModelError | None:
        """None if the model takes x as one input, else why not."""
        try:
            check_shape(self.classifier, x)
        except ModelError as error:
            return error
        return None

    def certify_with(
        self, x: torch.Tensor, plan: Plan, curves: Curves, input_index: int
    ) -> Certificate:
        """`certify` with curves that were prepared once for many inputs, on this lattice."""
        steps = plan.procedure.steps(plan, self.noise, curves)
        certificate = answer_all(steps, lambda question: self.answer(question, x, input_index))
        return replace(certificate, seed=self.seed)


def stream_key(commitment: str, nonce: str) -> bytes:
    """The key of a run's noise: SHA-256 of the commitment's 32 bytes and the nonce's.

    Nothing else enters it. Whoever did not know the nonce when the commitment was made could not
    choose, by any setting, which noise will be drawn.
    """
    return hashlib.sha256(bytes.fromhex(commitment) + bytes.fromhex(nonce)).digest()


def check_nonce(nonce: str) -> str:
    """A nonce as it is kept: 64 hexadecimal digits."""
    text = nonce.strip().lower()
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise CertifyError(f"nonce={nonce[:80]!r} must be 64 hexadecimal digits (256 bits)")
    return text


def clear_winner(counts: Counts, alpha: float) -> int:
    """The class with most votes, or −1: another is more probable with probability at most α.

    A two-sided binomial test between the first two, whose pair the same votes chose: hence twice
    the tail (Hung and Fithian; used by Cohen et al. 2019 for predictions).
    """
    order = np.argsort(-counts, kind="stable")
    first = int(counts[order[0]])
    second = int(counts[order[1]]) if len(counts) > 1 else 0
    both = first + second
    tail = 2 * float(special.bdtrc(first - 1, both, 0.5)) if first > second else 1.0
    return int(order[0]) if tail <= alpha else ABSTAIN


def read_norms(norm: Norm | float | str | Iterable[Norm | float | str]) -> tuple[Norm, ...]:
    """One or several norms as a tuple without repetitions."""
    if getattr(norm, "ndim", 0):
        raise CertifyError(
            f"norm={norm!r} must be a norm or a list of them; labels go into labels= or (x, labels)"
        )
    several = list(norm) if isinstance(norm, Iterable) and not isinstance(norm, str) else [norm]
    return tuple(dict.fromkeys(parse_norm(name) for name in several))
