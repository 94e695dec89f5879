"""Model, data and noise of a run opened again: without running any code that the run names.

A run folder comes from somebody. What it holds is data: texts, numbers, digests. A `file.py:name`
in it, or a pickle, is opened only where the person who opens the run names that very file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from unicr.classifier import Classifier, ModelOptions, load_classifier, match_data
from unicr.data import DataOptions, Dataset, load_dataset
from unicr.errors import RunError
from unicr.files import is_among
from unicr.noise import Noise, parse
from unicr.runs._spec import LOADING, Spec
from unicr.smoothing import CODE, ClosedNoise, read_noise

READING = {"labels": str, "label_column": str}
# how the run says that data is labelled, never believed of your own data: give these
OPTIONS = {"labels": "--labels", "label_column": "--label-column"}


@dataclass(frozen=True)
class Trusted:
    """What the person who opens a run brings: copies of model and data, and files they trust.

    What is left out is as in the run; whatever is opened is compared with the run by its digests.

    Parameters
    ----------
    model
        Your own copy of the model, compared with the run by its hash.
    data
        Your own copy of the data: inputs and labels are compared with the run's.
    """

    model: str | None = None
    data: str | None = None
    loading: ModelOptions = field(default_factory=ModelOptions)
    reading: DataOptions = field(default_factory=DataOptions)

    def _refuse_code(self, what: str, text: str, option: str) -> None:
        file = text[: text.find(CODE) + len(CODE)].lstrip("(")
        if CODE in text and (text.count(CODE) > 1 or not is_among(file, self.loading.trust)):
            raise RunError(
                f"the {what} of this run is code in a file ({text}), which is not executed unless "
                f"you trust it: name the file with --trust FILE{option}"
            )

    def model_arguments(self, spec: Spec) -> dict[str, Any]:
        """What `load_classifier` takes: yours, then the run's."""
        if self.model is None:
            if spec.model.isidentifier():  # the name of a class: no text opens this model
                raise RunError(
                    f"the model of this run is an object in Python ({spec.model}), which no file "
                    "holds: replay the run there, with unicr.replay(run, classifier, data, count)"
                )
            self._refuse_code("model", spec.model, ", or give your own copy with --model")
            if spec.model.startswith("hub:"):
                raise RunError(
                    "the model of this run would be downloaded: if you want that, give --model "
                    f"{spec.model}"
                )
        named = self.model or spec.model
        # what was not said is None, empty, or a flag that is not set: the run's own counts there
        given = {k: v for k, v in vars(self.loading).items() if v not in (None, (), False)}
        kept = _stored_arguments(spec.loading, LOADING) if self.model is None else {}
        return {**kept, **given, "spec": named, "trust": self.loading.trust}

    def open_model(self, spec: Spec) -> Classifier:
        """The run's model; another one is refused by its hash."""
        model = load_classifier(**self.model_arguments(spec))
        if model.digest == spec.model_hash:
            return model
        if model.digests["model"] == (spec.model_digests or {}).get("model"):
            raise RunError(
                "the model file is the one of the run, but its preprocessing or precision differs: "
                "give the --mean, --std and --precision of the run"
            )
        raise RunError("this is not the model that the run was made with (its hash differs)")

    def open_data(self, spec: Spec, model: Classifier | None = None) -> Dataset:
        """The run's data, with labels numbered as the model knows them."""
        if self.data is None:
            self._refuse_code("data", spec.data, ", or give your own copy with --data")
        given = {k: v for k, v in vars(self.reading).items() if v is not None}
        split = given["split"] = self.split_of(spec)
        if split != spec.split:
            raise RunError(
                f"the run used the {spec.split} split, but your data is opened as {split}: if that "
                f"is what you want, give --split {spec.split}"
            )
        kept = _stored_arguments(spec.reading, READING)
        if self.data is not None and (words := sorted(OPTIONS.keys() & kept.keys() - given.keys())):
            raise RunError(
                f"the run says how to read labels in your data ({', '.join(words)}): give "
                f"{' and '.join(OPTIONS[word] for word in words)} yourself"
            )
        if split is None:
            del given["split"]
        found = load_dataset(self.data or spec.data, **{**kept, **given})
        if model is not None:
            found = match_data(model, found)
        if spec.classes is not None and (model is None or model.classes is None):
            found = found.aligned(spec.classes)  # names that the run was given with --classes
        if list(found.shape) != list(spec.shape):
            raise RunError(
                f"{found.name} has inputs of shape {found.shape}, but the run has {spec.shape}"
            )
        return found

    def split_of(self, spec: Spec) -> str | None:
        """Which part of the data is opened: the one asked for; of a copy of your own the test part
        unless you say otherwise, whatever the run says.
        """
        given = self.reading.split
        if spec.split is None or (given is None and self.data is None):
            return spec.split
        return str(given or "test")

    def noise(self, spec: Spec, text: str | None = None) -> Noise:
        """The noise that a certificate speaks of: its own, or (None) the one of the whole run.

        From its numbers where the run has them: no code of the run's author is needed.
        """
        if text is None or text == spec.noise.text:
            return self._open_noise(spec.noise)
        return self._open_noise(read_noise(text))

    def _open_noise(self, noise: Noise) -> Noise:
        """A noise that is code in a file, where that file is trusted; any other as it is."""
        if not isinstance(noise, ClosedNoise):
            return noise
        self._refuse_code("noise", noise.text, "")
        found = parse(noise.text)
        if found.text != noise.text:
            raise RunError(
                f"the run writes its noise as {noise.text!r}, but the file defines {found.text!r}"
            )
        return found

    def open(self, spec: Spec) -> Spec:
        """The run's spec, with its noise and those that its procedure names opened."""
        plan = replace(spec.plan, procedure=spec.plan.procedure.open_noises(self._open_noise))
        return replace(spec, noise=self._open_noise(spec.noise), plan=plan)


def _stored_arguments(stored: Mapping[str, Any] | None, known: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that a run kept: those that are known, of the type that they have."""
    for name, value in (stored or {}).items():
        if name not in known or not isinstance(value, known[name]):
            raise RunError(
                f"the run is damaged: it would open its model or data with {name}={value!r}"
            )
    return dict(stored or {})


NO_TRUST = Trusted()
