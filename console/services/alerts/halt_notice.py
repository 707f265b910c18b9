"""Write the file that tells an agent's owner why the agent was halted.

It lies beside the agent's output here, and in the output folder of its session. For an adopted agent it lies in the folder of its account
(owner_notes.py).

The session's folder belongs to the agent: it may hold links, pipes, or files of the same name. So no link is followed, no file that is
there is opened, and what could not be written is reported.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from console.domain.agent import Agent
from console.domain.errors import ConsoleError
from console.domain.ids import CONTEXT_ID, ControlLevel
from console.services.alerts.note_files import DIRECTORY, give, write_new
from console.services.alerts.owner_notes import leave_for_owner

FOLDER = "output"
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
        "The guard killed its processes. The receipt tells whether all are confirmed dead: watchfloor receipt list",
        "To go on, an operator raises the limit, with a reason, and starts it again:",
        "  watchfloor budget list",
        "  watchfloor budget set ... --reason ...",
        again,
        "",
    ]
    return "\n".join(lines).encode()


def leave_notes(output: Path, workspaces: Path, agents: Iterable[Agent], at: float, reason: str) -> str:
    """Writes both files of each agent; in words why one could not be left where its owner can read it, or ''. Blocks.

    ``output``: in the state directory.
    """
    failed = ""
    for agent in list(agents)[:_MOST]:
        body = text_of(agent, at, reason)
        try:
            output.mkdir(exist_ok=True, mode=0o700)
            write_new(os.open(output, DIRECTORY), note_name(agent), body, 0o600)
        except (OSError, ConsoleError) as error:
            failed = failed or f"{agent.agent_id}: {error}"
        try:
            if agent.control_level is ControlLevel.ADOPTED:
                leave_for_owner(output.parent, agent.agent_id, note_name(agent), body)
            else:
                _in_session(workspaces, agent, body)
        except (OSError, ConsoleError) as error:
            failed = failed or f"{agent.agent_id}: {error}"
    return failed[:300]


def _in_session(workspaces: Path, agent: Agent, body: bytes) -> None:
    if not CONTEXT_ID.match(agent.context_id):
        raise ConsoleError("Its session has no folder.", "")
    base = os.open(workspaces, DIRECTORY)
    try:
        session = os.open(agent.context_id, DIRECTORY, dir_fd=base)
    finally:
        os.close(base)
    try:
        seen = os.fstat(session)
        owner = (seen.st_uid, seen.st_gid)
        try:
            os.mkdir(FOLDER, 0o755, dir_fd=session)
            made = os.open(FOLDER, DIRECTORY, dir_fd=session)
            give(made, owner)
        except FileExistsError:
            made = os.open(FOLDER, DIRECTORY, dir_fd=session)
    finally:
        os.close(session)
    write_new(made, note_name(agent), body, 0o644, owner)


def _plain(text: str) -> str:
    return "".join(x if x.isascii() and x.isprintable() else "?" for x in text[:300])
