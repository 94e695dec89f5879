"""No proved radius falls by more than 0.3 %, and none exceeds the golden searched one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.golden.cases import KINDS, noise_of
from tests.golden.truth import closed_form_radius, true_radius
from unicr.errors import UnicrError
from unicr.radius import _cache, _curve

HERE = Path(__file__).parent
LOSS = 0.003  # of a proved radius: what a rebuild may cost
ROUNDING = 1e-9  # between two roundings of the same exact radius
TABLE = 2e-6  # between radii of two tables of one density: how near each is to it


def _golden(kind: str) -> list[Any]:
    lines = (HERE / f"{kind}.jsonl").read_text("utf-8").splitlines()
    values = [json.loads(line) for line in lines]
    slow = (pytest.mark.slow,)
    return [
        pytest.param(value, marks=() if value["quick"] else slow, id=_name(value["case"]))
        for value in values
    ]


def _name(case: dict[str, Any]) -> str:
    return " ".join(str(value) for value in case.values() if not isinstance(value, dict))


def _ask(kind: str, golden: dict[str, Any]) -> dict[str, Any] | None:
    """Today's answer, None where neither of the two has one."""
    try:
        return KINDS[kind][1](golden["case"])
    except UnicrError:
        if "error" in golden:
            return None
        raise


def _compare(
    proved: float, golden_proved: float, golden_searched: float, rounding: float = ROUNDING
) -> None:
    assert proved >= golden_proved * (1 - LOSS)
    assert proved <= golden_searched * (1 + rounding)


@pytest.mark.parametrize("golden", _golden("radii"))
def test_a_radius_keeps_its_bracket(golden: dict[str, Any]) -> None:
    now = _ask("radii", golden)
    if now is not None and "error" not in golden:
        table = golden["case"]["noise"].startswith(("user:", "truncated:"))
        _compare(now["proved"], golden["proved"], golden["searched"], TABLE if table else ROUNDING)
        assert now["searched"] >= now["proved"]


def test_radii_near_one_half_are_compared_with_the_truth() -> None:
    """Where the golden searched radius was only an older engine's, the row holds the true one."""
    rows = [json.loads(line) for line in (HERE / "radii.jsonl").read_text("utf-8").splitlines()]
    rows = [row for row in rows if row.get("truth")]
    assert len(rows) == 21
    for row in rows:
        case = row["case"]
        truth = true_radius(noise_of(case["noise"], case["dim"]), case["norm"], case["p_a"])
        assert row["searched"] == pytest.approx(truth, rel=1e-12)


def test_readings_of_closed_forms_are_compared_with_the_truth() -> None:
    rows = [json.loads(line) for line in (HERE / "curves.jsonl").read_text("utf-8").splitlines()]
    rows = [row for row in rows if row.get("truth")]
    assert len(rows) == 18
    for row in rows:
        assert row["searched"] == closed_form_radius(**row["case"])


@pytest.mark.parametrize("golden", _golden("curves"))
def test_a_reading_keeps_its_bracket(golden: dict[str, Any]) -> None:
    now = _ask("curves", golden)
    assert now is not None
    _compare(now["proved"], golden["proved"], golden["searched"])


@pytest.mark.slow  # the tables of both noises take half a minute
@pytest.mark.important
@pytest.mark.parametrize("golden", _golden("two_laws"))
def test_two_laws_prove_as_much(golden: dict[str, Any]) -> None:
    now = _ask("two_laws", golden)
    assert now is not None
    _compare(now["proved"], golden["proved"], golden["proved"] * (1 + LOSS))


@pytest.mark.parametrize("golden", _golden("laws"))
def test_a_law_of_the_sampler_stays(golden: dict[str, Any]) -> None:
    """The same thresholds, or others with no larger bound of the error."""
    now = _ask("laws", golden)
    assert now is not None
    if now["digest"] != golden["digest"]:
        assert now["tau"] <= golden["tau"] * (1 + ROUNDING)
    else:
        assert now["tau"] == pytest.approx(golden["tau"], rel=1e-6)


@pytest.mark.parametrize("golden", _golden("certificates"))
def test_votes_give_the_same_certificate(golden: dict[str, Any]) -> None:
    now = _ask("certificates", golden)
    assert now is not None
    assert now["predict"] == golden["predict"]
    assert now["p_a"] == pytest.approx(golden["p_a"], rel=1e-12)
    assert now["p_b"] == pytest.approx(golden["p_b"], rel=1e-12)
    assert now["charge"] == (golden["charge"] and pytest.approx(golden["charge"], rel=1e-6))
    for norm, (proved, searched) in golden["radii"].items():
        _compare(now["radii"][norm][0], proved, searched)


@pytest.mark.parametrize("golden", _golden("numerics"))
def test_stored_curves_are_what_is_made_today(
    golden: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(_cache.VARIABLE, str(tmp_path))
    monkeypatch.setattr(_cache, "load_shipped_curves", dict)
    _curve.get_unit_curve.cache_clear()
    now = _ask("numerics", golden)
    _curve.get_unit_curve.cache_clear()
    assert now is not None
    advice = (
        "new curves differ from those that users have stored: raise NUMERICS in radius/_cache.py, "
        "remove tests/golden/numerics.jsonl and make it again (python -m tests.golden numerics)"
    )
    assert now["proved"] == pytest.approx(golden["proved"], rel=1e-10), advice
    assert golden["case"]["numerics"] == _cache.NUMERICS, advice
