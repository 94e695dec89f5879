"""Radii: from (noise, norm, dimension, p_A, p_B) to a certified radius with its proof status.

>>> from unicr import noise, radius
>>> r = radius.certified_radius(noise.gaussian(sigma=0.5), 2, 3072, p_a=0.99)
>>> round(r.radius, 4), r.guarantee
(1.1632, 'exact')
"""

from unicr.montecarlo import MonteCarlo
from unicr.radius._curve import RadiusCurve
from unicr.radius._radius import certified_radius
from unicr.radius._result import Radius
from unicr.radius._spectrum import Spectrum
from unicr.values import round_down

__all__ = ["MonteCarlo", "Radius", "RadiusCurve", "Spectrum", "certified_radius", "round_down"]
