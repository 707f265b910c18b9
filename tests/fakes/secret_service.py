"""A real Secret Service: gnome-keyring in a D-Bus session of its own, unlocked with a password on standard input; ended by pid."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.fakes.instance import listens, until

_BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={socket}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
"""


class SecretService:
    """``with SecretService(folder) as it:`` and then ``it.environment`` for whoever shall see it."""

    def __init__(self, folder: Path, *, unlock: bool = True, keyring: bool = True) -> None:
        self.folder, self._unlock, self._keyring = folder, unlock, keyring
        folder.mkdir(mode=0o700)
        for name in ("home", "data", "run"):
            (folder / name).mkdir(mode=0o700)
        self.socket = folder / "bus"
        self.environment = {
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={self.socket}",
            "HOME": str(folder / "home"),
            "XDG_DATA_HOME": str(folder / "data"),
            "XDG_RUNTIME_DIR": str(folder / "run"),
        }
        self._programs: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> SecretService:
        # No activation: nothing of this machine's is ever started on this bus.
        config = self.folder / "bus.conf"
        config.write_text(_BUS.format(socket=self.socket))
        self._start("dbus-daemon", "--nofork", f"--config-file={config}")
        until(lambda: listens(self.socket), words="the bus listens")
        if self._keyring:
            daemon = self._start(
                "gnome-keyring-daemon", "--foreground", "--components=secrets", "--control-directory", str(self.folder / "run"),
                *(["--unlock"] if self._unlock else []),
            )  # fmt: skip
            assert daemon.stdin is not None
            daemon.stdin.write(b"a password of the test's")
            daemon.stdin.close()
            until(self._answers, words="the secret service has its name on the bus, and its first collection where it is unlocked")
        return self

    def _start(self, *argv: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, **self.environment}
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        process = subprocess.Popen(argv, stdin=pipe, stdout=null, stderr=null, env=environment)
        self._programs.append(process)
        return process

    def _answers(self) -> bool:
        # It has its name before it has made its collection; who stores something in between is refused.
        ask = "import secretstorage as s, sys; c = s.dbus_init(); there = s.check_service_availability(c)\n"
        if self._unlock:
            ask += "there = there and not s.get_collection_by_alias(c, 'default').is_locked()\n"
        asked = [sys.executable, "-c", f"{ask}sys.exit(not there)"]
        env = {**os.environ, **self.environment}
        return subprocess.run(asked, env=env, stderr=subprocess.DEVNULL, check=False).returncode == 0

    def hang(self) -> None:
        """The keyring answers nothing more, and its bus still lists it."""
        import signal

        self._programs[-1].send_signal(signal.SIGSTOP)

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._programs):
            process.kill()
            process.wait()
            if process.stdin is not None and not process.stdin.closed:
                process.stdin.close()
