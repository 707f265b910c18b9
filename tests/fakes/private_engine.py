"""A Docker engine of a test's own: to be stopped, killed and started again over the same data. It shares nothing with another engine.

Own data-root, exec-root, socket and pid file, own network and mount namespaces, no bridge and no rules. It is started apart from the
tests (no child, no mark of the session), because a new one takes the old one's place in the middle of a test; ``close`` ends it all.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from console.killswitch.kernel import processes
from tests.fakes.docker_engine import Docker
from tests.fakes.guard_world import end, until
from tests.leaks import SESSION_VARIABLE, ask_engine

ROOT = Path(__file__).resolve().parent.parent.parent
_START = """
import os, sys
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(sys.argv[1], "console", "sandbox"))
import shim
home, log, *namespaces = sys.argv[2:]
child = os.fork()
if child:
    print(child)
    sys.exit()
os.setsid()
out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
os.dup2(out, 1); os.dup2(out, 2)
if namespaces:  # those of the one before: its shims are spoken to there
    if any(shim.libc.setns(int(fd), 0) for fd in namespaces):
        sys.exit("the namespaces of the one before cannot be entered")
else:
    if shim.libc.unshare(shim.CLONE_NEWNS | shim.CLONE_NEWNET):
        sys.exit("namespaces are refused here")
    shim.make_private()
    shim.raise_loopback()
os.execvp("dockerd", ["dockerd", "--config-file", f"{home}/daemon.json", "--host", f"unix://{home}/engine.sock",
    "--data-root", f"{home}/data", "--exec-root", f"{home}/exec", "--pidfile", f"{home}/pid",
    "--storage-driver", "vfs", "--bridge", "none", "--iptables=false", "--ip6tables=false", "--group", "root",
    "--shutdown-timeout", "2"])
"""


class PrivateEngine:
    """``start``, ``signal``, ``start`` again, ``close``."""

    def __init__(self, **config: Any) -> None:
        """``config``: what its daemon.json holds."""
        self.home = Path(tempfile.mkdtemp(prefix="we-", dir="/tmp"))  # noqa: S108 - a unix socket's path must be short
        self.socket = self.home / "engine.sock"
        self.docker = Docker(self.socket)
        (self.home / "daemon.json").write_text(json.dumps(config))
        self.pid = 0
        self._namespaces: list[int] = []

    def start(self) -> None:
        """Returns once it answers."""
        for stale in ("pid", "exec/containerd/containerd.pid"):  # a zombie that nobody reaps passes for a live one
            (self.home / stale).unlink(missing_ok=True)
        env = {k: v for k, v in os.environ.items() if k not in (SESSION_VARIABLE, "TMPDIR", "DOCKER_HOST", "WATCHFLOOR_ETC")}
        command = [sys.executable, "-I", "-S", "-c", _START, str(ROOT), str(self.home), str(self.home / "log")]
        command += [str(fd) for fd in self._namespaces]
        done = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=True, pass_fds=self._namespaces
        )
        self.pid = int(done.stdout)
        until(lambda: ask_engine(self.socket, "/_ping") or not processes.is_alive(self.pid), "the private engine answers")
        assert processes.is_alive(self.pid), (self.home / "log").read_text()[-2000:]
        self._namespaces = self._namespaces or [os.open(f"/proc/{self.pid}/ns/{kind}", os.O_RDONLY) for kind in ("net", "mnt")]

    def signal(self, number: int) -> None:
        """To the engine, not to its containers; waits for the end of what it ends. SIGKILL takes its containerd with it."""
        end(self.pid, number)
        if number == signal.SIGTERM:
            until(lambda: not processes.is_alive(self.pid), "the engine ended in order")
        if number == signal.SIGKILL:
            for pid in self._helpers():
                if processes.command_line(pid).startswith("containerd "):
                    with contextlib.suppress(ProcessLookupError):
                        end(pid)

    def close(self) -> None:
        """Ends its containers, the engine and what it started, and removes its files."""
        if processes.is_alive(self.pid):
            self.signal(signal.SIGCONT)
        else:
            self.start()
        self.docker.close()
        self.signal(signal.SIGTERM)
        until(lambda: not self._helpers(), "its helpers ended")
        for fd in self._namespaces:
            os.close(fd)
        shutil.rmtree(self.home, ignore_errors=True)

    def _helpers(self) -> list[int]:
        """containerd and the shims, which name its folder."""
        return [p for p in processes.every_pid() if str(self.home) in processes.command_line(p) and processes.is_alive(p)]
