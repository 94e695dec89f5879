"""What an auditor files about a run: the claim, what it rests on, a verdict fixed beforehand."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import unicr
from unicr.binomial import lower_bound, upper_bound
from unicr.errors import RunError
from unicr.metrics import Scores
from unicr.runs._require import Requirement
from unicr.runs._run import Row, Run
from unicr.runs._scores import scores_of
from unicr.runs._sign import STATEMENT
from unicr.runs._verify import refuse_broken_seal
from unicr.smoothing import ClosedNoise

FORMAT = 1
CONFIDENCE = 0.999  # of `Scores.accuracy_bound`, by which a requirement is judged
INTERVAL = 0.05  # chance that a share of all inputs lies outside its interval
PROPERTY = (
    "For each certified input x the smoothed classifier gives the same class to x + d for every "
    "change d whose norm is below the input's radius."
)
VERIFIER = (
    "statistical method (of the statistical, formal and empirical methods of ISO/IEC TR 24029-1): "
    "sound except with probability alpha for an input, incomplete"
)
TOLD = "settings and votes as the run has them: `unicr verify` checks them, this page does not"


def evidence(run: Run, *, force: bool = False) -> dict[str, Any]:
    """The facts about a run in plain values, by `docs/evidence.schema.json`.

    A run whose seal is broken, or that is not finished, is refused; with `force` it is marked. The
    verdict is about what was required before the noise was known (`unicr commit --require`).
    """
    spec, rows = run.spec, list(run.rows())
    mark = refuse_broken_seal(run, force=force)
    wanted = spec.indices(spec.data_size)
    if len(rows) != len(wanted) and not force:
        raise RunError(f"{run.folder} has {len(rows)} of {len(wanted)} results: finish it first")
    if not rows:
        raise RunError(f"{run.folder} has no results yet")
    scores = {p: scores_of(rows, p, run.folder.name, spec.plan.alpha) for p in spec.norm_texts}
    states = Counter(row.status for row in rows)
    verdicts = [_judge(Requirement.parse(text), scores) for text in spec.require]
    passed = all(one["verdict"] == "pass" for one in verdicts) and not mark
    alpha, count = spec.plan.alpha, len(rows)
    closed = isinstance(spec.noise, ClosedNoise)
    grid = None if spec.lattice is None else spec.lattice.text
    between = any(row.certificate is not None and row.certificate.between_points for row in rows)
    return {
        "evidence": FORMAT,
        "unicr": unicr.__version__,
        "told": TOLD,
        "seal": {"value": run.seal(), "broken": bool(mark)},
        "property": PROPERTY,
        "threat_model": {
            "norms": list(spec.norm_texts),
            "changes": f"between points of the grid {grid}" if between else "every real change",
            "units": "those of the input values that the model is given (bytes k are k/255)",
            "attacker": "knows the model, the law of the noise and the input",
        },
        "verifier": VERIFIER,
        "radii": "searched, not proved" if spec.searched else "proved",
        "scope": spec.scope,
        "noise": spec.noise.text,
        "requirements": verdicts,
        "verdict": ("pass" if passed else "fail") if verdicts else "nothing was required",
        "sampling": {
            "n0": spec.plan.n0,
            "n": spec.plan.n,
            "rule": spec.plan.rule.text,
            "procedure": spec.plan.procedure.name,
            "alpha_of_one_input": alpha,
            "alpha_of_all_inputs": min(1.0, alpha * count),
            "grid": grid,
        },
        "randomness": {
            "commitment": None if closed else spec.commitment,
            "nonce": spec.nonce,
            "nonce_origin": spec.nonce_origin,
            "seed": spec.seed,
        },
        "digests": {"model": spec.model_hash, **_named(spec.model_digests), "inputs": spec.inputs},
        "preprocessing": {
            name: spec.loading[name]
            for name in ("mean", "std", "precision")
            if name in spec.loading
        },
        "inputs": {
            "about": spec.inputs_text,
            "in_the_data": spec.data_size,
            "excluded": spec.data_size - count,
            **{name: states[name] for name in ("certified", "abstained", "failed")},
        },
        "metrics": [_metrics(one, rows, spec.classes) for one in scores.values()],
        "signatures": _signatures(run.folder),
    }


def _named(digests: dict[str, str]) -> dict[str, str]:
    return {f"part {name}": value for name, value in digests.items()}


def _judge(wanted: Requirement, scores: dict[str, Scores]) -> dict[str, Any]:
    """Whether what was required is shown, at the confidence of the bound."""
    found = wanted.reached(scores[wanted.norm]) if wanted.norm in scores else 0.0
    return {
        "requirement": wanted.text,
        "reached": found,
        "confidence": CONFIDENCE,
        "verdict": "pass" if found >= wanted.least else "fail",
    }


def _metrics(one: Scores, rows: Sequence[Row], names: Sequence[Any] | None) -> dict[str, Any]:
    """Accuracies of one norm: what holds for these inputs, and the interval for all such inputs."""
    steps = one.steps()
    largest = float(steps[-1]) if len(steps) else 0.0
    ends = [0.0] if not np.isfinite(largest) else [0.0, largest / 4, largest / 2]
    radii = [float(f"{r:.2g}") for r in ends]
    labels = sorted({row.label for row in rows if row.label >= 0})
    by_class = {}
    for label in labels:
        known = names is not None and label < len(names)
        own = [row for row in rows if row.label == label]
        name = str(names[label]) if names is not None and known else str(label)
        by_class[name] = {"inputs": len(own), "accuracy": sum(r.correct for r in own) / len(own)}
    return {
        "norm": one.norm,
        "average_radius": one.average_radius,
        "median_radius": one.median_radius,
        "accuracy": [_accuracy(one, r) for r in dict.fromkeys(radii)],
        "accuracy_by_class": by_class,
    }


def _accuracy(one: Scores, radius: float) -> dict[str, Any]:
    share, count = one.certified_accuracy(radius), len(one.radius)
    right = round(share * count)
    return {
        "radius": radius,
        "certified": share,
        "holds": None if one.alpha is None else one.accuracy_bound(radius),
        "interval": [
            lower_bound(right, count, INTERVAL / 2),
            upper_bound(right, count, INTERVAL / 2),
        ],
    }


def _signatures(folder: Path) -> dict[str, bool]:
    """Which signatures and dates lie in the folder; whose they are, `unicr verify --key` says."""
    names = [f"{one}.{end}" for one in ("commitment.json", STATEMENT) for end in ("sig", "tsr")]
    return {name: (folder / name).is_file() for name in names}


def evidence_page(facts: dict[str, Any]) -> str:
    """The same as one offline page: tables without a script."""
    title = f"Evidence: {facts['verdict']}"
    style = "body{font:15px sans-serif;max-width:60em;margin:2em auto}td,th{text-align:left;" \
        "vertical-align:top;padding:.2em .8em;border-top:1px solid #ccc}"  # fmt: skip
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{style}</style><h1>{html.escape(title)}</h1>{_cell(facts)}</html>\n"
    )


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        lines = (f"<tr><th>{html.escape(str(k))}</th><td>{_cell(v)}</td></tr>"
                 for k, v in value.items())  # fmt: skip
        return f"<table>{''.join(lines)}</table>"
    if isinstance(value, list):
        return "<br>".join(map(_cell, value)) or "none"
    return html.escape("none" if value is None else str(value))
