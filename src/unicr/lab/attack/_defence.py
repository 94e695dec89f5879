"""The defence study: every certified input attacked at its radius, and at multiples of it.

At the radius a certificate promises that nothing changes; a significant change there is a
certificate that failed (each may, with its own probability α) or a bug. Beyond the radius a real
attack must begin to win, which shows that it works.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

from unicr.classifier import Classifier
from unicr.data import Dataset
from unicr.errors import RunError
from unicr.lab.attack._base import Attack
from unicr.lab.attack._settings import FACTORS, AttackError, Settings
from unicr.lab.attack._store import AttackStore, Outcome
from unicr.lab.attack._study import Aim, Study, Task, model_to_attack
from unicr.lab.attack._verdict import interval
from unicr.runs import NO_TRUST, Row, Run, Spec, Trusted, execute
from unicr.smoothing import Certificate, Passes
from unicr.smoothing.procedures import Selector

GROUP = 32  # inputs attacked together
MOST_VALUES = 10_000_000  # of the noisy copies in one pass of an attack
NOISE_FLOATS = 1 << 25  # and no more than fill this memory with noise


@dataclass(frozen=True)
class Skipped:
    """Inputs that are not attacked, by reason."""

    abstained: int = 0
    failed: int = 0
    without_radius: int = 0


def attack_run(
    folder: Path,
    classifier: Classifier,
    data: Dataset,
    attacks: Sequence[Attack],
    *,
    settings: Settings | None = None,
    norms: Sequence[str] | None = None,
    factors: Sequence[float] = FACTORS,
    limit: int | None = None,
    again: bool = False,
    batch: int | None = None,
    model_arguments: dict[str, Any] | None = None,
    workers: int = 0,
    ray: str | None = None,
    gpus: float = 0,
    on_task: Callable[[Task], None] | None = None,
    on_plan: Callable[[Sequence[Task]], None] | None = None,
    trusted: Trusted = NO_TRUST,
) -> tuple[list[Outcome], Skipped]:
    """Attack the certified inputs of the run in `folder`; outcomes are stored beside it.

    What is stored with the same settings is not done again; other settings are refused unless
    `again`. `batch` is the most noisy copies in one pass of an attack. Workers load the model with
    `model_arguments`, or get it pickled. Gives the outcomes of what was asked for, and how many
    inputs were left out.
    """
    settings = settings or Settings()
    with Run(folder) as run:
        spec, rows = run.spec, list(run.rows())
    if classifier.digest != spec.model_hash:
        raise RunError("this is not the model that the run was made with (its hash differs)")
    if limit is not None and limit < 1:
        raise AttackError(f"max={limit} must be at least 1")
    texts, classes = spec.some_norms(norms), _num_classes(classifier, rows)
    procedure = trusted.open(spec).plan.procedure
    selector = procedure if isinstance(procedure, Selector) else None
    probe = model_to_attack(classifier, selector, [], [], spec.shape, num_classes=classes)
    for attack in attacks:
        attack.check(probe, spec.shape)
    aims, skipped = aims_of(
        rows, data, spec, texts, searched=settings.searched, limit=limit, trusted=trusted
    )
    goals = [(text, _factor(factor)) for text in texts for factor in dict.fromkeys(factors)]
    study = Study(
        classifier=None if (workers or ray) and model_arguments else classifier,
        arguments=model_arguments,
        settings=settings,
        num_classes=classes,
        run_seed=spec.drawn,
        lattice=spec.lattice,
        between_points=procedure.on_own_grid,
        starts=starts_of(aims),
        batch=batch or max(1, min(1000, MOST_VALUES // spec.dim)),
        passes=Passes(spec.batch, spec.channels_last),
        selector=selector,
    )
    with AttackStore(folder) as kept:
        for attack in attacks:
            kept.begin(attack.name, {**attack.settings(), **asdict(settings)}, again=again)
        tasks = list(tasks_of(attacks, aims, goals, settings.samples, kept.outcomes()))
        if on_plan is not None:
            on_plan(tasks)
        for task, outcomes in execute(study, tasks, workers=workers, ray=ray, gpus=gpus):
            kept.add(outcomes)
            if on_task is not None:
                on_task(task)
        kept.set_seal()
        wanted = {
            (attack.name, *goal, aim.idx) for attack in attacks for goal in goals for aim in aims
        }
        every = {(o.attack, o.norm, o.factor, o.idx): o for o in kept.outcomes()}
    order = {attack.name: i for i, attack in enumerate(attacks)}
    chosen = [outcome for key, outcome in every.items() if key in wanted]
    return sorted(chosen, key=lambda outcome: order[outcome.attack]), skipped


def _factor(factor: float) -> float:
    if not 0 < factor < math.inf:
        raise AttackError(
            f"factor={factor!r} must be a finite number above 0: changes have this multiple of the "
            "radius"
        )
    return float(factor)


def _num_classes(classifier: Classifier, rows: Sequence[Row]) -> int:
    """As many classes as the model says, or as any certificate has seen."""
    sizes = [len(row.certificate.counts) for row in rows if row.certificate is not None]
    return max([classifier.num_classes or 0, 2, *sizes])


def aims_of(
    rows: Sequence[Row],
    data: Dataset,
    spec: Spec,
    norms: Sequence[str],
    *,
    searched: bool = False,
    limit: int | None = None,
    trusted: Trusted = NO_TRUST,
) -> tuple[list[Aim], Skipped]:
    """The certified inputs of a run with a finite radius above 0 in every norm, at most `limit`."""
    noise = cache(lambda text: trusted.noise(spec, text))
    aims: list[Aim] = []
    abstained = failed = without = 0
    for row in rows:
        if limit is not None and len(aims) >= limit:
            break
        c = row.certificate
        if c is None or c.abstained:
            failed += c is None
            abstained += c is not None
            continue
        radii = {norm: _radius(c, norm, searched) for norm in norms}
        if not all(0 < radius < math.inf for radius in radii.values()):
            without += 1
            continue
        if row.idx >= len(data) or data.digest_of(row.idx) != row.input_hash:
            raise RunError(
                f"input {row.idx} is not the input that was certified (its hash differs)"
            )
        aims.append(Aim(row.idx, data[row.idx][0], c.predict, noise(c.noise), radii))
    return aims, Skipped(abstained, failed, without)


def _radius(certificate: Certificate, norm: str, searched: bool) -> float:
    entry = next(entry for entry in certificate.radii if entry.norm == norm)
    return entry.searched if searched else entry.proved


def tasks_of(
    attacks: Sequence[Attack],
    aims: Sequence[Aim],
    goals: Sequence[tuple[str, float]],
    samples: int,
    done: Sequence[Outcome] = (),
) -> Iterator[Task]:
    """The study in groups of inputs, without what is done already."""
    have = {(o.attack, o.norm, o.factor, o.idx) for o in done}
    size = min(GROUP, NOISE_FLOATS // (samples * max(aims[0].x.numel(), 1))) if aims else 1
    for attack in attacks:
        for first in range(0, len(aims), max(size, 1)):
            group = aims[first : first + max(size, 1)]
            missing: dict[tuple[int, ...], list[tuple[str, float]]] = {}
            for goal in goals:
                todo = tuple(
                    i for i, a in enumerate(group) if (attack.name, *goal, a.idx) not in have
                )
                if todo:
                    missing.setdefault(todo, []).append(goal)
            for todo, some in missing.items():
                yield Task(attack, tuple(group[i] for i in todo), tuple(some))


def starts_of(aims: Sequence[Aim]) -> dict[int, torch.Tensor]:
    """The first input of every certified class: where a walk along the boundary can begin."""
    starts: dict[int, torch.Tensor] = {}
    for aim in aims:
        starts.setdefault(aim.certified, aim.x)
    return starts


@dataclass(frozen=True)
class Defence:
    """How one attack fared in one norm at one multiple of the radius.

    `held` inputs kept their class by the count of votes: their share is the defence accuracy,
    `low` … `high` its 95 % Clopper–Pearson interval. kept, undecided and changed are the verdicts
    of the test; the `missed` inputs are those that significantly changed.
    """

    attack: str
    norm: str
    factor: float
    inputs: int
    held: int
    accuracy: float
    low: float
    high: float
    kept: int
    undecided: int
    changed: int
    missed: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def defences(outcomes: Sequence[Outcome]) -> list[Defence]:
    """One summary for each attack, norm and factor, in the order in which they first appear."""
    groups: dict[tuple[str, str, float], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.attack, outcome.norm, outcome.factor), []).append(outcome)
    return [_summary(members) for members in groups.values()]


def _summary(members: Sequence[Outcome]) -> Defence:
    held = sum(outcome.held for outcome in members)
    low, high = interval(held, len(members))
    return Defence(
        attack=members[0].attack,
        norm=members[0].norm,
        factor=members[0].factor,
        inputs=len(members),
        held=held,
        accuracy=held / len(members),
        low=low,
        high=high,
        kept=sum(outcome.verdict == "kept" for outcome in members),
        undecided=sum(outcome.verdict == "undecided" for outcome in members),
        changed=sum(outcome.verdict == "changed" for outcome in members),
        missed=tuple(outcome.idx for outcome in members if outcome.verdict == "changed"),
    )
