"""What an auditor files about a run: the claim, what it rests on, a verdict fixed beforehand."""

from __future__ import annotations

import html
import uuid
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import unicr
from unicr.binomial import lower_bound, upper_bound
from unicr.errors import RunError
from unicr.metrics import Scores
from unicr.runs._commit import FILE as COMMITMENT
from unicr.runs._commit import read_commitment
from unicr.runs._require import Requirement
from unicr.runs._run import FILE, Row, Run, scores_of
from unicr.runs._sign import SEAL, STATEMENT, find_date, find_signer, read_statement
from unicr.runs._verify import refuse_broken_seal
from unicr.smoothing import ClosedNoise

FORMAT = 1
CONFIDENCE = 0.999  # of `Scores.accuracy_bound`, by which a requirement is judged
INTERVAL = 0.05  # chance that a share of all inputs lies outside its interval
PROPERTY = (
    "For each certified input x the smoothed classifier gives the same class to x + d for every "
    "change d whose norm is below the input's radius."
)
ELSEWHERE = "in the run of that norm"  # the verdict about a norm that the run has no radii in
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
        raise RunError(
            f"{run.folder} has only {len(rows)} of {len(wanted)} results: finish the run with "
            "--resume first"
        )
    if not rows:
        raise RunError(f"{run.folder} has no results yet")
    scores = {p: scores_of(rows, p, run.folder.name, spec.plan.alpha) for p in spec.norm_texts}
    states = Counter(row.status for row in rows)
    held = {p: _proved(one, rows) for p, one in scores.items()}
    elsewhere = {norm.text for norm in spec.all_norms} - set(spec.norm_texts)
    verdicts = [_judge(Requirement.parse(text), held, elsewhere) for text in spec.require]
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
        "verifier": _describe_verifier(alpha),
        "radii": "searched, not proved" if spec.searched else "proved",
        "scope": spec.scope,
        "model": spec.model,
        "data": spec.data,
        "noise": spec.noise.text,
        "requirements": verdicts,
        "verdict": _sum_up([one["verdict"] for one in verdicts], bool(mark)),
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
        "digests": {
            "model": spec.model_hash,
            **_label_parts(spec.model_digests),
            "inputs": spec.inputs,
        },
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
        "metrics": [_metrics(one, held[p], rows, spec.classes) for p, one in scores.items()],
        "signatures": _signatures(run),
    }


def _describe_verifier(alpha: float) -> dict[str, str]:
    """The class of verifier, by the four distinctions that ISO/IEC 24029-2:2023 makes in 6.2.1."""
    return {
        "method": "randomized smoothing, a statistical method",
        "classified_by": "ISO/IEC 24029-2:2023, 6.2.1",
        "completeness": "incomplete: an input without a certificate may be robust all the same",
        "determinism": "non-deterministic: wrong with probability at most alpha for an input"
        if alpha
        else "deterministic: every case was counted",
        "access": "closed-box: only the labels that the model gives are used",
        "arithmetic": "computer arithmetic, with every radius rounded down",
    }


def _label_parts(digests: dict[str, str]) -> dict[str, str]:
    return {f"part {name}": value for name, value in digests.items()}


def _proved(one: Scores, rows: Sequence[Row]) -> Scores:
    """The same scores by proved radii alone: what is searched holds at no confidence."""
    return replace(one, radius=np.array([row.proved(one.norm) for row in rows]))


def _judge(
    wanted: Requirement, scores: dict[str, Scores], elsewhere: Collection[str]
) -> dict[str, Any]:
    """Whether what was required is shown, at the confidence of the bound.

    A search writes one run for each norm: what is required in the norm of another (`elsewhere`) is
    judged there. What is required in a norm that the votes do not serve, or of inputs without
    labels, is never shown.
    """
    one = scores.get(wanted.norm)
    found = wanted.reached(one) if one is not None and one.labelled else None
    shown = "fail" if found is None or found < wanted.least else "pass"
    shown = ELSEWHERE if wanted.norm in elsewhere else shown
    return {
        "requirement": wanted.text,
        "reached": found,
        "confidence": CONFIDENCE,
        "verdict": shown,
    }


def _sum_up(verdicts: Sequence[str], broken: bool) -> str:
    """One verdict of all; nothing passes here that is judged in another run."""
    if not verdicts:
        return "nothing was required"
    if broken or "fail" in verdicts:
        return "fail"
    return ELSEWHERE if ELSEWHERE in verdicts else "pass"


def _metrics(
    one: Scores, held: Scores, rows: Sequence[Row], names: Sequence[Any] | None
) -> dict[str, Any]:
    """Accuracies of one norm: what holds for these inputs, and the interval for all such inputs.

    Without labels there are none, and the radii are those of all certified inputs.
    """
    steps = one.steps()
    largest = float(steps[-1]) if len(steps) else 0.0
    ends = [0.0] if not np.isfinite(largest) else [0.0, largest / 4, largest / 2]
    radii = [float(f"{r:.2g}") for r in ends]
    labels = sorted({row.label for row in rows if row.label >= 0})
    by_class = {}
    for label in labels:
        own = [row for row in rows if row.label == label]
        # with the number: two classes may have one name, or names that look the same
        known = names is not None and label < len(names)
        name = f"{label} {names[label]}" if names is not None and known else str(label)
        by_class[name] = {"inputs": len(own), "accuracy": sum(r.correct for r in own) / len(own)}
    return {
        "norm": one.norm,
        "average_radius": one.average_radius,
        "median_radius": one.median_radius,
        "accuracy": [_accuracy(one, held, r) for r in dict.fromkeys(radii) if one.labelled],
        "accuracy_by_class": by_class,
    }


def _accuracy(one: Scores, held: Scores, radius: float) -> dict[str, Any]:
    share, count = one.certified_accuracy(radius), len(one.radius)
    right = round(share * count)
    return {
        "radius": radius,
        "certified": share,
        "holds": held.accuracy_bound(radius),
        "interval": [
            lower_bound(right, count, INTERVAL / 2),
            upper_bound(right, count, INTERVAL / 2),
        ],
    }


def _signatures(run: Run) -> dict[str, dict[str, Any]]:
    """Who signed commitment and statement, and when they were dated, as the files say.

    Of files about another run than this nobody is named. Whether the one who is named is somebody
    to believe, `unicr verify --key --timestamp-ca` says.
    """
    found = {}
    for name, about in ((COMMITMENT, _commits), (STATEMENT, _states)):
        if (file := run.folder / name).is_file():
            ours = about(run)
            signer, date = (find_signer(file), find_date(file)) if ours else (None, None)
            found[name] = {"about_this_run": ours, "signer": signer, "dated": date}
    return found


def _commits(run: Run) -> bool:
    """Whether the folder's commitment is that of its run."""
    try:
        found = read_commitment(run.folder)
    except RunError:
        return False
    return found is not None and found[0] == run.spec.commitment


def _states(run: Run) -> bool:
    """Whether the folder's statement is of its run as it is now."""
    try:
        return read_statement(run.folder).get(FILE) == {SEAL: run.seal()}
    except RunError:
        return False


def evidence_page(facts: dict[str, Any]) -> str:
    """The same as one offline page: tables without a script."""
    title = f"Evidence: {facts['verdict']}"
    style = "body{font:15px sans-serif;max-width:60em;margin:2em auto;padding:0 1em;" \
        "overflow-wrap:anywhere}td,th{text-align:left;vertical-align:top;padding:.2em .8em;" \
        "border-top:1px solid #ccc}th{min-width:7em}@media(max-width:640px){table,tbody,tr,th,td" \
        "{display:block}}"  # fmt: skip
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(title)}</title>"
        f"<style>{style}</style><h1>{html.escape(title)}</h1>{_cell(facts)}</html>\n"
    )


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        lines = (f"<tr><th>{html.escape(str(k).replace('_', ' '))}</th><td>{_cell(v)}</td></tr>"
                 for k, v in value.items())  # fmt: skip
        return f"<table>{''.join(lines)}</table>"
    if isinstance(value, list):
        return "<br>".join(map(_cell, value)) or "none"
    return html.escape("none" if value is None else str(value))


def cyclonedx(facts: dict[str, Any]) -> dict[str, Any]:
    """The evidence as a bill of materials: CycloneDX 1.6, one model with its model card.

    Metrics stand where CycloneDX has a place for them (`performanceMetrics`), all other facts as
    properties `unicr:…`. Two of the same run are the same: the serial number is made of the seal.
    """
    seal = facts["seal"]["value"]
    left = {k: v for k, v in facts.items() if k not in ("evidence", "unicr", "metrics", "model")}
    verifier = "; ".join(facts["verifier"].values())
    limits = [facts["property"], verifier, facts["told"]]
    card = {
        "modelParameters": {"task": "classification"},
        "quantitativeAnalysis": {"performanceMetrics": list(_performance(facts))},
        "considerations": {"technicalLimitations": limits},
        "properties": [{"name": f"unicr:{k}", "value": v} for k, v in _flat(left, "")],
    }
    model = {
        "type": "machine-learning-model",
        "bom-ref": f"model-{facts['digests']['model']}",
        "name": facts["model"],
        "modelCard": card,
    }
    tool = {"type": "application", "name": "unicr", "version": facts["unicr"]}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.UUID(hex=seal[:32], version=4)}",
        "version": 1,
        "metadata": {"tools": {"components": [tool]}},
        "components": [model],
    }


def _performance(facts: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Accuracies with their intervals, average and median radii, and what was required."""
    for one in facts["metrics"]:
        norm = f"l{one['norm']}"
        for at in one["accuracy"]:
            ends = dict(zip(("lowerBound", "upperBound"), map(repr, at["interval"]), strict=True))
            where = f"{norm} radius {at['radius']!r}"
            yield {
                "type": f"certified accuracy at {where}",
                "value": repr(at["certified"]),
                "confidenceInterval": ends,
            }
            yield {
                "type": f"certified accuracy at {where} that holds at confidence {CONFIDENCE!r}",
                "value": repr(at["holds"]),
            }
        for kind in ("average", "median"):
            yield {"type": f"{kind} {norm} radius", "value": repr(one[f"{kind}_radius"])}
        for name, share in one["accuracy_by_class"].items():
            yield {
                "type": f"accuracy ({norm} run)",
                "value": repr(share["accuracy"]),
                "slice": f"class {name}",
            }
    for one in facts["requirements"]:
        yield {"type": f"required: {one['requirement']}", "value": one["verdict"]}


def _flat(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """Nested plain values as names with colons and texts."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in inner:
        path = f"{name}:{key}" if name else str(key)
        if isinstance(one, dict | list):
            yield from _flat(one, path)
        else:
            yield path, "none" if one is None else str(one)
