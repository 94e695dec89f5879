"""The scores of runs and of published logs: radii, correctness and abstentions, norm by norm."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from unicr.metrics import Scores
from unicr.norms import parse_norm
from unicr.runs._logs import LogRow, read_log
from unicr.runs._run import Row, Run
from unicr.runs._spec import Spec
from unicr.smoothing import THIS_INPUT, Certificate


def scores_of(rows: Sequence[Row | LogRow], norm: str, name: str, alpha: float | None) -> Scores:
    """The scores of a run's rows, or of a log's, in one norm."""
    radius = [row.radius if isinstance(row, LogRow) else row.radius(norm) for row in rows]
    abstained = [row.predict == -1 for row in rows]
    correct = [row.correct for row in rows]
    kept = [_kept(row) for row in rows]
    claims = [None if one is None else one.in_norm(norm) for one in kept]
    off = [0.0 if one is None else one.off for one in claims]
    return Scores(
        name=name,
        norm=norm,
        radius=np.array(radius, dtype=np.float64),
        correct=np.array(correct, dtype=np.float64),
        abstained=np.array(abstained, dtype=np.float64),
        alpha=alpha,
        lattice=next((one.lattice for one in kept if one is not None), None),
        off=np.array(off, dtype=np.float64),
    )


def _kept(row: Row | LogRow) -> Certificate | None:
    """The certificate, where its radii are for changes that keep to its lattice."""
    one = None if isinstance(row, LogRow) else row.certificate
    return None if one is None or one.lattice is None or one.moved else one


def load_scores(paths: Sequence[Path], norm: str | None) -> dict[str, list[Scores]]:
    """Runs and logs grouped by norm; a log counts for the norm asked for, l2 by default."""
    wanted = None if norm is None else parse_norm(norm).text
    groups: dict[str, list[Scores]] = {}
    for path in paths:
        if path.suffix == ".tsv" or path.is_file():
            name = path.name.removesuffix(".tsv")
            one = scores_of(read_log(path), wanted or "2", name, None)
            groups.setdefault(one.norm, []).append(one)
            continue
        with Run(path) as run:
            spec, rows = run.spec, list(run.rows())
        for text in spec.norm_texts:
            if wanted in (None, text):
                name = f"{path.name} ({_smoothed_with(spec)})"
                one = scores_of(rows, text, name, spec.plan.alpha)
                groups.setdefault(text, []).append(one)
    return groups


def _smoothed_with(spec: Spec) -> str:
    """The noise of a run, or that every input has its own; and if its radii are not proved."""
    own = f"{THIS_INPUT}, from " if spec.scope == THIS_INPUT else ""
    return f"{own}{spec.noise.text}{', searched radii' if spec.searched else ''}"
