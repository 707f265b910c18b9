"""A request is carried out the same way by the guard and by a process without one."""

from __future__ import annotations

import pytest

from console.killswitch.kill.targets import Order


@pytest.mark.parametrize(("scope", "is_all"), [("all", True), ("a,b", False), ("", False), ("ALL", False)])
def test_only_all_is_everything(scope: str, is_all: bool) -> None:
    assert Order("k", scope, "why", "who").is_all is is_all
