"""Failpoints: named places where the fault suite breaks a process on purpose. Inert unless ``FAILPOINT`` was set when the process started.

``FAILPOINT=NAME:kill|raise|hang`` arms one. ``FAILPOINT=@FILE`` reads the same from a file at every failpoint, so that a fault can be armed
late and removed again; ``FILE.hit`` then names the one that was reached.

They give an attacker nothing:

* A process that sets a supervisor's environment can end that supervisor anyway.
* An agent starts neither supervisor nor guard.
* A guard does not inherit the variable from its supervisor (killswitch/client/start.py names those that it gets).
* A guard with a supervisor of another uid (system mode) disarms itself.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from pathlib import Path

VARIABLE = "FAILPOINT"
_armed = os.environ.get(VARIABLE, "")


def failpoint(name: str) -> None:
    """Nothing at all, unless this very point is armed: SIGKILL to this process, OSError EIO, or no way on until it is disarmed."""
    if _armed:
        _reached(name)


def disarm() -> None:
    """For good: this process honours none."""
    global _armed
    _armed = ""


def _reached(name: str) -> None:
    action = _action(name)
    if action and _armed.startswith("@"):
        Path(f"{_armed[1:]}.hit").write_text(name)
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if action == "raise":
        raise OSError(errno.EIO, f"failpoint {name}")
    while action == "hang":
        time.sleep(0.02)
        action = _action(name)


def _action(name: str) -> str:
    text = _armed
    if text.startswith("@"):
        try:
            text = Path(text[1:]).read_text()
        except OSError:
            return ""
    where, _, action = text.strip().partition(":")
    return action if where == name else ""
