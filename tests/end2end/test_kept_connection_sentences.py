"""What a person is promised of an agent that keeps its connection: every report counts once, nobody else speaks as that agent, and a
connection that only rests holds up neither an end, nor a restart, nor a kill."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from console.domain.errors import Conflict, NotFound
from tests.fakes.instance import Instance, until
from tests.fakes.standing import standing_instance
from tests.leaks import cgroup_places

ONE_CONNECTION = """
connect, made = agent._line.connect, []
agent._line.connect = lambda *way: made.append(connect(*way)) or made[-1]
for n in range(10):
    agent.usage(tokens=1)
print('connections', len(made), flush=True)
"""
TWO_HALVES = """
agent.usage(tokens=1)
print('first', flush=True)
while not os.path.exists('go'):
    time.sleep(0.05)
agent.usage(tokens=10)
print('second', flush=True)
time.sleep(600)
"""
A_CHILD_WRITES = """
agent.usage(tokens=1)
sock = agent._line.kept[0][1]
pid = os.fork()
if not pid:
    print('child', flush=True)
    while not os.path.exists('go'):
        time.sleep(0.05)
    try:
        sock.sendall(client._letter('POST', '/v1/usage', {'tokens': 1000}))
        print('answer', sock.recv(100)[:12], flush=True)
    except OSError as error:
        print('answer', type(error).__name__, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
agent.usage(tokens=10)
print('parent', flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def it() -> Iterator[Instance]:
    with standing_instance() as instance:
        yield instance


@pytest.fixture(autouse=True)
def nobody_stays(it: Instance) -> Iterator[None]:
    yield
    for agent in it.api.fleet().agents:
        if agent.state in ("running", "frozen", "waiting"):
            with suppress(Conflict, NotFound):  # it ended by itself meanwhile
                it.api.kill(agent.id)


def tokens(it: Instance, agent: str) -> float:
    return it.agent(agent).usage["tokens"] or 0


def let_go(it: Instance, agent: str) -> None:
    (it.places.workspaces_dir / it.agent(agent).session / "go").touch()


def leaf_of(it: Instance, agent: str) -> Path:
    trees = (place / f"watchfloor-{it.places.instance_id}" / "agents" for place in cgroup_places())
    return next(leaf for tree in trees for leaf in tree.glob(f"{agent}-*") if (leaf / "cgroup.kill").exists())


def test_ten_reports_are_one_connection_and_each_counts_once(it: Instance) -> None:
    agent = it.python(ONE_CONNECTION)
    assert "connections 1\n" in it.says(agent, "connections")
    assert tokens(it, agent) == 10


def test_a_child_that_was_moved_into_another_agents_cgroup_does_not_speak_as_its_parent(it: Instance) -> None:
    other = it.launch("sleep", "600")
    for moved, answer, total in ((False, "b'HTTP/1.1 200'", 1011), (True, "answer", 11)):
        agent = it.python(A_CHILD_WRITES)
        it.says(agent, "child")
        procs = leaf_of(it, agent) / "cgroup.procs"
        child = max(int(pid) for pid in procs.read_text().split())
        if moved:
            (leaf_of(it, other) / "cgroup.procs").write_text(str(child))
        let_go(it, agent)
        said = it.says(agent, "parent")
        assert answer in said and ("200" in said) is not moved, said
        assert tokens(it, agent) == total and tokens(it, other) == 0


def test_a_frozen_agent_and_a_killed_one_leave_nobody_waiting(it: Instance) -> None:
    frozen, killed, fine = (it.python(TWO_HALVES) for _ in range(3))
    for agent in (frozen, killed, fine):
        it.says(agent, "first")
    it.api.freeze(frozen)
    it.state_becomes(frozen, "frozen")
    assert it.api.kill(killed).verified_zero
    for agent in (frozen, fine):
        let_go(it, agent)
    it.says(fine, "second")
    assert tokens(it, fine) == 11 and tokens(it, frozen) == 1
    it.api.thaw(frozen)
    it.says(frozen, "second")
    assert tokens(it, frozen) == 11


def test_a_supervisor_ends_though_connections_rest_and_the_next_one_hears_the_next_report_once(state_dir: Path) -> None:
    with Instance(state_dir) as it:
        agent = it.python(TWO_HALVES)
        it.says(agent, "first")
        assert it.stop() == 0
        it.start()
        let_go(it, agent)
        it.says(agent, "second")
        until(lambda: tokens(it, agent) == 11, words="each report once")
