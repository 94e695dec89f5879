"""The text form of a noise: `gennorm(beta=1.5, sigma=1)`, read without ever evaluating code.

A name from the registry with keyword numbers; or `scipy.NAME(...)`; or `path/to/file.py:name` for a
noise (or a log-density) of the user's own, `path/to/file.py:name(sigma=0.25)` for a function that
makes one. Any of these may end in `.truncated(5)`, `.with_sigma(0.5)` or `* 2`.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from unicr.errors import NoiseError, SpecError, did_you_mean, foreign
from unicr.files import load_object
from unicr.noise._base import Noise
from unicr.noise.families import FAMILIES
from unicr.values import number

FILE = "_file_"  # stands for `path/to/file.py:name` while the text is read as an expression
LONGEST = 5000  # characters of a text
MOST_CUTS = 4  # `.truncated` in a row: each makes a table
EXAMPLE = "for example gaussian(sigma=0.5) or gennorm(beta=1.5, sigma=1)"


def parse(text: str) -> Noise:
    """The noise that `text` names. Raises SpecError with a suggestion where it does not parse."""
    stripped = text.strip()
    if len(stripped) > LONGEST:
        raise SpecError(f"a noise is written in at most {LONGEST} characters: {EXAMPLE}")
    if stripped.count(".truncated") > MOST_CUTS:
        raise SpecError(f"a noise is truncated at most {MOST_CUTS} times: the narrowest is enough")
    file: _File | None = None
    if reference := re.match(r"(\(*)(.+?\.py:[^\W\d]\w*)", stripped):
        file = _File(reference[2], load_object(reference[2]))
        stripped = reference[1] + FILE + stripped[reference.end() :]
    try:
        tree = ast.parse(stripped, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise SpecError(f"cannot read the noise {text!r}: write {EXAMPLE}") from None
    try:
        return _noise(tree, text, file)
    except (TypeError, RecursionError) as error:
        raise SpecError(f"cannot read the noise {text!r}: {error}") from None


class _File(NamedTuple):
    """What `path/to/file.py:name` names: a noise, a log-density, or a function that makes one."""

    reference: str
    value: Any

    def noise(self) -> Noise:
        """The noise itself, where the text gives no numbers."""
        from unicr.noise._density import from_density

        if isinstance(self.value, Noise):
            return self.value if _parses(self.value) else self.value.loaded_from(self.reference)
        if callable(self.value) and not isinstance(self.value, type):
            if needed := _parameters(self.value):
                raise SpecError(
                    f"{self.reference} makes a noise from {', '.join(needed)}: write "
                    f"{self.reference}({', '.join(f'{name}=…' for name in needed)})"
                )
            return from_density(self.value, name=self.reference)
        raise SpecError(
            f"{self.reference} is a {type(self.value).__name__}, not a noise or a log-density "
            "function"
        )

    def make(self, named: dict[str, float]) -> Noise:
        """The noise that the function makes from these numbers, written with them."""
        written = ", ".join(f"{name}={number(value)}" for name, value in named.items())
        reference = f"{self.reference}({written})"
        if not callable(self.value):
            raise SpecError(f"{self.reference} takes no numbers: it is no function")
        with foreign(SpecError, f"{reference} failed"):
            made = self.value(**named)
        if not isinstance(made, Noise):
            raise SpecError(f"{reference} gave a {type(made).__name__}, not a noise")
        return made.loaded_from(reference)


def _parameters(function: Any) -> list[str]:
    """The names that a function must be given by keyword, if it has any: then it makes a noise."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]


def _noise(node: ast.expr, text: str, file: _File | None) -> Noise:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _noise(node.left, text, file) * _number(node.right, text)
    if file is not None and isinstance(node, ast.Name) and node.id == FILE:
        return file.noise()
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if isinstance(node.func.value, ast.Name) and node.func.value.id == "scipy":
            return _scipy(node.func.attr, *_arguments(node, text))
        if node.func.attr == "truncated":
            base = _noise(node.func.value, text, file)
            if base.iid is None:
                raise SpecError(f"only a 1-D noise can be truncated, not {base.text}")
            positional, named = _arguments(node, text)
            return base.iid.truncated(*positional, **named)
        if node.func.attr in ("within", "with_sigma"):
            from unicr.noise._within import within

            base, (positional, named) = _noise(node.func.value, text, file), _arguments(node, text)
            made = within if node.func.attr == "within" else Noise.with_sigma
            return made(base, *positional, **named)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        positional, named = _arguments(node, text)
        if positional:
            raise SpecError(f"name the numbers in {text!r}: {EXAMPLE}")
        if file is not None and node.func.id == FILE:
            return file.make(named)
        return _family(node.func.id, named, text)
    if isinstance(node, ast.Name):
        raise SpecError(f"the noise {text!r} needs its parameters: {EXAMPLE}")
    raise SpecError(f"cannot read the noise {text!r}: write {EXAMPLE}")


def _family(name: str, named: dict[str, float], text: str) -> Noise:
    make: Callable[..., Noise] | None = FAMILIES.get(name)
    if make is None:
        hint = did_you_mean(name, FAMILIES)
        raise SpecError(f"unknown noise {name!r}: {hint}known are {', '.join(FAMILIES)}")
    try:
        return make(**named)
    except TypeError as error:
        reason = str(error).split(")", 1)[-1].strip()
        raise SpecError(f"cannot make {text!r}: {name} {reason}") from None


def _scipy(name: str, positional: list[float], named: dict[str, float]) -> Noise:
    from scipy import stats

    from unicr.noise._density import from_scipy

    maker = getattr(stats, name, None)
    if not isinstance(maker, stats.rv_continuous):
        raise SpecError(f"scipy.stats has no continuous distribution called {name!r}")
    try:
        return from_scipy(maker(*positional, **named))
    except TypeError as error:
        raise SpecError(f"scipy.{name}: {error}") from None


def _arguments(node: ast.Call, text: str) -> tuple[list[float], dict[str, float]]:
    named: dict[str, float] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise SpecError(f"cannot read the noise {text!r}: ** is not allowed")
        if keyword.arg in named:
            raise SpecError(f"in {text!r}, {keyword.arg} is given twice")
        named[keyword.arg] = _number(keyword.value, text)
    return [_number(argument, text) for argument in node.args], named


def _number(node: ast.expr, text: str) -> float:
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        sign = -1 if isinstance(node.op, ast.USub) else 1
        node = node.operand
    value: Any = node.value if isinstance(node, ast.Constant) else None
    if isinstance(node, ast.Name) and node.id == "inf":
        value = math.inf
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SpecError(f"in {text!r}, {ast.unparse(node)!r} is not a number")
    return sign * value


def show(noise: Noise) -> str:
    """The text; where it ends in a factor that a user gave as a sigma, with that sigma.

    Of i.i.d. noise alone: what is joint would have to draw samples for it.
    """
    name, times, _ = noise.text.rpartition(" * ")
    sigma = float(f"{noise.sigma:.6g}") if times and noise.iid is not None else math.inf
    meant = sigma < math.inf and math.isclose(sigma, noise.sigma, rel_tol=1e-12)
    return f"{name}.with_sigma({number(sigma)})" if meant else noise.text


def _parses(noise: Noise) -> bool:
    try:
        return parse(noise.text) == noise
    except (SpecError, NoiseError):
        return False


def check_parses(noise: Noise) -> str:
    """The text of `noise`, or an error where that text does not read back as the same noise."""
    if not _parses(noise):
        raise SpecError(
            f"{noise.text} cannot be written to a file: put it into a Python file and name it "
            "there as path/to/file.py:name"
        )
    return noise.text
