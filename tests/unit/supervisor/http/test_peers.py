"""The doors judge by cgroup and namespace, and in doubt say no."""

from __future__ import annotations

import os
import socket

import pytest

from console.supervisor.http.peers import Peer, is_agent, is_operator, may_hook, peer_of

LEAF = "0::/watchfloor-01234567/agents/a-1-0123abcd\n"


def peer(cgroups: str = "0::/user.slice\n", uid: int | None = None, same: bool = True) -> Peer:
    return Peer(5, os.geteuid() if uid is None else uid, cgroups, same)


def test_the_kernel_names_the_peer() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        seen = peer_of(ours)
    assert (seen.pid, seen.uid, seen.same_pid_namespace) == (os.getpid(), os.geteuid(), True)
    assert seen.cgroups


def test_an_operator_is_of_our_uid_and_in_no_agents_cgroup() -> None:
    assert is_operator(peer(), "01234567")


@pytest.mark.parametrize(
    "who", [peer(LEAF), peer(LEAF.strip() + "/deeper\n"), peer(uid=65534), peer(same=False), peer(""), peer("8:pids:/x\n" + LEAF)]
)
def test_agents_other_users_and_doubt_are_refused(who: Peer) -> None:
    assert not is_operator(who, "01234567")


@pytest.mark.parametrize("cgroups", [LEAF, LEAF.strip() + "/sub\n", "8:pids:/other\n" + LEAF])
def test_an_agents_socket_serves_its_own_leaf(cgroups: str) -> None:
    assert is_agent(peer(cgroups), "01234567", "a-1", "", cgroups=True)


@pytest.mark.parametrize(
    "cgroups",
    [
        "0::/\n",
        "",
        LEAF.replace("a-1-", "a-2-"),
        LEAF.replace("a-1-", "a-11-"),
        LEAF.replace("01234567", "76543210"),
        "0::/watchfloor-01234567/agents/a-1-0123abcdef\n",
        "0::/watchfloor-01234567/agents/a-1\n",
        "0::/watchfloor-01234567/agents/b-2-0123abcd/watchfloor-01234567/agents/a-1-0123abcd\n",
        LEAF + "8:pids:/watchfloor-01234567/agents/b-2-0123abcd\n",
    ],
)
def test_and_nobody_else(cgroups: str) -> None:
    assert not is_agent(peer(cgroups), "01234567", "a-1", "", cgroups=True)


def test_a_container_is_known_by_its_id_alone() -> None:
    container = "ab" * 32
    assert is_agent(peer(f"0::/docker/{container}\n"), "01234567", "a-1", container, cgroups=True)
    assert not is_agent(peer(LEAF), "01234567", "a-1", container, cgroups=True)


@pytest.mark.parametrize(
    ("cgroups", "may"),
    [
        ("0::/user.slice\n", True),
        ("0::/watchfloor-i/agents/a-1-0123abcd\n1:pids:/watchfloor-i/agents/a-1-0123abcd\n", True),
        ("0::/watchfloor-i/agents/a-2-0123abcd\n", False),
        ("0::/watchfloor-i/agents/a-1-0123abcd\n1:pids:/watchfloor-i/agents/a-2-0123abcd\n", False),
        ("0::/watchfloor-i/agents/a-1\n", False),
        ("", False),
    ],
)
def test_hooks_of_the_seen_and_the_adopted_are_heard_and_nobody_elses(cgroups: str, may: bool) -> None:
    def adopted(agent_id: str) -> bool:
        return agent_id == "a-1"

    assert may_hook(Peer(1, os.geteuid(), cgroups, True), "i", adopted) is may
    assert not may_hook(Peer(1, os.geteuid() + 7, cgroups, True), "i", adopted) or os.geteuid() + 7 == 0
    assert not may_hook(Peer(1, os.geteuid(), cgroups, False), "i", adopted)
