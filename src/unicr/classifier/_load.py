"""How a model is opened: which adapter is for which model, which files may run code, and weights.

A new kind of model is one new file in `adapters/` that holds an `Adapter`, or an entry point of
another distribution; `load_classifier` asks them in turn.

Pickles, TorchScript and exported programs can run their author's code while they are read, so they
are opened only where the user names them. No scan of such a file is believed: a reader that sees
another entry than the scan did (torch's zip reader ignores the case of names) runs what the scan
passed. Torch's restricted unpickler (`weights_only`) is not believed either: crafted files ran code
in it twice (CVE-2025-32434, CVE-2026-24747).
"""

from __future__ import annotations

import inspect
import shlex
import warnings
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from unicr.classifier._base import Classifier
from unicr.errors import ModelError, foreign, listed, one_line
from unicr.extras import torch
from unicr.files import check_unpacked, is_among, load_object
from unicr.registry import Catalogue

PREFIXES = ("builtin:", "hf:", "hub:")  # what follows them is never a Python file
Numbers = float | Sequence[float]
Classes = Sequence[str | int] | str | Path | None
Trust = str | Path | Iterable[str | Path] | None
WRAPPERS = ("state_dict", "model_state_dict", "model", "net")  # keys of checkpoints
PARALLEL = ("module.", "_orig_mod.")  # put before names by DataParallel and torch.compile


@dataclass(frozen=True)
class ModelOptions:
    """How a model is opened: the options of `load_classifier`.

    Parameters
    ----------
    weights
        Weights for a built-in architecture, or for a Python function that builds the model
        (file.py:name).
    device
        Where the model runs: cpu, cuda, …; the CPU if left out. `unicr certify` takes several:
        cuda:0,cuda:1.
    mean
        The model expects (x - mean)/std, per channel. Noise and radii stay in input space.
    std
        See mean.
    precision
        Run a torch model with fewer bits (autocast). This is faster on GPUs, and with bf16 on CPUs
        that have avx512_bf16 or amx_bf16. `unicr certify` times it and warns if a pass
        takes longer than in float32; --verbose prints by how much it is faster or slower.
    trust
        Allow this file to run its author's code. .pt2, TorchScript and pickle files (.pt, .joblib),
        and Python files that a run or a selector names, are opened only if you name them here. May
        be given several times. `unicr convert` makes a file that needs no trust.
    num_classes
        The number of classes, if it is known neither from the model nor from its output.
    classes
        Names of the outputs, in their order, or a text file with one name per line.
    compile
        Compile the model with torch.compile. This takes some seconds and is worth it for long runs.
    """

    weights: Path | None = None
    device: str | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    precision: Literal["bf16", "fp16"] | None = None
    trust: tuple[Path, ...] = ()
    num_classes: int | None = None
    classes: tuple[str, ...] | None = None
    compile: bool = False


@dataclass(frozen=True)
class ModelAsked:
    """A model to load: its text, or the object it is, and what the user said about it.

    `weights` is a file for an architecture, `device` is None if an object may stay where it is,
    `trust` are the files that may run their author's code, `normalised` says that the user gave
    mean and std.
    """

    spec: str | None
    thing: Any = None
    weights: Path | None = None
    device: torch.device | None = None
    trust: tuple[Path, ...] = ()
    num_classes: int | None = None
    normalised: bool = False

    @property
    def path(self) -> Path:
        """The file or folder that the text names, without a prefix such as hf:."""
        assert self.spec is not None
        return Path(self.spec.removeprefix("hf:")).expanduser()

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return self.spec if self.spec is not None else type(self.thing).__name__


@dataclass(frozen=True)
class Adapter:
    """One kind of model. The first adapter, by `rank`, that takes a model loads it.

    `forms` is how users write it, for messages; `takes_weights` allows a file of weights beside
    it. What `load` raises becomes a ModelError that names the model.
    """

    forms: str
    takes: Callable[[ModelAsked], bool]
    load: Callable[[ModelAsked], Classifier]
    takes_weights: bool = False
    rank: int = 0


def with_ending(*endings: str) -> Callable[[ModelAsked], bool]:
    """The `takes` of a kind that is known by the ending of its files."""
    return lambda asked: (
        asked.thing is None and asked.path.suffix.lower() in endings and asked.path.is_file()
    )


def with_prefix(prefix: str) -> Callable[[ModelAsked], bool]:
    """The `takes` of a kind that is known by the beginning of its text."""
    return lambda asked: asked.thing is None and (asked.spec or "").startswith(prefix)


ADAPTERS: Catalogue[Adapter] = Catalogue(
    "unicr.adapters", "unicr.classifier.adapters", Adapter, sort=lambda adapter: adapter.rank
)
"""Every adapter, in the order in which they are asked."""


def load_classifier(
    spec: Any,
    *,
    weights: str | Path | None = None,
    device: str | torch.device | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    trust: Trust = None,
    num_classes: int | None = None,
    precision: str | None = None,
    compile: bool = False,
    classes: Classes = None,
) -> Classifier:
    """Load a classifier from a text such as `model.onnx`, or wrap an object such as a torch module.

    `weights` is a state dict for an architecture (`file.py:factory`, `builtin:resnet20`, a module).
    `mean` and `std` are for a model that expects normalised inputs; noise and radius then stay in
    the units of the raw input. `trust` lists the files that may run their author's code (files of
    every format can do so, except .onnx, .safetensors and hf:DIR). `num_classes` is needed only if
    it is known neither from the model nor from its output. Without `device`, a module in memory
    stays where it is, and every other model runs on the CPU; of several devices (`cuda:0,cuda:1`)
    the first is used. `precision` (bf16, fp16) runs a torch model with fewer bits, and `compile`
    uses torch.compile. Both change the last bits of the scores, so they change the digest.
    `classes` names the outputs, in their order: a list, or a text file with one name per line.
    """
    if (mean is None) != (std is None):
        raise ModelError("mean and std belong together: give both or neither")
    place, *_ = [try_device(one) for one in split_devices("cpu" if device is None else device)]
    file = None if weights is None else Path(weights).expanduser()
    if file is not None and not file.is_file():
        raise ModelError(f"there is no weights file {weights}")
    asked = ModelAsked(
        spec=str(spec) if isinstance(spec, str | Path) else None,
        weights=file,
        device=place,
        trust=trusted_files(trust),
        num_classes=num_classes,
        normalised=mean is not None,
    )
    if asked.spec is None:
        asked = replace(asked, thing=spec, device=None if device is None else place)
    elif names_python(asked.spec):
        asked = replace(asked, thing=load_object(asked.spec))
    if asked.thing is not None:
        asked = _call_factory(asked)
    classifier = _load_by_adapter(asked)
    if precision is not None:
        classifier = classifier.at_precision(precision)
    if compile:
        classifier = classifier.compiled()
    if mean is not None and std is not None:
        from unicr.classifier._wrap import Normalised  # made of adapters, which are made of this

        classifier = Normalised(classifier, mean, std)
    if classes is not None:
        name_classes(classifier, classes)
    return classifier


def name_classes(classifier: Classifier, classes: Classes) -> None:
    """Give the outputs of a classifier their names. If it has others than 0, 1, …: an error."""
    if isinstance(classes, str | Path) or (classes and len(classes) == 1):
        file = Path(classes if isinstance(classes, str | Path) else str(classes[0])).expanduser()
        if not file.is_file():
            raise ModelError(
                f"classes={str(file)!r}: there is no such file; give a list of names, or a text "
                "file"
            )
        with foreign(ModelError, f"the class names {file} cannot be read"):
            names: tuple[str | int, ...] = tuple(file.read_text("utf-8").split("\n"))
        names = tuple(name for name in (str(one).strip() for one in names) if name)
    else:
        names = tuple(classes or ())
    if len(names) < 2 or len(set(map(str, names))) < len(names):
        raise ModelError(f"classes={listed(names)}: give at least two names, all different")
    if classifier.num_classes not in (None, len(names)):
        raise ModelError(
            f"{classifier.name} has {classifier.num_classes} outputs, but classes= has "
            f"{len(names)} names: give one name for each output"
        )
    own = classifier.classes
    numbered = own == tuple(range(len(names)))  # as a model fitted on 0, 1, … has them
    if own is not None and not numbered and tuple(map(str, own)) != tuple(map(str, names)):
        raise ModelError(
            f"{classifier.name} has its own class names, so leave classes= out: {listed(own)}"
        )
    classifier.classes, classifier.num_classes = names, len(names)


def names_python(spec: str) -> bool:
    """Whether a text is `file.py:name`, which runs that file."""
    return ".py:" in spec and not spec.startswith(PREFIXES)


def split_devices(device: str | torch.device) -> list[str]:
    """The devices that a text such as `cuda:0,cuda:1` names; a run has a process on each."""
    places = [place.strip() for place in str(device).split(",")]
    if not all(places):
        raise ModelError(f"device={str(device)!r}: give one device, or several as cuda:0,cuda:1")
    return places


def try_device(device: str | torch.device) -> torch.device:
    """The device, where something can be put on it."""
    why = ""
    try:
        place = torch.device(device)
        if place.type == "cuda" and not torch.cuda.is_available():
            # torch itself speaks of how it was compiled, or of a driver
            why = "torch finds no CUDA device on this machine: leave it out to use the CPU"
        else:
            torch.empty(0, device=place)
    except (RuntimeError, AssertionError) as error:
        why = one_line(error)
    if why:
        raise ModelError(f"device {str(device)!r} cannot be used here: {why}")
    return place


def _load_by_adapter(asked: ModelAsked) -> Classifier:
    if isinstance(asked.thing, Classifier):
        return asked.thing
    adapter = next((adapter for adapter in ADAPTERS.values() if adapter.takes(asked)), None)
    if adapter is None:
        raise ModelError(_no_adapter(asked))
    if asked.weights is not None and not adapter.takes_weights:
        raise ModelError(f"{asked.name} contains its weights: leave {asked.weights} out")
    for file in (asked.weights, None if asked.thing is not None else asked.path):
        if file is not None and file.is_file() and zipfile.is_zipfile(file):
            with foreign(ModelError, f"{file} cannot be read"), zipfile.ZipFile(file) as archive:
                check_unpacked(file, archive.infolist(), ModelError)
    with foreign(ModelError, f"{asked.name} cannot be loaded"):
        return adapter.load(asked)


def _no_adapter(asked: ModelAsked) -> str:
    if asked.thing is not None or asked.spec is None:
        return (
            f"{asked.name} is no classifier: a torch module, an object with predict, or a function "
            "from a batch to labels or scores is needed"
        )
    forms = sorted(filter(None, (a.forms for a in ADAPTERS.values())), key=lambda f: f[0] != ".")
    known = f"known forms: {', '.join(forms)}"
    if not asked.path.is_file():
        short = ", ".join(form.split(" ")[0].rstrip(",") for form in forms)
        return f"no model file {asked.spec}; known forms: {short}"
    return f"{asked.path}: {asked.path.suffix or 'no'} ending is not known; {known}"


def _call_factory(asked: ModelAsked) -> ModelAsked:
    """The same with the model in place of a class or function that makes it."""
    thing = asked.thing
    if not _is_factory(thing, asked.weights is not None):
        return asked
    with foreign(ModelError, f"{asked.spec or repr(thing)}() failed"):
        return replace(asked, thing=thing())


def _is_factory(thing: Any, weights: bool) -> bool:
    """A class, or a function that needs no argument, makes the model rather than being it."""
    if inspect.isclass(thing):
        return True
    if isinstance(thing, torch.nn.Module | Classifier) or hasattr(thing, "predict"):
        return False
    if not callable(thing) or weights:
        return callable(thing)
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return False
    return all(
        p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters
    ) and not any(p.kind is p.VAR_POSITIONAL for p in parameters)


def trusted_files(trust: Trust) -> tuple[Path, ...]:
    """The files that a user named, as paths; a bare yes or no names none and is refused."""
    if isinstance(trust, bool):
        raise ModelError(
            f"trust={trust}: give a list of the files that may run code, for example "
            "trust=['model.pt2']"
        )
    named = [trust] if isinstance(trust, str | Path) else trust or ()
    return tuple(Path(one).expanduser() for one in named)


def check_trusted(file: Path, trust: Iterable[Path], kind: str, safe: str) -> None:
    """Refuse a file that can carry code and was not named; `safe` is an ending that cannot."""
    if not is_among(file, trust):
        name = shlex.quote(str(file))
        raise ModelError(
            f"{file} is {kind}: opening it can run code of its author. If you trust that person, "
            f"name the file (--trust {name}). Files of type .onnx and .safetensors and hf:DIR need "
            f"no trust: `unicr convert {name} --trust {name} -o {shlex.quote(file.stem + safe)}` "
            "makes one"
        )


def read_weights(path: Path, trust: Iterable[Path] = ()) -> dict[str, torch.Tensor]:
    """The tensors of a file by name; wrappers and the prefixes of parallel training are removed.

    A file that is no .safetensors is a pickle: it must be among those of `trust`.
    """
    if not path.is_file():
        raise ModelError(f"there is no weights file {path}")
    if path.suffix.lower() == ".safetensors":
        from safetensors.torch import load_file

        with foreign(ModelError, f"{path} is not a safetensors file"):
            content: Any = load_file(path)
    else:
        check_trusted(path, trust, "a pickle of weights", ".safetensors")
        content = _unpickle_weights(path)
    for key in WRAPPERS:
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
            break
    if not isinstance(content, dict) or not content:
        raise ModelError(
            f"{path} contains {type(content).__name__}, but a state dict is needed: save "
            "model.state_dict()"
        )
    if not all(isinstance(value, torch.Tensor) for value in content.values()):
        raise ModelError(f"{path} contains other things than tensors: save model.state_dict()")
    for prefix in PARALLEL:
        if all(name.startswith(prefix) for name in content):
            content = {name.removeprefix(prefix): value for name, value in content.items()}
    return content


def put_weights(module: torch.nn.Module, tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    """Put the tensors of the file `path` into a module; every name and shape must fit."""
    weights = {
        name: value.float() if value.dtype in (torch.float16, torch.bfloat16) else value
        for name, value in tensors.items()
    }
    optional = {name for name in module.state_dict() if name.endswith("num_batches_tracked")}
    try:
        missing, unexpected = module.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        raise ModelError(
            f"{path} does not fit {type(module).__name__}: {one_line(error)}"
        ) from None
    missing = [name for name in missing if name not in optional]
    for names, what in ((missing, "has no"), (unexpected, "has, and the model lacks,")):
        if names:
            raise ModelError(
                f"{path} does not fit {type(module).__name__}: the file {what} {listed(names, 5)}"
            )


def _unpickle_weights(path: Path) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise ModelError(
            f"{path} is not a plain state dict ({one_line(error, 100)}). Save model.state_dict(); "
            "if the file is a whole pickled model, give it as the model, not as weights"
        ) from None
