"""A machine seen by an ordinary user: a process of another uid in PID and mount namespaces of its own, all of which ends with it.

``python user_world.py UID no-userns|plain -- argv`` (as root) makes the world and runs argv in it. ``as_user`` calls that for a test.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
USER = 64323
CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWUSER = 0x00020000, 0x20000000, 0x10000000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4


def user_python(uid: int = USER) -> str:
    """An interpreter that the user may run: ours may stand in a folder that only root can pass."""
    drop = ["/usr/bin/setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    wanted = f"{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/python{wanted}"):
        asked = [*drop, "/usr/bin/env", python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        done = subprocess.run(asked, cwd="/", env={}, capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip() == wanted:
            return python
    raise AssertionError(f"no Python {wanted} that an ordinary user may run (apt install python{wanted})")


def user_environment(home: Path, **more: str) -> dict[str, str]:
    """The user's whole environment."""
    packages = list(dict.fromkeys([str(ROOT), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]))
    return {"PATH": "/usr/bin:/bin", "HOME": str(home), "PYTHONPATH": os.pathsep.join(packages), "PYTHONDONTWRITEBYTECODE": "1", **more}


def as_user(home: Path, mode: str, *argv: str, timeout_s: float = 270.0, **env: str) -> dict[str, Any]:
    """Runs a story in such a world; what it printed behind RESULT. ``home`` is made and given to the user."""
    home.mkdir(exist_ok=True)
    os.chown(home, USER, USER)
    command = [sys.executable, str(Path(__file__)), str(USER), mode, "--", *argv]
    mark = {name: value for name, value in os.environ.items() if name.startswith("WATCHFLOOR_TEST")}
    done = subprocess.run(command, cwd="/", env=user_environment(home) | mark | env, capture_output=True, timeout=timeout_s, check=False)
    return result_of(done)


def result_of(done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    """The line behind RESULT; AssertionError with all it said when there is none."""
    lines = [line for line in done.stdout.decode(errors="replace").splitlines() if line.startswith("RESULT ")]
    assert lines, (done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace"))[-6000:]
    found: dict[str, Any] = json.loads(lines[-1].removeprefix("RESULT "))
    return found


# --- inside -----------------------------------------------------------------------------------------------------------------

libc = ctypes.CDLL(None, use_errno=True)


def _unshare(flags: int) -> None:
    if libc.unshare(flags):
        raise OSError(ctypes.get_errno(), "unshare")


def _no_user_namespaces(uid: int) -> None:
    """A user namespace in which none can be made: as on a machine whose administrator refused them."""
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    _unshare(CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/sys/user/max_user_namespaces").write_text("0")


def _run(uid: int, mode: str, argv: list[str]) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    if mode == "no-userns":
        _no_user_namespaces(uid)
    os.chdir("/")
    os.execv(argv[0], argv)


def _init(uid: int, mode: str, argv: list[str]) -> int:
    """PID 1 of the world: collects orphans until the story has ended; everything else ends with it."""
    sys.path.insert(0, str(ROOT))
    from console.sandbox import shim

    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    shim.make_private()
    shim.mount("proc", "/proc", "proc", 0)
    story = os.fork()
    if not story:
        _run(uid, mode, argv)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == story:
            return os.waitstatus_to_exitcode(status) & 0xFF


def main() -> int:
    """Makes the namespaces and waits for their init."""
    uid, mode, dashes, *argv = sys.argv[1:]
    assert dashes == "--"
    _unshare(CLONE_NEWNS | CLONE_NEWPID)
    init = os.fork()
    if not init:
        code = 1
        with contextlib.suppress(KeyboardInterrupt):
            code = _init(int(uid), mode, argv)
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(init, 0)[1]) & 0xFF


if __name__ == "__main__":
    sys.exit(main())
