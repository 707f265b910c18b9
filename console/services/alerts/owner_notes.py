"""Tell the owner of an adopted agent that it was adopted, and why it was halted: in a folder for each account.

The folders lie below the state directory and belong to the operator. The account's group may list and read them; only Watchfloor writes
there. So no link that an agent made is followed, no file of an agent is overwritten, and no note is forged. Nothing is written into folders
of the agent.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from pathlib import Path

from console.domain.agent import AgentId, ProcessIdentity
from console.domain.errors import ConsoleError
from console.sandbox.processes import start_ticks
from console.services.alerts.note_files import DIRECTORY, write_new

HALTS = "halts"
"""In the state directory; one folder in it for each uid."""


def open_for_owner(state_dir: Path, agent_id: AgentId, process: ProcessIdentity, uid: int, by: str) -> Path:
    """The folder in which the owner of an adopted process finds what is said of it, with a first note in it. Blocks.

    Raises OSError and ConsoleError when there is none that the owner could read; the words say why.
    """
    if os.geteuid() not in (0, uid):
        raise ConsoleError(f"Only root can leave a file for account {uid}.", "")
    gid = _group_of(process)
    halts, folder = state_dir / HALTS, state_dir / HALTS / str(uid)
    halts.mkdir(mode=0o711, exist_ok=True)
    base = os.open(halts, DIRECTORY)
    try:
        _is_ours(base, halts)
        os.fchmod(base, 0o711)  # whatever the umask is
        with contextlib.suppress(FileExistsError):
            os.mkdir(str(uid), 0o700, dir_fd=base)
        own = os.open(str(uid), DIRECTORY, dir_fd=base)
    finally:
        os.close(base)
    try:
        _is_ours(own, folder)
        os.fchown(own, -1, gid)
        os.fchmod(own, 0o750)
        write_new(os.dup(own), f"ADOPTED-{agent_id}.txt", _text(agent_id, process, by), 0o640, (-1, gid))
    finally:
        os.close(own)
    if why := _closed_to(folder, uid, gid):
        raise ConsoleError(f"Its owner (uid {uid}) cannot reach {folder}: {why}.", "")
    return folder


def leave_for_owner(state_dir: Path, agent_id: AgentId, name: str, body: bytes) -> Path:
    """Write a new file for the agent's owner. Raises OSError, and ConsoleError where its adoption made no folder. Blocks."""
    marked = [*(state_dir / HALTS).glob(f"*/ADOPTED-{agent_id}.txt"), *(state_dir / HALTS).glob(f"*/ADOPTED-{agent_id}-*.txt")]
    if not marked:
        raise ConsoleError("There is no folder that its owner could read.", "")
    found = max(marked, key=lambda one: one.lstat().st_mtime).parent  # the same session may be another account's by now
    own = os.open(found, DIRECTORY)
    try:
        _is_ours(own, found)
        gid = os.fstat(own).st_gid
        write_new(os.dup(own), name, body, 0o640, (-1, gid))
    finally:
        os.close(own)
    if why := _closed_to(found, int(found.name), gid):
        raise ConsoleError(f"Its owner cannot reach {found}: {why}.", "")
    return found / name


def _text(agent_id: AgentId, process: ProcessIdentity, by: str) -> bytes:
    when = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime())
    lines = [
        f"Watchfloor took over this agent at {when}: the operator who did can freeze it, kill it, and bound what it spends.",
        f"Agent:   {agent_id}, process {process.pid}",
        f"By:      {''.join(x if x.isascii() and x.isprintable() else '?' for x in by[:100])}",
        "",
        f"If a budget stops it, HALTED-{agent_id}.txt in this folder tells which one, and why.",
        "",
    ]
    return "\n".join(lines).encode()


def _is_ours(folder: int, path: Path) -> None:
    """Refuse a folder that belongs to another account."""
    if os.fstat(folder).st_uid != os.geteuid():
        raise ConsoleError(f"{path} belongs to another account.", "Remove it.")


def _group_of(process: ProcessIdentity) -> int:
    """Its only group, while it is this very process. ConsoleError when that cannot be had."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text(errors="replace")
        gids = {int(word) for line in status.splitlines() if line.startswith("Gid:") for word in line.split()[1:]}
        is_same = start_ticks(process.pid) == process.start_ticks
    except (OSError, ValueError):
        is_same, gids = False, set()
    if not is_same or len(gids) != 1:
        raise ConsoleError("The group of its owner is not known.", "")
    return gids.pop()


def _closed_to(folder: Path, uid: int, gid: int) -> str:
    """Which folder on the way there does not let the account pass; empty: it can read it. By mode alone: access lists are not looked at."""
    for one in (folder, *folder.parents):
        seen = one.stat()
        bits = 0o100 if seen.st_uid == uid else 0o010 if seen.st_gid == gid else 0o001
        if uid and not stat.S_IMODE(seen.st_mode) & bits:
            return f"{one} is closed to it"
    return ""
