"""A family under the name of another."""

from unicr.noise import Laplace


class Gaussian(Laplace):
    """Radii of certificates would change their meaning."""

    name = "gaussian"
