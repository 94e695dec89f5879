"""Radii: from (noise, norm, dimension, p_A, p_B) to a certified radius with its proof status.

>>> from unicr import noise, radius
>>> r = radius.certified_radius(noise.gaussian(sigma=0.5), 2, 3072, p_a=0.99)
>>> round(r.radius, 4), r.guarantee, str(r.grade)
(1.1632, 'exact', 'closed form')
"""

from unicr.montecarlo import MonteCarlo
from unicr.radius._curve import NoCurveError, RadiusCurve
from unicr.radius._explain import Explanation, explain_radius
from unicr.radius._grade import Grade
from unicr.radius._question import Evidence, Question, SecondLaw
from unicr.radius._radius import certified_radius
from unicr.radius._result import Radius
from unicr.radius._spectrum import Spectrum
from unicr.text import round_down

__all__ = [
    "Evidence",
    "Explanation",
    "Grade",
    "MonteCarlo",
    "NoCurveError",
    "Question",
    "Radius",
    "RadiusCurve",
    "SecondLaw",
    "Spectrum",
    "certified_radius",
    "explain_radius",
    "round_down",
]
