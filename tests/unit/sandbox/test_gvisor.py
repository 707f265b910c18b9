"""gVisor says that it is not there, and why."""

from __future__ import annotations

import pytest

from console.domain.agent import AgentId
from console.domain.errors import Unavailable
from console.sandbox.gvisor import Gvisor


def test_it_is_not_available_and_says_why() -> None:
    found = Gvisor().available()
    assert not found.ok and found.reason and found.remedy
    with pytest.raises(Unavailable):
        Gvisor().reattach(AgentId("a"), 1, 1)
