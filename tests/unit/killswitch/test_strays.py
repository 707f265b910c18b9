"""An environment alone makes nobody an agent."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from console.killswitch import processes, strays
from console.killswitch.processes import Marked

SHELL = Marked(4321, 77, "a-1")


def aim(pid: int = 1, ticks: int = 1, namespace: int = 0, before: tuple[tuple[int, int], ...] = ()) -> Any:
    entry = SimpleNamespace(pid=pid, start_ticks=ticks, pid_namespace=namespace)
    return SimpleNamespace(held=SimpleNamespace(entry=entry, before=[{"pid": p, "start": s} for p, s in before]))


@pytest.fixture(autouse=True)
def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "uids", lambda pid: {0})
    monkeypatch.setattr(processes, "pid_namespace", lambda pid: 500)
    monkeypatch.setattr(os, "geteuid", lambda: 0)


def test_an_operators_shell_with_a_copied_environment_has_none() -> None:
    assert not strays.has_lineage(SHELL, [aim(), SimpleNamespace(held=None)])  # type: ignore[list-item]


def test_one_that_was_seen_in_a_leaf_has() -> None:
    assert strays.has_lineage(SHELL, [aim(before=((4321, 77),))])
    assert not strays.has_lineage(SHELL, [aim(before=((4321, 78),))])  # the pid was used again
    assert strays.has_lineage(SHELL, [aim(4321, 77)])


def test_one_in_an_agents_pid_namespace_has() -> None:
    assert strays.has_lineage(SHELL, [aim(namespace=500)])


def test_under_root_another_account_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "uids", lambda pid: {65534})
    assert strays.has_lineage(SHELL, [aim()])
