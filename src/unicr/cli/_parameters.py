"""How settings of the library become options of a command.

A frozen dataclass of the library is spread over the command line: each of its fields is an option,
and the words for it in the dataclass's docstring are its help. So a field that the library gets is
an option of every command that takes the dataclass, without a line here.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from cyclopts import App, Parameter, Token, convert

from unicr.classifier import ModelOptions
from unicr.data import DataOptions
from unicr.errors import SpecError
from unicr.text import read_assignment, read_list, read_range

FAILED = 3  # exit code: single inputs, trainings or items failed
# Fields that a command names in the singular, or by a shorter word.
NAMES = {"norms": "norm", "limit": "max", "p_a": "pa", "p_b": "pb", "q_a": "qa"}
SECTION = "Parameters\n----------\n"  # what begins the words for parameters in a docstring
LARGEST = 1 << 53  # up to here every whole number is a float, so 1e5 is read without loss

Command = TypeVar("Command")
PARSERS: dict[Any, Callable[[str], Any]] = {}  # of the types that are read from one word


def option_name(field: str) -> str:
    """The option of a field or parameter: `val_share` is --val-share, `max_` is --max."""
    return NAMES.get(field, field.strip("_").replace("_", "-"))


def whole_number(text: str) -> str:
    """A whole number as users write it, in digits: 3072, 1e5, but not 1.5 and not 1e30."""
    shown = text if len(text) <= 30 else text[:29] + "…"
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if abs(number) > LARGEST:
        raise ValueError(f"{shown} is larger than 2^53")
    if not number.is_integer():
        raise ValueError(f"{shown} is not a whole number")
    return str(int(number))


def convert_words(kind: Any, tokens: Sequence[Token]) -> Any:
    """The words of an option as its type; cyclopts alone would read 1.5 as the whole number 1."""
    leaf, *others = [leaf for leaf in get_args(kind) or (kind,) if leaf not in (type(None), ...)]
    texts = [token.value for token in tokens]
    if others or leaf not in (int, *PARSERS):
        return convert(kind, texts)
    if leaf is int:
        return convert(kind, list(map(whole_number, texts)))
    values = tuple(map(PARSERS[leaf], texts))
    return values if get_origin(kind) is tuple else values[0]


# of every option: no --no-… or --empty-…, and several words after an option that takes several
EVERY_OPTION = Parameter(
    negative=(), consume_multiple=True, name_transform=option_name, converter=convert_words
)
Repeated = Parameter(
    consume_multiple=False, show_default=False
)  # --trust A --trust B: one word each, then a position
Unasked = Parameter(parse=False)  # a field that the command itself sets

Out = Annotated[Path, Parameter(name=["--out", "-o"])]
MaybeOut = Annotated[Path | None, Parameter(name=["--out", "-o"])]
Format = Annotated[
    Literal["table", "markdown", "latex", "csv", "json"],
    Parameter(help="table (aligned, for reading), markdown, latex, csv or json."),
]
Json = Annotated[bool, Parameter(name="--json")]
Force = Annotated[
    bool,
    Parameter(help="Also show runs that were changed after they were finished, marked as such."),
]


def spread(settings: type, group: str | None = None) -> None:
    """Make every field of a dataclass an option, under the headline `group` of the help."""
    for kind in settings.__mro__:
        if kind is not object:
            head, marker, tail = inspect.cleandoc(kind.__doc__ or "").partition(SECTION)
            kind.__doc__ = head + marker + _join_lines(tail)
    parameter = Parameter(name="*") if group is None else Parameter(name="*", group=group)
    parameter(settings)


def read_as(kind: type, parse: Callable[[str], Any]) -> None:
    """Let options of this type be one word, which `parse` reads."""
    PARSERS[kind] = parse
    Parameter(n_tokens=1, accepts_keys=False, show_default=_as_typed)(kind)


def _as_typed(value: Any) -> str:
    """A default as a user would type it: fixed, not Fixed()."""
    return str(getattr(value, "text", value)).removesuffix("()")


def command(function: Command) -> Command:
    """The function with a docstring whose lines follow the terminal's width, but for examples."""
    if isinstance(function, App):
        return function
    text = inspect.getdoc(function) or ""
    head, marker, tail = text.partition(SECTION)
    parts = [p if p.startswith("unicr ") else " ".join(p.split()) for p in head.split("\n\n")]
    function.__doc__ = "\n\n".join(parts) + marker + _join_lines(tail)
    return function


def _join_lines(parameters: str) -> str:
    """The words for each parameter on one line, which cyclopts breaks at the terminal's width."""
    marked = re.sub(r"(?m)^(\w+)\n    ", r"\1\n\t", parameters)
    return re.sub(r"(?<=\S)\n    (?=\S)", " ", marked).replace("\t", "    ")


def read_ranges(
    texts: Sequence[str] | None, option: str, form: str, separator: str, count: int = 0
) -> Mapping[str, Any]:
    """The numbers of NAME=a,b,c or NAME=low:high texts; `count` of them where that is fixed."""
    ranges: dict[str, Sequence[float]] = {}
    for text in texts or []:
        try:
            name, numbers = read_assignment(text)
            values = read_list(numbers) if separator == "," else read_range(numbers, count)
        except SpecError as error:
            raise SpecError(
                f"cannot read {option} {text!r} ({error}): write it as {form}"
            ) from None
        if name in ranges:
            raise SpecError(f"the values of {name} are given twice")
        ranges[name] = values
    return ranges


@dataclass(frozen=True)
class Loading(ModelOptions):
    """`ModelOptions`, of which --trust takes one file at a time: the run may stand after it."""

    trust: Annotated[tuple[Path, ...], Repeated] = ()


spread(Loading, "The model")
spread(DataOptions, "The data")
