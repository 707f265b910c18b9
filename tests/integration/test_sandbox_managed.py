"""Managed agents on the real kernel, as root: what they cannot see, reach or outlive; the gate; hostile words."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.agent import AgentId
from console.domain.errors import Conflict, ConsoleError, TimedOut, UsageProblem
from console.domain.ids import ControlLevel
from console.domain.network import NetworkMode
from console.sandbox.interface import KILLED_EXIT_CODE, Ticket
from console.sandbox.managed import USER_NAMESPACES, Managed
from tests.fakes.sandbox_world import GID, UID, WAIT_S, World, answers, look_around, procs, run, wait_for

SLEEP = ("/bin/sleep", "300")


@pytest.fixture
def world(state_dir: Path) -> Iterator[World]:
    made = World(state_dir)
    yield made
    made.close()


@pytest.fixture
def managed() -> Managed:
    return Managed()


def test_agent_sees_only_its_own_and_can_do_nothing_to_ours(world: World, managed: Managed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WF_SECRET", "canary-7f3a")
    (world.state / "workspaces" / "c-neighbour").mkdir(parents=True)
    spec = look_around(world, "look", env={"ONLY": "this"})
    seen = answers(managed, spec, world.ticket("look"))

    assert seen["ids"] == [UID, UID, GID, GID] and seen["groups"] == []
    assert seen["caps"] == [0, 0, 0, 0, 0]
    assert seen["nnp"] == 1 and seen["seccomp"] == 2
    assert seen["pids"] == [1, seen["pid"]]
    assert seen["interfaces"] == ["lo"]
    assert seen["fds"] == [0, 1, 2]
    assert {"PATH", "ONLY"} <= set(seen["environ"]) <= {"PATH", "ONLY", "LC_CTYPE"}
    assert not seen["canary"]
    assert seen["state"] == ["agents", "workspaces"]
    assert seen["agents"] == ["look.sock"]
    assert seen["cgroups"] == []
    assert seen["other"] == "ENOENT"
    assert {seen[way] for way in ("proc_root", "up", "link")} <= {"ENOENT", "EACCES"} and seen["contexts"] == ["c-look"]
    for name in ("leave", "leave_v2", "plant", "core_pattern", "sysrq", "root", "usr", "mknod"):
        assert seen[name] != "done", name
    assert seen["release_agent"] == []
    assert seen["work"] == "done" and (spec.workspace / "output" / "made").read_text() == "made"
    assert seen["cwd"] == str(spec.workspace)
    assert seen["talk"] == "done"
    assert [seen[name] for name in ("vsock", "packet", "keyctl", "io_uring", "bpf", "perf", "userfaultfd")] == ["EPERM"] * 7


def test_what_is_prepared_is_described(world: World, managed: Managed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WF_SECRET", "canary-7f3a")
    ticket = world.ticket("said")
    prepared = managed.prepare(world.spec("said", *SLEEP), ticket)
    try:
        assert prepared.netns and prepared.mask and not prepared.userns
        assert prepared.notes == ()
        assert prepared.control_level is ControlLevel.MANAGED
        assert procs(ticket.leaf) == [prepared.pid]
        assert Path(f"/proc/{prepared.pid}/environ").read_bytes() == b""
        assert os.stat(f"/proc/{prepared.pid}/ns/net").st_ino != os.stat("/proc/self/ns/net").st_ino
    finally:
        managed.abort(prepared)


def test_user_namespaces_are_refused_unless_its_program_builds_a_sandbox_of_its_own(world: World, managed: Managed) -> None:
    unshare = ("unshare", "--user", "--map-root-user", "sh", "-c", "id -u")
    code, said, prepared = run(managed, world.spec("plain", *unshare), world.ticket("plain"))
    assert code == 1 and "Operation not permitted" in said and USER_NAMESPACES not in prepared.notes
    code, said, prepared = run(managed, world.spec("browser", *unshare, user_namespaces=True), world.ticket("browser"))
    assert (code, said.strip()) == (0, "0") and USER_NAMESPACES in prepared.notes


def test_full_keeps_the_machines_network(world: World, managed: Managed) -> None:
    prepared = managed.prepare(world.spec("full", *SLEEP, network_mode=NetworkMode.FULL), world.ticket("full"))
    try:
        assert not prepared.netns
        assert os.stat(f"/proc/{prepared.pid}/ns/net").st_ino == os.stat("/proc/self/ns/net").st_ino
    finally:
        managed.abort(prepared)


def test_nothing_of_the_agent_runs_before_the_gate_opens(world: World, managed: Managed) -> None:
    spec = world.spec("gate", "/bin/sh", "-c", "echo ran > ran")
    prepared = managed.prepare(spec, world.ticket("gate"))
    try:
        time.sleep(0.5)
        assert not (spec.workspace / "ran").exists()
        with pytest.raises(TimedOut):
            managed.wait(prepared, 0.05)
        managed.go(prepared)
        assert managed.wait(prepared, WAIT_S) == 0
        assert (spec.workspace / "ran").read_text() == "ran\n"
        with pytest.raises(ConsoleError):
            managed.go(prepared)
    finally:
        managed.abort(prepared)


def test_abort_before_the_gate_leaves_nothing_and_runs_nothing(world: World, managed: Managed) -> None:
    spec, ticket = world.spec("abort", "/bin/sh", "-c", "echo ran > ran"), world.ticket("abort")
    prepared = managed.prepare(spec, ticket)
    managed.abort(prepared)
    assert procs(ticket.leaf) == []
    assert not (spec.workspace / "ran").exists()


def test_a_supervisor_that_dies_leaves_the_gate_shut(world: World) -> None:
    spec, ticket = world.spec("orphan", "/bin/sh", "-c", "echo ran > ran"), world.ticket("orphan")
    fields = (spec.argv, spec.env, str(spec.workspace), str(spec.agent_socket), str(spec.output), str(world.state), ticket.leaf, UID)
    program = (
        "import os\nfrom pathlib import Path\nfrom console.sandbox.managed import Managed\n"
        "from console.sandbox.interface import LaunchSpec, Ticket\nfrom console.domain.network import NetworkMode\n"
        f"argv, env, work, door, out, state, leaf, uid = {fields!r}\n"
        "Managed().prepare(LaunchSpec('orphan', argv, env, Path(work), Path(door), Path(out), NetworkMode.NONE,"
        " hide=(Path(state),), uid=uid, gid=uid), Ticket(leaf))\nos.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[2], timeout=WAIT_S, check=False)
    wait_for(lambda: procs(ticket.leaf) == [], "the sandbox outlived its gate")
    assert not (spec.workspace / "ran").exists()


def test_exit_codes_and_output_come_back(world: World, managed: Managed) -> None:
    code, text, _ = run(managed, world.spec("exit", "/bin/sh", "-c", "echo out; echo err >&2; exit 42"), world.ticket("exit"))
    assert (code, text) == (42, "out\nerr\n")
    assert (world.state / "output" / "exit.log").stat().st_mode & 0o777 == 0o600
    assert run(managed, world.spec("signal", "/bin/sh", "-c", "kill -TERM $$"), world.ticket("signal"))[0] == 143
    code, text, _ = run(managed, world.spec("absent", "/no/such/program"), world.ticket("absent"))
    assert code == 127 and "/no/such/program" in text
    assert run(managed, world.spec("folder", "/usr"), world.ticket("folder"))[0] == 126


def test_output_is_bounded_and_out_of_the_agents_hands(world: World, managed: Managed) -> None:
    program = "import os\ntry: os.ftruncate(1, 0)\nexcept OSError: print('kept', flush=True)\nfor _ in range(400): os.write(1, b'x' * 1000)"
    code, text, _ = run(managed, world.python("flood", program, output_max_bytes=100_000), world.ticket("flood"))
    assert code == 0
    assert text.startswith("kept\n") and "output limit" in text
    assert len(text) < 101_000


def test_an_output_file_that_is_a_link_is_refused(world: World, managed: Managed) -> None:
    spec, ticket = world.spec("link", *SLEEP), world.ticket("link")
    spec.output.symlink_to(world.state / "guard" / "latch")
    with pytest.raises(ConsoleError):
        managed.prepare(spec, ticket)
    assert (world.state / "guard" / "latch").read_text() == "canary-of-the-state-dir"
    assert procs(ticket.leaf) == []


DAEMONS = """
import os, time
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(300)
        os._exit(0)
    os.wait()
print("spawned", flush=True)
time.sleep(300)
"""


def test_double_forks_and_new_sessions_stay_in_the_leaf_and_die_with_the_init(world: World, managed: Managed) -> None:
    spec, ticket = world.python("hop", DAEMONS), world.ticket("hop")
    prepared = managed.prepare(spec, ticket)
    managed.go(prepared)
    wait_for(lambda: "spawned" in spec.output.read_text(), "the agent never spawned")
    assert len(procs(ticket.leaf)) == 7
    os.kill(prepared.pid, 9)
    assert managed.wait(prepared, WAIT_S) == KILLED_EXIT_CODE
    assert procs(ticket.leaf) == []
    managed.release(prepared)


def test_strays_end_with_the_agents_first_process(world: World, managed: Managed) -> None:
    ticket = world.ticket("stray")
    code, _, _ = run(managed, world.spec("stray", "/bin/sh", "-c", "setsid sleep 300 & exit 5"), ticket)
    assert code == 5
    assert procs(ticket.leaf) == []


BOMB = """
import os, time
made, refused, end = 0, 0, time.monotonic() + 2
while time.monotonic() < end:
    try:
        if os.fork() == 0:
            time.sleep(300)
            os._exit(0)
        made += 1
    except OSError:
        refused += 1
        time.sleep(0.01)
print(made, refused, flush=True)
"""


def test_a_fork_bomb_is_held_by_the_limit_leaf(world: World, managed: Managed) -> None:
    ticket = world.ticket("bomb", pids_max=40)
    code, text, _ = run(managed, world.python("bomb", BOMB, pids_max=40), ticket)
    made, refused = map(int, text.split())
    assert code == 0 and 0 < made < 40 and refused > 0
    assert procs(ticket.leaf) == []


def test_a_limit_of_the_spec_tightens_the_leaf(world: World, managed: Managed) -> None:
    ticket = world.ticket("tight", pids_max=500)
    prepared = managed.prepare(world.spec("tight", *SLEEP, pids_max=20), ticket)
    managed.abort(prepared)
    leaf = Path(ticket.limit_leaves[0] if ticket.limit_leaves else ticket.leaf)
    assert (leaf / "pids.max").read_text().strip() == "20"


def test_memory_is_capped(world: World, managed: Managed) -> None:
    program = "try:\n  bytearray(1 << 30); print('got it')\nexcept MemoryError: print('refused')"
    code, text, _ = run(managed, world.python("fat", program, memory_max_bytes=200_000_000), world.ticket("fat"))
    assert (code, text) in [(0, "refused\n"), (KILLED_EXIT_CODE, "")]


def test_a_leaf_that_cannot_be_entered_starts_nothing(world: World, managed: Managed) -> None:
    spec = world.spec("lost", "/bin/sh", "-c", "echo ran > ran")
    with pytest.raises(ConsoleError, match="could not be built"):
        managed.prepare(spec, Ticket("/sys/fs/cgroup/no-such-leaf"))
    assert not (spec.workspace / "ran").exists()


def test_hostile_words_arrive_unchanged_and_nul_is_refused(world: World, managed: Managed) -> None:
    words = ["", "a\nb", "\u202e\u2066x", "\udcff\udcfe", "-rf", "$(id)", "ü" * 50_000]
    program = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['HOSTILE']]))"
    got = answers(managed, world.python("words", program, *words, env={"HOSTILE": "x\n\u202e" + "y" * 100_000}), world.ticket("words"))
    assert got == [words, "x\n\u202e" + "y" * 100_000]
    with pytest.raises(UsageProblem):
        managed.prepare(world.spec("nul", "/bin/echo", "a\0b"), world.ticket("nul"))
    with pytest.raises(UsageProblem):
        managed.prepare(world.spec("nulenv", "/bin/true", env={"A": "a\0b"}), world.ticket("nulenv"))
    with pytest.raises(UsageProblem):
        managed.prepare(world.spec("big", "/bin/true", "x" * 200_000), world.ticket("big"))
    with pytest.raises(UsageProblem):
        managed.prepare(world.spec("root", "/bin/true", uid=0), world.ticket("root"))


def test_two_sandboxes_of_one_id_are_refused(world: World, managed: Managed) -> None:
    ticket = world.ticket("twice")
    spec = world.spec("twice", *SLEEP)
    prepared = managed.prepare(spec, ticket)
    with pytest.raises(Conflict):
        managed.prepare(spec, world.ticket("twice-b"))
    managed.abort(prepared)


def test_extra_binds_are_read_only_also_below_closed_folders(world: World, managed: Managed) -> None:
    closed = world.state.parent / f"{world.state.name}-closed"
    (closed / "tools").mkdir(parents=True)
    closed.chmod(0o700)
    (closed / "tools" / "a.py").write_text("print('hello')\nopen(__file__, 'w')")
    binds = ((closed / "tools", str(closed / "tools")),)
    spec = world.spec("bind", "/usr/bin/python3", str(closed / "tools" / "a.py"), extra_binds=binds)
    code, text, _ = run(managed, spec, world.ticket("bind"))
    (closed / "tools" / "a.py").unlink()
    (closed / "tools").rmdir()
    closed.rmdir()
    assert code == 1 and text.startswith("hello\n") and "Read-only file system" in text


def test_a_restarted_supervisor_follows_to_the_end(world: World, managed: Managed) -> None:
    ticket = world.ticket("again")
    prepared = managed.prepare(world.spec("again", *SLEEP), ticket)
    managed.go(prepared)
    later = Managed()
    found = later.reattach(AgentId("again"), prepared.pid, prepared.start_ticks, "")
    with pytest.raises(TimedOut):
        later.wait(found, 0.05)
    later.abort(found)
    assert managed.wait(prepared, WAIT_S) == KILLED_EXIT_CODE
    managed.release(prepared)
    reused = later.reattach(AgentId("reused"), os.getpid(), 1, "")
    assert later.wait(reused, 0) is None
    later.abort(reused)


def test_a_door_that_is_a_folder_shows_a_new_socket(world: World, managed: Managed) -> None:
    folder = world.state / "agents" / "folder"
    folder.mkdir()
    (folder / "sock").write_text("one")
    program = "import sys, time\nwhile open(sys.argv[1]).read() != 'two': time.sleep(0.05)\nprint('seen')"
    spec = world.python("folder", program, str(folder / "sock"), agent_socket=folder / "sock")
    prepared = managed.prepare(spec, world.ticket("folder"))
    managed.go(prepared)
    (folder / "new").write_text("two")
    (folder / "new").rename(folder / "sock")
    assert managed.wait(prepared, WAIT_S) == 0
    managed.release(prepared)


WALK_OUT = """
import errno, json, os
def enter(path):
    try:
        with open(path, "w") as file:
            file.write("0")
        return "done"
    except OSError as error:
        return errno.errorcode[error.errno]
places = [os.path.join(at, "cgroup.procs") for at, _, files in os.walk("/sys/fs/cgroup") if "cgroup.procs" in files]
made = []
for place in places:
    try:
        os.mkdir(os.path.join(os.path.dirname(place), "mine"))
        made.append(place)
    except OSError:
        pass
print(json.dumps({"places": len(places), "said": sorted({enter(place) for place in places}), "made": made, "uid": os.getuid()}))
"""


def test_without_namespaces_another_uid_still_cannot_write_itself_elsewhere(
    world: World, managed: Managed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.sandbox.managed.may_unshare", lambda: False)
    ticket = world.ticket("walker")
    seen = answers(managed, world.python("walker", WALK_OUT), ticket)
    assert seen["uid"] == UID and seen["places"] > 0, "it sees the cgroup tree, and owns none of it"
    assert set(seen["said"]) - {"ENOENT"} == {"EACCES"} and seen["made"] == []  # other tests' groups go meanwhile


def test_without_namespaces_strays_end_with_the_first_process(world: World, managed: Managed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.sandbox.managed.may_unshare", lambda: False)
    word = "61.4242"
    code, _, prepared = run(managed, world.spec("left", "/bin/sh", "-c", f"setsid sleep {word} & setsid sleep {word} & exit 5"), Ticket(""))
    assert code == 5 and any("best effort" in note for note in prepared.notes)
    assert not [p for p in Path("/proc").iterdir() if p.name.isdigit() and word.encode() in _command_line(p)]


def _command_line(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""
