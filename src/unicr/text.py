"""The one grammar of what is typed or stored as text. Nothing is ever evaluated.

    target(radius=0.5)                        a name with numbers (`read_call`)
    gennorm(beta=1, sigma=2).truncated(5) * 2 a chain of them (`read_chain`)
    beta=0.5,1,2                              a name and its value (`read_assignment`)
    0.5,1,2                                   a list of numbers (`read_list`)
    0.5:5 or 0.1:1:1.25                       a range, perhaps with a step (`read_range`)
    1/255 or 2^-20                            an exact step (`read_fraction`)
    path/to/file.py:name                      what a Python file defines (`split_reference`)
    sum(a(x=1), b(x=2)) * 3                   texts within a text (`split_arguments`)

`write_call` writes what `read_call` reads; `number` and `round_down` write single numbers. Noises,
rules, procedures, norms, lattices, grids of C-OPT and I-OPT and options of the command line are all
read here.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import pairwise

from unicr.errors import SpecError

LONGEST = 5000  # characters of a text; nobody types more, and the parser's memory grows with it
TIMES = "*"  # the name of a multiplication in a chain
_FRACTION = re.compile(
    r"(?P<up>[1-9][0-9]{0,30})(?:/(?P<down>[1-9][0-9]{0,30}))?|2\^(?P<power>-?[0-9]{1,3})"
)
_NUMBER = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*(e[+-]?[0-9]+)?|\.[0-9]+(e[+-]?[0-9]+)?|inf)", re.IGNORECASE
)


@dataclass(frozen=True)
class Call:
    """`name(1, beta=2)`: a name with numbers by position and by name; `called` without brackets is
    False. In a chain `* 2` is a call of `*`.
    """

    name: str
    positional: tuple[float, ...] = ()
    named: Mapping[str, float] = field(default_factory=dict)
    called: bool = True


def read_call(text: str) -> Call:
    """A name, perhaps with numbers: `fixed`, `target(radius=0.5)`. SpecError for anything else."""
    first, *rest = read_chain(text)
    if rest:
        raise SpecError(f"there is .{rest[0].name} after its first name")
    return first


def read_chain(text: str) -> list[Call]:
    """A call and what is done with it, from left to right: `a(x=1).b(2) * 3`.

    `a.b(2)` is the bare name a, then b. The reason of a SpecError does not repeat the text.
    """
    stripped = text.strip()
    if len(stripped) > LONGEST:
        raise SpecError(f"it has more than {LONGEST} characters")
    try:
        return _chain(ast.parse(stripped, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, SpecError):
            raise
        raise SpecError("it does not have the form NAME(NAME=NUMBER, …)") from None


def _chain(node: ast.expr) -> list[Call]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return [*_chain(node.left), Call(TIMES, (_number(node.right),))]
    if isinstance(node, ast.Call):
        positional = tuple(_number(argument) for argument in node.args)
        named: dict[str, float] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise SpecError("** is not allowed")
            if keyword.arg in named:
                raise SpecError(f"{keyword.arg} is given twice")
            named[keyword.arg] = _number(keyword.value)
        if isinstance(node.func, ast.Name):
            return [Call(node.func.id, positional, named)]
        if isinstance(node.func, ast.Attribute):
            return [*_chain(node.func.value), Call(node.func.attr, positional, named)]
    if isinstance(node, ast.Name):
        return [Call(node.id, called=False)]
    raise SpecError(f"{ast.unparse(node)!r} is not a name with numbers")


def _number(node: ast.expr) -> float:
    sign, operand = 1, node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        sign = -1 if isinstance(node.op, ast.USub) else 1
        operand = node.operand
    if isinstance(operand, ast.Name) and operand.id == "inf":
        return sign * math.inf
    value = operand.value if isinstance(operand, ast.Constant) else None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return sign * value
    raise SpecError(f"{ast.unparse(node)!r} is not a number")


def write_call(name: str, named: Mapping[str, float]) -> str:
    """The text that `read_call` reads as this name with these numbers, each in full."""

    return f"{name}({', '.join(f'{key}={number(value)}' for key, value in named.items())})"


def read_number(text: str) -> float:
    """A number in decimals, or inf. Nothing else that Python's float takes (nan, 1_000)."""
    if not _NUMBER.fullmatch(text.strip()):
        raise SpecError(f"{text!r} is not a number")
    return float(text)


def read_list(text: str) -> list[float]:
    """The numbers of `0.5,1,2`."""
    return [read_number(word) for word in text.split(",")]


def read_range(text: str, parts: int = 2) -> tuple[float, ...]:
    """The numbers of `low:high`, with three `parts` of `low:high:step`, in any order."""
    words = text.split(":")
    if len(words) != parts:
        raise SpecError(f"{text!r} has {len(words)} parts, but {parts} are needed")
    return tuple(read_number(word) for word in words)


def split_arguments(text: str, name: str) -> tuple[list[str], str] | None:
    """The arguments of `name(…)` as texts, and what follows it; None where another text is given.

    Commas within brackets belong to an argument.
    """
    stripped = text.strip()
    start = len(stripped) - len(stripped.lstrip("("))
    if not stripped[start:].startswith(f"{name}("):
        return None
    depth, cuts = 0, [start + len(name)]
    for at in range(cuts[0], len(stripped)):
        letter = stripped[at]
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 1 and letter == ",":
            cuts.append(at)
        if depth == 0:
            ends = [*cuts, at]
            words = [stripped[a + 1 : b].strip() for a, b in pairwise(ends)]
            return words, f"{'(' * start}{name}{stripped[at + 1 :]}"
    raise SpecError(f"a bracket of {name}(…) is not closed")


def read_assignment(text: str) -> tuple[str, str]:
    """The name and the value of `name=value`; neither is empty."""
    name, _, value = (part.strip() for part in text.partition("="))
    if not name or not value:
        raise SpecError(f"{text!r} does not have the form NAME=VALUE")
    return name, value


def read_fraction(text: str) -> Fraction:
    """`1/255`, `3` or `2^-20`, exactly; a whole number above 0 over another, or a power of two."""
    match = _FRACTION.fullmatch(text.strip())
    if match is None:
        raise SpecError(f"{text!r} is not a fraction such as 1/255 or 2^-20")
    if match["power"] is not None:
        return Fraction(2) ** int(match["power"])
    return Fraction(int(match["up"]), int(match["down"] or 1))


def split_reference(text: str) -> tuple[str, str]:
    """File and name of `path/to/file.py:name`."""
    file, colon, name = text.rpartition(":")
    if not colon or not file:
        raise SpecError(f"{text!r} does not have the form path/to/file.py:name")
    return file, name


def number(value: float) -> str:
    """The shortest text that reads back as the same float: 1.0 is '1', 0.5 is '0.5'."""
    text = repr(float(value))
    return text.removesuffix(".0")


def round_down(value: float, digits: int = 6) -> str:
    """Decimal text that is never above the value: radii are not rounded up."""
    if not math.isfinite(value):
        return str(value)
    text = f"{value:.{digits}g}"
    if float(text) <= value:
        return text
    # It was rounded up: the multiple of one unit of the last digit just below, in exact decimals.
    # Its float is not above the value either, and is written with the same digits.
    exact = Decimal(value)
    unit = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    lowered = exact.quantize(unit, rounding=ROUND_FLOOR, context=Context(prec=digits + 2))
    return f"{float(lowered):.{digits}g}"
