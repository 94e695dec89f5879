"""Options are fields of the library's dataclasses: nothing is spelled twice."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import pytest
from cyclopts import App, CycloptsError

from tests.cli.test_help import WORDS, of
from tests.test_imports import HELP, loaded_by
from unicr.classifier import ModelOptions, load_classifier
from unicr.cli import app
from unicr.cli._parameters import EVERY_OPTION, spread
from unicr.cli.certify import certify
from unicr.data import DataOptions, load_dataset
from unicr.norms import Norm, l2, linf
from unicr.runs import Place, Terms
from unicr.smoothing import Plan

LINE = "certify --model m.onnx --data d.npz --noise n --norm 1 2 --out o"


@dataclass(frozen=True, kw_only=True)
class Wider(Terms):
    """Terms with one more field.

    Parameters
    ----------
    colour
        The colour of the run.
    """

    norms: tuple[Norm, ...]
    colour: str = "red"


def parse(line: str) -> dict[str, Any]:
    _, bound, _ = app.parse_args(line.split(), exit_on_error=False, print_error=False)
    return dict(bound.arguments)


@pytest.mark.parametrize(
    ("options", "function"), [(ModelOptions, load_classifier), (DataOptions, load_dataset)]
)
def test_options_are_all_that_the_function_takes(options: type, function: Any) -> None:
    taken = list(inspect.signature(function).parameters)[1:]
    assert sorted(field.name for field in fields(options)) == sorted(taken)


def test_a_field_of_the_library_is_an_option_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    spread(Wider)
    monkeypatch.setattr(sys.modules["unicr.cli.certify"], "Terms", Wider)
    own = App(name="unicr", default_parameter=EVERY_OPTION, result_action="return_value")
    own.command(certify)
    words = [*LINE.split(), "--colour", "blue"]
    _, bound, _ = own.parse_args(words, exit_on_error=False, print_error=False)
    assert bound.arguments["terms"].colour == "blue"
    (option,) = [
        one
        for one in own["certify"].assemble_argument_collection(parse_docstring=True)
        if one.name == "--colour"
    ]
    assert option.parameter.help == "The colour of the run."


@pytest.mark.parametrize("kind", [Terms, Plan, Place, ModelOptions, DataOptions])
def test_every_field_is_an_option_of_certify_with_words(kind: type) -> None:
    options = {
        one.field_info.name: one.parameter.help
        for one in app["certify"].assemble_argument_collection(parse_docstring=True)
    }
    for field in fields(kind):
        assert options[field.name], field.name


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_every_option_has_words(words: tuple[str, ...]) -> None:
    own = of(words)
    if own.default_command is None:
        return
    for one in own.assemble_argument_collection(parse_docstring=True):
        spread_out = is_dataclass(one.hint) and one.parameter.name == ("*",)
        if one.parse and not spread_out:
            assert one.parameter.help, f"{' '.join(words)} {one.name}"


def test_lists_take_several_words_and_trust_takes_one() -> None:
    given = parse(f"{LINE} --mean 0.1 0.2 --std 1 2")
    assert [norm.text for norm in given["terms"].norms] == ["1", "2"]
    assert parse(LINE.replace("--norm 1 2", "--norm linf 2 2"))["terms"].norms == (linf, l2)
    assert (given["loading"].mean, given["loading"].std) == ((0.1, 0.2), (1.0, 2.0))
    checked = parse("verify --trust a.py --trust b.py run")
    assert str(checked["run"]) == "run"
    assert [path.name for path in checked["options"].loading.trust] == ["a.py", "b.py"]


def test_ray_without_an_address_is_the_cluster_that_is_there() -> None:
    assert parse(f"{LINE} --ray")["place"].where["ray"] == "auto"
    assert parse(f"{LINE} --ray local")["place"].where["ray"] == "local"
    assert Place().where["ray"] is None


@pytest.mark.parametrize(
    ("option", "read"),
    [("--n 1e5", 100_000), ("--n 2.5E+3", 2500), ("--n0 7", 7), ("--max 1e2", 100)],
)
def test_a_whole_number_may_be_written_with_an_exponent(option: str, read: int) -> None:
    given = parse(f"{LINE} {option}")
    name = option.split()[0][2:]
    assert (given["terms"].limit if name == "max" else getattr(given["plan"], name)) == read


@pytest.mark.parametrize("option", ["--n 1.5", "--max 0.5", "--n0 1e30", "--batch x", "--seed 2.5"])
def test_a_number_that_is_not_whole_is_refused(option: str) -> None:
    with pytest.raises(CycloptsError, match=r"not a whole number|larger than 2\^53"):
        parse(f"{LINE} {option}")


@pytest.mark.parametrize("name", ["certify", "train", "attack", "select", "c-opt", "radius"])
def test_the_help_of_a_command_loads_nothing_heavy(name: str) -> None:
    assert loaded_by(HELP.format(arguments=[name, "--help"])) == []
