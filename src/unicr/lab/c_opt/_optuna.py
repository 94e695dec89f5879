"""C-OPT by Optuna: for families with several parameters, where a grid would be too large.

Each trial is one shape of the family at every scale, evaluated as in the grid search; the study is
an SQLite file in the search's folder, so that it resumes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unicr.errors import UnicrError
from unicr.extras import require
from unicr.lab.c_opt._points import Point, Scales
from unicr.lab.c_opt._scores import ShapeScore, Trained, score_shape, score_shapes
from unicr.lab.c_opt._search import COpt

STUDY = "study.sqlite"


def optuna_search(
    copt: COpt,
    scales: Scales,
    ranges: Mapping[str, tuple[float, float]],
    *,
    trials: int = 30,
    resume: bool = False,
) -> list[ShapeScore]:
    """Maximise the robustness score in the first norm over the family's parameters.

    Returns a line for each shape that was tried; `trials` counts those of earlier runs.
    """
    if trials < 1:
        raise UnicrError(f"trials={trials} must be at least 1")
    for end in (0, 1):
        shape = tuple((name, values[end]) for name, values in ranges.items())
        for point in scales.points(shape):
            _ = point.noise
    optuna = require("optuna")
    searched = {"family": scales.name, "sizes": scales.sizes, "given": scales.given}
    ranges_given = {name: list(ends) for name, ends in ranges.items()}
    with copt.begin({**searched, "ranges": ranges_given}, resume=resume):
        study = _open_study(optuna, copt)
        norm = copt.search.norms[0].text
        results: dict[Point, Trained] = {}

        def objective(trial: Any) -> float:
            shape = tuple(
                (k, _round_shape(trial.suggest_float(k, *ends))) for k, ends in ranges.items()
            )
            trained = copt.evaluate(scales.points(shape))
            results.update(trained)
            value = score_shape(trained.values(), norm)
            if value is None:
                raise optuna.TrialPruned("a training diverged")
            return value

        earlier = [trial for trial in study.trials if trial.state.is_finished()]
        for trial in earlier:
            shape = tuple((name, _round_shape(trial.params[name])) for name in ranges)
            results.update(copt.evaluate(scales.points(shape)))
        if len(earlier) < trials:
            study.optimize(objective, n_trials=trials - len(earlier))
    lines = score_shapes(results, [n.text for n in copt.search.norms])
    return sorted(lines, key=lambda line: line.shape)


def _open_study(optuna: Any, copt: COpt) -> Any:
    """The study in the folder; a trial that was cut off is put first in the queue again."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = f"sqlite:///{(copt.folder / STUDY).absolute()}"
    study = optuna.create_study(
        storage=storage, study_name="c-opt", direction="maximize", load_if_exists=True
    )
    study.sampler = optuna.samplers.TPESampler(seed=(copt.search.seed or 0) + len(study.trials))
    for trial in study.trials:
        if trial.state == optuna.trial.TrialState.RUNNING:
            study.enqueue_trial(trial.params)
            study._storage.set_trial_state_values(
                trial._trial_id, state=optuna.trial.TrialState.FAIL
            )
    return study


def _round_shape(value: float) -> float:
    """Four digits: enough for a shape, and short enough for the name of a folder."""
    return float(f"{value:.4g}")
