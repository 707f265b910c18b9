"""A helper speaks with the process that started it and with no other, once, and ends with it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from console.killswitch.helpers import one_request
from console.killswitch.helpers.one_request import is_parent, read_line
from console.killswitch.kernel import processes
from tests.fakes.guard_world import until

ROOT = Path(__file__).parents[4]
START = f"import sys; sys.path.append({str(ROOT)!r}); from console.killswitch.helpers.one_request import serve; "
ECHO = START + "serve(lambda asked: {'heard': asked})"
WAITS = START + "import time; serve(lambda asked: time.sleep(600))"


def start(code: str, stdin: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-I", "-S", "-c", code], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture
def pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair()


def test_it_answers_the_one_that_started_it(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    with ours, start(ECHO, theirs.fileno()) as helper:
        theirs.close()
        ours.sendall(b'{"a": 1}\n')
        ours.shutdown(socket.SHUT_WR)
        answer = ours.makefile().read()
        assert helper.wait() == 0
    assert json.loads(answer) == {"heard": {"a": 1}}


@pytest.mark.parametrize("said", [b"", b'{"a": 1}', b"no JSON\n", b"{}\n{}\n", b"\xff\n", b"x" * 300_000 + b"\n"])
def test_what_is_not_one_request_gets_no_answer_and_is_repeated_nowhere(pair: tuple[socket.socket, socket.socket], said: bytes) -> None:
    ours, theirs = pair
    with ours, start(ECHO, theirs.fileno()) as helper:
        theirs.close()
        try:
            ours.sendall(said)
            ours.shutdown(socket.SHUT_WR)
            heard = ours.recv(1)
        except OSError:
            heard = b""
        assert (helper.wait() != 0 or said == b"") and heard == b""
        assert helper.stdout is not None and helper.stderr is not None
        assert helper.stdout.read() == b"" and b"Traceback" not in (words := helper.stderr.read()) and len(words) < 100


def test_another_process_than_its_parent_is_not_heard(pair: tuple[socket.socket, socket.socket]) -> None:
    """Whoever hands a socket of theirs to a helper that another process starts gets no answer."""
    ours, theirs = pair
    between = f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-I', '-S', '-c', {ECHO!r}]))"
    with ours, start(between, theirs.fileno()) as middle:
        theirs.close()
        ours.sendall(b"{}\n")
        assert middle.wait() == 2


def test_a_terminal_a_pipe_or_a_file_is_no_parent() -> None:
    done = subprocess.run([sys.executable, "-I", "-S", "-c", ECHO], input=b"{}\n", capture_output=True, check=False)
    assert done.returncode == 1 and done.stdout == b""


def test_a_socket_of_this_process_is_not_its_parents(pair: tuple[socket.socket, socket.socket]) -> None:
    with pair[0], pair[1]:
        assert not is_parent(pair[0])


def test_it_ends_with_the_guard(tmp_path: Path) -> None:
    """The guard is killed meanwhile: nobody is left that its helper works for."""
    guard = (
        f"import socket, subprocess, sys, time\nours, theirs = socket.socketpair()\n"
        f"helper = subprocess.Popen([sys.executable, '-I', '-S', '-c', {WAITS!r}], stdin=theirs)\ntheirs.close()\n"
        f"ours.sendall(b'{{}}\\n')\nprint(helper.pid, flush=True)\ntime.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", guard], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        ticks = processes.start_ticks(pid)
        assert ticks is not None and processes.is_alive(pid)
        process.kill()
    until(lambda: not processes.is_the_same(pid, ticks) or not processes.is_alive(pid), "the helper ended")


def test_it_ends_by_itself_when_the_guard_stands_still(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    code = WAITS.replace("serve(", "one.LONGEST_S = 1; serve(").replace(
        "import time;", "import time, console.killswitch.helpers.one_request as one;"
    )
    with ours, start(code, theirs.fileno()) as helper:
        theirs.close()
        ours.sendall(b"{}\n")
        assert helper.wait() == -signal.SIGALRM


def test_a_request_is_one_bounded_line(pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pair
    monkeypatch.setattr(one_request, "MOST_REQUEST", 10)
    with ours, theirs:
        ours.sendall(b"0123456\n")
        assert read_line(theirs) == b"0123456\n"
        ours.sendall(b"0123456789\n")
        with pytest.raises(ValueError, match="no request"):
            read_line(theirs)
    assert os.getppid() > 0
