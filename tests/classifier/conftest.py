"""One torch thread for all of these tests."""

import pytest


@pytest.fixture(autouse=True)
def always(one_thread: None) -> None:
    """Here without being asked for."""
