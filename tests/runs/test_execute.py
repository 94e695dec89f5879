"""Executors: where work is done and how it is cut changes nothing; failures stay where they are."""

import os
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from unicr import SmoothedClassifier, noise
from unicr.classifier import load_classifier
from unicr.data import Dataset, load_dataset
from unicr.errors import CertifyError, ModelError, RunError
from unicr.runs import Executor, Job, Work, certify_run, execute
from unicr.runs._certify import Failed, Scheduler, VoteWork, certify_inputs
from unicr.runs._commit import read_input
from unicr.runs._execute import Here, executor
from unicr.smoothing import (
    Certificate,
    Counts,
    Curves,
    Plan,
    Request,
    Steps,
    read_norms,
    record,
)
from unicr.smoothing._question import CleanVote
from unicr.smoothing.rules import Pilot, Target, ThreeTests

LAW = noise.gaussian(sigma=0.5)
NORMS = read_norms([2, "inf"])
MODEL = """
def classify(batch):
    level = float(batch[:, 1].mean())
    if len(batch) > 2 and level > 500:
        raise RuntimeError("the planted failure")
    return (batch[:, 0] > 0).long()
"""


def inputs(*bad: int, count: int = 8) -> Dataset:
    """Random inputs; the models above stumble over the bad ones."""
    x = np.random.default_rng(0).normal(size=(count, 6)).astype(np.float32)
    x[list(bad), 1] = 1000
    return load_dataset((x, (x[:, 0] > 0).astype(np.int64)))


def job(folder: Path, name: str = "classify", **changes: Any) -> Job:
    file = folder / "model.py"
    file.write_text(MODEL)
    arguments: dict[str, Any] = {"spec": f"{file}:{name}", "num_classes": 2}
    settings: dict[str, Any] = {
        "seed": 0,
        "lattice": None,
        "classifier": load_classifier(**arguments),
        "data": inputs(),
        "noise": LAW,
        "norms": NORMS,
        "plan": Plan(n=400),
        "model_arguments": arguments,
        **changes,
    }
    return Job(**settings)


def results(job: Job, folder: Path) -> dict[int, Certificate | str | None]:
    with certify_run(job, folder) as store:
        return {row.idx: row.certificate or row.reason for row in store.rows()}


def counted_by_hand(plan: Plan, data: Dataset) -> dict[int, Certificate]:
    """The certificates of the plain conversation, without executors, chunks or stores."""
    model = load_classifier(first_coordinate, num_classes=2)
    smoothed = SmoothedClassifier(model, LAW, seed=0, lattice=None)
    curves = Curves(NORMS, 6)
    return {i: smoothed.certify_with(data[i][0], plan, curves, i) for i in range(len(data))}


def first_coordinate(batch: torch.Tensor) -> torch.Tensor:
    return (batch[:, 0] > 0).long()


def steps(plan: Plan) -> Steps[Certificate]:
    return record(plan.procedure.steps(plan, LAW, Curves(NORMS, 6)))


PLANS = [
    Plan(n=400),
    Plan(n=400, rule=ThreeTests()),
    Plan(n=2000, rule=Target(0.3)),
    Plan(n=2000, rule=Pilot(0.05)),
]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.rule.text)
@pytest.mark.parametrize("chunk", [7, 130, 10_000])
def test_chunks_change_nothing(plan: Plan, chunk: int) -> None:
    data = inputs()
    model = load_classifier(first_coordinate, num_classes=2)
    work = VoteWork(model, None, LAW.text, {"seed": 0, "batch": 64, "lattice": None})
    with closing(Here(work)) as where:
        scheduler = Scheduler(where, lambda _: steps(plan), chunk=chunk)
        found = {
            one.index: c for one, c, _ in scheduler.certify(read_input(data, i) for i in range(8))
        }
    right = counted_by_hand(plan, data)
    assert found == {i: replace(one, seed=None) for i, one in right.items()}


def test_processes_change_nothing_and_failures_stay_where_they_are(tmp_path: Path) -> None:
    data = inputs(3, 5)
    there = results(job(tmp_path, data=data, workers=2, chunk=37), tmp_path / "there")
    assert there == results(job(tmp_path, data=data), tmp_path / "here")
    right = counted_by_hand(Plan(n=400), inputs())
    for index, result in there.items():
        if index in (3, 5):
            assert "the planted failure" in str(result)
        else:
            assert result == right[index]


def test_early_stopping_over_a_process_is_the_same(tmp_path: Path) -> None:
    plan = Plan(n=5000, rule=Target(0.3))
    there = results(job(tmp_path, plan=plan, workers=1, chunk=150), tmp_path / "there")
    right = counted_by_hand(plan, inputs())
    assert there == right
    assert len({c.n for c in right.values()}) > 1


def test_what_is_not_wanted_any_more_is_not_done() -> None:
    """An input that fails at its first chunk does not cost its other ninety-nine."""
    asked: list[float] = []

    def stumbling(batch: torch.Tensor) -> torch.Tensor:
        asked.append(float(batch[0, 1]))
        if batch[0, 1] > 500:
            raise RuntimeError("no")
        return first_coordinate(batch)

    work = VoteWork(
        load_classifier(stumbling, num_classes=2),
        None,
        LAW.text,
        {"seed": 0, "batch": 10, "lattice": None},
    )
    data = inputs(0, count=2)
    with closing(Here(work)) as where:
        scheduler = Scheduler(where, lambda _: steps(Plan(n0=1000, n=400)), chunk=10)
        found = {
            one.index: c for one, c, _ in scheduler.certify(read_input(data, i) for i in range(2))
        }
    assert isinstance(found[0], Failed)
    assert found[1] == replace(counted_by_hand(Plan(n0=1000, n=400), data)[1], seed=None)
    assert sum(level > 500 for level in asked) == 2  # whether it looks at its batch, and the chunk


def test_a_procedure_may_ask_for_nothing_for_the_input_itself_or_raise() -> None:
    data = inputs(count=3)

    def procedure(index: int) -> Any:
        nothing: Counts = yield Request(0, 0)
        clean: Counts = yield Request(1, 0, counted=CleanVote())
        if index == 2:
            raise CertifyError("the procedure gives up")
        other: Counts = yield Request(50, 7, noise.laplace(sigma=0.3))
        return nothing.sum(), clean.tolist(), other.tolist()

    classifier = load_classifier(first_coordinate, num_classes=2)
    work = VoteWork(classifier, None, LAW.text, {"seed": 5, "batch": 10, "lattice": None})
    with closing(Here(work)) as where:
        scheduler = Scheduler(where, lambda one: procedure(one.index), chunk=20)
        found = {
            one.index: c for one, c, _ in scheduler.certify(read_input(data, i) for i in range(3))
        }
    laplace = SmoothedClassifier(classifier, noise.laplace(sigma=0.3), seed=5, lattice=None)
    for index in (0, 1):
        x = data[index][0]
        votes = laplace.votes(x, 50, start=7, input_index=index).tolist()
        clean = [int(x[0] <= 0), int(x[0] > 0)]
        assert found[index] == (0, clean, votes)
    assert found[2] == Failed("CertifyError: the procedure gives up")


def test_inputs_that_cannot_be_read_are_failures(tmp_path: Path) -> None:
    class Torn(Dataset):
        def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:  # type: ignore[override]
            if index == 1:
                raise OSError("the disk is gone")
            return super().__getitem__(index)

    whole = inputs(count=3)
    torn = Torn.__new__(Torn)
    torn.__dict__.update(whole.__dict__)
    found = {
        one.index: result
        for one, result, _ in certify_inputs(
            job(tmp_path, data=torn),
            range(3),
            lambda _: steps(Plan(n=400)),
        )
    }
    assert found[1] == Failed("environment: unreadable: the disk is gone")
    right = counted_by_hand(Plan(n=400), whole)
    assert [found[i] for i in (0, 2)] == [replace(right[i], seed=None) for i in (0, 2)]


# any other work ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Squares:
    """Squares numbers; says in which process, and dies or raises on demand."""

    fault: str | None = None

    def open(self) -> Callable[[int], tuple[int, int]]:
        if self.fault == "open":
            raise OSError("no such weights")
        return self.square

    def square(self, task: int) -> tuple[int, int]:
        if task == 5 and self.fault == "raise":
            raise ArithmeticError("five is too much")
        time.sleep(0.001)
        return task**2, os.getpid()


def test_execute_gives_every_task_once() -> None:
    here = list(execute(Squares(), range(20)))
    assert here == [(i, (i * i, os.getpid())) for i in range(20)]
    there = sorted(execute(Squares(), range(20), workers=1))
    assert [(task, square) for task, (square, _) in there] == [(i, i * i) for i in range(20)]
    assert os.getpid() not in {pid for _, (_, pid) in there}
    assert list(execute(Squares(), [])) == []


def test_what_a_task_raises_is_raised() -> None:
    with pytest.raises(ArithmeticError, match="five"):
        list(execute(Squares("raise"), range(9)))
    with pytest.raises(ArithmeticError, match="five"):
        list(execute(Squares("raise"), range(9), workers=1))


def test_workers_that_cannot_start_say_why() -> None:
    with pytest.raises(RunError, match="could not start: OSError: no such weights"):
        list(execute(Squares("open"), range(3), workers=1))


def test_work_that_cannot_be_sent_says_so() -> None:
    work = VoteWork(
        load_classifier(lambda x: x), None, LAW.text, {"seed": 0, "batch": 1, "lattice": None}
    )
    with pytest.raises(RunError, match=r"cannot be sent .*file\.py:name"):
        executor(work, workers=1)


def test_a_worker_refuses_another_model(tmp_path: Path) -> None:
    """A file that differs between machines must not mix two models in one run."""
    file = tmp_path / "model.py"
    file.write_text(MODEL)
    arguments: dict[str, Any] = {"spec": f"{file}:classify"}
    digest = load_classifier(**arguments).digest
    work = VoteWork(
        None, arguments, LAW.text, {"seed": 0, "batch": 1, "lattice": None}, digest=digest
    )
    work.open()
    file.write_text(MODEL.replace("> 0", "> 0.1"))
    with pytest.raises(RunError, match="another model on this machine"):
        work.open()


@pytest.mark.parametrize(
    ("settings", "words"), [({"workers": -1}, "workers=-1"), ({"gpus": 1}, "gpus=1.*Ray")], ids=str
)
def test_bad_settings(settings: dict[str, Any], words: str) -> None:
    work: Work = Squares()
    with pytest.raises(RunError, match=words):
        executor(work, **settings)


def test_an_executor_is_closed_by_its_block() -> None:
    with closing(executor(Squares())) as where:
        assert isinstance(where, Executor)
        where.submit(0, 3)
        where.submit(1, 4)
        assert where.withdraw({1, 7}) == {1}
        assert where.finished() == [(0, (9, os.getpid()))]


def job_on(device: str, **settings: Any) -> Job:
    arguments: dict[str, Any] = {"spec": "builtin:mnist-mlp-0.5", "device": device}
    return Job(
        load_classifier(**arguments),
        load_dataset("builtin:mnist"),
        LAW,
        norms=read_norms(2),
        plan=Plan(n=2000),
        nonce="7" * 64,
        limit=4,
        batch=50,
        chunk=700,
        model_arguments=arguments,
        **settings,
    )


def test_several_devices_give_the_rows_of_one(tmp_path: Path) -> None:
    """One process on each; `cpu,cpu` stands in for two GPUs."""
    rows = []
    for device in ("cpu", "cpu,cpu"):
        with certify_run(job_on(device), tmp_path / device) as run:
            assert run.execution.device == device
            rows.append([(row.idx, row.certificate) for row in run.rows()])
    assert dict(rows[0]) == dict(rows[1])
    assert len(rows[0]) == 4


def test_devices_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ModelError, match="give one device, or several"):
        job_on("cpu,")
    with pytest.raises(CertifyError, match="leave --workers"):
        job_on("cpu,cpu", workers=2)
