"""Which process is at the other end of a socket, from real lists and real processes."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from console.killswitch import processes
from console.killswitch.kill import snapshot as module
from console.killswitch.kill.snapshot import Snapshot, find_process, holders, snapshot, sockets_of
from console.killswitch.sock_diag import LISTEN, Raw, Reader, Tcp, Unix

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
            assert seen.away(inode(client)) == ""


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
    assert seen.far(22) is None and seen.away(22) == ""


def test_another_machine_is_away(lists: dict[int, list[Tcp]]) -> None:
    lists[1] = [tcp(11, (HERE, 4000), (b"\x08\x08\x08\x08", 443))]
    seen = read(lists)
    assert seen.far(11) is None and seen.away(11) == "8.8.8.8:443" and seen.away(99) == ""


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
            assert holders(wanted).of(wanted) == {os.getpid(), child.pid}
            assert holders(wanted, skip={child.pid}).of(wanted) == {os.getpid()}
            cut = holders(wanted, until=0)
            assert cut.is_cut and not cut.pids
            assert not holders(()).is_cut
        finally:
            child.communicate()


def test_more_open_files_than_are_looked_at_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sockets_of(os.getpid())[1]
    monkeypatch.setattr(module, "MOST_DESCRIPTORS", 1)
    assert not sockets_of(os.getpid())[1]


def test_a_process_that_is_gone_has_no_sockets_and_is_none() -> None:
    process = subprocess.Popen(["/bin/true"])
    process.wait()
    assert sockets_of(process.pid) == (set(), True) and find_process(process.pid) is None


def test_a_process_is_named_by_its_program() -> None:
    found = find_process(os.getpid())
    assert found is not None and found.name == Path(sys.executable).resolve().name and found.is_alive()
    assert (found.uid, found.start_ticks) == (os.geteuid(), processes.start_ticks(os.getpid()))
