"""A real supervisor and guard in a state directory of the test's own, and the clean end of both."""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from docker import APIClient
from docker.errors import DockerException

from console.api.client.api_client import ApiClient
from console.api.ladder import ScopeBody
from console.api.messages import AgentView, KillSwitchView, LaunchBody
from console.api.policy.rules import ProfileBody
from console.api.rearm import RearmProof
from console.domain.errors import ConsoleError
from console.domain.kill import Receipt
from console.egress.children import readable
from console.killswitch.client.guard_client import GuardClient
from console.settings.places import Places, find_places
from tests.fakes.nursery import SHARED, WITHOUT_ENVOY, Nursling
from tests.leaks import cgroup_places

ROOT = Path(__file__).resolve().parent.parent.parent
T = TypeVar("T")
PATIENCE_S = 90.0
"""Longest wait for what must come: it costs nothing when all is well, and load alone must not fail a test."""


def until(what: Callable[[], T], seconds: float = PATIENCE_S, words: str | Callable[[], object] = "") -> T:
    """The first true answer; fails after ``seconds``, with ``words``, which are made then where they say what there is."""
    end = time.monotonic() + seconds
    while True:
        answer = what()
        if answer:
            return answer
        assert time.monotonic() < end, f"not so after {seconds} s: {(words() if callable(words) else words) or what}"
        time.sleep(0.05)


def free_port() -> int:
    """Below the kernel's own choices: nobody is given it meanwhile, and whoever looks beside us takes another."""
    while True:
        with socket.socket() as free:
            port = random.randrange(20_000, 32_000)  # noqa: S311 - not for secrets
            with contextlib.suppress(OSError):
                free.bind(("127.0.0.1", port))
                return port


def files_below(folder: Path) -> dict[Path, bytes]:
    """Every file with what is in it; one that goes away meanwhile (a draft, a database's journal) is none."""
    found = {}
    for at, _, names in os.walk(folder):
        for path in (Path(at, name) for name in names):
            with contextlib.suppress(OSError):
                if stat.S_ISREG(path.lstat().st_mode):
                    found[path] = path.read_bytes()
    return found


class Operator(ApiClient):
    """A client that rearms as a person at the console does who looks and types the id of the kill."""

    def rearm(self, reason: str, kill_id: str = "", proof: RearmProof | None = None) -> KillSwitchView:
        if proof is not None:
            return super().rearm(reason, kill_id, proof)
        seen = self.rearm_view()
        return super().rearm(reason, kill_id or seen.to_type, RearmProof(operator="test", via="console", generation=seen.generation))


class Patient(Operator):
    """The same, of a test that looks at the later steps of a kill: its receipts are complete."""

    def kill(self, agent_id: str, *, tree: bool = False, reason: str = "") -> Receipt:
        return self.whole(super().kill(agent_id, tree=tree, reason=reason))

    def kill_scope(self, scope: ScopeBody, reason: str = "") -> Receipt:
        return self.whole(super().kill_scope(scope, reason))

    def activate(self, reason: str) -> Receipt:
        return self.whole(super().activate(reason))

    def whole(self, receipt: Receipt) -> Receipt:
        until(lambda: self.receipt(receipt.kill_id).complete, words="the receipt is complete")
        return self.receipt(receipt.kill_id)


class Instance:
    """``with Instance(folder, "--heartbeat-s", "2") as it: it.api.fleet()``"""

    environment: ClassVar[dict[str, str]] = {}
    """What the supervisor's environment has besides ours, where words stand in front of its command."""

    def __init__(self, state_dir: Path, *options: str, code: Path = ROOT, envoy: bool = False) -> None:
        """``code``: the folder whose ``console`` runs. ``envoy``: one that is forked finds Envoy only if its test asks for it."""
        self.state_dir, self.options, self.code = state_dir, options, code
        self.without_envoy = {} if envoy else {WITHOUT_ENVOY: "1"}
        self.process: subprocess.Popen[bytes] | Nursling | None = None

    def __enter__(self) -> Instance:
        self.start()
        return self

    @property
    def before(self) -> list[str]:
        """Words in front of the supervisor's command: where they stand, it starts in a place of its own."""
        return []

    def start(self) -> None:
        argv = ("serve", "--state-dir", str(self.state_dir), *self.options)
        if SHARED and self.code == ROOT and not self.before:
            self.process = born = SHARED[0].run("console.supervisor", *argv, **self.without_envoy)
            until(lambda: "ready\n" in born.said() or born.has_ended(), words="the supervisor is ready")
            assert "ready\n" in born.said(), born.said()
        else:
            self.process = made = subprocess.Popen(
                [*self.before, sys.executable, "-m", "console.supervisor", *argv],
                cwd=self.code,
                env=os.environ | self.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            assert made.stdout is not None and made.stderr is not None
            line = made.stdout.readline()
            assert line == b"ready\n", (line, made.stderr.read().decode())
        places = find_places(str(self.state_dir), create=False)
        assert places is not None
        self.places: Places = places
        self.api: Operator = Patient(places, timeout_s=60)
        self.hasty = Operator(places, timeout_s=60)
        """Has its answer at zero, as every client."""

    def choose_profile(self, profile: str, *agent_types: str) -> None:
        """What an operator chooses for these types of agents."""
        for agent_type in agent_types:
            self.api.choose_profile(ProfileBody(agent_type=agent_type, profile=profile, reason="the test"))

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ends the supervisor alone."""
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE_S)
        if isinstance(self.process, subprocess.Popen):
            for pipe in (self.process.stdout, self.process.stderr):
                assert pipe is not None
                pipe.close()
        self.process = None
        return code

    def __exit__(self, *_: object) -> None:
        if self.places.log_file.exists():
            print("supervisor.log:", self.places.log_file.read_text()[-6000:])  # pytest shows it when the test fails
        guard = GuardClient(self.places.guard_supervisor_sock, timeout_s=60)
        try:
            with contextlib.suppress(ConsoleError):
                guard.press("all", "end of the test", "test", timeout_s=90)
            if self.process is not None:
                self.process.send_signal(signal.SIGCONT)
                self.stop()
            pid = self.guard_pid()
        finally:
            guard.close()
        with contextlib.suppress(ProcessLookupError):  # one that holds nothing may end by itself
            if pid:
                end_guard(pid)
        self._sweep_cgroups()
        self._sweep_containers()

    def living_guard(self) -> int:
        """Its pid, for a signal: never 0, which kill(2) reads as everybody in the test's own process group."""
        return until(self.guard_pid, words="the guard names itself")

    def agent_pid(self, agent_id: str) -> int:
        """Of its first process, for a signal; fails when it has none."""
        pid = self.agent(agent_id).pid
        assert pid
        return pid

    def guard_pid(self) -> int:
        """0 when none answers."""
        guard = GuardClient(self.places.guard_sock, timeout_s=20)
        try:
            return int(guard.status()["pid"])
        except ConsoleError:
            return 0
        finally:
            guard.close()

    def _sweep_containers(self) -> None:
        """A supervisor that ends right after a press has no time to take the dead containers away."""
        if "--engine-socket" not in self.options:
            return
        socket = self.options[self.options.index("--engine-socket") + 1]
        with (
            contextlib.suppress(DockerException, OSError),
            contextlib.closing(APIClient(base_url=f"unix://{socket}", timeout=60)) as engine,
        ):
            for left in engine.containers(all=True, filters={"label": f"io.watchfloor.instance={self.places.instance_id}"}):
                engine.remove_container(left["Id"], force=True, v=True)

    def _sweep_cgroups(self) -> None:
        name = f"watchfloor-{self.places.instance_id}"
        for place in cgroup_places():
            tree = place / name
            if tree.is_dir():
                for folder, _, _ in os.walk(tree, topdown=False):
                    _remove(Path(folder))

    # --- words of the tests

    def launch(self, *argv: str, **options: Any) -> str:
        return self.api.launch(LaunchBody(argv=list(argv), **options)).id

    def python(self, code: str, **options: Any) -> str:
        """An agent that runs this Python with the agent client at hand as ``agent``."""
        start = "import os, sys, time; sys.path.insert(0, os.environ['WATCHFLOOR_TOYS']); import client; agent = client.Agent()\n"
        return self.launch("python3", "-c", start + code, **options)

    def scrape(self, path: str = "/metrics", **headers: str) -> tuple[int, str, str]:
        """Status, type and text of figures, as any program of the operator gets them."""
        connection = http.client.HTTPConnection("localhost")
        with contextlib.closing(connection):
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(60)
            connection.sock.connect(str(self.places.operator_sock))
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.headers["content-type"], answer.read().decode()

    def agent(self, agent_id: str) -> AgentView:
        return next(a for a in self.api.fleet().agents if a.id == agent_id)

    def output(self, agent_id: str) -> str:
        path = self.places.output_dir / f"{agent_id}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def says(self, agent_id: str, word: str, seconds: float = PATIENCE_S) -> str:
        """Waits until the agent has printed a whole line with ``word`` in it; the whole output."""

        def whole() -> bool:
            _, found, rest = self.output(agent_id).partition(word)
            return "\n" in found + rest

        until(whole, seconds, f"{word!r} in the output of {agent_id}")
        return self.output(agent_id)

    def state_becomes(self, agent_id: str, *states: str, seconds: float = PATIENCE_S) -> AgentView:
        def there() -> AgentView | None:
            found = self.agent(agent_id)
            return found if found.state in states else None

        found = until(there, seconds, lambda: f"{agent_id} becomes {states}, is {self.agent(agent_id).state}")
        assert found is not None
        return found


def listens(path: Path) -> bool:
    """Whether somebody listens at a unix socket, which is there a moment before."""
    with socket.socket(socket.AF_UNIX) as one:
        return one.connect_ex(str(path)) == 0


def end_guard(pid: int) -> None:
    """SIGTERM to our own guard, named by its own answer; waits. ProcessLookupError when it has ended."""
    descriptor = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGTERM)
        until(lambda: readable(descriptor, 0), words="the guard ends")
    finally:
        os.close(descriptor)


def _remove(folder: Path) -> None:
    for _ in range(600):
        try:
            folder.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.05)
    folder.rmdir()


def processes_with(marker: str) -> list[int]:
    """Pids whose command line holds ``marker`` (a random word of the test's)."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if marker.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found
