"""What a receipt says of programs outside: recorded, not recorded with why, never "none"; and which agents are not covered."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.domain.kill import Receipt
from console.killswitch.kernel.socket_lists import Taken
from console.killswitch.kill import outside as module
from console.killswitch.kill.outside import Found, Outside, settle
from console.killswitch.kill.records import Record
from console.killswitch.kill.snapshot import holders
from tests.fakes.instance import free_port
from tests.fakes.looked_at import LookedAt, looked_at

PAPER = Receipt("k-1", "00c0ffee", "all", "", "", 0.0)


@pytest.fixture
def world() -> Iterator[LookedAt]:
    with looked_at() as made:
        yield made


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def killed(world: LookedAt, *targets: str, reach: str = "it shares this host's network") -> Found:
    """The dump, then the death of these."""
    for agent_id in targets:
        if agent_id in world.connections.records:
            world.connections.records[agent_id].reach = reach
            world.connections.records[agent_id].uids = {os.geteuid()}
    world.connections.dump.open({})
    taken = Taken(time.monotonic() + 60)
    world.connections.dump.take(taken)
    for agent_id in targets:
        world.talkers[agent_id].process.kill()
        world.talkers[agent_id].process.wait()
    return settle(world.connections, taken, targets)


def test_an_agent_without_connections_is_recorded_and_not_covered(world: LookedAt) -> None:
    world.agent("a-1")
    world.connections.look()
    found = killed(world, "a-1")
    assert (found.connections, found.state, found.uncovered) == ((), "recorded", ("a-1",)), found.detail


def test_an_agent_whose_sandbox_allows_no_connection_is_covered(world: LookedAt) -> None:
    world.agent("a-1")
    world.connections.look()
    found = killed(world, "a-1", reach="")
    assert (found.state, found.uncovered, found.detail) == ("recorded", (), "")


def test_a_connection_that_is_opened_after_the_last_look_is_in_the_dump(world: LookedAt, tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        agent = world.agent("a-1")
        world.connections.look()
        own = os.stat("/proc/self/ns/net").st_ino  # noqa: PTH116 - a link of /proc
        world.connections.records["a-1"].namespaces = {own: agent.pid}
        agent.do(f"unix {path}")
        server, _ = listener.accept()
        with server:
            found = killed(world, "a-1")
        if os.geteuid() in _hidden():
            pytest.skip("a process of this account hides its open files, so whose the socket was cannot be told")
        assert [(one.remote, one.peer_pid) for one in found.connections] == [(path, os.getpid())]


@pytest.mark.parametrize(
    "closed", ["after the targets' end", "during the kill, and opened long before", "during the kill, from a live cgroup"]
)
def test_what_another_program_of_the_account_closes_is_no_connection_of_the_target(
    world: LookedAt, listener: socket.socket, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    agent = world.agent("a-1")
    client = socket.create_connection(listener.getsockname()) if "before" in closed else socket.socket()
    world.connections.look()
    world.connections.look()
    own = os.stat("/proc/self/ns/net").st_ino  # noqa: PTH116 - a link of /proc
    world.connections.records["a-1"].namespaces = {own: agent.pid}
    if "cgroup" in closed:
        world.connections.records["a-1"].cgroups = frozenset({2**62})  # one of its own, that is gone
    if "before" not in closed:
        client.connect(listener.getsockname())

    def closing(*args: Any) -> Any:
        client.close()
        return holders(*args)

    monkeypatch.setattr(module, "holders", closing)
    if "during" in closed:
        monkeypatch.setattr(world.connections.dump, "look", lambda: ([], {}))
    found = killed(world, "a-1")
    assert (found.connections, found.state) == ((), "recorded")
    if os.geteuid() in _hidden():
        pytest.skip("a process of this account hides its open files, so nothing is guessed here")


def _hidden() -> set[int]:
    return holders({1}).hidden


def test_a_server_that_closed_its_end_when_the_agent_died_is_found_by_what_it_listens_at(world: LookedAt, tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        agent = world.agent("a-1")
        agent.do(f"unix {path}")
        server, _ = listener.accept()
        world.connections.look()
        record = world.connections.records["a-1"]
        record.kept.clear()
        record.handled.clear()
        record.reach = "it shares this host's network"
        world.connections.dump.open({})
        taken = Taken(time.monotonic() + 60)
        world.connections.dump.take(taken)
        server.close()
        agent.process.kill()
        agent.process.wait()
        found = settle(world.connections, taken, ["a-1"])
        assert [(one.remote, one.peer_pid) for one in found.connections] == [(path, os.getpid())]


def test_connections_between_targets_do_not_count_and_to_others_they_do(world: LookedAt) -> None:
    port = free_port()
    one, other = world.agent("a-1"), world.agent("a-2")
    one.do(f"listen {port}")
    other.do(f"tcp {port}")
    one.do("accept")
    world.connections.look()
    assert [c.note for c in settle(world.connections, None, ["a-2"]).connections] == ["it is agent a-1, which was not a target"]
    assert not killed(world, "a-1", "a-2").connections


def test_what_the_kill_ended_besides_does_not_count(world: LookedAt, listener: socket.socket) -> None:
    world.agent("a-1").do(f"tcp {listener.getsockname()[1]}")
    world.connections.look()
    [kept] = world.connections.records["a-1"].kept.values()
    assert kept.peer is not None
    dead = [(kept.peer.pid, kept.peer.start_ticks)]
    assert settle(world.connections, None, ["a-1"]).connections and not settle(world.connections, None, ["a-1"], dead).connections


def test_every_way_not_to_know_is_not_recorded_with_why(world: LookedAt, monkeypatch: pytest.MonkeyPatch) -> None:
    record = world.connections.records["a-1"] = Record("a-1", 0, 0, 0, looks=1, reach="it shares this host's network")
    done = Taken(0.0)
    done.done.set()

    def why(taken: Taken | None = done, *targets: str) -> str:
        found = settle(world.connections, taken, targets or ["a-1"])
        assert found.state == ("not recorded" if found.detail else "recorded")
        return found.detail

    assert why() == ""
    assert "was not read at the kill" in why(None) and "was not read at the kill" in why(Taken(0.0))
    assert "strange had not been looked at" in why(done, "a-1", "strange").replace("Strange", "strange")
    done.trouble = "it took too long"
    assert "it took too long" in why()
    done.trouble = ""
    world.connections.problem = "a look failed"
    assert "look failed" in why()
    world.connections.problem, world.connections.looked_at = "", done.deadline - 60
    assert "were not looked at for 60 s before the kill" in why(), "a look hangs"
    world.connections.looked_at, record.trouble = done.deadline, "process 7 hides its open files"
    assert "process 7" in why()
    record.trouble, record.unread = "", {7}
    assert "was not read in time" in why()
    record.unread, record.since_ticks = set(), 100_000
    assert "not looked at from its start" in why()
    record.reach = ""
    assert why() == "" and why(None) == ""


def test_other_machines_are_named_and_do_not_count(world: LookedAt) -> None:
    record = world.connections.records["a-1"] = Record("a-1", 0, 0, 0, looks=1, reach="it shares this host's network")
    record.away = {"8.8.8.8:443": None}
    done = Taken(0.0)
    done.done.set()
    found = settle(world.connections, done, ["a-1"])
    assert found.state == "recorded" and "other machines" in found.detail and "8.8.8.8:443" in found.detail and not found.connections


def test_a_kill_waits_for_nothing_and_says_pending_then_too_late(world: LookedAt) -> None:
    outside = Outside(world.connections)
    outside.begin()
    first = outside.taken
    outside.begin()
    assert outside.taken is first, "one dump for a kill"
    assert outside.into(PAPER).connections_state == "pending"
    outside.close()
    assert outside.into(PAPER).connections_state == "not recorded"


def test_a_fault_is_not_recorded(world: LookedAt, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def broken(*_: object) -> Found:
        raise ValueError("broken")

    monkeypatch.setattr(module, "settle", broken)
    outside = Outside(world.connections)
    outside.settle(["a-1"], frozenset)
    assert outside.into(PAPER).connections_state == "not recorded" and "broken" in capfd.readouterr().err


def test_settled_it_is_in_the_receipt(world: LookedAt, listener: socket.socket) -> None:
    world.agent("a-1").do(f"tcp {listener.getsockname()[1]}")
    world.connections.look()
    world.connections.records["a-1"].reach = ""  # no dump is asked for here
    outside = Outside(world.connections)
    outside.settle(["a-1"], frozenset)
    outside.close()
    paper = outside.into(PAPER)
    assert [one.peer_pid for one in paper.connections] == [os.getpid()] and paper.connections_state == "recorded"


def test_an_agent_that_no_look_has_met_had_not_been_looked_at(world: LookedAt) -> None:
    """Its shim alone was met: what its program did since is not known, whatever its sandbox allows."""
    talker = world.agent("a-1")
    talker.held.entry = replace(talker.entry, pid_namespace=1)
    world.connections.look()
    found = settle(world.connections, None, ["a-1"])
    assert (found.state, found.uncovered) == ("not recorded", ("a-1",))
    assert "Agent a-1 had not been looked at" in found.detail or "agent a-1 had not been looked at" in found.detail
    assert "list of sockets was not read" in found.detail
