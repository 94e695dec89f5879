"""`unicr convert`: a model file that can carry code, as one that cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from unicr.cli._parameters import Out, Repeated, command


@command
def convert(
    model: str,
    /,
    *,
    out: Out,
    weights: Path | None = None,
    trust: Annotated[list[Path] | None, Repeated] = None,
    shape: list[int] | None = None,
) -> None:
    """Convert a model to ONNX or safetensors, which cannot run code.

    Opening the original can run code, so name it with --trust. The new file needs no trust. The
    command checks on random inputs that both give the same labels. Example:

    unicr convert model.pt2 --trust model.pt2 -o model.onnx

    Parameters
    ----------
    model
        A .pt2, TorchScript, .pt or .joblib file, file.py:name, or a state dict (.pt, .pth, .th).
    out
        The file to write: .onnx for a whole model, .safetensors for a state dict.
    weights
        Weights of a file.py:factory or a built-in architecture.
    trust
        A file that may run its author's code while it is opened; may be given several times.
    shape
        The shape of one input, e.g. --shape 3 32 32, if the file does not contain it.
    """
    from unicr.classifier import convert_model

    print(convert_model(model, out, weights=weights, trust=trust, shape=shape))
