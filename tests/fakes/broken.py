"""An instance that is about to be broken: supervisor and guard end in any way and at any failpoint, and the end of all is clean."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from console.api.messages import LaunchBody
from console.domain.errors import ConsoleError
from console.domain.kill import Receipt
from console.domain.process.failpoints import VARIABLE
from console.egress.children import readable
from console.killswitch.client.guard_client import GuardClient
from console.killswitch.kernel.processes import start_ticks
from console.settings.places import Places, find_places
from tests.fakes.instance import PATIENCE_S, Instance, Operator, until
from tests.fakes.nursery import Nursery, Nursling

STUBBORN = """import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        if os.fork(): os._exit(0)
        while True: time.sleep(60)
print("ran", flush=True)
while True: time.sleep(60)
"""


class Broken(Instance):
    """``arm`` sets a failpoint of the supervisor, ``arm_guard`` one of a guard that was started by ``start_guard``."""

    def __init__(self, state_dir: Path, nursery: Nursery, *options: str, envoy: bool = False) -> None:
        super().__init__(state_dir, *options, envoy=envoy)
        self.nursery = nursery
        self.supervisor: Nursling | None = None
        self.guards: list[Nursling] = []
        self.module = "console.supervisor"
        self.armed, self.armed_guard = state_dir / "armed", state_dir / "armed-guard"
        found = find_places(str(state_dir), create=True)
        self.places: Places = found
        self.api = Operator(found, timeout_s=60)

    def start(self) -> None:
        """A supervisor, with what this instance was made with; ready when this returns."""
        argv = ("serve", "--state-dir", str(self.state_dir), *self.options)
        self.supervisor = self.nursery.run(self.module, *argv, **self.without_envoy, **{VARIABLE: f"@{self.armed}"})
        born = self.supervisor
        until(lambda: "ready\n" in born.said() or born.has_ended(), words="the supervisor is ready")
        assert "ready\n" in born.said(), born.said()

    def try_to_start(self) -> bool:
        """Whether this one became the supervisor; another may be faster."""
        try:
            self.start()
        except AssertionError:
            assert self.supervisor is not None
            self.supervisor.wait()
            self.supervisor = None
        return self.supervisor is not None

    def answers(self) -> bool:
        """Whether a supervisor answers, whoever started it."""
        try:
            self.api.status()
        except ConsoleError:
            return False
        return True

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ends the supervisor alone."""
        assert self.supervisor is not None
        with contextlib.suppress(ProcessLookupError):
            self.supervisor.send_signal(signal.SIGCONT)
            self.supervisor.send_signal(number)
        code, self.supervisor = self.supervisor.wait(), None
        return code

    def start_guard(self, module: str = "console.killswitch", *more: str, **env: str) -> Nursling:
        """A guard with failpoints, before any supervisor starts one without."""
        born = self.try_guard(module, *more, **env)
        assert "ready\n" in born.said(), born.said()
        return born

    def try_guard(self, module: str = "console.killswitch", *more: str, **env: str) -> Nursling:
        """The same, whatever becomes of it."""
        argv = [f"--instance={self.places.instance_id}", f"--state-dir={self.state_dir}", f"--run-dir={self.places.run_dir}", *more]
        born = self.nursery.run(module, *argv, **{VARIABLE: f"@{self.armed_guard}", **env})
        self.guards.append(born)
        until(lambda: "ready\n" in born.said() or born.has_ended(), words="the guard is ready")
        return born

    def arm(self, point: str) -> None:
        """``NAME:kill|raise|hang`` in the supervisor; empty disarms."""
        _arm(self.armed, point)

    def arm_before_start(self, point: str) -> None:
        """The same for a guard that is not there yet."""
        _arm(self.armed_guard, point)

    def arm_guard(self, point: str) -> None:
        """The same in the guard; not while the canary of the armed light flies, which is a kill as well."""
        if point:
            until(lambda: self.api.kill_switch().killed or self._canary_is_proven(), words="the canary is proven")
        _arm(self.armed_guard, point)

    def _canary_is_proven(self) -> bool:
        return any(p.name == "local" and p.state == "proven" for p in self.api.kill_switch().paths)

    def reached(self, path: Path | None = None) -> str:
        """The failpoint that was reached since it was armed, or nothing."""
        hit = Path(f"{path or self.armed}.hit")
        return hit.read_text() if hit.exists() else ""

    def another(self) -> Operator:
        """A second console."""
        return Operator(self.places, timeout_s=60)

    def body(self, *argv: str) -> LaunchBody:
        """What a launch asks for."""
        return LaunchBody(argv=list(argv))

    def stubborn(self, **options: str) -> str:
        """An agent of three processes, two of them orphans in sessions of their own, that ignores SIGTERM; it has run."""
        agent_id = self.python(STUBBORN, **options)
        self.says(agent_id, "ran")
        return agent_id

    def receipt_of(self, kill_id: str = "", seconds: float = PATIENCE_S) -> Receipt:
        """The finished receipt of a kill (without an id: of the newest)."""

        def finished() -> Receipt | None:
            found = [r for r in self.api.receipts().receipts if r.complete and kill_id in ("", r.kill_id)]
            return self.api.receipt(found[0].kill_id) if found else None

        receipt = until(finished, seconds, "the receipt is complete")
        assert receipt is not None
        return receipt

    def press_guard(self) -> str:
        """A press of everything on the guard's socket; its id once it is answered."""
        client = GuardClient(self.places.guard_sock, timeout_s=60)
        try:
            return client.press("all", "pressed by the test", "test", timeout_s=PATIENCE_S)
        finally:
            client.close()

    def own_processes(self) -> list[int]:
        """Whatever names this state directory on its command line, but not this process."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and int(entry.name) != os.getpid():
                    words = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                    if str(self.state_dir).encode() + b" " in words or str(self.state_dir).encode() + b"/" in words:
                        found.append(int(entry.name))
        return found

    def close(self) -> None:
        """Ends agents, supervisor, guard and whatever a press without them started; removes the cgroups."""
        if self.places.log_file.exists():
            print("supervisor.log:", self.places.log_file.read_text()[-6000:])  # pytest shows it when the test fails
        for born in (*self.guards, *((self.supervisor,) if self.supervisor is not None else ())):
            print(born.pid, "said:", born.said()[-6000:])
        self.arm("")
        self.arm_guard("")
        if self.supervisor is not None:
            self.supervisor.end()
        for guard in self.guards:
            guard.end()
        for _ in range(3):
            for pid in self.own_processes():
                _end(pid)
        self._kill_cgroups()
        self._sweep_cgroups()

    def _kill_cgroups(self) -> None:
        for mount in (Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").iterdir()):
            kill = mount / f"watchfloor-{self.places.instance_id}" / "agents" / "cgroup.kill"
            if kill.exists():
                kill.write_text("1")


def _arm(path: Path, point: str) -> None:
    Path(f"{path}.hit").unlink(missing_ok=True)
    draft = path.with_name(f"{path.name}.draft")
    draft.write_text(point)
    draft.rename(path)


def _end(pid: int) -> None:
    """SIGKILL to one that this instance started; waits until it is gone."""
    with contextlib.suppress(ProcessLookupError):
        fd = os.pidfd_open(pid)
        try:
            if start_ticks(pid) is not None:
                signal.pidfd_send_signal(fd, signal.SIGKILL)
                until(lambda: not _runs(fd), words=f"{pid} ends")
        finally:
            os.close(fd)


def _runs(fd: int) -> bool:
    return not readable(fd, 0)
