"""Whose processor time is read when: the capped and the busy each second, the idle seldom, and no group that is gone holds anything up."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.budget import Limits
from console.services.launch import usage_sampler
from console.services.launch.usage_sampler import IDLE_S, TOLD_S, Processor
from tests.fakes.playbook import Playbook

PIDS: Any = {"a-1": 11, "a-2": 12}


class Host:
    """A clock, and files of processor time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.used: dict[str, float | None] = {"f11": 1.0, "f12": 1.0}
        monkeypatch.setattr(usage_sampler, "processor_file", lambda pid: f"f{pid}")
        monkeypatch.setattr(usage_sampler, "processor_seconds_in", lambda file: self.used[file])
        monkeypatch.setattr(usage_sampler, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.book = Playbook().run("a-1").run("a-2")
        self.found = Processor()

    def second(self, pids: Any = PIDS) -> tuple[list[str], dict[str, float]]:
        """Whom it read, and what it says."""
        self.now += 1.0
        due = self.found.due(self.book.state, pids)
        self.found.read(due)
        return sorted(due), {str(i): s for i, s in self.found.news(self.book.state, due).items()}

    def cap(self, **limits: Any) -> None:
        self.book.state.put(replace(self.book.agent("a-1"), **limits))


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(monkeypatch)


def test_the_idle_are_read_seldom_and_the_busy_each_second(host: Host) -> None:
    assert host.second() == (["a-1", "a-2"], {"a-1": 1.0, "a-2": 1.0})
    host.used["f11"] = 1.9
    assert host.second() == (["a-1", "a-2"], {"a-1": 1.9})  # of a-2 it is known only now that it rests
    for n in range(int(IDLE_S) - 1):
        host.used["f11"] = 2.8 + n
        assert host.second() == (["a-1"], {"a-1": 2.8 + n})
    assert host.second()[0] == ["a-1", "a-2"]


def test_what_is_capped_is_read_and_told_each_second_however_little_it_is(host: Host) -> None:
    for limits in ({"limits": Limits(cpu_s=5.0)}, {"tree_limits": Limits(cpu_s=5.0)}):
        host.cap(limits=Limits(), tree_limits=Limits())
        for _ in range(3):
            host.second()
        assert host.second() == ([], {})
        host.cap(**limits)  # set by an operator: from the next second on
        for _ in range(3):
            host.used["f11"] = (host.used["f11"] or 0) + 0.001
            due, told = host.second()
            assert "a-1" in due and told == {"a-1": host.used["f11"]}


def test_a_cap_of_a_session_a_project_or_the_day_reads_everybody(host: Host) -> None:
    for _ in range(3):
        host.second()
    host.book.state.budget.limits[("session", "x")] = Limits(cpu_s=100.0)
    assert host.second()[0] == ["a-1", "a-2"]
    host.book.state.budget.limits.clear()
    host.book.state.budget.defaults["day"] = Limits(cpu_s=100.0)
    assert host.second()[0] == ["a-1", "a-2"]


def test_little_is_told_after_a_while(host: Host) -> None:
    host.second()
    host.used["f12"] = 1.01
    told: dict[str, float] = {}
    seconds = 0
    while not told:
        seconds += 1
        told = host.second()[1]
    assert told == {"a-2": 1.01} and TOLD_S <= seconds <= TOLD_S + IDLE_S


def test_a_group_that_is_gone_or_was_changed_is_looked_for_again(host: Host) -> None:
    host.second()
    host.used["f11"] = None
    assert host.second() == (["a-1", "a-2"], {})
    host.used["f11"] = 3.0
    for _ in range(3):
        due, told = host.second()
        if told:
            break
    assert told == {"a-1": 3.0}
    host.used["f99"] = 0.5  # it was launched anew
    assert host.second({"a-1": 99}) == (["a-1"], {"a-1": 0.5})
    assert list(host.found._clocks) == ["a-1"]
