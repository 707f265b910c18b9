"""What shows up half a second after the press: an agent's is struck, anything else is listed and never signalled."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.domain.kill import Outcome, StepName, StepStatus
from console.killswitch.kernel import processes
from console.killswitch.kernel.cgroups import Mount, Mounts
from console.killswitch.kernel.engine import Engine, EngineSilent
from console.killswitch.kernel.processes import Marked
from console.killswitch.kill import second_look, session
from console.killswitch.kill.second_look import SecondLook
from console.killswitch.kill.session import Field, KillSession, Order
from console.killswitch.kill.targets import Aim
from console.killswitch.store.registry import Entry, Held
from tests.fakes.engine_stub import EngineStub
from tests.fakes.guard_room import FolderTree, fill
from tests.fakes.guard_world import until

BOX = "ab" * 32


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "SECOND_LOOK_S", 0.0)
    monkeypatch.setattr(session, "LAST_LOOK_S", 0.1)
    monkeypatch.setattr(second_look, "BACK_S", 0.2)


@pytest.fixture
def reaped() -> Iterator[tuple[int, int]]:
    process = subprocess.Popen(["/bin/sleep", "60"])
    ticks = processes.start_ticks(process.pid)
    assert ticks is not None
    yield process.pid, ticks
    process.kill()
    process.wait()


def run(place: Field, scope: str = "all", aims: list[Aim] | None = None) -> KillSession:
    kill = KillSession(Order("k1-test", scope, "", ""), place, aims or [], limit_s=0.1)
    kill.strike()
    kill.run()
    return kill


def look_of(kill: KillSession) -> tuple[StepStatus, str]:
    step = kill.steps[StepName.SECOND_LOOK]
    return step.status, step.detail


def test_a_canary_is_searched_for_as_any_agent_and_no_other_kill_meets_its_stray(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stray = Marked(4242, 1, "canary-1")
    monkeypatch.setattr(processes, "find_marked", lambda *_: iter((stray,)))
    place = Field("0", tmp_path, None, None, False, frozenset)
    for by, scope, aims in (("canary", "canary-1", ["canary-1"]), ("ann", "all", ["canary-1"]), ("ann", "all", ["a-1", "canary-1"])):
        kill = KillSession(Order("k1-test", scope, "", by), place, [Aim(agent, None) for agent in aims], limit_s=0.1)
        kill.strike()
        kill.run()
        assert [one.pid for one in kill.second_look.left_alone] == ([stray.pid] if by == "canary" else [])


def marked(monkeypatch: pytest.MonkeyPatch, who: tuple[int, int], uids: set[int]) -> None:
    monkeypatch.setattr(processes, "find_marked", lambda *_: iter((Marked(*who, "a"),)))
    monkeypatch.setattr(processes, "uids", lambda pid: uids)
    monkeypatch.setattr(processes, "pid_namespace", lambda pid: None)


def test_an_agents_stray_is_killed_and_named(monkeypatch: pytest.MonkeyPatch, reaped: tuple[int, int]) -> None:
    marked(monkeypatch, reaped, {65534})
    kill = run(Field("0", Path("/"), None, None, False, frozenset, agent_uids=frozenset({65534})))
    until(lambda: not processes.is_alive(reaped[0]), "it is dead")
    assert look_of(kill)[0] is StepStatus.OK and kill.aims[0].outcome is Outcome.BEST_EFFORT
    assert f"pid {reaped[0]}" in kill.receipt().targets[0].evidence["strays"][0]


@pytest.mark.parametrize("why", ["another account", "an ancestor of the presser", "out of scope"])
def test_what_is_not_surely_an_agents_lives_and_is_listed(monkeypatch: pytest.MonkeyPatch, reaped: tuple[int, int], why: str) -> None:
    marked(monkeypatch, reaped, {1000} if why == "another account" else {65534})
    spared = frozenset({reaped[0]}) if why.startswith("an ancestor") else frozenset[int]()
    place = Field("0", Path("/"), None, None, False, lambda: spared, agent_uids=frozenset({65534}))
    other = Aim("b", Held(Entry("b", "process", "managed", 0, leaf="/gone", confirmed=True)))
    kill = run(place, "b" if why == "out of scope" else "all", [other])
    assert processes.is_alive(reaped[0])
    if why == "out of scope":
        assert look_of(kill)[0] is StepStatus.OK and not kill.receipt().survivors
    else:
        assert look_of(kill)[0] is StepStatus.UNKNOWN and [s.pid for s in kill.receipt().survivors] == [reaped[0]]
        assert "never signalled" in kill.receipt().survivors[0].why or "not signalled" in kill.receipt().survivors[0].why


def test_a_stray_that_does_not_die_is_not_proven_until_it_does(monkeypatch: pytest.MonkeyPatch, reaped: tuple[int, int]) -> None:
    marked(monkeypatch, reaped, {65534})
    monkeypatch.setattr(second_look, "STRAYS_S", 0.05)
    monkeypatch.setattr(processes.Handle, "send", lambda self, number: "sent")
    owner = Aim("a", Held(Entry("a", "process", "managed", 0, leaf="/gone", confirmed=True)))
    kill = run(Field("0", Path("/"), None, None, False, frozenset, agent_uids=frozenset({65534})), aims=[owner])
    assert not kill.receipt().verified_zero and look_of(kill)[0] is StepStatus.FAILED
    assert [s.pid for s in kill.receipt().survivors] == [reaped[0]] and kill.look_later() == []
    monkeypatch.undo()
    owner.loose[0].send(9)
    until(lambda: not processes.is_alive(reaped[0]), "it is dead")
    assert kill.look_later() and kill.receipt().verified_zero and look_of(kill)[0] is StepStatus.OK


@pytest.mark.parametrize("times", [1, 99])
def test_a_stray_that_cannot_be_opened_is_tried_again_and_then_listed(
    monkeypatch: pytest.MonkeyPatch, reaped: tuple[int, int], times: int
) -> None:
    marked(monkeypatch, reaped, {65534})
    real, left = processes.os.pidfd_open, [times]  # type: ignore[attr-defined]

    def short(pid: int, flags: int = 0) -> int:
        left[0] -= 1
        if left[0] >= 0:
            raise OSError(24, "Too many open files")
        return int(real(pid, flags))

    monkeypatch.setattr(processes.os, "pidfd_open", short)  # type: ignore[attr-defined]
    kill = run(Field("0", Path("/"), None, None, False, frozenset, agent_uids=frozenset({65534})))
    monkeypatch.undo()
    if times == 1:
        until(lambda: not processes.is_alive(reaped[0]), "it is dead")
        return
    assert processes.is_alive(reaped[0]) and look_of(kill)[0] is StepStatus.UNKNOWN
    assert [(s.pid, "Too many" in s.why) for s in kill.receipt().survivors] == [(reaped[0], True)]


def test_a_stray_that_cannot_even_be_looked_at_is_not_taken_for_dead(monkeypatch: pytest.MonkeyPatch, reaped: tuple[int, int]) -> None:
    marked(monkeypatch, reaped, {65534})
    monkeypatch.setattr(processes, "_fetch", _too_many)
    kill = run(Field("0", Path("/"), None, None, False, frozenset, agent_uids=frozenset({65534})))
    monkeypatch.undo()
    assert processes.is_alive(reaped[0]) and look_of(kill)[0] is StepStatus.UNKNOWN
    assert [s.pid for s in kill.receipt().survivors] == [reaped[0]]


def _too_many(*_: object) -> bytes:
    raise OSError(24, "Too many open files")


@pytest.mark.parametrize("part", ["_look_at_leaves", "_look_at_engine", "_hunt"])
def test_a_fault_in_one_part_is_amber_and_the_others_are_looked_at(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    looked: list[str] = []
    for name in ("_look_at_leaves", "_look_at_engine", "_hunt"):
        monkeypatch.setattr(SecondLook, name, lambda self, name=name: looked.append(name) if name != part else 1 / 0)
    kill = run(Field("0", Path("/"), None, None, False, frozenset))
    assert look_of(kill)[0] is StepStatus.UNKNOWN and "ZeroDivisionError" in look_of(kill)[1]
    assert len(looked) == 2 and not kill.receipt().verified_zero  # unknown is never green


def test_only_leaves_with_somebody_in_them_are_taken_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "find_marked", lambda *_: iter(()))
    tree = FolderTree(tmp_path / "watchfloor-00c0ffee", Mounts(Mount(tmp_path, "/")))
    fill(tree.agents.path, 1)
    (tree.agents.path / "stubborn").write_text("1000000")
    fill(tree.agents.path / "ended-00000000", 0)
    fill(tree.agents.path / "crept-in-00000000", 1)
    kill = run(Field("00c0ffee", Path("/nowhere"), tree, None, False, frozenset))
    assert [t.agent_id for t in kill.receipt().targets] == ["crept-in"] and not kill.receipt().verified_zero
    assert "unregistered leaves" in look_of(kill)[1]
    for aim in kill.aims:
        assert aim.held is not None
        aim.held.close()
    tree.close()


def test_processes_that_cannot_be_listed_leave_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(*_: object) -> Iterator[Marked]:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(processes, "find_marked", blind)
    status, words = look_of(run(Field("0", Path("/"), None, None, False, frozenset)))
    assert status is StepStatus.UNKNOWN and "Too many" in words


@pytest.mark.parametrize(("ever", "status"), [(True, StepStatus.UNKNOWN), (False, StepStatus.OK)])
def test_a_silent_engine_is_doubt_where_there_ever_were_containers(tmp_path: Path, ever: bool, status: StepStatus) -> None:
    engine = Engine(tmp_path / "nobody.sock", "00c0ffee")
    assert look_of(run(Field("0", Path("/nowhere"), None, engine, ever, frozenset)))[0] is status


def test_an_engine_that_lists_a_container_for_ever_and_names_a_strangers_pid_proves_nothing(
    tmp_path: Path, reaped: tuple[int, int]
) -> None:
    stub = EngineStub(tmp_path / "e.sock", "lies")
    try:
        stub.containers[BOX] = {"pid": reaped[0], "agent": "a", "instance": "00c0ffee"}
        engine = Engine(tmp_path / "e.sock", "00c0ffee", call_s=0.5)
        kill = run(Field("00c0ffee", Path("/nowhere"), None, engine, True, frozenset))
        assert processes.is_alive(reaped[0]) and not kill.receipt().verified_zero
        assert "no cgroup of it" in kill.receipt().targets[0].evidence["why"] and kill.open_aims() == []
    finally:
        stub.close()


@pytest.mark.parametrize("ever", [True, False])
def test_a_silent_engine_is_named_only_where_a_container_of_ours_could_have_come_back(tmp_path: Path, ever: bool) -> None:
    class Silent:
        def __getattr__(self, name: str) -> Any:
            def asked(*_: object, **__: object) -> Any:
                raise EngineSilent("it does not answer")

            return asked

    engine: Any = Silent()
    status, words = look_of(run(Field("0", tmp_path, None, engine, ever, frozenset)))
    assert (status, "engine" in words) == ((StepStatus.UNKNOWN, True) if ever else (StepStatus.OK, False))
