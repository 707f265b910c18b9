"""The marks that a daemon must prove before anything may freeze or kill it. What misses one is named with the reason, and left alone."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable
from pathlib import Path

from console.domain.agent import ProcessIdentity
from console.sources.daemons import processes as p
from console.sources.daemons.processes import Processes

LEVELS = 4
"""So far above its executable lies a package's description."""
_CAP = 65_536


def why_refused(
    daemon: ProcessIdentity, session: ProcessIdentity, control: str, belongs: Callable[[Path], bool], processes: Processes
) -> str:
    """The first mark that is missing, in words; empty: all are proven. ``control``: the socket by which the program is asked.

    Account, executable, start time, peer of the socket, folder of the socket. That it is no ancestor of the caller, guard, supervisor or
    console is the guard's to say, at the moment of the kill.
    """
    uid, its = p.account(session.pid), p.account(daemon.pid)
    if its is None or its != uid:
        return "it does not run under the session's account"
    program = Path(p.exe(daemon.pid))
    if not belongs(program):
        return "its executable belongs to no installation of this program"
    if why := _why_replaceable(program, its):
        return why
    if processes.has_terminal(daemon.pid):
        return "it runs in a terminal, whose shell would take a freeze as its end"
    if not control:
        return "it listens on no control socket"
    if why := p.why_open_to_others(Path(control).parent, its):
        return f"its socket is not its own: {why}"
    # Any program of the account can bind a socket there; SO_PEERCRED names the process that really answers.
    if p.peer(control) != (daemon.pid, its, control):
        return "another process answers on its control socket, or none"
    row = p.stat_of(daemon.pid)
    # Last, because a pid can be given to another process while the marks above are read.
    if row is None or row[1] != daemon.start_ticks:
        return "it has ended"
    return ""


def _why_replaceable(program: Path, uid: int) -> str:
    try:
        seen = program.stat()
    except OSError:
        return "its executable is not there any more"
    if seen.st_uid not in (0, uid) or seen.st_mode & 0o022 or not stat.S_ISREG(seen.st_mode):
        return "other accounts can write its executable"
    return ""


def package_name(program: Path, file: str = "package.json") -> str:
    """The ``name`` in the description of the package that an executable lies in; empty: it lies in none. A claim, as every file is."""
    for folder in list(program.parents)[:LEVELS]:
        try:
            with (folder / file).open("rb") as opened:
                name = json.loads(opened.read(_CAP)).get("name", "")
        except (OSError, ValueError, AttributeError):
            continue
        if isinstance(name, str) and name:
            return name
    return ""


def is_versioned(program: Path, name: str) -> bool:
    """Whether it is an installation of the form ``…/NAME/versions/1.2.3``."""
    return bool(re.search(rf"/{re.escape(name)}/versions/[0-9][0-9A-Za-z.+-]*\Z", str(program)))
