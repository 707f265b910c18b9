"""Who made a request, in the kernel's words: what goes into the audit beside the name that was claimed."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.requests import Request

from console.domain.process.account import login_uid

UID, PID, GROUPS = "watchfloor.uid", "watchfloor.pid", "watchfloor.groups"
"""Keys of a request's scope; see asgi.py."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The peer of one request."""

    uid: int
    pid: int
    exe: str
    """Its program, as /proc names it; empty when that cannot be read."""
    has_terminal: bool
    """Whether it has a controlling terminal (proc(5), tty_nr). A program of the same user can make one: best effort in user mode."""

    def as_data(self) -> dict[str, Any]:
        """For an audit record."""
        return {"peer_uid": self.uid, "peer_pid": self.pid, "peer_exe": self.exe, "peer_terminal": self.has_terminal}


def caller_of(request: Request) -> Caller:
    """Who asks, by the kernel's word on the connection."""
    uid, pid = int(request.scope.get(UID, os.geteuid())), int(request.scope.get(PID, 0))
    return Caller(uid, pid, _exe(pid), _has_terminal(pid))


def person_of(request: Request) -> dict[str, Any]:
    """Return who asks, for an audit record: the account, its login name, and the account that logged in (audit(7)); -1: none. May wait
    for a directory service.
    """
    uid, pid = int(request.scope.get(UID, os.geteuid())), int(request.scope.get(PID, 0))
    try:
        login = pwd.getpwuid(uid).pw_name
    except KeyError:
        login = ""
    return {"uid": uid, "login": login, "login_uid": login_uid(pid), "pid": pid, "exe": _exe(pid)}


def asked_by(request: Request) -> str:
    """Who asks, by the kernel's word on the connection: ``operator:0``, or ``operator:0/login:1000`` behind sudo or su. Nothing the request
    itself says counts.
    """
    uid = int(request.scope.get(UID, os.geteuid()))
    login = login_uid(int(request.scope.get(PID, 0)))
    return f"operator:{uid}" if login in (-1, uid) else f"operator:{uid}/login:{login}"


def _exe(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/exe").readlink())[:300] if pid > 0 else ""
    except OSError:
        return ""


def _has_terminal(pid: int) -> bool:
    """In doubt: no."""
    try:
        # proc(5): the name in parentheses may hold anything; tty_nr is the fifth field after it.
        return pid > 0 and int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[4]) != 0
    except (OSError, ValueError, IndexError):
        return False
