"""The noise of each input chosen among stretched ones, by ball or by volume."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unicr import noise
from unicr.classifier import load_classifier
from unicr.data import load_dataset
from unicr.errors import CertifyError, UnicrError
from unicr.norms import l2
from unicr.runs import Job, Run, certify_run, replay, verify
from unicr.smoothing import EVERY_INPUT, THIS_INPUT, Plan, Procedure
from unicr.smoothing.procedures import Among

PLAIN = noise.gaussian(sigma=0.5)
LONG = noise.parse("gaussian(sigma=0.5).scales(1, 3, 3)")  # the same ball, nine times the volume
SMALL = noise.parse("gaussian(sigma=0.5).scales(0.5, 9, 9)")  # half the ball, more volume still


def first_coordinate(batch: Any) -> Any:
    return (batch[:, 0] > 0).long()


@pytest.mark.parametrize(("by", "wanted"), [("radius", PLAIN), ("volume", SMALL)])
def test_each_unit_has_its_own_best_noise(by: str, wanted: noise.Noise, tmp_path: Path) -> None:
    """f looks at one coordinate: wide noise along the others costs nothing and adds volume."""
    x = np.array([[0.9, 0, 0], [-1.1, 0, 0]], dtype=np.float32)
    work = Job(
        load_classifier(first_coordinate, num_classes=2),
        load_dataset((x, np.array([1, 0]))),
        PLAIN,
        norms=(l2,),
        plan=Plan(n0=60, n=300, procedure=Among((LONG, SMALL), by)),
    )
    certify_run(work, tmp_path).close()
    with Run(tmp_path) as run:
        assert run.spec.scope == THIS_INPUT != EVERY_INPUT
        assert list(verify(run)) == []
        assert [wrong for _, wrong in replay(run, work.classifier, work.data, 2)] == [None, None]
        for row in run.rows():
            c = row.certificate
            assert c is not None
            assert c.noise == wanted.text
            assert c.predict == row.label
            assert [e.noise for e in c.transcript] == [
                PLAIN.text, LONG.text, SMALL.text, wanted.text
            ]  # fmt: skip
            # fresh samples of the chosen noise alone bound its class
            assert [(e.start, e.n) for e in c.transcript] == [(0, 60)] * 3 + [(60, 300)]
            ball = c.radii[0]
            assert ball.frame == wanted.frame
            if by == "volume":
                scales = math.fsum(np.log(np.array([0.5, 9.0, 9.0])))
                volume = 3 * math.log(ball.reach or 0) + scales
                assert ball.log_volume == pytest.approx(volume, abs=1e-9)
                assert c.contains([0, 0, 8.9 * (ball.reach or 0)])


def test_it_is_written_as_text_and_as_data() -> None:
    both = "sum(gaussian(sigma=1), sech(sigma=1))"
    text = f"among(gaussian(sigma=0.5).scales(1, 3, 3), {both}, by=volume)"
    found = Procedure.parse(text)
    assert isinstance(found, Among)
    assert found.choices[0] == LONG
    assert found.by == "volume"
    assert found.text == text
    assert Procedure.from_dict(found.to_dict()) == found
    plan = Plan(procedure=found)
    assert Plan.from_dict(plan.to_dict()) == plan


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("among()", "1 to 64 noises beside --noise, not 0"),
        ("among(gaussian(sigma=1), by=luck)", "by=luck must be radius or volume"),
        ("among(gaussian(sigma=1), gaussian(sigma=1))", "twice"),
        ("among(gauss(sigma=1))", "unknown noise"),
        ("among(gaussian(sigma=1)", "not closed"),
    ],
)
def test_what_cannot_be_chosen_from_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UnicrError, match=reason) as error:
        Procedure.parse(text)
    assert "\n" not in str(error.value)
    with pytest.raises(CertifyError, match="fixed number"):
        Plan(procedure=Among((LONG,)), rule=Plan().rule.parse("pilot"))
