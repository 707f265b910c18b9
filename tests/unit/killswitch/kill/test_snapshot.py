"""Which process is at the other end of a socket, from real lists and real processes."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from console.killswitch.kernel import processes
from console.killswitch.kernel.socket_lists import LISTEN, Raw, Reader, Tcp, Unix
from console.killswitch.kill import snapshot as module
from console.killswitch.kill.snapshot import Snapshot, find_process, holders, snapshot, sockets_of

LO, HERE, THERE = b"\x7f\0\0\1", b"\n\0\0\2", b"\n\0\0\1"


def now() -> Snapshot:
    with contextlib.closing(Reader()) as reader:
        return snapshot([reader.read(time.monotonic() + 60)])


def inode(sock: socket.socket) -> int:
    return os.fstat(sock.fileno()).st_ino


def test_ends_of_a_pair_and_of_a_served_client(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    one, other = socket.socketpair()
    with one, other, socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind(path)
        listener.listen()
        client.connect(path)
        waiting = now()
        found = waiting.far(inode(client))
        assert found is not None and (found.remote, found.inodes) == (path, (inode(listener),)), "nothing has accepted it yet"
        assert waiting.far(inode(listener)) is None
        server, _ = listener.accept()
        with server:
            seen = now()
            assert seen.far(inode(one)).inodes == (inode(other),)  # type: ignore[union-attr]
            served = seen.far(inode(client))
            assert served is not None and (served.inodes, served.listeners, served.address) == ((inode(server),), (inode(listener),), path)


def test_ends_of_tcp_before_and_after_it_is_accepted() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    with listener, socket.create_connection(listener.getsockname()) as client:
        port = listener.getsockname()[1]
        found = now().far(inode(client))
        assert found is not None and (found.inodes, found.port) == ((inode(listener),), port)
        server, _ = listener.accept()
        with server:
            seen = now()
            found, back = seen.far(inode(client)), seen.far(inode(server))
            assert found is not None and found.inodes == (inode(server),) and found.remote == f"127.0.0.1:{port}"
            assert back is not None and back.inodes == (inode(client),)
            assert seen.away(inode(client)) is None


def tcp(number: int, local: tuple[bytes, int], remote: tuple[bytes, int], state: int = 1, cgroup: int = 0) -> Tcp:
    return Tcp(number, state, local, remote, 0, cgroup)


@pytest.fixture
def lists(monkeypatch: pytest.MonkeyPatch) -> dict[int, list[Tcp]]:
    """Namespaces with TCP sockets, as if they had been read."""
    made: dict[int, list[Tcp]] = {}
    monkeypatch.setattr(module, "parse_tcp", lambda data: made[int(data)])
    monkeypatch.setattr(module, "parse_unix", lambda data: iter(()))
    return made


def read(lists: dict[int, list[Tcp]]) -> Snapshot:
    return snapshot([Raw(n, b"", str(n).encode()) for n in lists])


def test_a_container_s_connection_to_this_host_is_joined_but_loopback_addresses_of_two_namespaces_are_not(
    lists: dict[int, list[Tcp]],
) -> None:
    lists[1] = [tcp(11, (THERE, 80), (HERE, 4000)), tcp(12, (LO, 80), (LO, 4000)), tcp(13, (b"\0\0\0\0", 80), (b"\0\0\0\0", 0), LISTEN)]
    lists[2] = [tcp(21, (HERE, 4000), (THERE, 80)), tcp(22, (LO, 4000), (LO, 80))]
    seen = read(lists)
    found = seen.far(21)
    assert found is not None and (found.inodes, found.listeners, found.port) == ((11,), (13,), 0)
    assert seen.far(22) is None and seen.away(22) is None


def test_another_machine_is_away(lists: dict[int, list[Tcp]]) -> None:
    lists[1] = [tcp(11, (HERE, 4000), (b"\x08\x08\x08\x08", 443))]
    seen = read(lists)
    assert seen.far(11) is None and seen.away(11) == lists[1][0] and seen.away(99) is None


def test_an_end_that_listens_at_another_address_than_was_asked_for_is_found_and_one_that_many_ask_is_not(
    lists: dict[int, list[Tcp]],
) -> None:
    """Address translation: the client knows the address of the host, the server its own."""
    inside = b"\n\0\0\3"
    lists[1] = [tcp(11, (HERE, 4000), (HERE, 80)), tcp(12, (LO, 5000), (LO, 80)), tcp(13, (LO, 8080), (LO, 5000))]
    lists[2] = [tcp(21, (inside, 8080), (HERE, 4000))]
    seen = read(lists)
    assert [one.inodes if (one := seen.far(n)) else () for n in (11, 12)] == [(21,), (13,)] and seen.away(11) is None
    lists[1] = [tcp(11, (HERE, 80), (THERE, 9)), tcp(12, (HERE, 4000), (HERE, 80)), tcp(13, (b"\0\0\0\0", 80), (b"\0\0\0\0", 0), LISTEN)]
    assert read(lists).far(11) is None, "a server whose client is gone is connected to none of its other clients"


def test_an_address_of_this_host_is_known() -> None:
    assert module.is_here((LO, 80)) and module.is_here((bytes(15) + b"\1", 80)) and not module.is_here((b"\x08\x08\x08\x08", 443))


BESIDE = """import ctypes, os, socket, sys
for number in range(int(sys.argv[1])):
    if os.fork() == 0:
        assert ctypes.CDLL(None).unshare(0x40000000) == 0  # CLONE_NEWNET
        kept = socket.create_server(("0.0.0.0", 4321))
        os.write(1, b"%d\\n" % os.stat("/proc/self/ns/net").st_ino)
        os.read(0, 1)
        os._exit(0)
os.read(0, 1)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may enter another network namespace")
def test_the_sockets_of_all_other_network_namespaces_are_read_but_for_those_that_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    number = 70
    other = subprocess.Popen([sys.executable, "-S", "-c", BESIDE, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert other.stdout is not None and other.stdin is not None
        theirs = {int(other.stdout.readline()) for _ in range(number)}
        ours = os.stat("/proc/self/ns/net").st_ino  # noqa: PTH116 - a link of /proc
        raws, is_cut = module.read_beside({ours}, time.monotonic() + 600)
        found = {raw.namespace for raw in raws}
        assert len(theirs) == number and theirs <= found and ours not in found and not is_cut
        assert not theirs & {raw.namespace for raw in module.read_beside({ours, *theirs}, time.monotonic() + 600)[0]}
        assert module.read_beside({ours}, 0.0) == ([], True), "no time: some that may be entered were not read"
        monkeypatch.setattr(module, "Reader", lambda _: (_ for _ in ()).throw(PermissionError))
        assert module.read_beside({ours}, time.monotonic() + 600) == ([], False), "an ordinary account reads none"
    finally:
        other.communicate()


def test_a_child_that_inherited_an_end_is_not_at_the_other_end() -> None:
    one, other = socket.socketpair()
    with one, other:
        child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, pass_fds=(other.fileno(),))
        try:
            assert module.without_children({os.getpid(), child.pid}) == [os.getpid()]
            assert set(module.without_children({1, child.pid})) == {1, child.pid}, "process 1 is above all"
            assert module.without_children([child.pid]) == [child.pid]
        finally:
            child.communicate()


def test_a_unix_socket_whose_other_end_is_gone_has_none() -> None:
    made = Snapshot()
    made.unix[5] = Unix(5, 1, b"", 0, 0)
    assert made.far(5) is None and made.far(6) is None


def test_holders_are_found_among_all_processes_and_those_skipped_are_not_asked() -> None:
    one, other = socket.socketpair()
    with one, other:
        child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, pass_fds=(other.fileno(),))
        try:
            wanted = {inode(other)}
            assert set(holders(wanted).pids[inode(other)]) == {os.getpid(), child.pid}
            assert holders(wanted).of(wanted) == {os.getpid()}, "the child inherited it"
            assert holders(wanted, skip={os.getpid()}).of(wanted) == {child.pid}
            cut = holders(wanted, until=0)
            assert cut.is_cut and not cut.pids
            assert not holders(()).is_cut
        finally:
            child.communicate()


def test_more_open_files_than_are_looked_at_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sockets_of(os.getpid())[1]
    monkeypatch.setattr(module, "MOST_DESCRIPTORS", 1)
    assert not sockets_of(os.getpid())[1]


@pytest.mark.parametrize("what", ["/fd", "/proc"])
def test_without_a_descriptor_left_it_is_not_known_who_holds_a_socket(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scandir = os.scandir

    def none_is_left(path: str) -> object:
        if path.endswith(what):
            raise OSError(errno.EMFILE, "Too many open files")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", none_is_left)
    found = holders({1})
    assert found.is_cut and not found.pids and not found.hidden


def test_a_process_that_is_gone_has_no_sockets_and_is_none() -> None:
    process = subprocess.Popen(["/bin/true"])
    process.wait()
    assert sockets_of(process.pid) == (set(), True) and find_process(process.pid) is None


def test_a_process_is_named_by_its_program() -> None:
    found = find_process(os.getpid())
    assert found is not None and found.name == Path(sys.executable).resolve().name and found.is_alive()
    assert (found.uid, found.start_ticks) == (os.geteuid(), processes.start_ticks(os.getpid()))


UNREAPED = """
import os, subprocess
from console.killswitch.kill.snapshot import sockets_of
if os.getuid() == 0:
    os.setresuid(65534, 65534, 65534)  # root may read the files of everybody
child = subprocess.Popen(["/bin/sleep", "60"])
child.kill()
os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
try:
    os.listdir(f"/proc/{child.pid}/fd")
    print("it shows its files")
except PermissionError:
    print(sockets_of(child.pid))
child.wait()
"""


def test_one_that_ended_and_was_not_waited_for_holds_nothing() -> None:
    root = str(Path(__file__).parents[4])
    done = subprocess.run(
        [sys.executable, "-c", UNREAPED], capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": root}
    )
    assert done.stdout == "(set(), True)\n"


DYING = """
import os, subprocess, sys
from console.killswitch.kernel import processes
from console.killswitch.kill.snapshot import sockets_of
if os.getuid() == 0:
    os.setresuid(65534, 65534, 65534)  # root may read the files of everybody
code = "import time; kept = bytearray(1 << 27); print(flush=True); time.sleep(600)"
child = subprocess.Popen(["/usr/bin/python3", "-S", "-c", code], stdout=subprocess.PIPE)
child.stdout.readline()
child.kill()
known = set()
while processes.state(child.pid) != "Z":
    known.add(sockets_of(child.pid)[1])
child.wait()
print(known)
"""
"""Its memory is given back for some 10 ms; its files are closed only after that."""


def test_one_that_a_kill_has_met_hides_nothing_while_it_dies() -> None:
    root = str(Path(__file__).parents[4])
    done = subprocess.run([sys.executable, "-c", DYING], capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": root})
    assert done.stdout == "{True}\n"
