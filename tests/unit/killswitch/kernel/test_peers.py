"""Who a peer is: a proven agent, an operator, or unclear."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from console.killswitch.kernel import peers, processes
from console.killswitch.kernel.cgroups import Mount
from console.killswitch.kernel.peers import AgentPlaces, Peer, Standing, find_peer, inside_an_agent, is_among, is_below, judge, may_command

NOBODY = AgentPlaces(Mount(Path("/m"), "/"), frozenset({"/m/watchfloor-0/agents"}), frozenset())


def test_a_peer_is_who_connected() -> None:
    a, b = socket.socketpair()
    peer = find_peer(a)
    assert (peer.pid, peer.uid) == (os.getpid(), os.geteuid()) and judge(peer, NOBODY) is Standing.OPERATOR
    a.close()
    b.close()


@pytest.mark.parametrize("line", ["/watchfloor-0/agents", "/watchfloor-0/agents/a-00000000", "/watchfloor-0/agents/a-00000000/below/it"])
def test_whoever_is_among_the_agents_is_one(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.setattr(processes, "cgroup_line", lambda pid: line)
    assert judge(Peer(os.getpid(), 0, 1), NOBODY) is Standing.AGENT


def test_an_agents_pid_namespace_makes_an_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "pid_namespace", lambda pid: 77)
    assert judge(Peer(os.getpid(), 0, 1), AgentPlaces(None, frozenset(), frozenset({77}))) is Standing.AGENT
    assert judge(Peer(os.getpid(), 0, 1), AgentPlaces(None, frozenset(), frozenset({78}))) is Standing.UNCLEAR


def test_whoever_cannot_be_looked_at_is_unclear() -> None:
    assert judge(Peer(0, 0, None), NOBODY) is Standing.UNCLEAR
    assert judge(Peer(2**22 + 5, 0, None), NOBODY) is Standing.UNCLEAR
    assert judge(Peer(os.getpid(), 0, 1), NOBODY) is Standing.UNCLEAR  # the pid was reused


def test_neighbouring_names_are_not_below() -> None:
    assert not is_among(Path("/m/agents-2/x"), [Path("/m/agents")]) and not is_among(None, [Path("/")])
    places = frozenset({"/m/agents"})
    assert not is_below(Path("/m/agents-2/x"), places) and not is_below(None, frozenset({"/"})) and not is_below(Path("/m"), places)
    assert is_below(Path("/m/agents"), places) and is_below(Path("/m/agents/a/b"), places)


def test_who_a_peer_is_takes_no_longer_with_many_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """A press waits for this: no agent's folder is compared with the peer's one by one."""
    compared: list[object] = []

    def equal(self: Path, other: object) -> bool:
        compared.append(other)
        return False

    monkeypatch.setattr(Path, "__eq__", equal)
    places = AgentPlaces(Mount(Path("/m"), "/"), frozenset(f"/m/docker/{n}" for n in range(1000)), frozenset())
    monkeypatch.setattr(processes, "cgroup_line", lambda pid: "/docker/1000/below")
    assert judge(Peer(os.getpid(), 0, processes.start_ticks(os.getpid())), places) is Standing.OPERATOR and len(compared) < 20


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/watchfloor-1/agents/a", True),
        ("/x/watchfloor-1/agents/a/b", True),
        ("/watchfloor-1/control", False),
        ("/agents/watchfloor-1", False),
        ("/", False),
    ],
)
def test_a_guard_knows_when_it_is_in_an_agent(monkeypatch: pytest.MonkeyPatch, line: str, expected: bool) -> None:
    monkeypatch.setattr(processes, "cgroup_line", lambda pid: line)
    assert inside_an_agent() is expected


def test_the_supervisors_door_knows_its_uids() -> None:
    own = os.geteuid()
    assert may_command(own, None) and may_command(own, 5) and may_command(5, 5) and not may_command(6, 5) and not may_command(own + 1, None)
    assert peers.judge is judge
