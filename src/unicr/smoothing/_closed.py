"""Noises that a file names: opened at once, or named and closed where opening runs code."""

from __future__ import annotations

from typing import NoReturn

from unicr.errors import RunError
from unicr.noise import Facts, Noise, parse

CODE = ".py"  # a noise with this in its text is code in a file


class ClosedNoise(Noise):
    """The name of a noise that is code in a file. Nothing was executed, and nothing else is known.

    Whoever opens a run may say that the file is trusted; everything but its text is refused until
    then.
    """

    def __init__(self, text: str) -> None:
        vars(self).update(_named=text)

    @property
    def _text(self) -> str:
        return str(self.__dict__["_named"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClosedNoise) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def _refuse(self) -> NoReturn:
        raise RunError(
            f"the noise of this run is code in a file ({self.text}), which is not executed unless "
            "you trust it: name the file with --trust FILE"
        )

    @property
    def facts(self) -> Facts:
        self._refuse()

    @property
    def sigma(self) -> float:
        self._refuse()

    def _scale_by(self, *_: object) -> NoReturn:
        self._refuse()

    def log_prob(self, *_: object) -> NoReturn:
        self._refuse()

    def _fill(self, *_: object) -> NoReturn:
        self._refuse()


def read_noise(text: str) -> Noise:
    """The noise that a text names; closed where that would run code."""
    return ClosedNoise(text) if CODE in text else parse(text)
