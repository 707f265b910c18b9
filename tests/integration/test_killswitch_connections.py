"""Work that an agent gave to another program: real servers, real kills, and what the receipt says of them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.errors import ExitCode, NotFound, UsageProblem
from console.domain.headline import headline_of
from console.domain.kill import Connection, Receipt, Suspect
from console.domain.verdict import verdict
from console.killswitch.kernel import processes
from console.killswitch.kill.records import FILE
from console.services.stop.observed_targets import tell
from tests.fakes.guard_world import GuardWorld, end, ticks, until
from tests.fakes.instance import free_port
from tests.fakes.work_server import CLIENT, work_server

PYTHON = "/usr/bin/python3"
"""One that nobody may run as well."""
UID = 61_239
"""An account that nothing else on this machine runs under. A socket that was opened after the last look, and that no process holds after
the kill, is taken for a target's of the same account: of root's there are some wherever other programs start and end."""
ALONE = {"ENTER_AS": str(UID)}
AS_UID = ("setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups")

PATIENT = """import sys
from console.killswitch.kernel import socket_lists
socket_lists.DUMP_S = 60.0
from console.killswitch.__main__ import main
sys.exit(main())"""
"""A busy machine passes the product's 10 ms; what is asserted here is what was listed."""


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardWorld]:
    with contextlib.closing(GuardWorld(tmp_path_factory.mktemp("w"))) as made:
        yield made.start_by(PATIENT)


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def server(port: int, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents:
        if not folder.stat().st_mode & 0o001:  # those that pytest made for its user alone, never /tmp itself
            folder.chmod(0o755)
    with work_server(port, str(tmp_path / "work.sock"), tmp_path) as process:
        yield process


def ask(world: GuardWorld, agent_id: str, how: str, where: object, command: str = "", then: str = "keep") -> subprocess.Popen[bytes]:
    """An agent that has asked; it runs on."""
    argv = (PYTHON, "-S", "-c", CLIENT, how, str(where), command, then)
    process = world.agent(agent_id, *argv, env=ALONE, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"asked\n"
    return process


def known(world: GuardWorld, agent_id: str) -> int:
    """How many other ends the guard knows of it; -1: it was not looked at yet."""
    try:
        return int(world.supervisor.call("connections", agent_id=agent_id)["n"])
    except NotFound:
        return -1


def has_looked(world: GuardWorld, *agents: str, n: int = 1) -> None:
    """The regular look has seen them since they asked."""
    for agent_id in agents:
        until(lambda a=agent_id: known(world, a) >= n, f"{agent_id} was looked at")  # type: ignore[misc]


def of(receipt: Receipt, agent_id: str) -> list[Connection]:
    return [one for one in receipt.connections if one.agent_id == agent_id]


def telling(receipt: Receipt) -> list[Suspect]:
    """The suspects by more than a working folder: tests beside this one work in the same folder."""
    return [one for one in receipt.suspects if one.by != "working folder"]


def running(command: str) -> list[int]:
    return [pid for pid in processes.every_pid() if processes.command_line(pid) == command and processes.is_alive(pid)]


def test_work_asked_for_by_tcp_and_by_a_unix_socket_is_in_the_receipt(
    shared: GuardWorld, server: subprocess.Popen[bytes], port: int, tmp_path: Path
) -> None:
    work = [f"/bin/sleep {600 + n}.{os.getpid()}" for n in range(2)]
    ask(shared, "by-tcp", "tcp", port, work[0])
    ask(shared, "by-unix", "unix", tmp_path / "work.sock", work[1])
    shared.agent("alone", env=ALONE)
    has_looked(shared, "by-tcp", "by-unix")
    receipt = shared.pressed()
    found = verdict(receipt)
    assert found.exit_code is ExitCode.BEST_EFFORT and found.verified_zero
    assert headline_of(receipt).startswith("All processes of 3 agents are dead. 2 agents had connections to other programs: python3")
    assert "Work that 1 agent gave to other programs is not covered." in headline_of(receipt)
    assert receipt.connections_state == "recorded" and receipt.uncovered == ("alone",), receipt.connections_detail
    assert len(receipt.connections) == 2, receipt.connections
    [tcp], [unix] = of(receipt, "by-tcp"), of(receipt, "by-unix")
    assert (tcp.kind, tcp.remote, tcp.peer_pid, tcp.peer_uid) == ("tcp", f"127.0.0.1:{port}", server.pid, os.geteuid())
    assert (unix.kind, unix.remote, unix.peer_start_ticks) == ("unix", str(tmp_path / "work.sock"), ticks(server.pid))
    assert {(one.agent_id, one.by, one.command) for one in telling(receipt)} == {
        ("by-tcp", "arguments", work[0]),
        ("by-unix", "arguments", work[1]),
    }
    assert not any(one.preselected for one in receipt.suspects), "it runs under another account than the agent"
    assert all(running(command) for command in work), "a kill ends no suspect"


def test_agents_that_were_only_seen_are_looked_at_too_once_a_kill_includes_them(
    shared: GuardWorld, server: subprocess.Popen[bytes], port: int
) -> None:
    argv = (*AS_UID, PYTHON, "-S", "-c", CLIENT, "tcp", str(port), "true", "keep")
    observed = subprocess.Popen(argv, stdout=subprocess.PIPE)
    try:
        assert observed.stdout is not None and observed.stdout.readline() == b"asked\n"
        exe = processes.describe(observed.pid)["exe"]
        told = {"id": "o-1", "pid": observed.pid, "start_ticks": ticks(observed.pid), "exe": exe, "uid": UID}
        tell(shared.supervisor, [told, told | {"id": "o-2", "start_ticks": 1}])
        has_looked(shared, "o-1")
        assert known(shared, "o-2") == -1, "its number is another process's"
        receipt = shared.pressed()
        assert [one.peer_pid for one in of(receipt, "o-1")] == [server.pid] and observed.wait(60) < 0
        assert verdict(receipt).exit_code is ExitCode.BEST_EFFORT and "connections to other programs" in headline_of(receipt)
        tell(shared.supervisor, [])
        until(lambda: known(shared, "o-1") == -1, "nobody follows it any more")
    finally:
        observed.kill()
        observed.wait()
        assert observed.stdout is not None
        observed.stdout.close()


def test_a_connection_that_was_closed_before_the_kill_is_kept(shared: GuardWorld, server: subprocess.Popen[bytes], port: int) -> None:
    agent = ask(shared, "earlier", "tcp", port, "true")
    has_looked(shared, "earlier")
    agent.send_signal(19)  # it keeps its end open, the server ends: nothing is left to see at the kill
    end(server.pid)
    receipt = shared.pressed(["earlier"])
    [one] = of(receipt, "earlier")
    assert one.peer_pid == server.pid and "it has ended" in one.note


@pytest.fixture
def elsewhere() -> Iterator[tuple[list[str], str]]:
    """(words that run a command in another network namespace of this host, an address in it)."""
    number, name = os.getpid() % 250, f"wft{os.getpid()}"
    here, there = (f"10.214.{number}.{n}" for n in (1, 2))
    inside = ["ip", "netns", "exec", name]
    try:
        for words in (
            ["ip", "netns", "add", name],
            ["ip", "link", "add", f"h{name}", "type", "veth", "peer", "name", "inner", "netns", name],
            ["ip", "addr", "add", f"{here}/24", "dev", f"h{name}"],
            ["ip", "link", "set", f"h{name}", "up"],
            [*inside, "ip", "addr", "add", f"{there}/24", "dev", "inner"],
            [*inside, "ip", "link", "set", "inner", "up"],
        ):
            subprocess.run(words, check=True, capture_output=True)
        yield inside, there
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no network namespace can be made here: {error}")
    finally:
        with contextlib.suppress(FileNotFoundError):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def test_a_program_in_another_network_namespace_of_this_host_is_no_other_machine(
    shared: GuardWorld, port: int, elsewhere: tuple[list[str], str]
) -> None:
    """A container's server, asked at the container's own address."""
    inside, address = elsewhere
    serve = (
        "import socket,sys,time\n"
        "kept = [socket.create_server((sys.argv[1], int(sys.argv[2])))]\n"
        "print('ready', flush=True)\nkept.append(kept[0].accept())\ntime.sleep(600)\n"
    )
    asks = (
        "import socket,sys,time\n"
        "kept = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        "print('asked', flush=True)\ntime.sleep(600)\n"
    )
    server = subprocess.Popen([*inside, PYTHON, "-S", "-c", serve, address, str(port)], stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None and server.stdout.readline() == b"ready\n"
        agent = shared.agent("asks-inside", PYTHON, "-S", "-c", asks, address, str(port), env=ALONE, stdout=subprocess.PIPE)
        assert agent.stdout is not None and agent.stdout.readline() == b"asked\n"
        has_looked(shared, "asks-inside")
        receipt = shared.pressed(["asks-inside"])
        assert [(one.remote, one.peer_pid) for one in receipt.connections] == [(f"{address}:{port}", server.pid)]
        assert verdict(receipt).exit_code is ExitCode.BEST_EFFORT and "other machines" not in receipt.connections_detail
    finally:
        server.kill()
        server.wait()
        assert server.stdout is not None
        server.stdout.close()


def test_work_that_inherited_the_connection_of_its_server_is_a_suspect_and_no_other_end(shared: GuardWorld, port: int) -> None:
    serve = (
        "import os,socket,subprocess,sys,time\n"
        "listener = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
        "print('ready', flush=True)\n"
        "kept, _ = listener.accept()\n"
        "subprocess.Popen(kept.recv(4000).decode().split(), pass_fds=[kept.fileno()])\n"
        "kept.sendall(b'done')\ntime.sleep(600)\n"
    )
    work = f"/bin/sleep {900}.{os.getpid()}"
    server = subprocess.Popen([*AS_UID, PYTHON, "-S", "-c", serve, str(port)], stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None and server.stdout.readline() == b"ready\n"
        agent = shared.agent("asks", PYTHON, "-S", "-c", CLIENT, "tcp", str(port), work, "keep", env=ALONE, stdout=subprocess.PIPE)
        assert agent.stdout is not None and agent.stdout.readline() == b"asked\n"
        has_looked(shared, "asks")
        receipt = shared.pressed(["asks"])
        assert [one.peer_pid for one in receipt.connections] == [server.pid]
        assert [one.command for one in telling(receipt)] == [work]
        assert shared.operator.end_suspects(receipt.kill_id, [], "tester")["n_done"] == 1 and not running(work)
    finally:
        for pid in running(work):
            end(pid)
        server.kill()
        server.wait()
        assert server.stdout is not None
        server.stdout.close()


def test_suspects_are_ended_one_by_one_and_nothing_that_was_not_named(shared: GuardWorld, port: int, tmp_path: Path) -> None:
    work = [f"/bin/sleep {700 + n}.{os.getpid()}" for n in range(3)]
    with work_server(port, str(tmp_path / "work.sock"), tmp_path) as server:
        for n, command in enumerate(work):  # as root, like the server: only then is it the same account
            argv = (PYTHON, "-S", "-c", CLIENT, "tcp", str(port), command, "keep")
            agent = shared.agent(f"asks-{n}", *argv, stdout=subprocess.PIPE)
            assert agent.stdout is not None and agent.stdout.readline() == b"asked\n"
        has_looked(shared, "asks-0", "asks-1", "asks-2")
        receipt = shared.pressed()
        pids = {one.command: one.pid for one in telling(receipt)}
        assert all(one.preselected for one in telling(receipt)) and set(pids) == set(work)
        with pytest.raises(NotFound, match="no kill 'k-unknown': nothing was killed"):
            shared.operator.end_suspects("k-unknown", [], "tester")
        with pytest.raises(UsageProblem, match="nothing was killed"):
            shared.operator.end_suspects(receipt.kill_id, [pids[work[0]], server.pid], "tester")
        assert all(running(command) for command in work)
        one = shared.operator.end_suspects(receipt.kill_id, [pids[work[0]]], "tester")
        assert (one["n"], one["n_done"], one["ended"][0]["words"]) == (1, 1, "killed")
        assert [bool(running(command)) for command in work] == [False, True, True] and server.poll() is None
        rest = shared.operator.end_suspects(receipt.kill_id, [], "tester")
        assert (rest["n"], rest["n_done"]) == (3, 3) and not any(running(command) for command in work)
        amended = shared.receipt(receipt.kill_id)["amended"]
        assert any(f"suspect process {pids[work[1]]}: killed, as tester asked" in words for words in amended)


def test_suspects_of_a_kill_of_a_former_guard_are_found_on_disk_and_a_changed_pid_is_refused(state_dir: Path, port: int) -> None:
    with contextlib.closing(GuardWorld(state_dir)) as world, work_server(port, str(state_dir / "w.sock"), state_dir):
        world.start_by(PATIENT)
        work = f"/bin/sleep {800}.{os.getpid()}"
        argv = (PYTHON, "-S", "-c", CLIENT, "tcp", str(port), work, "keep")
        folder = state_dir / "own"  # what works in the folder of the agent is a suspect: in that of the tests there is more
        folder.mkdir()
        agent = world.agent("asks", *argv, cwd=folder, stdout=subprocess.PIPE)
        assert agent.stdout is not None and agent.stdout.readline() == b"asked\n"
        has_looked(world, "asks")
        kill_id = world.pressed(["asks"]).kill_id
        world.kill_guard()
        path = state_dir / "guard" / "receipts" / f"{kill_id}.json"
        paper = json.loads(path.read_text())
        [suspect] = paper["suspects"]
        path.write_text(json.dumps(paper | {"suspects": [suspect | {"start_ticks": suspect["start_ticks"] - 1}]}))
        world.start_by(PATIENT)
        answer = world.operator.end_suspects(kill_id, [], "tester")
        assert answer["n_done"] == 0 and "belongs to another process by now: nothing was sent" in answer["ended"][0]["words"]
        assert running(work)


def test_an_abstract_name_and_an_end_that_was_passed_on(shared: GuardWorld, port: int, tmp_path: Path) -> None:
    name = f"@watchfloor-test-{os.getpid()}"
    with work_server(port, name, tmp_path) as server:
        ask(shared, "abstract", "unix", name, "true")
        ask(shared, "passed", "unix", name, "", "pass")
        has_looked(shared, "abstract", "passed")
        receipt = shared.pressed()
        assert [(one.remote, one.peer_pid) for one in of(receipt, "abstract")] == [(name, server.pid)]
        assert server.pid in {one.peer_pid for one in of(receipt, "passed")}


def test_connections_within_a_tree_and_between_targets_do_not_count_but_those_to_another_agent_do(
    shared: GuardWorld, tmp_path: Path, port: int
) -> None:
    serve = (
        "import socket,sys,time\n"
        "listener = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
        "pair = socket.socketpair()\n"
        "import os\n"
        "if os.fork() == 0: time.sleep(600)\n"
        "print('asked', flush=True)\n"
        "kept = [listener.accept() for _ in range(1)]\n"
        "time.sleep(600)\n"
    )
    both = []
    for n in (1, 2):
        both.append(shared.agent(f"server-{n}", PYTHON, "-S", "-c", serve, str(port + n), env=ALONE, stdout=subprocess.PIPE))
        stdout = both[-1].stdout
        assert stdout is not None and stdout.readline() == b"asked\n"
        client = (
            "import socket,sys,time\n"
            "kept = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
            "print('asked', flush=True)\ntime.sleep(600)"
        )
        one = shared.agent(f"client-{n}", PYTHON, "-S", "-c", client, str(port + n), env=ALONE, stdout=subprocess.PIPE)
        assert one.stdout is not None and one.stdout.readline() == b"asked\n"
    has_looked(shared, "client-1", "client-2", "server-1", "server-2")
    together = shared.pressed(["server-1", "client-1"])
    assert not together.connections and together.connections_state == "recorded", together
    alone = shared.pressed(["client-2"])
    [seen] = alone.connections
    assert (seen.peer_pid, seen.agent_id) == (both[1].pid, "client-2") and "agent server-2, which was not a target" in seen.note
    shared.pressed()


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_a_job_given_to_a_tmux_server_that_was_there_before(shared: GuardWorld, tmp_path: Path) -> None:
    sock, marker = tmp_path / "tmux.sock", f"60{os.getpid():05}"
    tmux = ["tmux", "-S", str(sock), "-f", "/dev/null"]
    subprocess.run([*tmux, "new-session", "-d", "-s", "operator", "sleep 600"], check=True)
    pid = int(subprocess.run([*tmux, "display-message", "-p", "#{pid}"], check=True, capture_output=True).stdout)
    try:
        # Clients stay attached through commands that wait: the job is given after a look has seen the connection.
        asks = f"tmux -S {sock} wait-for go && tmux -S {sock} new-session -d -s work 'sleep {marker}'"
        shared.agent("tmux-user", "/bin/sh", "-c", f"tmux -S {sock} wait-for never & {asks}; wait")
        has_looked(shared, "tmux-user")
        subprocess.run([*tmux, "wait-for", "-S", "go"], check=True)
        until(lambda: running(f"sleep {marker}"), "the job runs")
        receipt = shared.pressed(["tmux-user"])
        assert pid in {one.peer_pid for one in receipt.connections}
        [suspect] = telling(receipt)
        assert (suspect.command, suspect.by, suspect.preselected) == (f"sleep {marker}", "arguments", True)
        assert processes.is_alive(pid) and running(f"sleep {marker}")
    finally:
        subprocess.run([*tmux, "kill-server"], check=True)
        until(lambda: not processes.is_alive(pid), "tmux has ended")


def test_a_server_that_accepts_only_after_the_kill_is_named(shared: GuardWorld, port: int) -> None:
    slow = (
        "import socket,sys,time\n"
        "kept = [socket.create_server(('127.0.0.1', int(sys.argv[1])))]\n"
        "kept.append(socket.socket(socket.AF_UNIX)); kept[-1].bind('\\0' + sys.argv[2]); kept[-1].listen()\n"
        "print('ready', flush=True)\ntime.sleep(600)\n"
    )
    name = f"watchfloor-slow-{os.getpid()}"
    process = subprocess.Popen([sys.executable, "-c", slow, str(port), name], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    try:
        ask_slow = (
            "import socket,sys,time\n"
            "a = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
            "b = socket.socket(socket.AF_UNIX); b.connect('\\0' + sys.argv[2])\n"
            "a.sendall(b'work'); b.sendall(b'work')\nprint('asked', flush=True)\ntime.sleep(600)\n"
        )
        agent = shared.agent("hasty", PYTHON, "-S", "-c", ask_slow, str(port), name, env=ALONE, stdout=subprocess.PIPE)
        assert agent.stdout is not None and agent.stdout.readline() == b"asked\n"
        has_looked(shared, "hasty", n=2)
        receipt = shared.pressed(["hasty"])
        assert {(one.kind, one.peer_pid) for one in receipt.connections} == {("tcp", process.pid), ("unix", process.pid)}
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_thousands_of_connections_are_one_line_and_the_kill_is_not_held_up(shared: GuardWorld, port: int) -> None:
    serve = (
        "import socket,sys,time\n"
        "listener = socket.create_server(('127.0.0.1', int(sys.argv[1])), backlog=2000)\n"
        "print('ready', flush=True)\n"
        "kept = [listener.accept() for _ in range(1500)]\ntime.sleep(600)\n"
    )
    many = (
        "import socket,sys,time\n"
        "kept = [socket.create_connection(('127.0.0.1', int(sys.argv[1])), timeout=60) for _ in range(1500)]\n"
        "print('asked', flush=True)\ntime.sleep(600)\n"
    )
    server = subprocess.Popen([sys.executable, "-c", serve, str(port)], stdout=subprocess.PIPE)
    assert server.stdout is not None and server.stdout.readline() == b"ready\n"
    try:
        agent = shared.agent("many", PYTHON, "-S", "-c", many, str(port), env=ALONE, stdout=subprocess.PIPE)
        assert agent.stdout is not None and agent.stdout.readline() == b"asked\n"
        has_looked(shared, "many")
        receipt = shared.pressed(["many"])
        [one] = receipt.connections
        assert one.peer_pid == server.pid and "connections" in one.note
        assert verdict(receipt).verified_zero
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def test_what_a_guard_knew_of_connections_is_known_to_the_next_one(state_dir: Path, server: subprocess.Popen[bytes], port: int) -> None:
    with contextlib.closing(GuardWorld(state_dir)) as world:
        world.start_by(PATIENT)
        ask(world, "asked", "tcp", port, "true")
        world.agent("plain", env=ALONE)
        has_looked(world, "asked")
        has_looked(world, "plain", n=0)
        end(server.pid)  # only the first guard has seen it
        time.sleep(5.5)  # long enough for an agent that no guard has looked at yet to be unknown
        world.kill_guard()
        world.start_by(PATIENT)
        plain, asked = world.pressed(["plain"]), world.pressed(["asked"])
        assert plain.connections_state == "recorded", plain.connections_detail
        assert verdict(plain).exit_code is ExitCode.DONE
        assert [one.peer_pid for one in asked.connections] == [server.pid]
        assert verdict(asked).exit_code is ExitCode.BEST_EFFORT


def test_what_no_guard_is_known_to_have_looked_at_is_not_recorded_never_none(state_dir: Path) -> None:
    with contextlib.closing(GuardWorld(state_dir)) as world:
        world.start_by(PATIENT)
        world.agent("older", env=ALONE)
        has_looked(world, "older", n=0)
        time.sleep(5.5)  # what it did before the second guard looked is long enough ago to matter
        world.kill_guard()
        (world.run / FILE).unlink()
        world.start_by(PATIENT)
        has_looked(world, "older", n=0)
        receipt = world.pressed()
        assert receipt.connections_state == "not recorded" and "not looked at from its start" in receipt.connections_detail
        assert receipt.uncovered == ("older",) and "not recorded" in headline_of(receipt)
        assert verdict(receipt).verified_zero and verdict(receipt).exit_code is ExitCode.BEST_EFFORT, "an unknown is never green"
