"""A new attack is one file: found, made, scaled and run without a change anywhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from unicr.lab import attack
from unicr.lab.attack import AttackError, make

MINE = """
from dataclasses import dataclass
from typing import ClassVar

import torch

from unicr.lab.attack import Attack


@dataclass(frozen=True)
class Upwards(Attack):
    name: ClassVar[str] = "upwards"
    EFFORT: ClassVar[tuple[str, ...]] = ("steps",)
    steps: int = 3

    def _directions(self, targets, norm, bounds, seed):
        return torch.ones_like(targets.x)
"""


def test_an_attack_is_found_by_its_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "upwards.py").write_text(MINE)
    (tmp_path / "_hidden.py").write_text("raise AssertionError")
    before = set(attack.ATTACKS)
    monkeypatch.setattr(attack, "__path__", [*attack.__path__, str(tmp_path)])
    attack.ATTACKS.reload()
    assert set(attack.ATTACKS) - before == {"upwards"}
    assert make("upwards", 2.0).settings() == {"steps": 6}
    with pytest.raises(AttackError, match=r"no attack 'sideways'.*upwards"):
        make("sideways")
    monkeypatch.undo()
    attack.ATTACKS.reload()
    assert set(attack.ATTACKS) == before


def test_every_attack_names_its_own_file() -> None:
    folder = Path(attack.__file__).parent
    files = {path.stem for path in folder.glob("[a-z]*.py")}
    assert {kind.__module__.rpartition(".")[2] for kind in attack.ATTACKS.values()} == files
