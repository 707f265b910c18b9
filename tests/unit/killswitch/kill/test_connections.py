"""The regular look: what is kept of an agent's connections, for how long, and what an agent can do against it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.errors import NotFound
from console.killswitch.kernel import processes
from console.killswitch.kernel.processes import ticks_now
from console.killswitch.kernel.socket_lists import ESTABLISHED, Raw, Reader, Tcp
from console.killswitch.kill import connections as module
from console.killswitch.kill import records, snapshot
from console.killswitch.kill.connections import why_reaches
from console.killswitch.kill.records import Kept, Record, keep, of_agent, overview
from console.killswitch.kill.snapshot import Far, Process
from tests.fakes.guard_world import until
from tests.fakes.instance import free_port
from tests.fakes.looked_at import LookedAt, looked_at


@pytest.fixture
def world() -> Iterator[LookedAt]:
    with looked_at() as made:
        yield made


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def test_a_connection_stays_known_after_it_was_closed_and_its_program_has_a_name(world: LookedAt, listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    agent = world.agent("a-1")
    agent.do(f"tcp {port}")
    server, _ = listener.accept()
    with server:
        world.connections.look()
        agent.do("close")
    for _ in range(3):
        world.connections.look()
    assert world.remotes("a-1") == [("tcp", f"127.0.0.1:{port}", os.getpid())]
    [kept] = world.connections.records["a-1"].kept.values()
    assert kept.peer is not None and kept.peer.start_ticks == processes.start_ticks(os.getpid()) and kept.n == 1


def test_what_is_within_an_agent_or_a_part_of_watchfloor_is_not_kept(world: LookedAt, listener: socket.socket, tmp_path: Path) -> None:
    agent, port = world.agent("a-1"), free_port()
    agent.do("pair")
    agent.do(f"listen {port}")
    world.own.add(os.getpid())
    agent.do(f"tcp {listener.getsockname()[1]}")
    for _ in range(4):
        world.connections.look()
    assert world.remotes("a-1") == []


def test_a_connection_to_another_agent_names_it(world: LookedAt) -> None:
    one, other, port = world.agent("a-1"), world.agent("a-2"), free_port()
    one.do(f"listen {port}")
    other.do(f"tcp {port}")
    one.do("accept")
    world.connections.look()
    [kept] = world.connections.records["a-2"].kept.values()
    assert (kept.peer_agent, kept.peer.pid if kept.peer else 0) == ("a-1", one.pid)


def test_many_connections_to_one_program_are_one_and_counted(world: LookedAt, tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(100)
        agent = world.agent("a-1")
        for _ in range(20):
            agent.do(f"unix {path}")
        world.connections.look()
        world.connections.look()
        [kept] = world.connections.records["a-1"].kept.values()
        assert (kept.remote, kept.n) == (path, 20)


def test_other_ends_beyond_the_bound_are_counted() -> None:
    record = Record("a-1", 0, 0, 0)
    for n in range(records.MOST_KEPT + 5):
        keep(record, Far("unix", "", f"/s{n}", (n,), 0), None, "", 0)
    assert len(record.kept) == records.MOST_KEPT and record.n_more == 5


def test_more_open_files_than_are_looked_at_is_trouble_until_it_is_over(world: LookedAt, monkeypatch: pytest.MonkeyPatch) -> None:
    world.agent("a-1")
    monkeypatch.setattr(snapshot, "MOST_DESCRIPTORS", 1)
    world.connections.look()
    assert "more open files" in world.connections.records["a-1"].trouble
    monkeypatch.undo()
    world.connections.look()
    assert not world.connections.records["a-1"].trouble


def test_an_end_that_no_process_holds_is_kept_after_some_looks(world: LookedAt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        monkeypatch.setattr(module, "holders", lambda *_: snapshot.Holders())  # it hides its open files
        world.agent("a-1").do(f"unix {path}")
        for _ in range(module.TRIES):
            world.connections.look()
        assert world.remotes("a-1") == []
        world.connections.look()
        assert world.remotes("a-1") == [("unix", path, 0)]


def test_an_end_in_a_namespace_that_was_not_read_is_unknown_and_never_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    far, reads, is_cut = Tcp(7, ESTABLISHED, (b"\n\0\0\2", 4000), (b"\x08\x08\x08\x08", 443), 0, 0), list[None](), True
    record = Record("a-1", 0, 0, 0, reach="it shares this host's network", sockets=frozenset({7}))

    def read(known: object, until: float) -> tuple[list[Raw], bool]:
        reads.append(None)
        return [], is_cut

    def look() -> None:
        seen = snapshot.Snapshot(tcp={7: (1, far)})
        module._add_beside(seen, [record])
        assert module._passed_on(record, 7, seen) == []

    monkeypatch.setattr(module, "read_beside", read)
    look()
    assert (record.why_unknown, list(record.away)) == (records.UNREAD, [])
    is_cut = False
    look()
    assert (record.why_unknown, list(record.away)) == ("", ["8.8.8.8:443"]), "all were read: it is another machine"
    look()
    assert len(reads) == 2, "what was sought in all is sought once"
    is_cut = True
    record.sought.clear()
    record.away.clear()
    for _ in range(2 * module.TRIES):
        look()
    assert len(reads) == 2 + module.TRIES, "it is not tried for ever"
    record.sockets = frozenset()
    look()
    assert (record.why_unknown, list(record.away)) == (records.UNREAD, []), "also when it is over"


def test_a_pid_that_was_used_again_is_another_end() -> None:
    record = Record("a-1", 0, 0, 0)
    far = Far("unix", "", "/s", (1,), 0)
    for ticks in (100, 200):
        keep(record, far, Process(4242, ticks, "/usr/bin/x", 0), "", 0)
    assert [(kept.peer.start_ticks, kept.n) for kept in record.kept.values() if kept.peer] == [(100, 1), (200, 1)]


def test_the_last_look_before_the_end_is_what_stays_and_one_that_left_is_forgotten(world: LookedAt, listener: socket.socket) -> None:
    agent = world.agent("a-1", "--resume", "session-8271")
    agent.do(f"tcp {listener.getsockname()[1]}")
    world.connections.look()
    record = world.connections.records["a-1"]
    agent.process.kill()
    agent.process.wait()
    world.connections.look()
    assert record.pids == {agent.pid: agent.entry.start_ticks} and record.sockets
    del world.talkers["a-1"]
    agent.end()
    world.connections.look()
    assert world.connections.records == {}


def test_what_identifies_its_work_is_read_from_its_processes(world: LookedAt) -> None:
    world.agent("a-1", "--resume", "session-8271")
    world.connections.look()
    record = world.connections.records["a-1"]
    assert any("session-8271" in words for words in record.words) and str(Path.cwd()) in record.folders
    assert record.uids == {os.geteuid()} and record.reach == "it shares this host's network"


def test_a_look_in_the_middle_of_a_kill_forgets_nothing_of_what_it_could_reach(world: LookedAt, monkeypatch: pytest.MonkeyPatch) -> None:
    talker = world.agent("a-1")
    process = talker.process
    world.connections.look()
    record = world.connections.records["a-1"]
    reach, uids = record.reach, record.uids
    process.kill()
    until(lambda: not Path(f"/proc/{process.pid}/ns/net").exists(), "it is dead, and nobody has reaped it")
    monkeypatch.setattr(type(talker.held), "pids", lambda _: [process.pid])  # it died after it was listed
    world.connections.look()
    assert reach == record.reach == "it shares this host's network" and uids == record.uids and record.uids


def test_the_thread_looks_by_itself_and_soon_when_it_is_told(world: LookedAt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_S", 600.0)
    monkeypatch.setattr(module, "ALONE_S", 600.0)
    world.connections.start()
    world.agent("a-1")
    world.connections.look_soon()
    until(lambda: "a-1" in world.connections.records, "it looked")


def test_with_nobody_to_look_at_it_rests_for_the_longest_until_it_is_told(world: LookedAt, monkeypatch: pytest.MonkeyPatch) -> None:
    rests, wait = list[float | None](), threading.Event.wait

    def noted(event: threading.Event, timeout: float | None = None) -> bool:
        rests.append(timeout)
        return wait(event, timeout)

    monkeypatch.setattr(module, "LOOK_S", 0.015625)
    monkeypatch.setattr(module, "SHARE", 0)
    monkeypatch.setattr(module, "ALONE_S", 600.0)
    monkeypatch.setattr(threading.Event, "wait", noted)
    world.connections.start()
    until(lambda: rests[-1:] == [600.0], "it rests")
    world.agent("a-1")
    rests.clear()
    world.connections.look_soon()
    until(lambda: rests.count(0.015625) > 2, "it goes on while an agent is there")
    assert set(world.connections.records) == {"a-1"}


def test_a_look_that_fails_is_a_problem_and_the_next_is_made(world: LookedAt, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(module, "LOOK_S", 0.01)
    with monkeypatch.context() as patched:
        patched.setattr(world.connections, "_look_at_sockets", broken)
        world.agent("a-1")
        world.connections.start()
        until(lambda: "ValueError" in world.connections.problem, "it failed")
    until(lambda: not world.connections.problem, "the next one did not")


def test_a_guard_that_looks_late_knows_that_it_does() -> None:
    now = ticks_now()
    assert Record("a", now - 100_000, now, now).why_late and not Record("a", now, now, now).why_late


def test_a_look_that_hung_and_went_on_is_told_later(world: LookedAt) -> None:
    world.agent("a-1")
    for _ in range(2):
        world.connections.look()
    assert world.connections.records["a-1"].why_late == ""
    world.connections.looked_at -= 60
    for _ in range(2):
        world.connections.look()
    assert "not looked at for 60 s" in world.connections.records["a-1"].why_late


def test_reach_of_a_process_here_and_of_one_that_is_gone() -> None:
    assert why_reaches(os.getpid()) == "it shares this host's network"
    process = subprocess.Popen(["/bin/true"])
    process.wait()
    assert why_reaches(process.pid) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes namespaces without bubblewrap")
@pytest.mark.parametrize("words", ["files", ""])
def test_reach_of_a_process_with_a_network_of_its_own(tmp_path: Path, words: str) -> None:
    for folder in ("usr", "lib", "lib64", "bin"):
        (tmp_path / folder).mkdir()
    script = " && ".join(f"mount --bind /{f} {tmp_path}/{f}" for f in ("usr", "lib", "lib64", "bin"))
    inner = f"unshare -n -m sh -c '{script} && exec chroot {tmp_path} /bin/sleep 600'" if words == "" else "unshare -n /bin/sleep 600"
    process = subprocess.Popen(["/bin/sh", "-c", f"exec {inner}"])
    try:
        until(lambda: processes.command_line(process.pid) == "/bin/sleep 600", "it runs")
        assert words in why_reaches(process.pid) and bool(why_reaches(process.pid)) is bool(words)
    finally:
        process.kill()
        process.wait()


def test_a_socket_of_another_program_in_its_working_folder_is_a_reach(world: LookedAt) -> None:
    path = Path.cwd() / f"w{os.getpid()}.sock"
    world.agent("a-1")
    world.connections.look()
    record = world.connections.records["a-1"]
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            listener.bind(str(path))
            listener.listen()
            with contextlib.closing(Reader()) as reader:
                seen = snapshot.snapshot([reader.read(time.monotonic() + 60)])
        finally:
            path.unlink()
        assert "working folder" in module._why_reaches_folder(record, seen)
        record.sockets |= {os.fstat(listener.fileno()).st_ino}
        assert module._why_reaches_folder(record, seen) == "", "its own"


def test_answers_fit_into_a_line_and_are_paged(world: LookedAt) -> None:
    agents = [f"a-{n:03}" for n in range(60)]
    for agent_id in agents:
        record = world.connections.records[agent_id] = Record(agent_id, 0, 0, 0, reach="it shares this host's network")
        record.kept = {
            ("unix", f"/{n}" * 100, n, 0): Kept("unix", "", f"/{n}" * 100, Process(n, 1, "/x/" + "é" * 90, 0), 0, "", 0, 0.0)
            for n in range(1, 40)
        }
    found, after = dict[str, object](), ""
    while True:
        answer = overview(world.connections.records, agents, after)
        assert len(str(answer)) < 4000
        found |= dict(answer["agents"])  # type: ignore[call-overload]
        if answer["next"] is None:
            break
        after = str(answer["next"])
    assert list(found) == agents
    assert overview(world.connections.records, ["new"], "")["agents"] == {"new": {"reach": "it was not checked yet"}}
    one = of_agent(world.connections.records, "a-000")
    assert one["n"] == 39 and 0 < len(one["connections"]) < 39  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        of_agent(world.connections.records, "nobody")
