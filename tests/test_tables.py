"""Rows as tables: what other programs read back, and what must not be run by them."""

from __future__ import annotations

import csv
import io
from html.parser import HTMLParser
from typing import Any

import pytest

from unicr.tables import Tabular, cell, to_csv, to_html, to_latex

ROWS: list[dict[str, Any]] = [
    {"name": "=1+1", "radius_l2": 0.1999999999, "n": 3},
    {"name": 'a "b",\n<i>&_%', "radius_l2": 1.5, "more": None},
]


class Example(Tabular):
    def plain_rows(self) -> list[dict[str, Any]]:
        return ROWS


def test_csv_reads_back_and_holds_no_formula() -> None:
    back = list(csv.DictReader(io.StringIO(to_csv(ROWS))))
    assert [row["name"] for row in back] == ["'=1+1", ROWS[1]["name"]]
    assert float(back[0]["radius_l2"]) == ROWS[0]["radius_l2"]
    assert back[1]["n"] == ""


def test_columns_are_those_of_all_rows() -> None:
    assert Example().to_dict() == {
        "name": [row["name"] for row in ROWS],
        "radius_l2": [0.1999999999, 1.5],
        "n": [3, None],
        "more": [None, None],
    }
    assert Example().to_frame().num_rows == 2


def test_a_lower_bound_is_not_rounded_up() -> None:
    assert cell("radius_l2", 0.19999999) == "0.199999"
    assert cell("seconds", 0.19999999) == "0.2"
    assert cell("proved_linf", float("inf")) == "inf"


def test_html_is_escaped_and_whole() -> None:
    found: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            found.append(tag)

    Reader().feed(to_html(ROWS))
    assert "i" not in found
    assert found.count("tr") == 3
    assert "and 1 more" in to_html(ROWS, most=1)


@pytest.mark.parametrize("sign", list("&%$#_{}~^\\"))
def test_latex_escapes_every_special_sign(sign: str) -> None:
    body = to_latex([{"x": sign}]).splitlines()[4]
    assert body.removesuffix(r" \\") != sign
    assert body.startswith("\\")
