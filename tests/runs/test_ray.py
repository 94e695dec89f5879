"""A run over a Ray cluster equals the local one, whatever dies on the way."""

import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unicr import noise
from unicr.classifier import load_classifier
from unicr.data import Dataset, load_dataset
from unicr.errors import ModelError, RunError
from unicr.runs import Job, Row, Run, certify_run, execute, replay, verify
from unicr.runs._ray import LARGE, OnRay, _room
from unicr.smoothing import Plan, read_norms
from unicr.smoothing.rules import Target

ray = pytest.importorskip("ray")

MODEL = """
import os, time
from pathlib import Path

import ray

HERE = Path(FOLDER)

def leave(mark):
    if os.getpid() != DRIVER:
        (HERE / f"{mark}-{ray.get_runtime_context().get_node_id()}").touch()

leave("loaded")

def slow(batch):
    leave("worked")
    time.sleep(0.005)
    return (batch[:, 0] > 0).long()

def lying(batch):
    return (batch[:, 0] > (0 if os.getpid() == DRIVER else -9)).long()

def moody(batch):
    level = float(batch[:, 1].mean())
    if 500 < level < 1500 and len(batch) > 2:
        raise RuntimeError("the planted failure")
    if level > 1500 and os.getpid() != DRIVER:
        os._exit(1)
    return (batch[:, 0] > 0).long()
"""


def inputs(count: int, size: int = 6, planted: dict[int, float] | None = None) -> Dataset:
    x = np.random.default_rng(0).normal(size=(count, size)).astype(np.float32)
    for index, level in (planted or {}).items():
        x[index, 1] = level
    return load_dataset((x, (x[:, 0] > 0).astype(np.int64)))


def job(folder: Path, name: str, data: Dataset, **changes: Any) -> Job:
    file = folder / "model.py"
    file.write_text(f"FOLDER, DRIVER = {str(folder)!r}, {os.getpid()}\n{MODEL}")
    arguments: dict[str, Any] = {"spec": f"{file}:{name}", "num_classes": 2}
    settings: dict[str, Any] = {
        "seed": 0,
        "classifier": load_classifier(**arguments),
        "data": data,
        "noise": noise.gaussian(sigma=0.5),
        "norms": read_norms([2]),
        "plan": Plan(n=1000),
        "batch": 100,
        "model_arguments": arguments,
        **changes,
    }
    return Job(**settings)


def results(
    job: Job, folder: Path, on_result: Callable[[Row], None] | None = None
) -> dict[int, object]:
    with certify_run(job, folder, on_result=on_result) as store:
        return {row.idx: (row.label, row.certificate, row.reason) for row in store.rows()}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Three nodes of one CPU on this machine. Ray's own warnings are not ours to fail on."""
    from ray.cluster_utils import Cluster

    node: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 << 20}
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        three: Any = Cluster(
            initialize_head=True, head_node_args={**node, "include_dashboard": False}
        )
        try:
            for _ in range(2):
                three.add_node(**node)
            ray.init(address=three.address, log_to_driver=False, configure_logging=False)
            yield three
        finally:
            ray.shutdown()
            three.shutdown()


def waited_for(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


@pytest.mark.important
@pytest.mark.slow
def test_the_cluster_changes_nothing(cluster: Any, tmp_path: Path) -> None:
    """Fixed and adaptive plans, a failing input, inputs that travel and inputs that are stored."""
    large = LARGE // 4 + 1
    for number, (data, plan) in enumerate(
        [
            (inputs(10, planted={4: 1000}), Plan(n=1000)),
            (inputs(10), Plan(n=3000, rule=Target(0.3))),
            (inputs(4, large), Plan(n=300)),
        ]
    ):
        one = job(tmp_path, "moody", data, plan=plan)
        there = job(tmp_path, "moody", data, plan=plan, ray="auto", chunk=170)
        here = results(one, tmp_path / f"here{number}")
        assert results(there, tmp_path / f"there{number}") == here
        if number == 0:
            assert "the planted failure" in str(here[4])


@pytest.mark.important
@pytest.mark.slow
def test_replay_checks_what_workers_said(cluster: Any, tmp_path: Path) -> None:
    """The driver believes votes. Whoever samples again without the cluster sees that they are not
    the model's; without the model nobody can.
    """
    asked = job(tmp_path, "lying", inputs(4), ray="auto", workers=2)
    with certify_run(asked, tmp_path / "run") as run:
        assert list(verify(run)) == []
        again = dict(replay(run, asked.classifier, asked.data, 4))
    assert all("stored" in str(text) for text in again.values())
    honest = job(tmp_path, "slow", inputs(4), ray="auto", workers=2)
    with certify_run(honest, tmp_path / "honest") as run:
        again = dict(replay(run, honest.classifier, honest.data, 4))
    assert again == dict.fromkeys(range(4))


@pytest.mark.slow
def test_a_task_that_kills_its_workers_fails_alone(cluster: Any, tmp_path: Path) -> None:
    data = inputs(12, planted={5: 2000})
    here = results(job(tmp_path, "moody", data), tmp_path / "here")
    there = results(job(tmp_path, "moody", data, ray="auto", chunk=100), tmp_path / "there")
    assert there.pop(5) == (data[5][1], None, "environment: 3 workers died of this task")
    here.pop(5)
    assert there == here


@dataclass(frozen=True)
class Fragile:
    """Work that cannot be opened, that raises, or whose worker dies as it starts."""

    fault: str

    def open(self) -> Callable[[int], int]:
        if self.fault == "open":
            raise ModelError("no weights on this machine")
        if self.fault == "exit":
            os._exit(1)
        return self.double

    def double(self, task: int) -> int:
        if self.fault == "raise" and task == 3:
            raise ArithmeticError("three is too much")
        if self.fault == "unsendable" and task == 3:
            error = RuntimeError("told in words")
            error.x = threading.Lock()  # type: ignore[attr-defined]
            raise error
        return 2 * task


class Unsendable(Fragile):
    """Work that cannot be pickled."""

    def __init__(self) -> None:
        super().__init__("none")
        object.__setattr__(self, "lock", threading.Lock())


@pytest.mark.slow
def test_errors_of_workers_are_told(cluster: Any) -> None:
    with pytest.raises(RunError, match=r"worker on [\d.]+ could not start: .*no weights on this"):
        list(execute(Fragile("open"), range(5), ray="auto"))
    with pytest.raises(RunError, match="3 in a row died while they loaded the model"):
        list(execute(Fragile("exit"), range(5), ray="auto", workers=1))
    with pytest.raises(ArithmeticError, match=r"^three is too much$"):
        list(execute(Fragile("raise"), range(5), ray="auto", workers=1))
    with pytest.raises(RunError, match="told in words"):
        list(execute(Fragile("unsendable"), range(5), ray="auto", workers=1))
    with pytest.raises(RunError, match="cannot be sent to the cluster"):
        list(execute(Unsendable(), range(5), ray="auto", workers=1))
    assert sorted(execute(Fragile("none"), range(500), ray="auto", workers=1)) == [
        (i, 2 * i) for i in range(500)
    ]
    with pytest.raises(RunError, match=r"no room for a worker with 1 CPU and 0\.5 GPU"):
        list(execute(Fragile("none"), range(5), ray="auto", gpus=0.5))


@pytest.mark.important
@pytest.mark.slow
def test_a_killed_node_costs_only_its_chunks(cluster: Any, tmp_path: Path) -> None:
    """Every node has loaded the model; then one that has worked is killed, mid-run."""
    data = inputs(40)
    killed: list[Any] = []
    others = [node for node in cluster.list_all_nodes() if node is not cluster.head_node]

    def marked(mark: str, node: Any) -> bool:
        return (tmp_path / f"{mark}-{node.node_id}").exists()

    def kill_one(_: Row) -> None:
        waited_for(lambda: all(marked("loaded", node) for node in cluster.list_all_nodes()))
        at_work = [node for node in others if marked("worked", node)]
        if at_work and not killed:
            with Run(tmp_path / "there") as store:
                assert len(store.done()) < 40
            cluster.remove_node(at_work[0], allow_graceful=False)
            killed.append(at_work[0])

    there = job(tmp_path, "slow", data, ray="auto", chunk=250)
    found = results(there, tmp_path / "there", kill_one)
    assert len(killed) == 1
    assert len(cluster.list_all_nodes()) == 2
    assert found == results(job(tmp_path, "slow", data), tmp_path / "here")


@pytest.mark.slow
def test_from_the_command_line(tmp_path: Path) -> None:
    """`--ray local` starts a cluster, certifies as without it, and leaves no process behind."""
    (tmp_path / "model.py").write_text("def classify(x):\n    return (x[:, 0] > 0).long()\n")
    x = np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=x, y=(x[:, 0] > 0).astype(np.int64))
    command = [
        *(sys.executable, "-m", "unicr", "certify", "--model", "model.py:classify"),
        *("--data", "data.npz", "--noise", "gaussian(sigma=0.5)", "--norm", "2", "--n", "1000"),
    ]

    def run(out: str, *more: str) -> dict[int, object]:
        done = subprocess.run(
            [*command, "--out", out, *more], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert "Warning" not in done.stderr
        with Run(tmp_path / out) as store:
            return {row.idx: row.certificate for row in store.rows()}

    assert run("there", "--ray", "local", "--chunk", "300") == run("here")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1:1", "refused"),
        ("nonsense", "nonsense"),
    ],
)
def test_addresses_without_a_cluster_are_one_line(address: str, words: str) -> None:
    code = (
        "import sys\n"
        "from unicr.errors import RunError\n"
        "from unicr.runs._ray import OnRay\n"
        "try:\n"
        "    OnRay(None, address=sys.argv[1])\n"
        "except RunError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, address], capture_output=True, text=True, check=True
    )
    (line,) = done.stdout.splitlines()
    assert line.startswith(f"there is no Ray cluster at '{address}': ")
    assert words in line
    assert line.endswith("--ray local starts one on this machine")


@pytest.mark.parametrize("gpus", [-1, 1.5, float("nan"), float("inf")])
def test_gpus_that_cannot_be_reserved(gpus: float) -> None:
    with pytest.raises(RunError, match=r"gpus=.*0\.25"):
        OnRay(Fragile("none"), address="local", gpus=gpus)


@pytest.mark.parametrize(
    ("resources", "gpus", "room"),
    [
        ({"CPU": 16.0}, 0, 16),
        ({"CPU": 16.0, "GPU": 2.0}, 1, 2),
        ({"CPU": 16.0, "GPU": 3.0}, 0.3, 10),
        ({"CPU": 16.0, "GPU": 1.0}, 0.1, 10),
        ({"CPU": 4.0, "GPU": 8.0}, 1, 4),
        ({"CPU": 64.0, "GPU": 7.0}, 2, 3),
    ],
)
def test_room_for_workers(resources: dict[str, float], gpus: float, room: int) -> None:
    assert _room(resources, gpus) == room


def test_no_room_for_workers() -> None:
    with pytest.raises(RunError, match="1 CPU and 1 GPU"):
        _room({"CPU": 8.0}, 1)
    with pytest.raises(RunError, match="1 CPU"):
        _room({}, 0)
