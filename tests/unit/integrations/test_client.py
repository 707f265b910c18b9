"""The client that agents copy: standard library alone, every outcome a dict or Refused."""

from __future__ import annotations

import ast
import contextlib
import copy
import json
import os
import pickle
import shutil
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from console.integrations import client
from console.integrations.client import Agent, Refused
from tests.fakes.agent_socket import AgentSocket


@pytest.fixture
def server(tmp_path: Path) -> Iterator[AgentSocket]:
    with AgentSocket(tmp_path / "a.sock") as running:
        yield running


@pytest.fixture
def agent(server: AgentSocket) -> Agent:
    return Agent(str(server.path))


def test_every_verb_is_one_route(agent: Agent, server: AgentSocket) -> None:
    assert agent.spawn(["python3", "x.py"], name="n", limits={"cost_usd": 1.0})["id"] == "child-1"
    agent.usage(iterations=1, cost_usd=0.5, action="a")
    assert agent.permission("write_file", "a.txt")["verdict"] == "allow"
    agent.private_data("patients", "SECRET", "import")
    assert agent.notices(after=3)["next"] == 7
    assert agent.me()["id"] == "me-1"
    assert server.asked == [
        ("POST", "/v1/spawn", {"argv": ["python3", "x.py"], "name": "n", "limits": {"cost_usd": 1.0}}),
        ("POST", "/v1/usage", {"iterations": 1, "cost_usd": 0.5, "action": "a"}),
        ("POST", "/v1/permission", {"tool": "write_file", "argument": "a.txt"}),
        ("POST", "/v1/private-data", {"dataset": "patients", "sensitivity": "SECRET", "source": "import"}),
        ("GET", "/v1/notices?after=3", None),
        ("GET", "/v1/self", None),
    ]


def test_an_empty_report_is_a_report(agent: Agent, server: AgentSocket) -> None:
    agent.usage()
    assert server.asked == [("POST", "/v1/usage", {})]


def test_a_refusal_carries_status_and_words(agent: Agent, server: AgentSocket) -> None:
    server.answers["/v1/spawn"] = (403, {"error": "Depth 4 is over the limit of 3.", "remedy": "Work higher up."})
    with pytest.raises(Refused, match=r"403: Depth 4 is over the limit of 3\. Work higher up\.") as caught:
        agent.spawn(["x"])
    assert caught.value.status == 403


@pytest.mark.parametrize("text", [b"not json", b"\xff"])
def test_an_answer_that_cannot_be_read_is_no_answer(agent: Agent, server: AgentSocket, text: bytes) -> None:
    server.answers["/v1/self"] = (200, text)
    with pytest.raises(Refused) as caught:
        agent.me()
    assert caught.value.status == 0


def test_without_a_supervisor_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no supervisor at"):
        Agent(str(tmp_path / "none.sock")).usage(iterations=1)


def test_it_stands_alone_without_site_packages_and_project(server: AgentSocket, tmp_path: Path) -> None:
    copied = shutil.copy(client.__file__, tmp_path / "client.py")
    told = subprocess.run(
        [sys.executable, "-I", "-S", copied],
        env={**os.environ, "WATCHFLOOR_AGENT_SOCKET": str(server.path)},
        cwd="/",
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert json.loads(told.stdout) == {"id": "me-1"}


def test_it_imports_the_standard_library_alone() -> None:
    tree = ast.parse(Path(client.__file__).read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names


# --- the connection that is kept -----------------------------------------------------------------------------------------

OK = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"


class Keeper:
    """A server of one thread: each connection is given to the next of ``acts``, which reads and answers by hand."""

    def __init__(self, path: Path, *acts: Callable[[socket.socket], None]) -> None:
        self.asked: list[Any] = []
        self.failed: list[BaseException] = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.listener.settimeout(60)
        self.path, self._acts = path, acts
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            for act in self._acts:
                made, _ = self.listener.accept()
                with made:
                    made.settimeout(60)
                    act(made)
        except BaseException as error:  # noqa: BLE001 - shown by the test's own thread
            self.failed.append(error)

    def serve(self, made: socket.socket, body: bytes = b"{}") -> bool:
        """One request, answered; False at the end of the connection."""
        if (asked := read_one(made)) is None:
            return False
        self.asked.append(asked)
        made.sendall(OK % (len(body), body))
        return True

    def once(self, made: socket.socket, body: bytes = b"{}") -> None:
        self.serve(made, body)

    def serve_all(self, made: socket.socket) -> None:
        while self.serve(made):
            pass

    def __enter__(self) -> Keeper:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(60)
        self.listener.close()
        assert not self._thread.is_alive() and not self.failed


def read_one(made: socket.socket) -> Any:
    """The body of one request; None at the end."""
    got = b""
    while b"\r\n\r\n" not in got:
        data = made.recv(65536)
        if not data:
            return None
        got += data
    head, _, rest = got.partition(b"\r\n\r\n")
    length = next((int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")), 0)
    while len(rest) < length:
        rest += made.recv(65536)
    assert len(rest) == length
    return json.loads(rest or b"null")


def test_calls_go_over_one_connection(tmp_path: Path) -> None:
    keeper: Keeper
    with (keeper := Keeper(tmp_path / "k", lambda made: keeper.serve_all(made))):
        agent = Agent(str(keeper.path))
        for n in range(5):
            agent.usage(tokens=n)
        agent.close()
    assert [b["tokens"] for b in keeper.asked] == [0, 1, 2, 3, 4]


def test_one_that_ended_while_it_rested_is_made_again(tmp_path: Path) -> None:
    keeper: Keeper
    ended = threading.Event()

    def once(made: socket.socket) -> None:
        keeper.serve(made)
        made.close()
        ended.set()

    with (keeper := Keeper(tmp_path / "k", once, lambda made: keeper.serve_all(made))):
        agent = Agent(str(keeper.path))
        agent.usage(tokens=1)
        assert ended.wait(60)
        agent.usage(tokens=2)
        agent.close()
    assert [b["tokens"] for b in keeper.asked] == [1, 2]


@pytest.mark.parametrize("size", [1, 3_000_000])
def test_what_nobody_read_to_its_end_is_sent_again_and_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    keeper: Keeper
    monkeypatch.setattr(client, "_is_silent", lambda _sock: True)  # it ends right after that look

    def leaves_it_unread(made: socket.socket) -> None:
        keeper.serve(made)
        assert made.recv(1, socket.MSG_PEEK)  # the next one lies here

    with (keeper := Keeper(tmp_path / "k", leaves_it_unread, lambda made: keeper.serve_all(made))):
        agent = Agent(str(keeper.path))
        agent.usage(tokens=1)
        agent.usage(action="x" * size)
        agent.close()
    assert [len(b.get("action", "")) for b in keeper.asked] == [0, size]


def test_what_was_read_and_not_answered_is_never_sent_again(tmp_path: Path) -> None:
    keeper: Keeper

    def reads_it_and_goes(made: socket.socket) -> None:
        keeper.serve(made)
        keeper.asked.append(read_one(made))

    with (keeper := Keeper(tmp_path / "k", reads_it_and_goes, lambda made: keeper.serve_all(made))):
        agent = Agent(str(keeper.path))
        agent.usage(tokens=1)
        with pytest.raises(Refused, match="what became of the request is not known") as caught:
            agent.usage(tokens=2)
        assert caught.value.status == 0
        agent.usage(tokens=3)
        agent.close()
    assert [b["tokens"] for b in keeper.asked] == [1, 2, 3]


def test_what_nobody_asked_for_answers_nothing(tmp_path: Path) -> None:
    keeper: Keeper
    heard, said = threading.Event(), threading.Event()

    def babbles(made: socket.socket) -> None:
        keeper.serve(made)
        assert heard.wait(60)
        made.sendall(OK % (14, b'{"is": "evil"}'))
        said.set()
        with contextlib.suppress(ConnectionResetError):  # it was ended unread
            assert read_one(made) is None

    with (keeper := Keeper(tmp_path / "k", babbles, lambda made: keeper.once(made, b'{"is": "good"}'))):
        agent = Agent(str(keeper.path))
        agent.usage(tokens=1)
        heard.set()
        assert said.wait(60)
        assert agent.usage(tokens=2) == {"is": "good"}
        agent.close()


def test_a_server_that_keeps_none_is_asked_anew_each_time(tmp_path: Path) -> None:
    keeper: Keeper

    def closes(made: socket.socket) -> None:
        keeper.asked.append(read_one(made))
        made.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
        assert made.recv(1) == b""  # the client ends it as well

    with (keeper := Keeper(tmp_path / "k", closes, closes)):
        agent = Agent(str(keeper.path))
        agent.usage(tokens=1)
        agent.usage(tokens=2)
    assert [b["tokens"] for b in keeper.asked] == [1, 2]


def test_after_a_fork_each_has_a_connection_of_its_own(tmp_path: Path) -> None:
    keeper: Keeper
    # The child's comes while the parent's is still open; and the parent's goes on.
    ends: list[threading.Thread] = []

    def beside(made: socket.socket) -> None:
        mine = made.dup()

        def serve() -> None:
            with mine:
                keeper.serve_all(mine)

        ends.append(threading.Thread(target=serve))
        ends[-1].start()

    with (keeper := Keeper(tmp_path / "k", beside, beside)):
        agent = Agent(str(keeper.path))
        agent.usage(tokens=1)
        pid = os.fork()
        if not pid:
            try:
                agent.usage(tokens=2)
                agent.close()
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        agent.usage(tokens=3)
        agent.close()
    for thread in ends:
        thread.join(60)
    assert [b["tokens"] for b in keeper.asked] == [1, 2, 3]


def test_threads_never_hear_each_others_answers_and_one_connection_stays(tmp_path: Path) -> None:
    made: list[int] = []

    class Echo(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            made.append(1)
            while (asked := read_one(self.connection)) is not None:
                body = json.dumps(asked).encode()
                self.connection.sendall(OK % (len(body), body))

    with socketserver.ThreadingUnixStreamServer(str(tmp_path / "e"), Echo) as server:
        server.daemon_threads = False
        running = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        running.start()
        agent, wrong = Agent(str(tmp_path / "e")), list[Any]()

        def work(number: int) -> None:
            for n in range(25):
                if agent.usage(tokens=number * 1000 + n) != {"tokens": number * 1000 + n}:
                    wrong.append(number)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not wrong and len(agent._line.kept) == 1
        before = len(made)
        agent.usage(tokens=1)
        assert len(made) == before
        agent.close()
        server.shutdown()
        running.join(60)


def test_an_agent_that_dies_of_sigpipe_does_not_die_of_a_closed_connection(tmp_path: Path) -> None:
    keeper: Keeper
    code = (
        "import signal, sys; signal.signal(signal.SIGPIPE, signal.SIG_DFL); sys.path.insert(0, sys.argv[2]); import client\n"
        "client._is_silent = lambda _sock: True\n"
        "agent = client.Agent(sys.argv[1]); agent.usage(tokens=1); sys.stdin.readline(); agent.usage(tokens=2); print('alive')\n"
    )
    with (keeper := Keeper(tmp_path / "k", lambda made: keeper.once(made), lambda made: keeper.serve_all(made))):
        folder = str(Path(client.__file__).parent)
        argv = [sys.executable, "-W", "error", "-c", code, str(keeper.path), folder]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            while not keeper.asked:
                time.sleep(0.02)
            time.sleep(0.1)  # the first connection is closed by then; were it not, there is just nothing to survive
            out, words = child.communicate(b"\n", timeout=60)
    assert (out, words) == (b"alive\n", b"") and [b["tokens"] for b in keeper.asked] == [1, 2]


def test_it_can_be_copied_and_leaves_nothing_open(server: AgentSocket) -> None:
    agent = Agent(str(server.path), timeout_s=7)
    agent.me()
    twin = pickle.loads(pickle.dumps(copy.deepcopy(agent)))  # noqa: S301 - our own
    assert (twin.path, twin.timeout_s, twin._line.kept) == (agent.path, 7, [])
    assert twin.me() == {"id": "me-1"}


def test_a_route_that_would_forge_a_request_is_not_sent(agent: Agent, server: AgentSocket) -> None:
    with pytest.raises(Refused):
        agent.asked("x HTTP/1.1\r\nHost: localhost\r\n\r\nPOST /v1/usage")
    assert server.asked == []
