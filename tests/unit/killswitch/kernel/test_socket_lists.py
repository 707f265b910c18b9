"""Sockets as the kernel lists them: both ends of TCP and unix connections, in our own and in another network namespace."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.killswitch.kernel import socket_lists
from console.killswitch.kernel.socket_lists import Raw, Reader, Tcp, TooLate, Unix, address_words, name_words, parse_tcp, parse_unix
from tests.fakes.guard_world import until


@pytest.fixture
def reader() -> Iterator[Reader]:
    made = Reader()
    yield made
    made.close()


def read(reader: Reader) -> Raw:
    return reader.read(time.monotonic() + 60)


def inode(sock: socket.socket) -> int:
    return os.fstat(sock.fileno()).st_ino


def unix_by_inode(raw: Raw) -> dict[int, Unix]:
    return {one.inode: one for one in parse_unix(raw.unix)}


def tcp_by_inode(raw: Raw) -> dict[int, Tcp]:
    return {one.inode: one for one in parse_tcp(raw.tcp)}


@contextlib.contextmanager
def tcp_pair(host: str) -> Iterator[tuple[socket.socket, socket.socket]]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.bind((host, 0))
        listener.listen()
        with socket.socket(family) as client:
            client.connect(listener.getsockname()[:2])
            server, _ = listener.accept()
            with server:
                yield client, server


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_both_ends_of_a_tcp_connection_mirror_each_other(reader: Reader, host: str) -> None:
    with tcp_pair(host) as (client, server):
        found = tcp_by_inode(read(reader))
        one, other = found[inode(client)], found[inode(server)]
        assert (one.local, one.remote) == (other.remote, other.local)
        assert address_words(one.remote).endswith(f":{server.getsockname()[1]}")
        assert one.uid == os.geteuid()


def test_an_ipv4_client_of_a_dual_stack_server_is_found(reader: Reader) -> None:
    listener = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    with listener, socket.create_connection(("127.0.0.1", listener.getsockname()[1])) as client:
        server, _ = listener.accept()
        with server:
            found = tcp_by_inode(read(reader))
            assert found[inode(client)].local == found[inode(server)].remote


def test_each_end_of_a_unix_connection_names_the_other(reader: Reader, tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind(str(path))
        listener.listen()
        client.connect(str(path))
        waiting = unix_by_inode(read(reader))
        assert waiting[inode(listener)].waiting == (inode(client),) and waiting[inode(listener)].is_listening
        server, _ = listener.accept()
        with server:
            found = unix_by_inode(read(reader))
            assert found[inode(client)].peer == inode(server) and found[inode(server)].peer == inode(client)
            assert name_words(found[inode(server)].name) == str(path)


def test_an_abstract_name_is_shown_with_an_at(reader: Reader) -> None:
    name = f"\0watchfloor-{os.getpid()}\x1b[31m"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(name)
        listener.listen()
        assert name_words(unix_by_inode(read(reader))[inode(listener)].name) == "@" + name[1:]


def test_a_dump_that_takes_too_long_is_no_dump_and_the_next_one_is_whole(reader: Reader) -> None:
    with pytest.raises(TooLate):
        reader.read(time.monotonic() - 1)
    with tcp_pair("127.0.0.1") as (client, _):
        assert inode(client) in tcp_by_inode(read(reader))


class ScriptedSocket:
    """A netlink socket that gives pieces of a list, and says at what time each call was."""

    def __init__(self, clock: list[float], *pieces: bytes) -> None:
        self._clock, self._pieces = clock, list(pieces)

    def send(self, data: bytes) -> int:
        return len(data)

    def recv(self, size: int) -> bytes:
        self._clock[0] = self._clock[1]  # a busy machine let us take nothing until then
        return self._pieces.pop(0)

    def close(self) -> None:
        pass


PIECE = socket_lists._HEADER.pack(32, 20, 2, 1, 0) + bytes([1, 1, 1, 0]) + (77).to_bytes(4, sys.byteorder) + bytes(8)
DONE = socket_lists._HEADER.pack(20, 3, 2, 1, 0) + bytes(4)


@pytest.mark.parametrize(
    ("pieces", "until", "is_whole"),
    [((PIECE, DONE), 5.0, True), ((PIECE, PIECE, DONE), 5.0, False), ((PIECE, PIECE, DONE), 0.5, True)],
    ids=["listed in time, taken later", "listed later", "all in time"],
)
def test_what_was_listed_in_time_is_taken_later_but_nothing_that_was_listed_later(
    reader: Reader, monkeypatch: pytest.MonkeyPatch, pieces: tuple[bytes, ...], until: float, is_whole: bool
) -> None:
    clock = [0.0, until]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    for sock in reader._socks:
        sock.close()
    scripted = [ScriptedSocket(clock, DONE), ScriptedSocket(clock, *pieces), ScriptedSocket(clock, DONE)]
    reader._socks = scripted  # type: ignore[assignment]
    if is_whole:
        assert reader.read(1.0).tcp == b"".join((*pieces, DONE))
    else:
        with pytest.raises(TooLate):
            reader.read(1.0)


def test_a_dump_that_is_too_large_is_no_dump(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_lists, "LARGEST", -1)
    with pytest.raises(TooLate):
        read(reader)


def test_a_kernel_that_refuses_is_an_error_not_an_empty_list(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_lists, "_inet_request", lambda family: bytes([253]) + bytes(55))
    with pytest.raises(OSError, match=".+"):
        read(reader)


def test_what_is_no_message_is_no_socket() -> None:
    for junk in (b"", b"x" * 15, bytes(64), b"\xff" * 64, socket_lists._HEADER.pack(40, 20, 0, 1, 0) + b"\1" * 8):
        assert list(parse_tcp(junk)) == [] and list(parse_unix(junk)) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root enters the network namespace of another process")
def test_a_reader_in_another_namespace_sees_that_one_and_its_thread_comes_back() -> None:
    code = (
        "import ctypes, os, socket, sys\n"
        "assert ctypes.CDLL(None).unshare(0x40000000) == 0\n"
        "pair = socket.socketpair()\n"
        "print(os.fstat(pair[0].fileno()).st_ino, flush=True)\n"
        "sys.stdin.read()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    try:
        theirs = int(process.stdout.readline())
        seen: list[tuple[bool, bool]] = []

        def look() -> None:
            before = Path("/proc/thread-self/ns/net").readlink()
            there, here = Reader(process.pid), Reader()
            try:
                with pytest.raises(TooLate):
                    there.read(0)
                seen.append((theirs in unix_by_inode(read(there)), theirs in unix_by_inode(read(here))))
                assert there.namespace != here.namespace and Path("/proc/thread-self/ns/net").readlink() == before
            finally:
                there.close()
                here.close()

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert seen == [(True, False)]
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait()


def test_closing_twice_and_a_process_that_is_gone() -> None:
    made = Reader()
    made.close()
    made.close()
    process = subprocess.Popen(["/bin/true"])
    process.wait()
    until(lambda: not Path(f"/proc/{process.pid}").exists(), "it is gone")
    with pytest.raises(OSError, match=".+"):
        Reader(process.pid)
