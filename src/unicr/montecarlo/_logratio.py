"""The log-ratio L of a shifted noise at n samples, which is all that the Monte Carlo engine sees.

L(z) = log μ(z − δ) − log μ(z). Under P, z is the noise; under Q it is the noise plus δ, so there
L = log μ(z) − log μ(z + δ) at the same samples. Samples come from counter-based streams and are
made again block by block where they would not fit, so all perturbations see the same noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from unicr.errors import RadiusError
from unicr.extras import torch
from unicr.noise import Noise
from unicr.values import Array

KEPT = 1 << 24  # coordinates of noise that may stay in memory: 128 MB
CHUNK = 1 << 17  # coordinates handled at once: fits a processor's cache
GRID = 2.0**28  # L is rounded to 1/GRID: an atom of L stays one value under P and under Q
ROWS = 64  # joint samplers draw in blocks of this many
STREAM = 0x4D43_0000  # input_index of the first sample set: far from any number of an image


class LogRatios:
    """n samples of a noise, and L of any perturbation at them.

    Independent coordinates: only those that move are drawn, and a perturbation of k coordinates
    moves the first k of the stream (their law is the same). `stream` numbers independent sets.
    """

    def __init__(
        self, noise: Noise, dim: int, samples: int, *, seed: int, stream: int, device: str = "cpu"
    ) -> None:
        self.noise, self.dim, self.samples = noise, dim, samples
        self._seed, self._stream, self._device = seed, STREAM + stream, device
        self._base, self._scales = noise.coordinate, noise.scales
        self._kept: dict[int, list[tuple[int, torch.Tensor, torch.Tensor]]] = {}

    def under_p(self, moves: torch.Tensor) -> Array:
        """L at the samples of P, one row for each perturbation (a row of `moves`)."""
        return self._gain(-moves)

    def under_q(self, moves: torch.Tensor) -> Array:
        """L at the samples of Q, one row for each perturbation."""
        return -self._gain(moves)

    def _gain(self, moves: torch.Tensor) -> Array:
        """log μ(z + δ) − log μ(z), in float64, rounded to 4e-9.

        The last bits of L depend on whether z or z + δ was drawn. On an atom (Laplace noise) a
        threshold would split them differently under P and under Q; rounding makes them ties.
        """
        gain = self._fill(moves, self.dim) if self._base is None else self._independent(moves)
        if np.isnan(gain).any():
            raise RadiusError(
                f"the log-density of {self.noise.text} returned NaN: return −inf if the density "
                "is zero"
            )
        return np.asarray(np.round(gain * GRID) / GRID)

    def _independent(self, moves: torch.Tensor) -> Array:
        """Rows grouped by how many coordinates move, so that sparse ones stay cheap."""
        if self._scales is not None:
            moves = moves / torch.as_tensor(self._scales.copy(), device=moves.device)
        counts = (moves != 0).sum(1).tolist()
        widths = [min(self.dim, 1 << max(k - 1, 0).bit_length()) for k in counts]
        gain = np.empty((len(moves), self.samples))
        for width in sorted(set(widths)):
            rows = [i for i, w in enumerate(widths) if w == width]
            compact = torch.zeros((len(rows), width), dtype=torch.float64, device=moves.device)
            for j, i in enumerate(rows):
                values = moves[i][moves[i] != 0]
                compact[j, : len(values)] = values
            gain[rows] = self._fill(compact, width)
        return gain

    def _fill(self, moves: torch.Tensor, width: int) -> Array:
        moves = moves.to(device=self._device, dtype=torch.float64)
        gain = np.empty((len(moves), self.samples))
        for start, z, before in self._blocks(width):
            count = len(z)
            step = max(1, CHUNK // (count * width))
            for i in range(0, len(moves), step):
                part = moves[i : i + step]
                moved = (z[None] + part[:, None]).reshape(len(part) * count, width)
                after = self._log_prob(moved).reshape(len(part), count)
                gain[i : i + step, start : start + count] = (after - before).cpu().numpy()
        return gain

    def _log_prob(self, z: torch.Tensor) -> torch.Tensor:
        return self.noise.log_prob(z) if self._base is None else self._base.log_prob(z)

    def _blocks(self, width: int) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
        """(first sample, samples, their log-density), from memory where they fit."""
        if width in self._kept:
            yield from self._kept[width]
            return
        keep = self.samples * width <= KEPT
        blocks = []
        for block in self._draw(width):
            if keep:
                blocks.append(block)
            yield block
        if keep:
            self._kept[width] = blocks

    def _draw(self, width: int) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
        source = self.noise if self._base is None else self._base
        size = max(ROWS, CHUNK // width // ROWS * ROWS) if self._base is None else CHUNK // width
        size = max(size, 1)
        for start in range(0, self.samples, size):
            z = source.sample(
                min(size, self.samples - start),
                width,
                seed=self._seed,
                input_index=self._stream,
                start=start,
                device=self._device,
                dtype=torch.float64,
            )
            density = self._log_prob(z)
            if not bool(torch.isfinite(density).all()):
                raise RadiusError(
                    f"the log-density of {self.noise.text} is not finite at its own samples, so "
                    "density and sampler do not match"
                )
            yield start, z, density


def typical_size(ratios: LogRatios) -> float:
    """The size of one coordinate of the noise: sigma, or a median where there is none."""
    noise = ratios.noise
    if math.isfinite(noise.sigma):
        return noise.sigma
    if noise.iid is not None:
        return float(noise.iid.isf(0.25) - noise.iid.ppf(0.25)) / 2
    _, z, _ = next(ratios._draw(ratios.dim if ratios._base is None else 1))
    size = float(z.abs().median())
    return size * (float(np.max(ratios._scales)) if ratios._scales is not None else 1.0)
