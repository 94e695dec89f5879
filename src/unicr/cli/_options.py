"""Options that several commands share, each with its words: one name for one idea.

A group of options is a dataclass that cyclopts spreads over the command line; what it opens or
makes (a classifier, a dataset, a job) is a method of it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, Token

from unicr.errors import SpecError
from unicr.text import read_assignment, read_list, read_range

if TYPE_CHECKING:
    from unicr.classifier import Classifier
    from unicr.data import Dataset
    from unicr.noise import Noise
    from unicr.runs import Job, Trusted
    from unicr.smoothing import Rule

FAILED = 3  # exit code: single inputs, trainings or items failed
MOST = 1 << 53


def whole(_: Any, tokens: Sequence[Token]) -> int:
    """A whole number as users write it: 3072, 1e5, but not 1.5 and not 1e30."""
    text = tokens[0].value
    shown = text if len(text) <= 30 else text[:29] + "…"
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if abs(number) > MOST:
        raise ValueError(f"{shown} is beyond 2^53")
    if not number.is_integer():
        raise ValueError(f"{shown} is not a whole number")
    return int(number)


def count(words: str, name: str | None = None) -> Parameter:
    """A whole number."""
    return Parameter(name=name, converter=whole, help=words)


MaybeWhole = Annotated[int | None, Parameter(converter=whole)]
Whole = Annotated[int, Parameter(converter=whole)]
Numbers = list[float] | None
Words = list[str] | None
Format = Annotated[
    Literal["table", "markdown", "csv", "json"],
    Parameter(name="--format", help="table (aligned, for eyes), markdown, csv or json."),
]
Dim = Annotated[int | None, count("Number of input coordinates, e.g. 3072; joint noises know it.")]
Searched = Annotated[
    bool, Parameter(help="The searched radius, the paper's approximate one, not the proved one.")
]
Noise_ = Annotated[
    str, Parameter(help="The smoothing noise, e.g. 'gaussian(sigma=0.5)'; see `unicr noise list`.")
]
Norms = Annotated[
    list[str],
    Parameter(
        consume_multiple=True, help="One or more norms, from the same votes: --norm 1 2 inf."
    ),
]
OneNorm = Annotated[str, Parameter(help="p of the lp norm: 1, 2, inf, 0.5, …")]
RunFolder = Annotated[Path, Parameter(help="The folder of the run.")]
OUT = ["--out", "-o"]
Out = Annotated[Path, Parameter(name=OUT)]
MaybeOut = Annotated[Path | None, Parameter(name=OUT)]
OutFolder = Annotated[Path, Parameter(name=OUT, help="The folder of the run.")]
Pa = Annotated[Numbers, Parameter(name="--pa")]
Max = Annotated[int | None, count("Take at most this many inputs.", "--max")]
N0 = Annotated[int, count("Samples that choose the class.", "--n0")]
N = Annotated[int, count("Fresh samples that bound its probability.")]
Alpha = Annotated[float, Parameter(help="Failure probability of one certificate.")]
Skip = Annotated[int, count("Take every skip-th input only.")]
Seed = Annotated[int, Parameter(help="Random seed.")]
LatticeStep = Annotated[
    str,
    Parameter(
        help="Grid spacing of inputs and noise: auto (so fine that a radius loses less than 1e-4 "
        "sigma), a step such as 2^-20 or 1/255 (a coarser one takes more off each radius), or none "
        "for real-valued noise, whose rounding a model can exploit."
    ),
]
Nonce = Annotated[
    str | None,
    Parameter(
        help="64 hexadecimal digits from outside (an auditor, a beacon) that the noise follows "
        "from; drawn and written down without."
    ),
]
MaybeSeed = Annotated[
    int | None,
    Parameter(
        help="Random seed of the noise in place of a nonce, for experiments: it is predictable."
    ),
]
Device = Annotated[
    str,
    Parameter(help="Where the model runs: cpu, cuda, …; certify takes several: cuda:0,cuda:1."),
]
Resume = Annotated[bool, Parameter(help="Go on with what was interrupted, with the same options.")]
ModelTrust = Annotated[
    list[Path] | None,
    Parameter(
        consume_multiple=False,
        help="A file that may run its author's code: .pt2, TorchScript, pickles (.pt, .joblib) and "
        "the Python files that a selector names are opened only if they are named here. May be "
        "given several times. `unicr convert` makes a file that needs no trust.",
    ),
]
Force = Annotated[
    bool, Parameter(negative="", help="Also show runs whose seal is broken, marked as such.")
]
TrustedFiles = Annotated[
    list[Path] | None,
    Parameter(
        consume_multiple=False,
        help="A file that may run code: the file.py of a noise or a model that the run names, a "
        ".pt2, TorchScript or pickle. Nothing that comes with a run is executed otherwise, nor "
        "such a file of your own. May be given several times.",
    ),
]
Mean = Annotated[
    Numbers,
    Parameter(
        consume_multiple=True,
        help="The model expects (x - mean)/std, per channel; the radius is in input space.",
    ),
]
Std = Annotated[Numbers, Parameter(consume_multiple=True, help="See --mean.")]
Precision = Annotated[
    Literal["bf16", "fp16"] | None,
    Parameter(
        help="Fewer bits for a torch model (autocast): faster on GPUs, and with bf16 on CPUs that "
        "have instructions for it (1.4 to 2.2 times where it was measured)."
    ),
]
Compile = Annotated[
    bool, Parameter(help="torch.compile the model: pays for long runs, on GPUs most.")
]
Labels = Annotated[
    Path | None,
    Parameter(help="Labels, where they are not with the inputs: .npy, idx, or text lines."),
]
Split = Annotated[Literal["test", "train"], Parameter(help="Which part, where data has both.")]
Column = Annotated[str | None, Parameter(help="The label column of a table.")]


@Parameter(name="*", group="The model")
@dataclass(frozen=True)
class ModelOptions:
    """How the model is loaded."""

    weights: Annotated[
        Path | None, Parameter(help="Weights of a file.py:factory or a built-in architecture.")
    ] = None
    device: Device = "cpu"
    mean: Mean = None
    std: Std = None
    precision: Precision = None
    compile: Compile = False
    trust: ModelTrust = None

    def arguments(self, spec: str) -> dict[str, Any]:
        """What `load_classifier` takes, in a form that can be sent to workers."""
        return {"spec": spec, **vars(self)}

    def load(self, spec: str) -> Classifier:
        """The classifier."""
        from unicr.classifier import Normalised, load_classifier

        found = load_classifier(**self.arguments(spec))
        if self.mean is None and isinstance(found, Normalised):
            print(f"{spec} normalises its inputs itself: {found.text}", file=sys.stderr)
        return found


@Parameter(name="*", group="The data")
@dataclass(frozen=True)
class DataOptions:
    """How the dataset is read; the fields are what `load_dataset` takes beside the text."""

    labels: Labels = None
    split: Split = "test"
    label_column: Column = None

    def load(self, spec: str, classifier: Classifier) -> Dataset:
        """The dataset, with columns and labels matched to the classifier's names for them."""
        from unicr.classifier import match_data
        from unicr.data import load_dataset

        return match_data(classifier, load_dataset(spec, **vars(self)))


@Parameter(name="*", group="Where the work is done")
@dataclass(frozen=True)
class PlaceOptions:
    """Where the work is done."""

    workers: Annotated[
        int,
        count(
            "Processes; 0 runs everything in this one, whose threads share torch models. More pay "
            "for models that Python runs (functions, scikit-learn). With --ray: how many actors."
        ),
    ] = 0
    ray: Annotated[
        bool | str | None,
        Parameter(help="A Ray cluster: auto (without a value), HOST:PORT, ray://HOST:PORT, local."),
    ] = None
    gpus: Annotated[
        float, Parameter(help="GPUs that each Ray worker reserves; may be a fraction.")
    ] = 0

    @property
    def arguments(self) -> dict[str, Any]:
        """What a job, a search or a study takes: workers, the cluster's address, GPUs."""
        ray = "auto" if self.ray is True else self.ray or None
        return {"workers": self.workers, "ray": ray, "gpus": self.gpus}


MODEL, DATA, PLACE = ModelOptions(), DataOptions(), PlaceOptions()
TRAINING = DataOptions(split="train")
MODELS = (
    "builtin:mnist-mlp-0.5, an .onnx file, file.py:name, hf:DIR; .pt2, .pt, .joblib: see --trust."
)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """What is certified, with how many samples, and where: all of a job but its noise."""

    model: Annotated[str, Parameter(help=MODELS)]
    data: Annotated[
        str,
        Parameter(
            help="builtin:mnist, an .npz, .npy, .csv, .parquet, idx or CIFAR file, or a folder of "
            "images."
        ),
    ]
    norm: Norms
    n0: N0 = 100
    n: N = 100_000
    alpha: Alpha = 0.001
    searched: Searched = False
    skip: Skip = 1
    max_: Max = None
    lattice: LatticeStep = "auto"
    nonce: Nonce = None
    seed: MaybeSeed = None
    loading: ModelOptions = MODEL
    reading: DataOptions = DATA
    place: PlaceOptions = PLACE
    batch: Annotated[
        int | None,
        count("Noisy copies in one forward pass; the fastest is measured if left out."),
    ] = None
    chunk: Annotated[int, count("The most samples of one task, with --workers or --ray.")] = 10_000

    def job(self, noise: Noise, rule: Rule | None = None) -> Job:
        """Open model and data."""
        from unicr.runs import Job
        from unicr.smoothing import Plan, norms_of
        from unicr.smoothing.procedures import Offsets
        from unicr.smoothing.rules import Fixed

        norms = norms_of(self.norm)
        exact = rule is not None and rule.exact
        drawn = Fixed() if exact else rule or Fixed()
        plan = Plan(n0=self.n0, n=self.n, alpha=self.alpha, rule=drawn)
        plan = Offsets().fit(plan) if exact else plan
        classifier = self.loading.load(self.model)
        return Job(
            classifier=classifier,
            data=self.reading.load(self.data, classifier),
            noise=noise,
            norms=norms,
            plan=plan,
            seed=self.seed,
            nonce=self.nonce,
            lattice=None if self.lattice == "none" else self.lattice,
            searched=self.searched,
            skip=self.skip,
            limit=self.max_,
            batch=self.batch,
            chunk=self.chunk,
            data_spec=self.data,
            data_arguments=vars(self.reading),
            model_arguments=self.loading.arguments(self.model),
            **self.place.arguments,
        )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CertifyOptions(JobOptions):
    """Those of `unicr certify`, where a selector may stand in place of the model."""

    model: Annotated[str, Parameter(help=MODELS)] = ""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SearchOptions(JobOptions):
    """Those of I-OPT, whose search looks at n0 samples of each noise."""

    n0: N0 = 1000
    n: N = 10_000


@Parameter(name="*", group="Your own copy of model and data (what is left out is as in the run)")
@dataclass(frozen=True)
class RunOptions:
    """How the model and the data of a run are opened again."""

    model: Annotated[
        str | None, Parameter(help="Your own copy of the model, compared with the run by its hash.")
    ] = None
    weights: Annotated[Path | None, Parameter(help="Weights of the model.")] = None
    device: Annotated[str | None, Parameter(help="Where the model runs: cpu, cuda, …")] = None
    mean: Mean = None
    std: Std = None
    precision: Precision = None
    labels: Labels = None
    split: Annotated[
        Literal["test", "train"] | None, Parameter(help="Which part, where data has both.")
    ] = None
    label_column: Column = None
    trust: TrustedFiles = None

    def trusted(self, data: str | None = None) -> Trusted:
        """The options as `unicr.runs` takes them."""
        from unicr.runs import Trusted

        loading = ("weights", "device", "mean", "std", "precision")
        reading = ("labels", "split", "label_column")
        return Trusted(
            model=self.model,
            data=data,
            loading={name: getattr(self, name) for name in loading},
            reading={name: getattr(self, name) for name in reading},
            trust=tuple(self.trust or ()),
        )


RUN = RunOptions()


def named(texts: Words, option: str, form: str, separator: str, many: int = 0) -> Mapping[str, Any]:
    """The numbers of NAME=a,b,c or NAME=low:high texts; `many` of them where that is fixed."""
    found: dict[str, Sequence[float]] = {}
    for text in texts or []:
        try:
            name, numbers = read_assignment(text)
            values = read_list(numbers) if separator == "," else read_range(numbers, many)
        except SpecError as error:
            raise SpecError(f"cannot read {option} {text!r} ({error}): write {form}") from None
        if name in found:
            raise SpecError(f"the values of {name} are given twice")
        found[name] = values
    return found
