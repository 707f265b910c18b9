"""The program's own command that drops one session, run as the session's account: never as root, and never by the guard."""

from __future__ import annotations

import os
import pwd
import shlex
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress

DROP_S = 2.0
SAID = 200
PATH = "/usr/local/bin:/usr/bin:/bin"


def drop(command: Sequence[str], uid: int, home: Sequence[tuple[str, str]]) -> str:
    """Runs it: what came of it, in words for the record. Never raises; the answer makes no receipt better.

    Nothing of this process reaches it: no environment but where its program finds its folder, no descriptors, no terminal, no group.
    """
    shown = shlex.join(command)[:SAID]
    if uid <= 0:
        return f"not run: {shown} is never run as root"
    if os.geteuid() not in (0, uid):
        return f"not run: {shown} needs account {uid}"
    is_root = os.geteuid() == 0
    try:
        process = subprocess.Popen(
            list(command),
            env={**dict(home), "PATH": PATH},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=True,
            start_new_session=True,
            user=uid if is_root else None,
            group=_group(uid) if is_root else None,
            extra_groups=[] if is_root else None,
            umask=0o077,
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return f"failed: {shown}: {error}"[: 2 * SAID]
    try:
        code = process.wait(DROP_S)
    except subprocess.TimeoutExpired:
        return f"failed: {shown} did not end within {DROP_S:g} s"
    finally:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)  # its own session: nothing of it stays behind
        process.wait()
    return f"done: {shown}" if code == 0 else f"failed: {shown} ended with {code}"


def _group(uid: int) -> int:
    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        return uid
