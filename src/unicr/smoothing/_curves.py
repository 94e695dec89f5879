"""The radii of every noise that a procedure may use, in the norms of a run."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from unicr.extras import torch
from unicr.noise import Lattice, Noise
from unicr.norms import Norm
from unicr.smoothing._radii import Radii


class Curves:
    """`of(noise)` gives the radii of a noise; its curves are made when first asked for.

    `lattice` is that of the inputs. `moved` says that the input of this procedure had to be moved
    to it, which each radius pays for.
    """

    def __init__(
        self,
        norms: Sequence[Norm],
        dim: int,
        *,
        searched: bool = False,
        lattice: Lattice | None = None,
    ) -> None:
        self.norms, self.dim, self.searched, self.lattice = tuple(norms), dim, searched, lattice
        self.moved = False
        self._made: dict[Noise, Radii] = {}

    def of(self, noise: Noise) -> Radii:
        """The radii of one noise."""
        if noise not in self._made:
            self._made[noise] = Radii(
                noise, self.norms, self.dim, searched=self.searched, lattice=self.lattice
            )
        return self._made[noise].when(moved=self.moved)

    def at(self, x: torch.Tensor) -> Curves:
        """Those of one input."""
        on = self.lattice is None or self.lattice.holds(x.cpu().numpy())
        return self.when(moved=not on)

    def when(self, *, moved: bool) -> Curves:
        """Those of an input that is on the lattice, or that had to be moved to it."""
        if moved == self.moved:
            return self
        twin = copy.copy(self)  # one store of curves for both
        twin.moved = moved
        return twin
