"""A real ``systemd --user`` of an ordinary user, and a story told from a terminal of that session.

It has the machine's files read-only, /tmp and /run of its own, a PID namespace of its own, and one cgroup that is delegated to it. All
of it ends with the PID namespace and by cgroup.kill.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.fakes.sandbox_world import _remove, cgroup2
from tests.fakes.user_world import ROOT, USER, result_of, user_environment, user_python

SYSTEMD = "/lib/systemd/systemd"
HOME = Path("/tmp/home")  # noqa: S108 - of the world's own
RUNTIME = Path(f"/run/user/{USER}")
ENTER = 'echo 0 > "$1/cgroup.procs" || exit 1; shift; exec "$@"'
WHOLE_PROC = "mount -t proc proc /proc && "
"""bwrap covers parts of /proc; the kernel lets a user mount a /proc of its own only where a whole one is to be seen."""
BEGIN = (
    f"chmod 755 {RUNTIME.parent} && chown {USER}:{USER} {RUNTIME} {HOME} && "
    f'exec /usr/bin/setpriv --reuid={USER} --regid={USER} --clear-groups /usr/bin/env "$@"'
)


def under_systemd(*argv: str, pid_namespaces: bool, timeout_s: float = 270.0) -> dict[str, Any]:
    """What a story prints behind RESULT when it is told inside such a session."""
    top = cgroup2() / f"watchfloor-test-{secrets.token_hex(4)}"
    session = top / "user.slice" / f"user-{USER}.slice" / f"user@{USER}.service"
    terminal = session / "app.slice" / "terminal.scope"
    try:
        for folder in (session, session / "init.scope", session / "app.slice", terminal):
            folder.mkdir(parents=True)
            for path in (folder, *(folder / f"cgroup.{name}" for name in ("procs", "threads", "subtree_control"))):
                os.chown(path, USER, USER)
        inside = Path("/sys/fs/cgroup") / session.relative_to(cgroup2())
        env = user_environment(HOME, XDG_RUNTIME_DIR=str(RUNTIME), SESSION_CGROUP=str(inside))
        begin = (WHOLE_PROC if pid_namespaces else "") + BEGIN
        words = ["/bin/sh", "-c", ENTER, "sh", str(terminal), *_bwrap(), "/bin/sh", "-c", begin, "sh", user_python(), __file__, *argv]
        done = subprocess.run(words, cwd="/", env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, check=False)
        return result_of(done)
    finally:
        _end(top)


def _bwrap() -> list[str]:
    options = ["--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session", "--ro-bind", "/", "/"]
    options += ["--dev", "/dev", "--proc", "/proc"]
    for folder in ("/tmp", "/run", "/var/tmp", "/dev/shm"):  # noqa: S108 - private ones in place of the machine's
        options += ["--perms", "1777", "--tmpfs", folder]
    options += ["--dir", "/run/systemd/system"]  # sd_booted(3)
    options += ["--bind", str(cgroup2()), "/sys/fs/cgroup", "--perms", "0700", "--dir", str(RUNTIME), "--perms", "0711", "--dir", str(HOME)]
    return ["/usr/bin/bwrap", *options, "--"]


def _end(top: Path) -> None:
    if not top.exists():
        return
    (top / "cgroup.kill").write_text("1")
    for folder, _, _ in os.walk(top, topdown=False):
        _remove(Path(folder))


# --- inside -----------------------------------------------------------------------------------------------------------------


def begin() -> None:
    """Starts the session's systemd in its cgroup and waits until it answers."""
    units = RUNTIME / "units"
    units.mkdir()
    (units / "default.target").write_text("[Unit]\nDescription=Nothing but what is asked for\n")
    group = f"{os.environ['SESSION_CGROUP']}/init.scope"
    env = {**os.environ, "SYSTEMD_UNIT_PATH": str(units), "SYSTEMD_LOG_TARGET": "console"}
    subprocess.Popen(["/bin/sh", "-c", ENTER, "sh", group, SYSTEMD, "--user"], env=env, stdin=subprocess.DEVNULL)
    until((RUNTIME / "systemd" / "private").is_socket, "the user's systemd answers")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    from tests.fakes.user_story import hostile, tell, until

    begin()
    tell(hostile(*sys.argv[1:]))
