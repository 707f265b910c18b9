"""The demo's hosts: a supervisor with its guard each, in a state directory of its own, and the end of everything that belongs to one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from console.api.client.api_client import ApiClient
from console.api.messages import StatusView
from console.cli.embedded import child_environment
from console.cli.terminal.plain import plain
from console.demo import cleanup
from console.domain.errors import ConsoleError, TimedOut, Unreachable
from console.settings.options import save_options
from console.settings.places import Places, find_places

FLEET = "demo"
POLL_S = 2.0
READY_S = 90.0
KEYS_FILE = "fleet-keys.json"
"""The public keys a host trusts; nothing secret."""
_NOT_OURS = ("GOOGLE_", "CLOUDSDK_", "GCLOUD_", "AWS_", "AZURE_", "STORAGE_EMULATOR_HOST", "WATCHFLOOR_STATE_DIR")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


@dataclass
class Host:
    """One supervisor and guard that the demo started."""

    name: str
    places: Places
    engine_socket: str
    child: subprocess.Popen[bytes] | None = None

    @property
    def client(self) -> ApiClient:
        """A client; close it after use."""
        return ApiClient(self.places, timeout_s=20)

    def status(self) -> StatusView:
        """Its status."""
        with self.client as client:
            return client.status()

    @property
    def _log(self) -> Path:
        return self.places.state_dir / "demo.log"

    def start(self) -> None:
        """Starts the supervisor, and it the guard; ``wait_ready`` says whether they run."""
        with self._log.open("ab") as sink:
            self.child = subprocess.Popen(
                [sys.executable, "-m", "console.supervisor", "serve", "--state-dir", str(self.places.state_dir)],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,  # Ctrl-C at the terminal is for the demo, which ends this in order
                env=host_environment(),
            )

    def wait_ready(self) -> None:
        """Waits until the supervisor answers. Raises ConsoleError."""
        assert self.child is not None  # started
        log = self._log
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            with suppress(Unreachable, TimedOut):
                self.status()
                return
            if self.child.poll() is not None:
                words = plain(log.read_text(errors="replace").strip()[-300:], 300)
                raise ConsoleError(f"The supervisor of {self.name} ended with {self.child.returncode}: {words}", f"Its log is {log}.")
            time.sleep(0.1)
        raise TimedOut(f"The supervisor of {self.name} did not answer within {READY_S:g} s.", f"Its log is {log}.")

    def wait_armed(self, wait_s: float) -> None:
        """Waits for the first good signed read of the kill file: until then nothing starts (soft stop)."""
        deadline = time.monotonic() + wait_s
        while self.status().soft_stop and time.monotonic() < deadline:
            time.sleep(0.1)

    def stop(self) -> list[str]:
        """Ends agents, supervisor and guard, and removes what they held; what could not be removed."""
        # 1. The agents, while somebody is there who can.
        with suppress(ConsoleError, OSError, subprocess.TimeoutExpired):
            if cleanup.still_running(self.places.instance_id, self.engine_socket):
                self._press()
        # 2. The supervisor, in order; then by force.
        if self.child is not None:
            asked = False
            with suppress(ConsoleError), self.client as client:
                client.shutdown()
                asked = True
            self._end_child(self.child, 20 if asked else 0)
        # 3. The guard: it outlives its supervisor on purpose.
        instance = self.places.instance_id
        left = [cleanup.end_process(pid, lambda p: cleanup.is_guard(p, instance)) for pid in cleanup.guards(instance)]
        # 4. What a failed kill would have left, and empty shells.
        left += [cleanup.end_process(p, lambda p: cleanup.is_agents(p, instance)) for p in cleanup.agent_processes(instance)]
        left += cleanup.remove_containers(instance, self.engine_socket)
        left += cleanup.remove_cgroups(instance)
        if self.places.run_dir.parent != self.places.state_dir:
            shutil.rmtree(self.places.run_dir, ignore_errors=True)
        return [words for words in left if words]

    def _press(self) -> None:
        subprocess.run(
            [sys.executable, "-m", "console", "panic", "--state-dir", str(self.places.state_dir), "--reason", "the demo ends"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=host_environment(),
            timeout=60,
            check=False,
        )

    @staticmethod
    def _end_child(child: subprocess.Popen[bytes], patience_s: float) -> None:
        for end, patience in ((None, patience_s), (child.terminate, 10), (child.kill, 10)):
            if end is not None:
                end()
            with suppress(subprocess.TimeoutExpired):
                child.wait(patience)
                return


def host_environment() -> dict[str, str]:
    """Ours without cloud credentials and proxies, and with no desktop keyring: the demo's secrets live and die with its folder."""
    env = {name: value for name, value in child_environment().items() if not name.startswith(_NOT_OURS) and name not in _PROXIES}
    return {**env, "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}


def make_host(
    name: str, folder: Path, engine_socket: str, *, endpoint: str, bucket: str, netns: str = "", hosts: dict[str, str], stand_ins: list[str]
) -> Host:
    """A new instance with its settings on disk; nothing runs yet. Without ``endpoint`` it has no remote channel."""
    places = find_places(str(folder), create=True)
    values = {
        "egress.netns": netns,
        "egress.hosts": {host: [address] for host, address in hosts.items()},
        "engine_socket": engine_socket if Path(engine_socket).exists() else "",  # one that is named and away is a doubt of every stop
        "host_name": name,
        "stand_ins": stand_ins,
        "remote.bucket": bucket if endpoint else "",
        "remote.endpoint": endpoint,
        "remote.fleet": FLEET,
        "remote.poll_s": POLL_S,
    }
    save_options(places.settings_file, values)
    return Host(name, places, engine_socket)


def make_keys(signer: Host, others: list[Host]) -> None:
    """Keys and the signed baseline by the first host; the others trust the same public keys. Raises ConsoleError."""
    told = subprocess.run(
        [sys.executable, "-m", "console", "secrets", "keys", "init", "--state-dir", str(signer.places.state_dir)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=host_environment(),
        timeout=60,
        check=False,
    )
    if told.returncode != 0:
        raise ConsoleError(
            f"The demo's keys were not made: {plain(told.stderr.decode(errors='replace').strip(), 300)}", "watchfloor doctor"
        )
    for host in others:
        host.places.keys_dir.mkdir(mode=0o700, exist_ok=True)
        shutil.copyfile(signer.places.keys_dir / KEYS_FILE, host.places.keys_dir / KEYS_FILE)


def engine_socket_here() -> str:
    """The engine's socket that DOCKER_HOST names, else the usual one."""
    named = os.environ.get("DOCKER_HOST", "")
    return named.removeprefix("unix://") if named.startswith("unix://") else "/var/run/docker.sock"
