"""A density typed as an expression of x, read without ever running it as code.

The text becomes a tree of a short list of operations on float64 arrays; everything else is
refused by name. A density is evaluated as its logarithm from the start (exp(−x²) at x = 100 is
−10⁴, not log 0), so its tails are the real ones.
"""

from __future__ import annotations

import ast
import difflib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import special

from unicr.errors import SpecError
from unicr.values import Array

Kind = Literal["density", "log-density"]
KINDS = ("density", "log-density")
LONGEST = 300
DEEPEST = 40
CONSTANTS = {"pi": math.pi, "e": math.e, "inf": math.inf}
FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "exp": (1, np.exp),
    "log": (1, np.log),
    "abs": (1, np.abs),
    "sqrt": (1, np.sqrt),
    "sin": (1, np.sin),
    "cos": (1, np.cos),
    "tan": (1, np.tan),
    "atan": (1, np.arctan),
    "sinh": (1, np.sinh),
    "cosh": (1, np.cosh),
    "tanh": (1, np.tanh),
    "erf": (1, special.erf),
    "erfc": (1, special.erfc),
    "log1p": (1, np.log1p),
    "logaddexp": (2, np.logaddexp),
    "min": (2, np.minimum),
    "max": (2, np.maximum),
    "where": (3, np.where),
}
BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
}
COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}
EXAMPLE = "for example exp(-abs(x)**1.5) * (1 + 0.3*cos(x))"


@dataclass(frozen=True)
class Expression:
    """A checked expression of x: its value, and the logarithm of its value, on arrays."""

    text: str
    tree: ast.expr

    def value(self, x: Array) -> Array:
        """The expression at x."""
        with np.errstate(all="ignore"):
            return _whole(_value(self.tree, x), x)

    def log(self, x: Array) -> Array:
        """log of the expression at x, NaN where it has no value. Raises where it is negative."""
        with np.errstate(all="ignore"):
            size, sign = (_whole(part, x) for part in _log(self.tree, x))
        negative = (sign < 0) & (size > -math.inf)
        if negative.any():
            raise SpecError(
                f"{self.text!r} is negative at x = {x[negative][0]:.3g}: a density is never "
                "below 0 (is it a log-density?)"
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
        raise SpecError(f"an expression has at most {LONGEST} characters, not {len(stripped)}")
    try:
        tree = ast.parse(stripped, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise SpecError(
            f"cannot read {_short(stripped)}: write 2*x and x**2, not 2x; {EXAMPLE}"
        ) from None
    _check(tree, 0)
    return Expression(stripped, tree)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _check(node: ast.AST, depth: int) -> None:
    """Refuse whatever is not on the list."""
    if depth > DEEPEST:
        raise SpecError(f"the expression is nested more than {DEEPEST} deep")
    match node:
        case ast.Constant(value=value):
            if type(value) not in (int, float):
                raise SpecError(f"{_short(ast.unparse(node))} is not a number")
        case ast.Name(id=name):
            if name != "x" and name not in CONSTANTS:
                raise SpecError(_unknown(name, ("x", *CONSTANTS, *FUNCTIONS)))
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            _check(operand, depth + 1)
        case ast.BinOp(left=left, op=op, right=right):
            if type(op) not in BINARY:
                hint = "write ** for a power" if isinstance(op, ast.BitXor) else "use + - * / **"
                raise SpecError(f"{_short(ast.unparse(node))} cannot be computed: {hint}")
            _check(left, depth + 1)
            _check(right, depth + 1)
        case ast.Compare(left=left, ops=ops, comparators=others):
            if any(type(op) not in COMPARE for op in ops):
                raise SpecError(f"{_short(ast.unparse(node))}: compare with < <= > >= only")
            for part in (left, *others):
                _check(part, depth + 1)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            if name not in FUNCTIONS:
                raise SpecError(_unknown(name, FUNCTIONS))
            if len(arguments) != FUNCTIONS[name][0]:
                raise SpecError(f"{name} takes {FUNCTIONS[name][0]}, not {len(arguments)} numbers")
            for part in arguments:
                _check(part, depth + 1)
        case _:
            raise SpecError(
                f"{_short(ast.unparse(node))} is not allowed: numbers, x, + - * / **, "
                f"comparisons and {', '.join(FUNCTIONS)} are"
            )


def _unknown(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"unknown name {_short(name)}: {hint}Known are {', '.join(known)}"


def _whole(value: Any, x: Array) -> Array:
    return np.broadcast_to(np.asarray(value, dtype=np.float64), x.shape).copy()


def _value(node: ast.expr, x: Array) -> Any:
    match node:
        case ast.Constant(value=value):
            return np.float64(_finite(value))
        case ast.Name(id=name):
            return x if name == "x" else np.float64(CONSTANTS[name])
        case ast.UnaryOp(op=op, operand=operand):
            value = _value(operand, x)
            return -value if isinstance(op, ast.USub) else value
        case ast.BinOp(left=left, op=op, right=right):
            return BINARY[type(op)](_value(left, x), _value(right, x))
        case ast.Compare(left=left, ops=ops, comparators=others):
            parts = [_value(part, x) for part in (left, *others)]
            held = [COMPARE[type(op)](parts[i], parts[i + 1]) for i, op in enumerate(ops)]
            return np.where(np.logical_and.reduce(np.broadcast_arrays(*held)), 1.0, 0.0)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return FUNCTIONS[name][1](*(_value(part, x) for part in arguments))
    raise AssertionError(ast.dump(node))


def _finite(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _log(node: ast.expr, x: Array) -> tuple[Any, Any]:
    """(log|v|, sign v) of a part, never through a number that under- or overflows."""
    match node:
        case ast.UnaryOp(op=op, operand=operand):
            size, sign = _log(operand, x)
            return size, -sign if isinstance(op, ast.USub) else sign
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as op, right=right):
            (a, s), (b, t) = _log(left, x), _log(right, x)
            if isinstance(op, ast.Div):
                b, t = -b, np.where(t == 0, 1.0, t)
            return np.where((a == -math.inf) | (b == -math.inf), -math.inf, a + b), s * t
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            size, sign = _log(left, x)
            power = _value(right, x)
            return np.where(power == 0, 0.0, power * size), np.power(sign, power)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right) if _grows(node):
            (a, s), (b, t) = _log(left, x), _log(right, x)
            return _sum(a, s, b, t if isinstance(op, ast.Add) else -t)
        case ast.Call(func=ast.Name(id="exp"), args=[inner]):
            return _value(inner, x), np.float64(1.0)
        case ast.Call(func=ast.Name(id="sqrt"), args=[inner]):
            size, sign = _log(inner, x)
            return 0.5 * size, np.sqrt(sign)
        case ast.Call(func=ast.Name(id="abs"), args=[inner]):
            return _log(inner, x)[0], np.float64(1.0)
        case ast.Call(func=ast.Name(id="cosh"), args=[inner]):
            size = np.abs(_value(inner, x))
            return size + np.log1p(np.exp(-2 * size)) - math.log(2), np.float64(1.0)
        case ast.Call(func=ast.Name(id="erfc"), args=[inner]):
            tail = special.log_ndtr(-math.sqrt(2) * _value(inner, x))
            return math.log(2) + tail, np.float64(1.0)
        case ast.Call(func=ast.Name(id="where"), args=[condition, left, right]):
            held = _value(condition, x) != 0
            (a, s), (b, t) = _log(left, x), _log(right, x)
            return np.where(held, a, b), np.where(held, s, t)
    value = _value(node, x)
    return np.log(np.abs(value)), np.sign(value)


def _grows(node: ast.expr) -> bool:
    """Whether a part holds something that under- or overflows where its logarithm does not."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return not names.isdisjoint({"exp", "cosh", "erfc"})


def _sum(a: Any, s: Any, b: Any, t: Any) -> tuple[Any, Any]:
    """log|v + w| and its sign from those of v and w."""
    top = np.maximum(a, b)
    shift = np.where(np.isfinite(top), top, 0.0)
    total = s * np.exp(a - shift) + t * np.exp(b - shift)
    return shift + np.log(np.abs(total)), np.sign(total)
