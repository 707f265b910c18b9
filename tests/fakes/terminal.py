"""An operator's terminal: the real command line as a process, on an instance of the test's own, and its clean end."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import console
from console.api.client.api_client import ApiClient
from console.demo import cleanup
from console.domain.errors import ConsoleError, TimedOut
from console.egress.children import readable
from console.settings.places import Places, find_places
from tests.fakes.instance import processes_with
from tests.fakes.nursery import SHARED, WITHOUT_ENVOY, Nursling
from tests.fakes.verbs import Said

ROOT = Path(console.__file__).resolve().parent.parent
PATIENCE_S = 90.0


class Terminal:
    """``terminal("fleet", "--json")``; everything it started is remembered by pid and ended by pid."""

    def __init__(self, state_dir: Path, engine: Path | None = None) -> None:
        found = find_places(str(state_dir), create=True)
        self.places: Places = found
        self.engine = str(engine or "/nonexistent/docker.sock")
        self.environment = {
            **os.environ,
            "WATCHFLOOR_STATE_DIR": str(state_dir),
            "DOCKER_HOST": f"unix://{self.engine}",
            "PYTHONPATH": str(ROOT),
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
            "XDG_CONFIG_HOME": tempfile.mkdtemp(prefix="wc-"),
        }
        self.supervisors: set[int] = set()
        self.guards: set[int] = set()
        self._served: list[subprocess.Popen[bytes]] = []
        self._forked: list[Nursling] = []

    def __call__(
        self,
        *argv: str | bytes,
        timeout_s: float = PATIENCE_S,
        input_: str | None = None,
        lines: Sequence[str] = (),
        **environment: str,
    ) -> Said:
        """``lines`` are to be read from descriptors 3, 4, ... (needs the ``forked`` fixture)."""
        words = [a for a in argv if isinstance(a, str)]
        assert SHARED or not lines
        if SHARED and len(words) == len(argv):
            child = SHARED[0].verb(*words, cwd=self.places.state_dir, env=self.environment | environment, given=input_, lines=lines)
            try:
                code = child.wait(timeout_s)
            except AssertionError as error:
                child.end()
                raise subprocess.TimeoutExpired(words, timeout_s) from error
            self.look()
            return Said(code, child.said(), child.complaints())
        done = subprocess.run(
            [sys.executable, "-m", "console", *argv],
            env=self.environment | environment,
            cwd=self.places.state_dir,
            input=input_,
            stdin=subprocess.DEVNULL if input_ is None else None,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        self.look()
        return Said(done.returncode, done.stdout, done.stderr)

    def person(self, *argv: str, answers: Sequence[tuple[str, str]] = (), timeout_s: float = PATIENCE_S) -> Said:
        """The same at a real terminal: each prompt is awaited, then answered. Everything that was shown is in ``out``.

        Needs the ``forked`` fixture.
        """
        ours, theirs = pty.openpty()
        child = SHARED[0].verb(*argv, cwd=self.places.state_dir, env=self.environment | {"COLUMNS": "200"}, terminal=os.ttyname(theirs))
        while not child.sits() and not child.has_ended(0.01):
            pass  # a terminal that nobody has open is hung up
        os.close(theirs)
        shown, rest, deadline = "", list(answers), time.monotonic() + timeout_s
        try:
            while time.monotonic() < deadline:
                if readable(ours, 0.1):
                    try:
                        piece = os.read(ours, 65536)
                    except OSError:  # EIO: nobody holds the other end any more
                        break
                    shown += piece.decode(errors="replace")
                if rest and shown.rpartition("\x00")[2].count(rest[0][0]):
                    os.write(ours, rest.pop(0)[1].encode() + b"\n")
                    shown += "\x00"
            code = child.wait(60)
        finally:
            os.close(ours)
            child.end()
        self.look()
        assert not rest, f"never asked: {rest}; shown: {shown}"
        return Said(code, shown.replace("\r\n", "\n").replace("\x00", ""), "")

    def started(self, *argv: str) -> subprocess.Popen[bytes]:
        """A verb that goes on; the caller ends it."""
        return subprocess.Popen(
            [sys.executable, "-m", "console", *argv],
            env=self.environment,
            cwd=self.places.state_dir,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def serve(self) -> None:
        """``watchfloor supervisor`` until the end (an embedded one ends by itself 60 s after its last client)."""
        child = self.started("supervisor")
        self._served.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n", child.communicate()
        self.look()

    def serve_forked(self, *, envoy: bool = False) -> None:
        """The same without the wait for its imports, for sentences that do not begin with nobody there (needs the ``forked`` fixture).

        ``envoy``: it finds Envoy.
        """
        argv = ("serve", "--state-dir", str(self.places.state_dir))
        born = SHARED[0].run("console.supervisor", *argv, **self.environment, **({} if envoy else {WITHOUT_ENVOY: "1"}))
        self._forked.append(born)
        assert until(lambda: "ready\n" in born.said() or born.has_ended()) and "ready\n" in born.said(), born.said()
        self.look()

    def look(self) -> None:
        """Remembers who runs this instance now; a supervisor that the test has stopped does not answer, a busy one does at last."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            try:
                with ApiClient(self.places, 2.0) as client:
                    self.supervisors.add(client.status().pid)
                break
            except TimedOut:
                if any(_is_stopped(pid) for pid in self.supervisors):
                    break
            except ConsoleError:
                break
        self.guards |= set(cleanup.guards(self.places.instance_id))

    def run(self, *argv: str, options: tuple[str, ...] = ()) -> str:
        """Starts an agent; its id."""
        said = self("run", *options, "--", *argv)
        assert said.code == 0, said
        return said.out.strip()

    def agent(self, agent_id: str) -> dict[str, Any]:
        """Its row in ``fleet --json``."""
        [row] = [a for a in self("fleet", "--json").json["agents"] if a["id"] == agent_id]
        return dict(row)

    def processes(self) -> list[int]:
        """What the kernel says lives in this instance's agents; a canary of the armed light, which lives for a moment, is none of them."""
        return [pid for pid in cleanup.agent_processes(self.places.instance_id) if not _is_canary(pid)]

    def end(self) -> list[str]:
        """Ends agents, supervisor and guard; what could not be ended or removed."""
        self.look()
        instance = self.places.instance_id
        # A press that found nobody has started one and may have ended before it answered: it is known by its command line alone.
        self.supervisors |= {pid for pid in processes_with(str(self.places.state_dir)) if _is_supervisor(pid)}
        left = [cleanup.end_process(pid, _is_supervisor, 60.0) for pid in self.supervisors]
        self.guards |= set(cleanup.guards(instance))
        for pid in self.processes():  # the first process of a PID namespace does not heed SIGTERM
            with suppress(OSError):
                handle = os.pidfd_open(pid)
                if cleanup.is_agents(pid, instance):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                os.close(handle)
        left += [cleanup.end_process(pid, lambda p: cleanup.is_agents(p, instance)) for pid in self.processes()]
        left += [cleanup.end_process(pid, lambda p: cleanup.is_guard(p, instance), 60.0) for pid in self.guards]
        if self.engine:
            left += cleanup.remove_containers(instance, self.engine)
        left += cleanup.remove_cgroups(instance, 60.0)
        for child in self._served:
            child.communicate(timeout=90)
        for born in self._forked:
            born.wait()
        shutil.rmtree(self.environment["XDG_CONFIG_HOME"], ignore_errors=True)
        return [words for words in left if words]


def _is_stopped(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    return False


def _is_canary(pid: int) -> bool:
    with suppress(OSError):
        return "/canary-" in Path(f"/proc/{pid}/cgroup").read_text()
    return False


def _is_supervisor(pid: int) -> bool:
    with suppress(OSError):
        return b"console.supervisor" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def until(true: Callable[[], bool], seconds: float = PATIENCE_S) -> bool:
    """Whether it became true in time."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@contextmanager
def open_terminal(state_dir: Path, engine: Path | None = None) -> Iterator[Terminal]:
    """A terminal whose instance is ended and gone when the block ends."""
    terminal = Terminal(state_dir, engine)
    try:
        yield terminal
    finally:
        left = terminal.end()
    assert not left, f"left behind: {left}"
