"""Settings of a folder compared with those given now, also where an older version wrote them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unicr.smoothing import Plan


def in_todays_words(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of an older version: `sound` said whether radii were proved, not `searched`;
    a plan had a `mode` and a `bound`, not a rule.
    """
    values = dict(settings)
    if "sound" in values:
        values["searched"] = not values.pop("sound")
    if isinstance(values.get("plan"), dict) and "rule" not in values["plan"]:
        values["plan"] = Plan.from_dict(values["plan"]).to_dict()
    return values


def changes(
    old: Mapping[str, Any], new: Mapping[str, Any], free: frozenset[str] = frozenset()
) -> str:
    """What differs between the settings of a folder and those given now; "" where nothing does."""
    old = in_todays_words(old)
    differing = sorted(k for k in {*old, *new} - free if old.get(k) != new.get(k))
    return "; ".join(f"{k}: {old.get(k)!r} there, {new.get(k)!r} now" for k in differing)
