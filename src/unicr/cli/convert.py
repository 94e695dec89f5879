"""`unicr convert`: a model file that can carry code, as one that cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from unicr.cli._options import ModelTrust, Out


def convert(
    model: str,
    /,
    *,
    out: Out,
    weights: Path | None = None,
    trust: ModelTrust = None,
    shape: Annotated[list[int] | None, Parameter(consume_multiple=True)] = None,
) -> None:
    """Write a model as a file that needs no trust.

    The file is opened once, so it must be named with --trust; whoever gets the new one need not
    trust anybody. Labels of both are compared on random inputs. Example:

    unicr convert model.pt2 --trust model.pt2 -o model.onnx

    Parameters
    ----------
    model
        A .pt2, TorchScript, .pt or .joblib file, file.py:name, or a state dict (.pt, .pth, .th).
    out
        The file to write: .onnx for a whole model, .safetensors for a state dict.
    weights
        Weights of a file.py:factory or a built-in architecture.
    shape
        The shape of one input, e.g. --shape 3 32 32, where the file does not tell it.
    """
    from unicr.classifier import convert_model

    print(convert_model(model, out, weights=weights, trust=trust, shape=shape))
