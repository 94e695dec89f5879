"""Inputs as small PNG pictures in data URIs, and one noisy copy of each as the run drew it."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unicr.data import Dataset
from unicr.errors import UnicrError
from unicr.runs import Row, Spec, Trusted

SIDE = 96  # pixels of a picture on the page, which holds hundreds of them
LEAST = 4  # pixels a side; what is smaller is no picture


def picture_axes(shape: tuple[int, ...]) -> str | None:
    """How to read a shape as a picture: "hw", "chw" or "hwc"; None if it is none."""
    if len(shape) == 2 and min(shape) >= LEAST:
        return "hw"
    if len(shape) != 3:
        return None
    if shape[0] in (1, 3, 4) and min(shape[1:]) >= LEAST:
        return "chw"
    if shape[-1] in (1, 3, 4) and min(shape[:2]) >= LEAST:
        return "hwc"
    return "chw" if min(shape[1:]) >= 2 * LEAST else None


def picture(values: NDArray[Any], low: float, high: float, *, smooth: bool) -> str:
    """A PNG data URI of one input, `low` black and `high` white, at most 96 pixels a side.

    Three or four channels are red, green, blue (and one left out); any other number is averaged.
    """
    from PIL import Image

    axes = picture_axes(values.shape)
    if axes is None:
        raise UnicrError(f"an input of shape {values.shape} cannot be shown as a picture")
    pixels = np.asarray(values, dtype=np.float64)
    if axes == "chw":
        pixels = np.moveaxis(pixels, 0, -1)
    if pixels.ndim == 3:
        pixels = pixels[..., :3] if pixels.shape[-1] in (3, 4) else pixels.mean(axis=-1)
    pixels = np.clip((np.nan_to_num(pixels) - low) / (high - low), 0.0, 1.0)
    image = Image.fromarray(np.round(255 * pixels).astype(np.uint8))
    factor = SIDE / max(image.size)
    if factor < 1:
        size = (max(1, round(image.width * factor)), max(1, round(image.height * factor)))
        way = Image.Resampling.BOX if smooth else Image.Resampling.NEAREST
        image = image.resize(size, way)
    file = io.BytesIO()
    image.save(file, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def value_range(values: NDArray[Any]) -> tuple[float, float]:
    """What is black and what is white: 0 and 1 if the input lies in [0, 1], else its ends."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    return (low, high) if high > low else (low, low + 1.0)


class Pictures:
    """Pictures of the inputs of runs, each drawn once; `notes` says what could not be drawn."""

    def __init__(self, trusted: Trusted, most: int) -> None:
        self._trusted, self._most = trusted, most
        self._sets: dict[str, Dataset | None] = {}
        self.inputs: dict[str, str] = {}
        self.notes: list[str] = []

    def noisy_of(self, rows: list[Row], spec: Spec) -> list[str | None]:
        """Noisy copies of the first inputs of a run, None if there is no picture.

        The inputs themselves are drawn into `inputs`, by their hash.
        """
        noisy: list[str | None] = [None] * len(rows)
        if not self._most or picture_axes(spec.shape) is None:
            return noisy
        named = self._trusted.data or spec.data
        data = self._dataset(named, spec)
        if data is None:
            return noisy
        others = 0
        for i, row in enumerate(rows[: self._most]):
            if _same_input(data, row):
                noisy[i] = self._draw(data, row, spec)
            else:
                others += 1
        if others:
            self._note(f"{others} inputs without pictures: {named} holds other inputs there")
        if len(rows) > self._most:
            self._note(f"pictures of the first {self._most} inputs of each run only")
        return noisy

    def _dataset(self, named: str, spec: Spec) -> Dataset | None:
        if named not in self._sets:
            try:
                self._sets[named] = self._trusted.open_data(spec)
            except (UnicrError, OSError) as error:
                self._sets[named] = None
                self._note(f"no pictures of {named}: {error}")
        return self._sets[named]

    def _draw(self, data: Dataset, row: Row, spec: Spec) -> str | None:
        x, _ = data[row.idx]
        low, high = value_range(x.numpy())
        if row.input_hash not in self.inputs:
            self.inputs[row.input_hash] = picture(x.numpy(), low, high, smooth=True)
        text = row.certificate.noise if row.certificate else None
        try:
            noise = self._trusted.noise(spec, text)
            drawn = noise.sample(1, seed=spec.drawn, input_index=row.idx, base=x)[0]
        except (UnicrError, OSError) as error:
            self._note(f"no noisy copies: {error}")
            return None
        return picture(drawn.numpy(), low, high, smooth=False)

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _same_input(data: Dataset, row: Row) -> bool:
    """Whether the dataset still holds, under the same number, the input that was certified."""
    try:
        return data.digest_of(row.idx) == row.input_hash
    except (UnicrError, OSError, IndexError):
        return False
