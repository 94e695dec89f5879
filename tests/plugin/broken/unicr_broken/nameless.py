"""A family that does not say what it is."""

from unicr.noise import Laplace


class Nameless(Laplace):
    """Its name is no text."""

    name = 3  # type: ignore[assignment]
