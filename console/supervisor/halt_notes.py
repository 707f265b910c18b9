"""The file that says why an agent was halted, where its owner finds it: beside its output here, and in the output folder of its session.

The session's folder is the agent's own: it may hold links, pipes, or files of the same name. Nothing is followed, nothing that is
there is opened, and what cannot be written there is said.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from console.domain.agent import CONTEXT_ID, Agent
from console.domain.errors import ConsoleError

FOLDER = "output"
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST = 500
"""Notes of one halt: beyond that the receipt and the audit name the rest."""


def note_name(agent: Agent) -> str:
    """One name for each agent and start; the id is ours, so nothing in it is hostile."""
    return f"HALTED-{agent.agent_id}.txt"


def text_of(agent: Agent, at: float, reason: str) -> bytes:
    """What the owner reads; hostile names in visible characters only, bounded."""
    when = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(at))
    again = (
        f"  watchfloor run --again {agent.agent_id}" if agent.argv else "  (it was not started here, but adopted: as it was started before)"
    )
    lines = [
        f"Watchfloor halted this agent at {when}.",
        f"Agent:   {agent.agent_id} ({_plain(agent.name)})",
        f"Session: {agent.context_id}",
        f"Why:     {_plain(reason)}",
        "",
        "Its processes were ended through the guard; the receipt says whether that is proven: watchfloor receipt list",
        "To go on, an operator raises the limit, with a reason, and starts it again:",
        "  watchfloor budget list",
        "  watchfloor budget set ... --reason ...",
        again,
        "",
    ]
    return "\n".join(lines).encode()


def leave_notes(output: Path, workspaces: Path, agents: Iterable[Agent], at: float, reason: str) -> str:
    """Writes both files of each agent; in words why one could not be left in its session's folder, or ''. Blocks."""
    failed = ""
    for agent in list(agents)[:_MOST]:
        body = text_of(agent, at, reason)
        try:
            output.mkdir(exist_ok=True, mode=0o700)
            _write(os.open(output, _DIRECTORY), note_name(agent), body, 0o600)
        except (OSError, ConsoleError) as error:
            failed = failed or f"{agent.agent_id}: {error}"
        try:
            _in_session(workspaces, agent, body)
        except (OSError, ConsoleError) as error:
            failed = failed or f"{agent.agent_id}: {error}"
    return failed[:300]


def _in_session(workspaces: Path, agent: Agent, body: bytes) -> None:
    if not CONTEXT_ID.match(agent.context_id):
        raise ConsoleError("Its session has no folder.", "")
    base = os.open(workspaces, _DIRECTORY)
    try:
        session = os.open(agent.context_id, _DIRECTORY, dir_fd=base)
    finally:
        os.close(base)
    try:
        owner = os.fstat(session)
        try:
            os.mkdir(FOLDER, 0o755, dir_fd=session)
            made = os.open(FOLDER, _DIRECTORY, dir_fd=session)
            _own(made, owner)
        except FileExistsError:
            made = os.open(FOLDER, _DIRECTORY, dir_fd=session)
    finally:
        os.close(session)
    _write(made, note_name(agent), body, 0o644, owner)


def _write(folder: int, name: str, body: bytes, mode: int, owner: os.stat_result | None = None) -> None:
    """A new file, or none: a name that is taken gets a number, a few times. Closes ``folder``."""
    try:
        for number in range(20):
            tried = name if not number else name.replace(".txt", f"-{number}.txt")
            try:
                file = os.open(tried, _FLAGS, mode, dir_fd=folder)
            except FileExistsError:
                continue
            try:
                os.write(file, body)
                if owner is not None:
                    _own(file, owner)
            finally:
                os.close(file)
            return
        raise ConsoleError(f"{name} is there already, many times.", "")
    finally:
        os.close(folder)


def _own(descriptor: int, owner: os.stat_result) -> None:
    """Its owner's, so that whoever may read the session may read this."""
    if os.geteuid() == 0:
        os.fchown(descriptor, owner.st_uid, owner.st_gid)


def _plain(text: str) -> str:
    return "".join(x if x.isascii() and x.isprintable() else "?" for x in text[:300])
