"""The explorer: a page on this machine that answers radius questions while sliders move.

>>> import numpy as np
>>> from unicr.lab.explore import parse_expression
>>> float(parse_expression("exp(-x**2) / 2").log(np.array([100.0]))[0]) < -9999
True
"""

from unicr.lab.explore._answers import answer
from unicr.lab.explore._expression import Expression, parse_expression
from unicr.lab.explore._server import Explorer

__all__ = ["Explorer", "Expression", "answer", "parse_expression"]
