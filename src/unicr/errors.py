"""The errors unicr raises on purpose: one root, so that a caller can catch them all.

`foreign` is where somebody else's file or code is read or run: what goes wrong inside is one of
these errors with one line of text, never a traceback through another library.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class UnicrError(Exception):
    """The base class of all errors that unicr raises on purpose."""


class NoiseError(UnicrError, ValueError):
    """A noise that cannot be built: a bad parameter, or a density that cannot be handled."""


class SpecError(UnicrError, ValueError):
    """A text (a noise, a norm, a file reference) that does not parse."""


class RadiusError(UnicrError, ValueError):
    """A radius that was asked for with impossible probabilities, dimension or norm."""


class MissingExtraError(UnicrError, ImportError):
    """An optional part is not installed; the message names the extra to install."""


class ModelError(UnicrError, ValueError):
    """A classifier that cannot be loaded, or that gives no usable label for some batch."""


class DataError(UnicrError, ValueError):
    """A dataset that cannot be read, fetched or understood."""


class CertifyError(UnicrError, ValueError):
    """A certification that cannot be made as asked: settings, inputs or samples that do not fit."""


class BatchError(CertifyError):
    """A model whose label of an input depends on what else is in its batch."""


class RunError(UnicrError, ValueError):
    """A run folder that cannot be written, read or resumed."""


# What comes of reading values that are not of the kind they should be.
UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)


@contextmanager
def foreign(kind: type[UnicrError], what: str) -> Iterator[None]:
    """Somebody else's file or code inside: what it raises, SystemExit too, becomes a `kind`.

    Our own errors and the user's Ctrl-C pass.
    """
    try:
        yield
    except (UnicrError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise kind(f"{what}: {one_line(error)}") from error


def did_you_mean(name: str, known: Iterable[str], most: int = 1, least: float = 0.4) -> str:
    """The part of a message that names what is like `name`; empty if nothing is."""
    near = difflib.get_close_matches(name, list(known), n=most, cutoff=least)
    return f"did you mean {' or '.join(near)}? " if near else ""


def listed(words: Iterable[object], most: int = 12) -> str:
    """The words in one line, the end left out where there are many."""
    some = [str(word) for word in words]
    return ", ".join(some[:most]) + (", …" if len(some) > most else "")


def printable(text: str) -> str:
    """A text of anybody's as a terminal may show it: in one line, and without commands to it."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in text)


def one_line(error: BaseException, most: int = 300) -> str:
    """The type and the words of an exception, in one line of at most so many characters."""
    words = " ".join(str(error).split())
    text = f"{type(error).__name__}: {words}" if words else type(error).__name__
    return text if len(text) <= most else text[: most - 1] + "…"
