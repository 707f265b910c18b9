"""What tests of one guard share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.fakes.guard_world import GuardWorld


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardWorld]:
    with contextlib.closing(GuardWorld(tmp_path_factory.mktemp("w"), heartbeat_s=600.0)) as made:
        yield made.start()


@pytest.fixture
def shared(lasting: GuardWorld) -> Iterator[GuardWorld]:
    """One guard for all tests of a module that neither end it nor count its generations or kills, nor read its whole journal."""
    yield lasting
    lasting.clear()
