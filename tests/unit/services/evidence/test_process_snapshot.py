"""What one look sees of a process: here of this very one, and of a child of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.killswitch.kernel import processes
from console.services.evidence import process_snapshot as look_module
from console.services.evidence.process_snapshot import Look, Marks, ProcessSeen, Root, _address, _by_cgroup, _by_line, _unix_line, shown


def root_of(pid: int, name: str = "a-1") -> Root:
    ticks = processes.start_ticks(pid)
    assert ticks is not None
    return Root(name, pid, ticks)


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A shell with a child of its own."""
    process = subprocess.Popen(["/bin/sh", "-c", "sleep 60 & wait"], stdin=subprocess.DEVNULL, start_new_session=True)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        seen = Look(10).take([root_of(process.pid)])["a-1"].processes
        if len(seen) == 2 and seen[1].cmdline[:1] == ("sleep",):  # forked, and become what it is
            break
        time.sleep(0.02)
    yield process
    os.killpg(process.pid, 9)  # the session this test started
    process.wait()


def test_a_tree_is_seen_with_command_lines_and_parents(child: subprocess.Popen[bytes]) -> None:
    seen = Look(10).take([root_of(child.pid)])["a-1"]
    first, second = seen.processes
    assert (first.pid, second.ppid) == (child.pid, child.pid)
    assert first.cmdline == ("/bin/sh", "-c", "sleep 60 & wait")
    assert second.cmdline == ("sleep", "60")
    assert Path(first.cwd) == Path.cwd()
    assert first.exe and first.start_ticks == processes.start_ticks(child.pid)
    assert any(f.path == "/dev/null" for f in first.files)
    assert not seen.left_out


def test_no_more_processes_are_read_than_the_bound_and_what_is_left_out_is_said(child: subprocess.Popen[bytes]) -> None:
    seen = Look(1).take([root_of(child.pid)])["a-1"]
    assert len(seen.processes) == 1
    assert seen.left_out == "1 more processes"


def test_another_process_under_the_same_number_is_not_the_agent(child: subprocess.Popen[bytes]) -> None:
    assert Look(10).take([Root("a-1", child.pid, 1)])["a-1"].processes == ()
    assert Look(10).take([Root("a-1", 2**22 + 1, 1)])["a-1"].processes == ()


def own() -> ProcessSeen:
    return next(p for p in Look(100).take([root_of(os.getpid())])["a-1"].processes if p.pid == os.getpid())


@pytest.fixture
def every_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process has run other tests, and holds more than one look tells of a process."""
    monkeypatch.setattr(look_module, "FDS", 1 << 20)


@pytest.mark.usefixtures("every_descriptor")
def test_open_files_and_sockets_are_seen_with_their_ends(tmp_path: Path) -> None:
    path = tmp_path / "open \n me"
    with path.open("w"), socket.socket() as server, socket.socket() as client, socket.socket(socket.AF_UNIX) as unix:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client.connect(server.getsockname())
        unix.bind(str(tmp_path / "s"))
        seen = own()
        peer = server.accept()[0]
        peer.close()
        port = server.getsockname()[1]
    assert str(path) in {f.path for f in seen.files}
    found = {(s.kind, s.local, s.peer) for s in seen.sockets}
    assert ("tcp listening", f"127.0.0.1:{port}", "0.0.0.0:0") in found
    assert any(kind == "tcp established" and end == f"127.0.0.1:{port}" for kind, _, end in found)
    assert ("unix", str(tmp_path / "s"), "") in found


def test_descriptors_beyond_the_bound_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look_module, "FDS", 2)
    seen = own()
    assert len(seen.files) + len(seen.sockets) == 2
    assert "first 2" in seen.left_out


@pytest.mark.usefixtures("every_descriptor")
def test_a_forged_line_in_the_socket_table_is_believed_in_neither(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as honest, socket.socket(socket.AF_UNIX) as forger:
        honest.bind(str(tmp_path / "honest"))
        inode = os.fstat(honest.fileno()).st_ino
        # An abstract name may hold anything, so also what looks like the next line of /proc/net/unix.
        forger.bind(b"\0x\n0: 00000002 00000000 00010000 0001 01 %d /innocent" % inode)
        socks = {s.fd: s for s in own().sockets}
        mine = socks[honest.fileno()]
    assert mine.kind == "socket" and "ambiguous" in mine.local


def test_addresses_are_read_in_the_machines_byte_order() -> None:
    here = "0100007F" if sys.byteorder == "little" else "7F000001"
    assert _address(f"{here}:01BB".encode()) == "127.0.0.1:443"
    assert _address(b"0" * 32 + b":0000") == "[::]:0"
    with pytest.raises(ValueError):
        _unix_line([b"0:", b"zz", b"0", b"0", b"0", b"0", b"5"])


def test_whose_a_process_is_by_its_line_and_by_its_cgroup(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _by_line(30, {30: 20, 20: 10, 10: 1}, {20: "a"}) == "a"
    assert _by_line(30, {30: 20, 20: 10, 10: 1}, {40: "a"}) == ""
    assert _by_line(30, {30: 31, 31: 30}, {40: "a"}) == ""
    monkeypatch.setattr(processes, "cgroup_line", lambda pid, controller="": "/w/agents/a-1/deeper")
    assert _by_cgroup(5, {"/w/agents/a-1": "a-1"}) == "a-1"
    assert _by_cgroup(5, {"/w/agents/a": "a"}) == ""
    assert _by_cgroup(5, {}) == ""


def test_a_tree_without_its_first_process_is_known_by_its_cgroup(monkeypatch: pytest.MonkeyPatch, child: subprocess.Popen[bytes]) -> None:
    lines = {str(child.pid): "/w/agents/a-1", "self": "/own"}
    monkeypatch.setattr(processes, "cgroup_line", lambda pid, controller="": lines.get(str(pid), "/elsewhere"))
    looker = Look(10, marks={"a-1": Marks("/w/agents/a-1")})
    seen = looker.take([Root("a-1", 2**22 + 1, 1)])["a-1"]
    assert [p.pid for p in seen.processes] == [child.pid]
    lines[str(os.getpid())] = lines["self"] = "/w/agents/a-1"  # a cgroup that is ours too would make everybody an agent
    looker = Look(10)
    looker.take([root_of(child.pid)])
    assert looker.marks["a-1"].cgroup == ""


def test_bytes_that_are_no_text_are_shown_escaped() -> None:
    assert shown(b"a\xff\n") == "a\\xff\n"
    assert len(shown(b"x" * 10_000)) == 4096
