"""The grammar of what is typed: what each form reads as, and that nothing else passes."""

from __future__ import annotations

import keyword
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unicr.errors import SpecError
from unicr.text import (
    TIMES,
    Call,
    read_assignment,
    read_call,
    read_chain,
    read_fraction,
    read_list,
    read_number,
    read_range,
    split_reference,
    write_call,
)


def test_calls() -> None:
    assert read_call(" fixed ") == Call("fixed", called=False)
    assert read_call("pilot()") == Call("pilot")
    assert read_call("target(radius=0.5, share=-2)") == Call(
        "target", (), {"radius": 0.5, "share": -2}
    )
    assert read_call("a(+inf, 1e-3)") == Call("a", (math.inf, 1e-3))


def test_chains_are_read_from_left_to_right() -> None:
    assert read_chain("(gennorm(beta=1) * 2).truncated(5).with_sigma(s=3) * 4") == [
        Call("gennorm", (), {"beta": 1}),
        Call(TIMES, (2,)),
        Call("truncated", (5,)),
        Call("with_sigma", (), {"s": 3}),
        Call(TIMES, (4,)),
    ]
    assert read_chain("scipy.norm(0, 1)") == [Call("scipy", called=False), Call("norm", (0, 1))]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not have the form"),
        ("a(", "not have the form"),
        ("a(x=1, x=2)", "x is given twice"),
        ("a(**b)", r"\*\* is not allowed"),
        ("a(x=True)", "'True' is not a number"),
        ("a(x='1')", "is not a number"),
        ("a(x=nan)", "'nan' is not a number"),
        ("a(x=1+1)", "is not a number"),
        ("a(x=--1)", "is not a number"),
        ("a(x=1j)", "is not a number"),
        ("a(x=[1])", "is not a number"),
        ("a(b(1))", "is not a number"),
        ("2 * a(x=1)", "is not a name with numbers"),
        ("a(x=1) + a(x=2)", "is not a name with numbers"),
        ("a.b", "is not a name with numbers"),
        ("a(1)(2)", "is not a name with numbers"),
        ("a[0](1)", "is not a name with numbers"),
        ("lambda: 1", "is not a name with numbers"),
        ("__import__('os')", "is not a number"),
        ("(" * 3000 + "a" + ")" * 1000, "not have the form"),
        ("a" * 6000, "more than 5000"),
        ("a(x=" + "-" * 4000 + "1)", "not"),
    ],
)
def test_what_is_no_chain_is_refused_and_never_run(text: str, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        read_chain(text)


def test_a_call_is_one_name() -> None:
    with pytest.raises(SpecError, match=r"there is \.truncated after"):
        read_call("gaussian(sigma=1).truncated(3)")


@given(
    st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).filter(
        lambda name: name not in ("inf",) and not keyword.iskeyword(name)
    ),
    st.dictionaries(st.sampled_from(["a", "beta", "s1"]), st.floats(allow_nan=False)),
)
def test_what_is_written_is_read_again(name: str, named: dict[str, float]) -> None:
    assert read_call(write_call(name, named)) == Call(name, (), named)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1.0), (" -2.5e3 ", -2500.0), (".5", 0.5), ("5.", 5.0), ("inf", math.inf)],
)
def test_numbers(text: str, value: float) -> None:
    assert read_number(text) == value


@pytest.mark.parametrize("text", ["", "nan", "1_000", "0x10", "1e", "1 2", "infinity", "١", "1,5"])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(SpecError, match="is not a number"):
        read_number(text)


def test_lists_ranges_and_assignments() -> None:
    assert read_list("0.5,1, 2") == [0.5, 1.0, 2.0]
    assert read_range("1:3") == (1.0, 3.0)
    assert read_range("1:3:.25", 3) == (1.0, 3.0, 0.25)
    assert read_assignment("beta = 1,2") == ("beta", "1,2")
    assert read_assignment("a=b=c") == ("a", "b=c")
    for text, parts in (("1", 2), ("1:2:3", 2), ("1:2", 3), ("1:", 2)):
        with pytest.raises(SpecError):
            read_range(text, parts)
    for text in ("", "=", "a", "a=", "=1"):
        with pytest.raises(SpecError, match="NAME=VALUE"):
            read_assignment(text)
    with pytest.raises(SpecError):
        read_list("1,,2")


def test_fractions_are_exact() -> None:
    assert read_fraction("1/255") == Fraction(1, 255)
    assert read_fraction("2^-20") == Fraction(1, 1 << 20)
    assert read_fraction("3") == 3
    for text in ("0", "1/0", "-1/2", "2^0.5", "1e3", "1/2/3", "3^2", "2^-9999"):
        with pytest.raises(SpecError, match="not a fraction"):
            read_fraction(text)


def test_references() -> None:
    assert split_reference("a:b/model.py:net") == ("a:b/model.py", "net")
    for text in ("model", ":net", ""):
        with pytest.raises(SpecError, match="not have the form path"):
            split_reference(text)
