"""The kernel says who wrote each piece: also on a connection that another process made."""

from __future__ import annotations

import array
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.supervisor.http.asgi import PIECE, NamedListener, NamedSocket


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[tuple[socket.socket, NamedSocket]]:
    """A client's end and the server's."""
    with NamedListener() as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        client.connect(str(tmp_path / "s"))
        client.sendall(b"early")  # before it is accepted: named all the same
        made, _ = listener.accept()
        with made:
            assert listener.connection(made.fileno()) is made
            assert made.recv(100) == b"early" and made.sender == (os.getpid(), os.geteuid())
            yield client, made


def write_as_a_child(sock: socket.socket, data: bytes) -> int:
    """The child's pid, which has ended."""
    pid = os.fork()
    if not pid:
        sock.sendall(data)
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def test_a_child_that_writes_on_its_parents_connection_is_named_and_never_mixed_with_it(ends: tuple[socket.socket, NamedSocket]) -> None:
    client, made = ends
    client.sendall(b"mine ")
    child = write_as_a_child(client, b"theirs")
    client.sendall(b" mine")
    assert (made.recv(100), made.sender[0]) == (b"mine ", os.getpid())
    assert (made.recv(100), made.sender[0]) == (b"theirs", child)
    assert (made.recv(100), made.sender[0]) == (b" mine", os.getpid())


def test_descriptors_that_are_sent_along_are_not_taken(ends: tuple[socket.socket, NamedSocket]) -> None:
    client, made = ends
    before = len(os.listdir("/proc/self/fd"))
    with open("/dev/null") as null:
        client.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null.fileno()] * 50))])
        assert made.recv(100) == b"x" and made.sender[0] == os.getpid()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_piece_is_bounded_and_the_end_is_empty(ends: tuple[socket.socket, NamedSocket]) -> None:
    client, made = ends
    client.sendall(b"y" * (PIECE + 5))
    assert len(made.recv(10 * PIECE)) <= PIECE
    client.close()
    while data := made.recv(1 << 20):
        assert set(data) == {ord("y")}
    made.setblocking(False)
    assert made.recv(10) == b"" and made.sender[0] == os.getpid()
