"""The agent that a process belongs to, and whether Watchfloor started that agent since a moment."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from console.killswitch.kernel import processes
from console.killswitch.kill.scan import Registered, agent_of


def test_the_nearest_agent_above_a_process_counts_and_a_number_that_was_given_again_does_not() -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as child:
        us, it = (Registered(pid, processes.start_ticks(pid) or 0) for pid in (os.getpid(), child.pid))
        assert agent_of(child.pid, [us, it]) == agent_of(child.pid, [it, us]) == it
        assert agent_of(child.pid, [us, Registered(it.pid, it.ticks + 1)]) == us
        assert agent_of(1, [us, it]) is None and agent_of(child.pid, [Registered(0, 0)]) is None


def test_the_cgroup_is_surer_than_the_parent_and_no_other_name_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "cgroup_line", lambda pid, controller="": "/x/agents/a-2-77")
    us, leaf = Registered(os.getpid(), processes.start_ticks(os.getpid()) or 0), Registered(0, 0, "a-2-77")
    assert agent_of(os.getpid(), [us, Registered(0, 0, "a-2-7"), leaf]) == leaf


def test_what_was_adopted_was_never_started_by_watchfloor() -> None:
    assert Registered(5, 10).is_started_after(10) and Registered(0, 0).is_started_after(10)
    assert not Registered(5, 9).is_started_after(10) and not Registered(5, 10, is_adopted=True).is_started_after(10)
