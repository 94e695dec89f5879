"""The explorer: a page on this machine that answers radius questions while sliders move.

>>> import numpy as np
>>> from unicr.explore import parse_expression
>>> float(parse_expression("exp(-x**2) / 2").log(np.array([100.0]))[0]) < -9999
True
"""

from unicr.explore._answers import answer
from unicr.explore._expression import Expression, parse_expression
from unicr.explore._server import Explorer

__all__ = ["Explorer", "Expression", "answer", "parse_expression"]
