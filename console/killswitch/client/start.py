"""Starts the guard as a detached process: it survives the supervisor, the console and the terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import console
from console.domain.errors import ConsoleError, TimedOut, Unavailable
from console.domain.guard import HEARTBEAT_S, RETURN_WATCH_S
from console.killswitch.client.guard_client import GuardClient
from console.killswitch.client.patience import Patience, lock_holder
from console.killswitch.kernel.delegation import Home, find_home

START_S = 15.0
"""Seconds for which a starting guard may stand still. One that makes progress is waited for (patience.py)."""
HELD_S = 5.0
"""The same for a process that holds the instance and does not answer yet."""
HELD = 75
"""Exit code: another guard holds the instance (``__main__``)."""
LOOK_S = 0.1
# Nothing that steers the interpreter (PYTHON*, LD_*) is passed on: the guard must run the program that was installed.
_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "HOME", "TMPDIR")


def start_guard(
    state_dir: Path,
    run_dir: Path,
    instance_id: str,
    *,
    engine_socket: Path | None = None,
    heartbeat_s: float = HEARTBEAT_S,
    lease: bool = False,
    supervisor_uid: int | None = None,
    orphan_s: float | None = None,
    return_watch_s: float = RETURN_WATCH_S,
    passphrase_file: Path | None = None,
    timeout_s: float = START_S,
) -> int:
    """Pid of the instance's guard, started now if none answers. Returns once both sockets answer.

    Raises Unavailable when it cannot start, with the last line it said; TimedOut when it stands still for ``timeout_s`` before it is ready.
    """
    running = guard_pid(run_dir)
    if running is not None:
        return running
    # -P and -s keep the current folder and the account's own packages out of the module path: an agent may write there.
    command = [sys.executable, "-P", "-s", "-m", "console.killswitch", "--detach", f"--instance={instance_id}"]
    command += [f"--state-dir={state_dir}", f"--run-dir={run_dir}", f"--heartbeat-s={heartbeat_s}"]
    command += [f"--return-watch-s={return_watch_s}"]
    command += [f"--engine-socket={engine_socket}"] if engine_socket else []
    command += ["--lease"] if lease else []
    command += [f"--supervisor-uid={supervisor_uid}"] if supervisor_uid is not None else []
    command += [f"--passphrase-file={passphrase_file}"] if passphrase_file is not None else []
    command += [f"--orphan-s={orphan_s}"] if orphan_s is not None else []
    said: list[str] = []
    home = find_home(instance_id)
    for place in (home, Home()) if home.prefix else (home,):  # a scope that is refused now is no reason to have no guard
        try:
            done = _run(command, place, timeout_s)
        except subprocess.TimeoutExpired as error:
            raise TimedOut("The guard is not ready yet.", f"See {state_dir / 'guard' / 'guard.log'}.") from error
        # The guard says ready only after both sockets answer, so no caller meets a guard without a door.
        words = done.stdout.split()
        if done.returncode == 0 and len(words) == 2 and words[0] == b"ready":
            return int(words[1])
        running = _other(state_dir, run_dir, min(timeout_s, HELD_S) if done.returncode == HELD else 0.0)  # another start was faster
        if running is not None:
            return running
        said = done.stderr.decode(errors="replace").strip().splitlines() or _last_words(state_dir / "guard" / "guard.log")
    raise Unavailable(f"The guard cannot start: {said[-1] if said else 'it gave no reason'}.", f"See {state_dir / 'guard' / 'guard.log'}.")


def _run(command: list[str], home: Home, timeout_s: float) -> subprocess.CompletedProcess[bytes]:
    """The guard's start, in a scope of its own where it needs one; nothing else of our environment reaches it."""
    env = {k: os.environ[k] for k in _ENVIRONMENT if k in os.environ} | home.environment
    env["PYTHONPATH"] = str(Path(next(iter(console.__path__))).parent)
    words = [*home.prefix, *command]
    with subprocess.Popen(words, env=env, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        patience = Patience(child.pid, timeout_s)
        while True:
            try:
                said, complained = child.communicate(timeout=LOOK_S)
            except subprocess.TimeoutExpired:
                if patience.is_over():
                    child.kill()
                    raise
            else:
                return subprocess.CompletedProcess(words, child.returncode, said, complained)


def _other(state_dir: Path, run_dir: Path, still_s: float) -> int | None:
    """Pid of the guard that holds the instance, once it answers; it may be starting itself."""
    patience = Patience(lock_holder(state_dir / "guard" / "lock"), still_s)
    while (running := guard_pid(run_dir)) is None and not patience.is_over():
        time.sleep(LOOK_S)
    return running


def guard_pid(run_dir: Path) -> int | None:
    """Pid of the guard that answers, or None."""
    client = GuardClient(run_dir / "guard.sock", timeout_s=2.0)
    try:
        return int(client.status()["pid"])
    except (ConsoleError, KeyError, ValueError, TypeError):
        return None
    finally:
        client.close()


def _last_words(log: Path) -> list[str]:
    try:
        return log.read_text(errors="replace")[-2000:].strip().splitlines()
    except OSError:
        return []
