"""The text form of a noise: `gennorm(beta=1.5, sigma=1)`, read without ever evaluating code.

A name from the registry with keyword numbers; or `scipy.NAME(...)`; or `path/to/file.py:name` for a
noise (or a log-density) of the user's own, `path/to/file.py:name(sigma=0.25)` for a function that
makes one; or `sum(…, …)` of such texts. Any of these may end in `.truncated(5)`,
`.with_sigma(0.5)`, `.scales(1, 2)` (a scale for each coordinate), `.matrix(…)` (row by row) or
`* 2`.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unicr.errors import NoiseError, SpecError, did_you_mean, foreign
from unicr.files import load_object
from unicr.noise._anisotropic import Anisotropic
from unicr.noise._base import Noise
from unicr.noise._radial import within
from unicr.noise._sum import Sum
from unicr.noise.families import FAMILIES
from unicr.text import LONGEST, TIMES, Call, number, read_chain, split_arguments, write_call

FILE = "_file_"  # stands for `path/to/file.py:name` while the text is read
SUM = "sum"
MOST_PARTS = 8  # of a sum
MOST_CUTS = 4  # `.truncated` in a row: each makes a table
EXAMPLE = "for example gaussian(sigma=0.5) or gennorm(beta=1.5, sigma=1)"


def parse(text: str) -> Noise:
    """The noise that `text` names. Raises SpecError with a suggestion where it does not parse."""
    stripped = text.strip()
    if len(stripped) > LONGEST:
        raise SpecError(f"the text of a noise may have at most {LONGEST} characters: {EXAMPLE}")
    if stripped.count(".truncated") > MOST_CUTS:
        raise SpecError(
            f"a noise may be truncated at most {MOST_CUTS} times: keep only the narrowest"
        )
    if (inside := split_arguments(stripped, SUM)) is not None:
        words, rest = inside
        noise, then = _sum(words, text), read_chain(rest)[1:]
    else:
        file: _File | None = None
        if reference := re.match(r"(\(*)(.+?\.py:[^\W\d]\w*)", stripped):
            file = _File(reference[2], load_object(reference[2]))
            stripped = reference[1] + FILE + stripped[reference.end() :]
        try:
            first, *then = read_chain(stripped)
        except SpecError as error:
            raise SpecError(f"cannot read the noise {text!r}: {error}; write {EXAMPLE}") from None
        of_scipy = first == Call("scipy", called=False) and then
        noise = _scipy(then.pop(0)) if of_scipy else _first(first, text, file)
    try:
        for call in then:
            noise = _apply(call, noise, text)
    except TypeError as error:
        raise SpecError(f"cannot read the noise {text!r}: {error}") from None
    return noise


def _sum(words: Sequence[str], text: str) -> Noise:
    if len(words) > MOST_PARTS:
        raise SpecError(f"a sum may have at most {MOST_PARTS} parts")
    if any(split_arguments(word, SUM) is not None for word in words):
        raise SpecError(f"{text!r} is a sum of sums: write it as one sum")
    return Sum(*(parse(word) for word in words))


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
                    f"{self.reference} needs {', '.join(needed)} to make a noise: write "
                    f"{self.reference}({', '.join(f'{name}=…' for name in needed)})"
                )
            return from_density(self.value, name=self.reference)
        raise SpecError(
            f"{self.reference} is a {type(self.value).__name__}, not a noise or a log-density "
            "function"
        )

    def make(self, named: Mapping[str, float]) -> Noise:
        """The noise that the function makes from these numbers, written with them."""
        reference = write_call(self.reference, named)
        if not callable(self.value):
            raise SpecError(f"{self.reference} is not a function, so it takes no numbers")
        with foreign(SpecError, f"{reference} failed"):
            noise = self.value(**named)
        if not isinstance(noise, Noise):
            raise SpecError(f"{reference} returned a {type(noise).__name__}, but a noise is needed")
        return noise.loaded_from(reference)


def _parameters(function: Any) -> list[str]:
    """The names that a function must be given by keyword, if it has any: then it makes a noise."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]


def _first(call: Call, text: str, file: _File | None) -> Noise:
    """The noise that a text begins with: a family, or what a file holds."""
    of_file = file if call.name == FILE else None
    if not call.called:
        if of_file is not None:
            return of_file.noise()
        raise SpecError(f"the noise {text!r} has no parameters: {EXAMPLE}")
    if call.positional:
        raise SpecError(f"the numbers in {text!r} have no names: {EXAMPLE}")
    if of_file is not None:
        return of_file.make(call.named)
    make: Callable[..., Noise] | None = FAMILIES.get(call.name)
    if make is None:
        usual = [f.name for f in FAMILIES.values() if call.name.lower() in f.elsewhere]
        hint = f"did you mean {usual[0]}? " if usual else did_you_mean(call.name, FAMILIES)
        raise SpecError(f"unknown noise {call.name!r}: {hint}known noises: {', '.join(FAMILIES)}")
    try:
        return make(**call.named)
    except TypeError as error:
        reason = str(error).split(")", 1)[-1].strip()
        raise SpecError(f"cannot make {text!r}: {call.name} {reason}") from None


def _apply(call: Call, noise: Noise, text: str) -> Noise:
    """What a text does with a noise: `.truncated(5)`, `.within(…)`, `.with_sigma(0.5)`, `* 2`."""
    if call.name == TIMES:
        return noise * call.positional[0]
    if call.name == "truncated":
        return noise.truncated(*call.positional, **call.named)
    if call.name in ("scales", "matrix") and call.named:
        raise SpecError(
            f".{call.name}(…) takes numbers without names, one for each coordinate in order"
        )
    if call.name == "scales":
        return Anisotropic(noise, call.positional)
    if call.name == "matrix":
        rows = math.isqrt(len(call.positional))
        if not rows or rows * rows != len(call.positional):
            raise SpecError(
                f"a matrix has 1, 4, 9, … numbers, but {len(call.positional)} were given"
            )
        return Anisotropic(noise, matrix=np.reshape(call.positional, (rows, rows)))
    if call.name == "within":
        return within(noise, *call.positional, **call.named)
    if call.name == "with_sigma":
        return noise.with_sigma(*call.positional, **call.named)
    raise SpecError(f"cannot read the noise {text!r}: there is no .{call.name}(…); write {EXAMPLE}")


def _scipy(call: Call) -> Noise:
    from scipy import stats

    from unicr.noise._density import from_scipy

    maker = getattr(stats, call.name, None)
    if not isinstance(maker, stats.rv_continuous):
        raise SpecError(f"scipy.stats has no continuous distribution called {call.name!r}")
    try:
        return from_scipy(maker(*call.positional, **call.named))
    except TypeError as error:
        raise SpecError(f"scipy.{call.name}: {error}") from None


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
    """The text of `noise`, or an error if that text does not read back as the same noise."""
    if not _parses(noise):
        raise SpecError(
            f"{noise.text} cannot be written to a file: define it in a Python file and name it "
            "there as path/to/file.py:name"
        )
    return noise.text
