"""Hugging Face classifiers by the name of their repository, `hub:ORGANISATION/NAME` (extra `hf`).

Configuration and safetensors weights are downloaded once and then read as `hf:DIR` reads a folder;
without a network the copy of an earlier download serves.
"""

from __future__ import annotations

import re
from dataclasses import replace

from unicr.classifier._base import Classifier
from unicr.classifier._load import Adapter, ModelAsked, with_prefix
from unicr.classifier.adapters import huggingface
from unicr.errors import ModelError, one_line
from unicr.extras import require

NAME = re.compile(r"hub:([\w-][\w.-]*/[\w-][\w.-]*)(@[\w.-]+)?")


def load(asked: ModelAsked) -> Classifier:
    """The classifier of a repository, at a branch, tag or commit where the name ends in @…"""
    found = NAME.fullmatch(asked.name)
    if found is None:
        raise ModelError(
            f"{asked.name} cannot be read: write hub:ORGANISATION/NAME or "
            "hub:ORGANISATION/NAME@COMMIT"
        )
    hub = require("huggingface_hub", "hf")
    try:
        folder = hub.snapshot_download(
            found[1],
            revision=(found[2] or "")[1:] or None,
            allow_patterns=["*.json", "*.safetensors"],
        )
    except Exception as error:
        raise ModelError(f"{asked.name} cannot be downloaded here: {one_line(error)}") from None
    model = huggingface.load(replace(asked, spec=f"hf:{folder}"))
    model.name = asked.name
    return model


ADAPTER = Adapter("hub:ORGANISATION/NAME", with_prefix("hub:"), load)
