"""What a run is to show, written down before it is made: `accuracy(2, 0.5) >= 0.7`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unicr.errors import RunError
from unicr.norms import parse_norm

if TYPE_CHECKING:
    from unicr.metrics import Scores

_FORM = re.compile(r"\s*accuracy\(\s*([^,()]+?)\s*,\s*([^,()]+?)\s*\)\s*>=\s*(\S+)\s*")


@dataclass(frozen=True)
class Requirement:
    """The accuracy that is certified at a radius in a norm must be at least `least`.

    It is met where `Scores.accuracy_bound`, a lower bound at confidence 99.9 %, reaches it: the
    wrong certificates that α allows are taken off before.
    """

    norm: str
    radius: float
    least: float

    @classmethod
    def parse(cls, text: object) -> Requirement:
        """Read `accuracy(NORM, RADIUS) >= SHARE`."""
        found = _FORM.fullmatch(text) if isinstance(text, str) else None
        try:
            if found is None:
                raise ValueError
            norm, radius, least = found.groups()
            made = cls(parse_norm(norm).text, float(radius), float(least))
        except ValueError:
            raise RunError(
                f"cannot read the requirement {text!r:.80}: write 'accuracy(NORM, RADIUS) >= "
                "SHARE', for example 'accuracy(2, 0.5) >= 0.7'"
            ) from None
        if not (math.isfinite(made.radius) and made.radius >= 0 and 0 <= made.least <= 1):
            raise RunError(
                f"{made.text}: the radius must be at least 0, and the share between 0 and 1"
            )
        return made

    @property
    def text(self) -> str:
        """The one way to write it."""
        return f"accuracy({self.norm}, {self.radius!r}) >= {self.least!r}"

    def reached(self, scores: Scores) -> float:
        """The accuracy that holds at confidence 99.9 %, which is compared with `least`."""
        return scores.accuracy_bound(self.radius)
