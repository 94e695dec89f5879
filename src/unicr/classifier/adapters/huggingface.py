"""Hugging Face classifiers from a local folder, `hf:DIR` (extra `hf`).

Only safetensors weights and transformers' own classes are used, and never the network. Image
classifiers get pixel values; text classifiers get embeddings (inputs_embeds), which is where
continuous noise makes sense.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

from unicr.classifier._base import Classifier
from unicr.classifier._digest import check_inside, files_digest
from unicr.classifier._load import Adapter, ModelAsked, with_prefix
from unicr.classifier._wrap import Normalised
from unicr.classifier.adapters.module import ModuleClassifier
from unicr.errors import ModelError
from unicr.extras import require

OUTSIDE = ("transformers_weights", "backbone", "quantization_config")
KINDS = {
    "ForImageClassification": ("AutoModelForImageClassification", "pixel_values"),
    "ForSequenceClassification": ("AutoModelForSequenceClassification", "inputs_embeds"),
}


class _Logits(nn.Module):
    def __init__(self, model: nn.Module, argument: str) -> None:
        super().__init__()
        self.model = model
        self.argument = argument

    def forward(self, batch: torch.Tensor) -> Any:
        size = getattr(getattr(self.model, "config", None), "hidden_size", None)
        if self.argument == "inputs_embeds" and (batch.ndim != 3 or batch.shape[2] != size):
            raise ModelError(
                f"a text classifier takes embeddings of shape (tokens, {size}), not inputs of "
                f"shape {tuple(batch.shape[1:])}: embed the texts first, or use an image model"
            )
        return self.model(**{self.argument: batch}).logits


def load(asked: ModelAsked) -> Classifier:
    """The classifier of a model folder, with the normalisation of its own preprocessor."""
    folder = asked.path
    if not folder.is_dir():
        raise ModelError(
            f"there is no folder {folder}: hf:DIR names a local folder with config.json and "
            ".safetensors files, and nothing is downloaded"
        )
    loader, argument = KINDS[_kind(folder)]
    digest = folder_digest(folder)
    transformers = require("transformers", "hf")
    if not sys.stderr.isatty():
        transformers.utils.logging.disable_progress_bar()
    model = getattr(transformers, loader).from_pretrained(
        str(folder),
        local_files_only=True,
        use_safetensors=True,
        trust_remote_code=False,
        dtype=torch.float32,
    )
    names = getattr(model.config, "id2label", None) or {}
    classifier = ModuleClassifier(
        _Logits(model, argument),
        name=asked.name,
        digest=digest,
        device=asked.device,
        num_classes=asked.num_classes or getattr(model.config, "num_labels", None),
        classes=tuple(str(names[i]) for i in sorted(names)) or None,
    )
    own = None if asked.normalised else own_normalisation(folder)
    return classifier if own is None else Normalised(classifier, *own)


def _kind(folder: Path) -> str:
    """Which of KINDS a folder holds; an error if it is none or not whole."""
    config_file = folder / "config.json"
    if not config_file.is_file():
        raise ModelError(f"{folder} has no config.json, so it is not a Hugging Face model folder")
    for one in folder.iterdir():
        if not (one.is_file() or one.is_dir()):  # reading a pipe may never end
            raise ModelError(f"{one} is neither a file nor a folder")
    if not any(folder.glob("*.safetensors")):
        raise ModelError(
            f"{folder} has no .safetensors file, and no other weights are read. Convert them with "
            "model.save_pretrained(DIR, safe_serialization=True)"
        )
    if (folder / "adapter_config.json").is_file():
        raise ModelError(
            f"{folder} holds an adapter to the weights of another model: merge the two and save "
            "the result (model.merge_and_unload().save_pretrained(DIR))"
        )
    if (asked := _asks_for_code(_json(config_file))) is not None:
        raise ModelError(
            f"{config_file} sets {asked}, by which transformers would download code or read files "
            "that the digest does not cover: remove it from the configuration"
        )
    architecture = str(next(iter(_json(config_file).get("architectures") or []), "none"))
    for kind in KINDS:
        if architecture.endswith(kind):
            return kind
    raise ModelError(
        f"{folder} contains a {architecture}, but only image and sequence classifiers can be used "
        f"({', '.join('…' + kind for kind in KINDS)})"
    )


def _asks_for_code(values: Any) -> str | None:
    """What in a configuration, at any depth, names something of the hub or a weights file.

    Transformers downloads and runs `attn_implementation` (or that of experts) where it is written
    as a repository, ORGANISATION/NAME, and the kernels of a quantised model. It looks on the hub
    for a `backbone` that is named, even where only local files are allowed.
    """
    if isinstance(values, dict):
        for key, value in values.items():
            if (key in OUTSIDE and value is not None) or (
                key.strip("_").endswith(("_implementation", "_implementation_internal"))
                and "/" in str(value)
            ):
                return f"{key}={value!r}"
    nested = values.values() if isinstance(values, dict) else values
    parts = nested if isinstance(values, dict | list) else ()
    return next((found for part in parts if (found := _asks_for_code(part)) is not None), None)


def own_normalisation(folder: Path) -> tuple[list[float], list[float]] | None:
    """Mean and standard deviation that the folder's preprocessor applies to images in [0, 1]."""
    file = folder / "preprocessor_config.json"
    if not file.is_file():
        return None
    settings = _json(file)
    mean, std = settings.get("image_mean"), settings.get("image_std")
    if not settings.get("do_normalize", True) or mean is None or std is None:
        return None
    return list(mean), list(std)


def folder_digest(folder: Path) -> str:
    """SHA-256 of the configuration and the weights, shards in folders below included."""
    digest = hashlib.sha256()
    for file in sorted([*folder.glob("*config.json"), *folder.glob("*.safetensors")]):
        digest.update(f"{file.name}:{file.stat().st_size}\n".encode())
        digest.update(file.read_bytes())
    indices = [file.name for file in folder.glob("*.safetensors.index.json")]
    shards = {shard for name in indices for shard in _shards(folder / name)}
    return files_digest(digest.hexdigest(), folder, [*indices, *shards])


def _shards(index: Path) -> set[str]:
    """The weight files that an index names, all inside the folder."""
    named = _json(index).get("weight_map")
    shards = set(map(str, named.values())) if isinstance(named, dict) else set()
    for shard in shards:
        check_inside(index, index.parent, shard)
    return shards


def _json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text())
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{file} is not JSON: {error}") from None
    return content if isinstance(content, dict) else {}


ADAPTER = Adapter("hf:DIR", with_prefix("hf:"), load)
