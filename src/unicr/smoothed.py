"""The smoothed classifier for Python: one input at a time, or a whole dataset as a run.

A dataset takes the path of `unicr certify`: the same checks before the first vote, the same noise,
and a run that can be saved and verified.
"""

from __future__ import annotations

import math
import shutil
import tempfile
import time
import warnings
import weakref
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unicr.classifier import Classifier, load_classifier, match_data
from unicr.data import Dataset, as_input, load_dataset
from unicr.errors import CertifyError
from unicr.extras import torch
from unicr.noise import Lattice, Noise, parse
from unicr.norms import Norm
from unicr.progress import show
from unicr.runs import Job, Row, Run, certify_run
from unicr.smoothing import (
    AUTO,
    Plan,
    VoteCounter,
    add,
    clear_winner,
    read_norms,
)

FIRST_VOTES = 64  # measure the speed; they count too
MOST_VOTES = 1_000_000  # of a prediction with a time budget
Numbers = float | Sequence[float]
Norms = Norm | float | str | Iterable[Norm | float | str]


class SmoothedClassifier(VoteCounter):
    """g(x) = the class that the model most often gives to x + ε, where ε is random noise.

    Parameters
    ----------
    model
        A torch module, a function from a batch to labels or scores, a scikit-learn estimator, or
        the text that `unicr certify --model` takes.
    noise
        A noise of `unicr.noise`, or its text such as "gaussian(sigma=0.25)".
    mean, std
        If the model expects (x − mean) / std. Both are applied after the noise, so that noise and
        radius are in the units of x.
    device, precision, weights, trust
        As in `unicr.load_classifier`.
    classes
        The names of the model's outputs, in their order: a list, or a text file.
    num_classes
        The number of classes, if it is known neither from the model nor from its output.
    bounds
        (low, high): inputs outside are refused. Noise may leave the bounds.
    batch, channels_last
        How many noisy copies one forward pass has, and their order in memory. unicr measures what
        is fastest if they are left out.
    seed, nonce
        What decides the noise: a nonce of 64 hexadecimal digits (drawn at random if left out). For
        experiments, a seed; the noise is then predictable.
    lattice
        The grid of inputs and noise; by default so fine that a radius holds for every change.
    input_shape
        The shape of one input, needed only if the model takes several shapes.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 3))
    >>> smoothed = SmoothedClassifier(model, "gaussian(sigma=0.5)", seed=0)
    >>> smoothed.certify(torch.zeros(4), n=1000).alpha
    0.001
    """

    def __init__(
        self,
        model: Classifier | torch.nn.Module | Any,
        noise: Noise | str,
        *,
        mean: Numbers | None = None,
        std: Numbers | None = None,
        device: str | torch.device | None = None,
        precision: str | None = None,
        weights: str | Path | None = None,
        trust: Any = None,
        classes: Sequence[str | int] | str | Path | None = None,
        num_classes: int | None = None,
        bounds: tuple[float, float] | None = None,
        batch: int | None = None,
        channels_last: bool | None = None,
        seed: int | None = None,
        nonce: str | None = None,
        lattice: Lattice | str | None = AUTO,
        input_shape: tuple[int, ...] | None = None,
    ) -> None:
        loading = {
            "weights": weights,
            "device": device,
            "mean": mean,
            "std": std,
            "trust": trust,
            "num_classes": num_classes,
            "precision": precision,
            "classes": classes,
        }
        if not isinstance(noise, str | Noise):
            raise CertifyError(f"noise={noise!r}: give a noise or its text, 'gaussian(sigma=0.5)'")
        super().__init__(
            load_classifier(model, **loading),
            parse(noise) if isinstance(noise, str) else noise,
            num_classes=num_classes,
            batch=batch,
            channels_last=channels_last,
            seed=seed,
            nonce=nonce,
            lattice=lattice,
        )
        if bounds is not None and not bounds[0] < bounds[1]:
            raise CertifyError(f"bounds={bounds} must be (low, high) with low below high")
        self.bounds = bounds
        self.input_shape = None if input_shape is None else tuple(input_shape)
        named = isinstance(model, str | Path)
        self._model_arguments = {"spec": str(model), **loading} if named else None
        self._given_nonce = nonce
        self._stacks: dict[tuple[tuple[int, ...], str], bool] = {}

    def certify(
        self,
        x: Any,
        norm: Norms = 2,
        *,
        labels: Any = None,
        n0: int = 100,
        n: int = 100_000,
        alpha: float = 0.001,
        plan: Plan | None = None,
        searched: bool = False,
        input_index: int = 0,
        folder: str | Path | None = None,
        workers: int = 0,
        progress: bool = True,
    ) -> Any:
        """Certify g at x in one or several norms, from the same votes.

        n0 samples choose the class; n fresh ones bound its probability from below at confidence
        1 − α. The radius follows from that bound: no change δ with ‖δ‖_p < radius changes the
        class. The statement about one input is wrong with probability at most α.

        Parameters
        ----------
        x
            One input, or many: a stack (tensor, array or list), a pair (inputs, labels), a
            `unicr.data.Dataset`, a torch Dataset or DataLoader, a Hugging Face dataset, or a path.
            Bytes are scaled to [0, 1], and byte images with channels last become channels first.
        norm
            One norm or several: 1, 2, "inf", or any p > 0.
        labels
            The labels of many inputs, if x does not contain them.
        plan
            Replaces n0, n and alpha, and can have another rule.
        searched
            Report the paper's approximate radii instead of proved ones.
        input_index
            The number of the noise stream of a single input.
        folder
            Save the results of many inputs in this folder as they are made. After an interruption,
            the same call continues.
        workers
            The number of processes for many inputs; 0 is this process.
        progress
            Show progress on stderr if many inputs take long.

        Returns
        -------
        Certificate or Certificates
            A `Certificate` of one input; a table of them for many, with `accuracy(radius)`,
            `average_radius`, `to_frame()`, `plot()` and `save(folder)`.
        """
        plan = plan or Plan(n0=n0, n=n, alpha=alpha)
        data = self._dataset(x, labels)
        if data is None:
            if folder is not None or workers:
                raise CertifyError("folder= and workers= work for many inputs, but x is one input")
            return self.certify_one(self._input(x), norm, plan, searched, input_index)
        if input_index:
            raise CertifyError("input_index= works for one input; many inputs are numbered from 0")
        job = Job(
            classifier=self.classifier,
            data=data,
            noise=self.noise,
            norms=read_norms(norm),
            plan=plan,
            searched=searched,
            seed=self.seed,
            nonce=self._given_nonce,
            batch=self.batch,
            channels_last=self.channels_last,
            workers=workers,
            lattice=self._lattice.text if isinstance(self._lattice, Lattice) else self._lattice,
            model_arguments=self._model_arguments,
            data_spec=str(x) if isinstance(x, str | Path) else None,
        )
        for text in job.warnings():
            if "no label" not in text:
                warnings.warn(text, stacklevel=2)
        run = self._run(job, folder, progress=progress)
        self._lattice = run.spec.lattice
        self.batch, self.channels_last = run.spec.batch, run.spec.channels_last
        return run.certificates(self.classifier.classes or data.classes)

    def predict(
        self,
        x: Any,
        *,
        n: int = 1000,
        alpha: float = 0.001,
        input_index: int = 0,
        seconds: float | None = None,
    ) -> Any:
        """The class of g at x, or −1: wrong with probability at most α.

        A two-sided binomial test compares the two classes with most votes. x is one input, or many
        as in `certify`; then the answer is an array. If n is so small that it would always abstain,
        it is refused. With `seconds`, n is the number of votes that the model can give in that
        time. The clock chooses n, not the votes, so the test stays valid.
        """
        data = self._dataset(x, None)
        if seconds is not None:
            if data is not None or not seconds > 0:
                raise CertifyError(
                    f"seconds={seconds} must be above 0, and works for one input only"
                )
            return self._predict_within(self._input(x), seconds, alpha, input_index)
        if data is None:
            return self.predict_many([self._input(x)], n=n, alpha=alpha, input_index=input_index)[0]
        inputs = (data[i][0] for i in range(len(data)))
        classes = self.predict_many(inputs, n=n, alpha=alpha, input_index=input_index)
        return np.array(classes, dtype=np.int64)

    def _predict_within(
        self, x: torch.Tensor, seconds: float, alpha: float, input_index: int
    ) -> int:
        """The class of g by as many votes as fit into the time; FIRST_VOTES measure the speed."""
        self.choose_passes(x)  # measures for a second or two, once
        begun = time.perf_counter()
        counts = self.votes(x, FIRST_VOTES, start=0, input_index=input_index)
        spent = time.perf_counter() - begun
        more = min(int(FIRST_VOTES * (seconds / spent - 1)), MOST_VOTES)
        if more > 0:
            rest = self.votes(x, more, start=FIRST_VOTES, input_index=input_index)
            counts = add(counts, rest)
        return clear_winner(counts, alpha)

    def _run(self, job: Job, folder: str | Path | None, *, progress: bool) -> Run:
        """The finished run of a job, in `folder` or in one that goes with the results."""
        place = tempfile.mkdtemp(prefix="unicr-") if folder is None else folder
        try:
            with show() if progress else nullcontext():
                run = certify_run(
                    job, Path(place), resume=folder is not None, on_result=Row.refuse_failure
                )
        except BaseException:
            if folder is None:
                shutil.rmtree(place, ignore_errors=True)
            raise
        if folder is None:
            weakref.finalize(run, shutil.rmtree, place, ignore_errors=True)
        return run

    def _dataset(self, x: Any, labels: Any) -> Dataset | None:
        """Many inputs as a dataset that fits the model; None if x is one input."""
        is_array = isinstance(x, np.ndarray | torch.Tensor)
        if is_array and labels is None and not self._is_stack(x):
            return None
        if labels is None and _holds_numbers(x):
            return self._dataset(np.asarray(x, dtype=np.float32), None)
        data = load_dataset(x, labels=labels)
        return self._within_bounds(match_data(self.classifier, data))

    def _is_stack(self, x: Any) -> bool:
        """Whether an array is many inputs. Where the model takes both nobody can know: an error."""
        shape = tuple(x.shape)
        if self.input_shape is not None:
            if self.input_shape not in (shape, shape[1:]):
                raise CertifyError(
                    f"inputs have shape {self.input_shape}, but x has shape {shape}, which is "
                    "neither one input nor several"
                )
            return shape != self.input_shape
        if len(shape) < 2 or shape[0] == 0:
            return False
        known = (shape, str(x.dtype))  # bytes may have channels last, floats may not
        if known not in self._stacks:
            values = x.detach().cpu().numpy() if hasattr(x, "detach") else np.asarray(x)
            self._stacks[known] = self._works_as_stack(values)
        return self._stacks[known]

    def _works_as_stack(self, values: Any) -> bool:
        finite = np.where(np.isfinite(values), values, 0).astype(values.dtype)
        alone = self.try_input(torch.from_numpy(as_input(finite)))
        if len(values) == 1 and alone is None:  # (1, H, W): one image of one channel
            return False
        stacked = self.try_input(torch.from_numpy(as_input(finite[0])))
        if alone is None and stacked is None:
            raise CertifyError(
                f"an array of shape {values.shape} can be one input or {len(values)} inputs, and "
                f"{self.classifier.name} accepts both: give input_shape= when you make the "
                "SmoothedClassifier, or pass a dataset (unicr.data.load_dataset) for many inputs"
            )
        if alone is not None and stacked is not None:
            raise alone
        return alone is not None

    def _input(self, x: Any) -> torch.Tensor:
        """One input as a tensor: bytes are scaled to [0, 1], and the bounds hold."""
        values = torch.as_tensor(x)
        if values.dtype in (torch.uint8, torch.uint16):
            values = torch.from_numpy(as_input(values.cpu().numpy()))
        self._check_bounds(values, "the input")
        return values

    def _within_bounds(self, data: Dataset) -> Dataset:
        if self.bounds is None:
            return data

        def read(index: int) -> tuple[Any, int]:
            values, label = original(index)
            self._check_bounds(values, f"input {index}")
            return values, label

        original = data.read
        return replace(data, read=read)

    def _check_bounds(self, values: Any, what: str) -> None:
        if self.bounds is None:
            return
        low, high = float(values.min()), float(values.max())
        if not (math.isfinite(low) and math.isfinite(high)):
            raise CertifyError(f"{what} has values that are not finite")
        if not (self.bounds[0] <= low and high <= self.bounds[1]):
            raise CertifyError(
                f"{what} has values from {low:.4g} to {high:.4g}, outside bounds={self.bounds}: "
                "give raw inputs, with mean= and std= if the model expects normalised ones"
            )


def _holds_numbers(x: Any) -> bool:
    """Whether x is a list of numbers, or of such lists."""
    if not isinstance(x, list) or not x:
        return False
    return isinstance(x[0], int | float) or _holds_numbers(x[0])
