"""A density typed as an expression of x, read without ever running it as code.

The text becomes a tree, which is evaluated node by node; whatever is not on the short list of
operations is refused by name. Beside each value goes its logarithm, true where the value itself
under- or overflows (exp(−x²) at x = 100 is −10⁴, not log 0), so tails are the real ones.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import special

from unicr.errors import SpecError, did_you_mean
from unicr.values import Array

Kind = Literal["density", "log-density"]
KINDS = ("density", "log-density")
LONGEST = 300  # characters of a typed density
DEEPEST = 40  # levels of a formula, far below the depth at which Python gives up
CONSTANTS = {"pi": math.pi, "e": math.e, "inf": math.inf}
ALIKE = ("exp", "log", "abs", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "log1p")
FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    **{name: (1, getattr(np, name)) for name in ALIKE},
    "atan": (1, np.arctan),
    "erf": (1, special.erf),
    "erfc": (1, special.erfc),
    "logaddexp": (2, np.logaddexp),
    "min": (2, np.minimum),
    "max": (2, np.maximum),
    "where": (3, np.where),
}
COMPARE = {ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal}
EXAMPLE = "for example exp(-abs(x)**1.5) * (1 + 0.3*cos(x))"


class Number(NamedTuple):
    """A value v on arrays, log|v| and the sign of v."""

    value: Any
    size: Any
    sign: Any


def _number(value: Any, size: Any = None, sign: Any = None) -> Number:
    """v with log|v| from v itself, or from a rule where v is too small, too large or no number."""
    large = np.abs(value)
    direct = np.log(large), np.sign(value)
    if size is None:
        return Number(value, *direct)
    ordinary = (large > 1e-290) & (large < 1e290)
    return Number(value, np.where(ordinary, direct[0], size), np.where(ordinary, direct[1], sign))


def _product(a: Number, b: Number) -> tuple[Any, Any]:
    none = (a.size == -math.inf) | (b.size == -math.inf)
    return np.where(none, -math.inf, a.size + b.size), a.sign * b.sign


def _quotient(a: Number, b: Number) -> tuple[Any, Any]:
    return _product(a, Number(b.value, -b.size, np.where(b.sign == 0, 1.0, b.sign)))


def _negative(a: Number) -> Number:
    return Number(-a.value, a.size, -a.sign)


def _sum(a: Number, b: Number) -> tuple[Any, Any]:
    top = np.maximum(a.size, b.size)
    shift = np.where(np.isfinite(top), top, 0.0)
    total = a.sign * np.exp(a.size - shift) + b.sign * np.exp(b.size - shift)
    return shift + np.log(np.abs(total)), np.sign(total)


def _power(a: Number, b: Number) -> tuple[Any, Any]:
    return np.where(b.value == 0, 0.0, b.value * a.size), np.power(a.sign, b.value)


def _cosh(a: Number) -> tuple[Any, Any]:
    size = np.abs(a.value)
    return size + np.log1p(np.exp(-2 * size)) - math.log(2), 1.0


Rule = Callable[..., tuple[Any, Any]]
BINARY: dict[type[ast.operator], tuple[Callable[[Any, Any], Any], Rule]] = {
    ast.Add: (np.add, _sum),
    ast.Sub: (np.subtract, lambda a, b: _sum(a, _negative(b))),
    ast.Mult: (np.multiply, _product),
    ast.Div: (np.divide, _quotient),
    ast.Pow: (np.power, _power),
}
RULES: dict[str, Rule] = {
    "exp": lambda a: (a.value, 1.0),
    "abs": lambda a: (a.size, 1.0),
    "sqrt": lambda a: (0.5 * a.size, np.sqrt(a.sign)),
    "cosh": _cosh,
    "erfc": lambda a: (math.log(2) + special.log_ndtr(-math.sqrt(2) * a.value), 1.0),
    "where": lambda c, a, b: tuple(np.where(c.value, a[i], b[i]) for i in (1, 2)),
}


@dataclass(frozen=True)
class Expression:
    """A checked expression of x: its value, and the logarithm of its value, on arrays."""

    text: str
    tree: ast.expr

    def _at(self, x: Array) -> list[Array]:
        with np.errstate(all="ignore"):
            value = _evaluate(self.tree, x)
            return [np.broadcast_to(np.asarray(v, dtype=np.float64), x.shape).copy() for v in value]

    def value(self, x: Array) -> Array:
        """The expression at x."""
        return self._at(x)[0]

    def log(self, x: Array) -> Array:
        """log of the expression at x, NaN where it has no value. Raises where it is negative."""
        _, size, sign = self._at(x)
        negative = (sign < 0) & (size > -math.inf)
        if negative.any():
            raise SpecError(
                f"{self.text!r} is negative at x = {x[negative][0]:.3g}, but a density is never "
                "below 0 (did you type a log-density?)"
            )
        return np.where((sign > 0) | (size == -math.inf), size, math.nan)

    def log_density(self, kind: Kind) -> Callable[[Array], Array]:
        """The log-density that this text means, as `from_density` takes it."""
        if kind == "log-density":
            return self.value
        half = np.geomspace(1e-6, 1e3, 400)
        self.log(np.concatenate([-half, half]))
        return self.log


def parse_expression(text: str) -> Expression:
    """The expression that `text` writes. Raises SpecError, and names what is not allowed."""
    stripped = text.strip()
    if not stripped:
        raise SpecError(f"type a density of x, {EXAMPLE}")
    if len(stripped) > LONGEST:
        raise SpecError(
            f"the expression has {len(stripped)} characters, but at most {LONGEST} are allowed"
        )
    try:
        tree = ast.parse(stripped, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise SpecError(
            f"cannot read {_short(stripped)}: write 2*x and x**2, not 2x; {EXAMPLE}"
        ) from None
    expression = Expression(stripped, tree)
    expression.value(np.ones(1))  # refuses what is not on the list
    return expression


def _evaluate(node: ast.expr, x: Array, depth: int = 0) -> Number:
    """The number that a node stands for; SpecError for every node that is not on the list."""
    if depth > DEEPEST:
        raise SpecError(f"the expression is nested too deep (more than {DEEPEST} levels)")

    def parts(*inner: ast.expr) -> list[Number]:
        return [_evaluate(part, x, depth + 1) for part in inner]

    match node:
        case ast.Constant(value=value):
            if type(value) not in (int, float):
                raise SpecError(f"{_short(ast.unparse(node))} is not a number")
            return _number(_float(value))
        case ast.Name(id=name):
            if name != "x" and name not in CONSTANTS:
                raise SpecError(_unknown(name, ("x", *CONSTANTS, *FUNCTIONS)))
            return _number(x if name == "x" else np.float64(CONSTANTS[name]))
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            (a,) = parts(operand)
            return a if isinstance(sign, ast.UAdd) else _negative(a)
        case ast.BinOp(left=left, op=op, right=right):
            if type(op) not in BINARY:
                hint = "write ** for a power" if isinstance(op, ast.BitXor) else "use + - * / **"
                raise SpecError(f"{_short(ast.unparse(node))} cannot be computed: {hint}")
            operate, rule = BINARY[type(op)]
            a, b = parts(left, right)
            return _number(operate(a.value, b.value), *rule(a, b))
        case ast.Compare(left=left, ops=ops, comparators=others):
            if any(type(op) not in COMPARE for op in ops):
                raise SpecError(
                    f"{_short(ast.unparse(node))}: only the comparisons < <= > >= are allowed"
                )
            values = [part.value for part in parts(left, *others)]
            held = [COMPARE[type(op)](values[i], values[i + 1]) for i, op in enumerate(ops)]
            every = np.logical_and.reduce(np.broadcast_arrays(*held))
            return _number(np.where(every, 1.0, 0.0))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            if name not in FUNCTIONS:
                raise SpecError(_unknown(name, FUNCTIONS))
            count, function = FUNCTIONS[name]
            if len(arguments) != count:
                raise SpecError(f"{name} takes {count}, not {len(arguments)} numbers")
            numbers = parts(*arguments)
            value = function(*(part.value for part in numbers))
            return _number(value, *(RULES[name](*numbers) if name in RULES else ()))
    raise SpecError(
        f"{_short(ast.unparse(node))} is not allowed: numbers, x, + - * / **, comparisons and "
        f"{', '.join(FUNCTIONS)} are"
    )


def _float(value: Any) -> np.float64:
    try:
        return np.float64(value)
    except OverflowError:
        return np.float64(math.inf)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _unknown(name: str, known: Any) -> str:
    hint = did_you_mean(name, known, least=0.6)
    return f"unknown name {_short(name)}: {hint}Known are {', '.join(known)}"
