"""An environment alone makes nobody an agent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from console.killswitch.kernel import processes
from console.killswitch.kernel.processes import Marked
from console.killswitch.kill import second_look

SHELL = Marked(4321, 77, "a-1")
NONE = frozenset[int]()


def aim(pid: int = 1, ticks: int = 1, namespace: int = 0, before: tuple[tuple[int, int], ...] = ()) -> Any:
    entry = SimpleNamespace(pid=pid, start_ticks=ticks, pid_namespace=namespace)
    return SimpleNamespace(held=SimpleNamespace(entry=entry, before=[{"pid": p, "start": s} for p, s in before]))


@pytest.fixture(autouse=True)
def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "uids", lambda pid: {0})
    monkeypatch.setattr(processes, "pid_namespace", lambda pid: 500)


def test_an_operators_shell_with_a_copied_environment_has_none() -> None:
    assert not second_look.has_lineage(SHELL, [aim(), SimpleNamespace(held=None)], NONE)  # type: ignore[list-item]


def test_one_that_was_seen_in_a_leaf_has() -> None:
    assert second_look.has_lineage(SHELL, [aim(before=((4321, 77),))], NONE)
    assert not second_look.has_lineage(SHELL, [aim(before=((4321, 78),))], NONE)  # the pid was used again
    assert second_look.has_lineage(SHELL, [aim(4321, 77)], NONE)


def test_one_in_an_agents_pid_namespace_has() -> None:
    assert second_look.has_lineage(SHELL, [aim(namespace=500)], NONE)


@pytest.mark.parametrize(
    ("uids", "launched", "has"),
    [
        ({65534}, {65534}, True),
        ({1000}, {65534}, False),  # somebody of this host, with a copied environment
        ({65534, 1000}, {65534}, False),  # a set-uid program of somebody's
        (set(), {65534}, False),
    ],
)
def test_only_an_account_that_agents_were_launched_under_has(
    monkeypatch: pytest.MonkeyPatch, uids: set[int], launched: set[int], has: bool
) -> None:
    monkeypatch.setattr(processes, "uids", lambda pid: uids)
    assert second_look.has_lineage(SHELL, [aim()], frozenset(launched)) is has
