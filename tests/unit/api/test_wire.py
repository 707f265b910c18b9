"""One request over the socket: every outcome is a view or an error kind with words."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from console.api import endpoints as ep
from console.api.client.refusals import error_from
from console.api.client.wire import Wire, segment
from console.domain.errors import (
    Conflict,
    ConsoleError,
    Denied,
    ExitCode,
    Killed,
    NotFound,
    NotRecorded,
    TimedOut,
    TooLarge,
    Unavailable,
    Unreachable,
    UsageProblem,
)
from console.settings.places import Places, find_places, make_run_dir
from tests.fakes.canned_api import CannedApi


@pytest.fixture
def places(state_dir: Path) -> Places:
    found = find_places(str(state_dir), create=True)
    make_run_dir(found)
    return found


@pytest.fixture
def wire(places: Places) -> Wire:
    return Wire(places, 0.3)


def test_without_a_socket_it_says_how_to_start_one(wire: Wire, places: Places) -> None:
    with pytest.raises(Unreachable) as caught:
        wire.ask(ep.FLEET)
    assert str(places.state_dir) in caught.value.what
    assert caught.value.remedy.startswith(f"Start one with: watchfloor supervisor --state-dir {places.state_dir}. Agents that go on")
    assert "keep to no limit" in caught.value.remedy and "watchfloor panic" in caught.value.remedy
    assert caught.value.exit_code is ExitCode.UNREACHABLE


def test_a_socket_nobody_listens_on_is_the_same(wire: Wire, places: Places) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(places.operator_sock))
    with pytest.raises(Unreachable):
        wire.ask(ep.FLEET)


STARTED_LATE = """
import os, socket, subprocess, sys, time
folder, first, has_ended, script = sys.argv[1:]
subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
os.makedirs(f"/run/{first}/system")
listener = socket.socket(socket.AF_UNIX)
listener.bind(folder)
if has_ended == "yes":
    child = os.fork()
    if not child:
        listener.listen()  # as a service does that takes the socket over
        os._exit(0)
    os.waitpid(child, 0)
else:
    listener.listen()
asks = subprocess.Popen([sys.executable, "-c", script])
time.sleep(2)
made, _ = listener.accept()
try:
    made.recv(4096)
    made.sendall(b"HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\n{}")
except OSError:
    pass
sys.exit(asks.wait())
"""
ASKS = """
from pathlib import Path
from console.api.client.wire import Wire
from console.settings.places import Places
try:
    print(Wire(Places(Path("/x"), Path({folder!r}), "0a1b2c3d", False), 0.3)._sent("GET", "/api/status", None)[0])
except Exception as error:
    print(type(error).__name__)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a namespace in which a process of ours is the first one")
@pytest.mark.parametrize("has_ended", ["no", "yes"])
@pytest.mark.parametrize(("first", "heard"), [("systemd", "b'{}'"), ("another", "TimedOut")])
def test_a_service_that_systemd_starts_for_us_is_waited_for_and_no_other(tmp_path: Path, first: str, heard: str, has_ended: str) -> None:
    """``has_ended``: one listened before us, and systemd starts its successor."""
    asks = ASKS.format(folder=str(tmp_path))
    namespace = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "--mount-proc"]
    command = [*namespace, sys.executable, "-c", STARTED_LATE, str(tmp_path / "operator.sock"), first, has_ended, asks]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.strip() == heard, done.stderr


def test_a_supervisor_that_hangs_is_a_time_out_and_never_a_success(api: CannedApi, wire: Wire) -> None:
    api.answers["GET /api/fleet"] = (0, b"")
    with pytest.raises(TimedOut, match="not known"):
        wire.ask(ep.FLEET)


def test_a_connection_that_breaks_is_unreachable_and_the_outcome_unknown(wire: Wire, places: Places) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(places.operator_sock))
        listener.listen()
        thread = threading.Thread(target=lambda: listener.accept()[0].close())
        thread.start()
        with pytest.raises(Unreachable, match="broke"):
            wire.ask(ep.FLEET)
        thread.join()


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"agents": 3}', b"\xff"])
def test_an_answer_that_cannot_be_read_is_an_error(api: CannedApi, wire: Wire, body: bytes) -> None:
    api.answers["GET /api/fleet"] = (200, body)
    with pytest.raises(ConsoleError, match="cannot be read"):
        wire.ask(ep.FLEET)


def test_what_is_not_given_is_not_asked_for(api: CannedApi, wire: Wire) -> None:
    api.say("GET /api/audit", {})
    wire.ask(ep.AUDIT, query={"before": None, "limit": 5, "q": "a&b=c"})
    assert api.asked[0].path == "/api/audit?limit=5&q=a%26b%3Dc"


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, UsageProblem), (403, Denied), (404, NotFound), (405, NotFound), (409, Conflict), (413, TooLarge), (422, UsageProblem),
     (501, Unavailable), (502, Unreachable), (503, Killed), (504, TimedOut), (507, NotRecorded), (418, ConsoleError), (500, ConsoleError)],
)  # fmt: skip
def test_a_refusal_keeps_the_supervisors_words_and_exit_code(status: int, kind: type[ConsoleError]) -> None:
    error = error_from(status, b'{"error": "No.", "remedy": "Do this.", "exit_code": 4}')
    assert type(error) is kind
    assert (error.what, error.remedy, error.exit_code, error.http_status) == ("No.", "Do this.", ExitCode.DENIED, status)


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b'{"error": 5}'])
def test_a_refusal_without_words_is_still_an_error_of_its_kind(body: bytes) -> None:
    error = error_from(404, body)
    assert isinstance(error, NotFound) and "404" in error.what


def test_an_exit_code_nobody_documented_is_a_failure() -> None:
    assert error_from(403, b'{"error": "x", "exit_code": 0}').exit_code is not ExitCode.DONE
    assert error_from(403, b'{"error": "x", "exit_code": 99}').exit_code is ExitCode.FAILURE


@pytest.mark.parametrize("hostile", ["", ".", "..", "a\0b", "x" * 201, "\udcff"])
def test_an_id_that_cannot_be_one_is_not_found(hostile: str) -> None:
    with pytest.raises(NotFound):
        segment(hostile)


@pytest.mark.parametrize(("text", "path"), [("a-1", "a-1"), ("a/../b", "a%2F..%2Fb"), ("a?b#c", "a%3Fb%23c"), ("ä b", "%C3%A4%20b")])
def test_an_id_stays_one_segment(text: str, path: str) -> None:
    assert segment(text) == path


def test_a_supervisor_whose_backlog_is_full_is_busy_and_not_absent(wire: Wire, places: Places) -> None:
    with socket.socket(socket.AF_UNIX) as full, socket.socket(socket.AF_UNIX) as waiting:
        full.bind(str(places.operator_sock))
        full.listen(0)
        waiting.connect(str(places.operator_sock))
        with pytest.raises(TimedOut, match="The supervisor is busy") as refusal:
            wire.ask(ep.STATUS)
    assert refusal.value.exit_code is ExitCode.PENDING


def test_a_refusal_that_came_before_the_request_was_sent_is_heard(wire: Wire, places: Places) -> None:
    body = b'{"error": "The supervisor is busy: this socket serves 64 connections at once.", "remedy": "", "exit_code": 4}'
    answer = b"HTTP/1.1 429 Too Many Requests\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(places.operator_sock))
        door.listen(8)

        def refuse() -> None:
            end, _ = door.accept()
            end.sendall(answer)
            end.close()

        refusing = threading.Thread(target=refuse)
        refusing.start()
        with pytest.raises(ConsoleError, match="The supervisor is busy"):
            wire.ask(ep.STATUS)
        refusing.join()
