"""The scores of runs and of published logs: radii, correctness and abstentions, norm by norm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from unicr.errors import RunError, printable
from unicr.metrics import Scores
from unicr.norms import Norm, l2, parse_norm
from unicr.runs._run import Run, scores_of
from unicr.runs._spec import Spec
from unicr.runs._verify import refuse_broken_seal
from unicr.runs.logs import LogRow, find_log_norm, read_log
from unicr.smoothing import THIS_INPUT


def score_log(rows: Sequence[LogRow], norm: str, name: str) -> Scores:
    """The scores of a published log, whose α and p_A nobody wrote down."""
    return Scores(
        name=name,
        norm=norm,
        radius=np.array([row.radius for row in rows], dtype=np.float64),
        counted=np.array([row.correct for row in rows], dtype=np.float64),
        abstained=np.array([row.predict == -1 for row in rows], dtype=np.float64),
    )


def load_scores(
    paths: Sequence[Path],
    norm: str | None,
    on_problem: Callable[[RunError], None] | None = None,
    *,
    force: bool = False,
    on_run: Callable[[str, Spec, int], None] | None = None,
) -> dict[str, list[Scores]]:
    """Runs and logs grouped by norm. A log has the norm of its column `norm`; one without this
    column counts for the norm asked for, l2 by default.

    With `on_problem`, what cannot be read is told and left out, as long as something is left. A run
    whose seal is broken cannot be read; with `force` it is, and its name says so. `on_run` hears
    the name and the spec of every run, and how many inputs have a result.
    """
    groups: dict[str, list[Scores]] = {}
    problems: list[RunError] = []
    for path in paths:
        try:
            lp = None if norm is None else parse_norm(norm)
            for one in _load_one(path, lp, force, on_run):
                groups.setdefault(one.norm, []).append(one)
        except RunError as error:
            problems.append(error)
    if problems and (on_problem is None or not groups):
        raise problems[0]
    for problem in problems:
        if on_problem is not None:
            on_problem(problem)
    return groups


def _load_one(
    path: Path,
    norm: Norm | None,
    force: bool,
    on_run: Callable[[str, Spec, int], None] | None,
) -> Iterator[Scores]:
    """The scores of one run in each of its norms, or of one log."""
    if path.suffix == ".tsv" or not path.is_dir() or (path / "prob_lb.npy").is_file():
        log = read_log(path, norm or l2)
        lp = find_log_norm(log, norm)
        yield score_log(log, lp.text, printable(path.name.removesuffix(".tsv")))
        return
    with Run(path) as run:
        spec, rows = run.spec, list(run.rows())
        mark = refuse_broken_seal(run, force=force)
    if not rows:
        raise RunError(f"{path} has no results yet")
    if on_run is not None:
        on_run(path.name, spec, len(rows))
    for text in spec.norm_texts:
        if norm is None or norm.text == text:
            name = f"{printable(path.name)} ({_smoothed_with(spec)})" + (f" {mark}" if mark else "")
            yield scores_of(rows, text, name, spec.plan.alpha)


def _smoothed_with(spec: Spec) -> str:
    """The noise of a run, or that every input has its own; and if its radii are not proved."""
    own = f"{THIS_INPUT}, from " if spec.scope == THIS_INPUT else ""
    return f"{own}{spec.noise.label}{', searched radii' if spec.searched else ''}"
