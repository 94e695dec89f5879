"""A family that does not say what it is: its name is no text."""

from dataclasses import replace

from unicr.noise import laplace

nameless = replace(laplace, name=3)  # type: ignore[arg-type]
