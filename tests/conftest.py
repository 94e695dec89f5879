"""Settings shared by all tests: hypothesis repeats the same examples in every run, and what a run
would draw as its nonce follows from the test's name, so that a test passes always or never."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.fixtures import SubRequest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")


draws = random.Random()
secrets.token_hex = lambda size=None: draws.randbytes(size or 32).hex()  # type: ignore[assignment]


def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object], request: SubRequest) -> None:
    """What a fixture draws depends on its name and place, not on what ran before it."""
    draws.seed(f"{request.node.nodeid} {fixturedef.argname}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """So with the test itself."""
    draws.seed(item.nodeid)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """One torch thread: tests have small models, and threads that wait for each other cost more."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


LONG = Path(__file__).parent / "long.txt"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of tests/long.txt take too long for `make test`; `.ci/run` runs them."""
    long = set(LONG.read_text().splitlines())
    for item in items:
        if item.nodeid in long:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.important)
