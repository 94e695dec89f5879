"""The radii of every noise that a procedure may use, in the norms of a run."""

from __future__ import annotations

from collections.abc import Sequence

from unicr.noise import Lattice, Noise
from unicr.norms import Norm
from unicr.smoothing._radii import Radii


class Curves:
    """`of(noise)` gives the radii of a noise; its curves are made when first asked for.

    `lattice` is that of the inputs and the noise.
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
        self._made: dict[Noise, Radii] = {}

    def of(self, noise: Noise) -> Radii:
        """The radii of one noise."""
        if noise not in self._made:
            self._made[noise] = Radii(
                noise, self.norms, self.dim, searched=self.searched, lattice=self.lattice
            )
        return self._made[noise]
