"""A family under the name of another: radii of certificates would change their meaning."""

from dataclasses import replace

from unicr.noise import laplace

gaussian = replace(laplace, name="gaussian")
