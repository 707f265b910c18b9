"""Which tools of a session's workspace an agent gets: those of a manifest that an operator's key signed, as copies it cannot write."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from console.domain.agent import Agent, SandboxKind
from console.domain.engine.command import Record
from console.domain.errors import ConsoleError, NotFound
from console.domain.process.durable import replace_file
from console.domain.process.environment import PATH
from console.remotekill.keys import load_keys
from console.sandbox import bubblewrap
from console.sandbox.workspace.tools import Offer, offer, withdraw
from console.services.records.record_writer import Scribe
from console.settings.places import Places

log = logging.getLogger(__name__)
IN_BOX = "/opt/watchfloor-tools"
_BOXED = (SandboxKind.DOCKER, SandboxKind.GVISOR)


@dataclass(frozen=True, slots=True)
class Offered:
    """What a launch adds for them."""

    path: str = PATH
    """The agent's PATH: the system's folders, and behind them the copies, never a folder of a workspace."""
    binds: tuple[tuple[Path, str], ...] = ()
    words: str = ""
    """What the caller of the launch is told; empty where the workspace has no tools folder."""


def offer_tools(places: Places, scribe: Scribe, agent: Agent, workspace: Path) -> Offered:
    """Makes the copies for one launch, and records what became of it. Blocks. Raises OSError."""
    folder = offers_dir(places) / agent.agent_id
    made = _offer(places, agent, workspace, folder)
    if made.folder is not None and not _keeps_from_agent(agent):
        withdraw(made.folder)
        made = Offer(why="no tool of the workspace is offered: without a mask, an agent under our own user could write the copies")
    if not made.why and made.folder is None:
        return Offered()
    kind, verdict = ("tools.offered", "allow") if made.folder is not None else ("tools.refused", "deny")
    words = f"tools on its PATH: {', '.join(made.names)}" if made.folder is not None else made.why
    scribe.record(Record("supervisor", kind, words, verdict=verdict, agent_id=agent.agent_id, data={"session": agent.context_id}))
    if made.folder is None:
        return Offered(words=words)
    with suppress(OSError):  # it only tightens: a later launch refuses what is older
        if made.serial > least_serial(places, agent.context_id):
            keep_serial(places, agent.context_id, made.serial)
    inside = IN_BOX if agent.sandbox in _BOXED else str(made.folder.resolve())
    return Offered(f"{PATH}:{inside}", ((made.folder, inside),), words)


def _offer(places: Places, agent: Agent, workspace: Path, folder: Path) -> Offer:
    try:
        publics = load_keys(places.keys_dir).keys
    except NotFound:
        publics = {}
    except ConsoleError as error:
        return offer_refused(error)
    try:
        least = least_serial(places, agent.context_id)
    except (OSError, ValueError):
        return Offer(why="no tool of the workspace is offered: the serial of its last manifest cannot be read")
    return offer(workspace, publics, agent.context_id, least, folder)


def offer_refused(error: ConsoleError) -> Offer:
    """None, and why."""
    return Offer(why=f"no tool of the workspace is offered: {error.what}")


def _keeps_from_agent(agent: Agent) -> bool:
    """Whether this sandbox shows the copies read-only, or runs the agent under another uid than ours."""
    return os.geteuid() == 0 or agent.sandbox is not SandboxKind.NONE or bubblewrap.probe().ok


def withdraw_tools(places: Places, agent_id: str) -> None:
    """An agent is gone: so are its copies. Trouble is logged."""
    try:
        withdraw(offers_dir(places) / agent_id)
    except OSError as error:
        log.warning("the tools of %s could not be removed: %s", agent_id, error)


def sweep_offers(places: Places, alive: set[str]) -> None:
    """At start-up: copies for agents that are no more."""
    with suppress(OSError):
        for entry in offers_dir(places).iterdir():
            if entry.name not in alive:
                withdraw_tools(places, entry.name)


def offers_dir(places: Places) -> Path:
    """Where the copies lie; one folder per agent."""
    return places.state_dir / "tools" / "offered"


def least_serial(places: Places, session: str) -> int:
    """The highest serial that was signed or accepted for a session here; 0 when there was none. Raises OSError, ValueError."""
    try:
        return int(_serial_file(places, session).read_text())
    except FileNotFoundError:
        return 0


def keep_serial(places: Places, session: str, serial: int) -> None:
    """Durable. Raises OSError."""
    path = _serial_file(places, session)
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(mode=0o711, exist_ok=True)
    replace_file(path, str(serial).encode())


def _serial_file(places: Places, session: str) -> Path:
    return places.state_dir / "tools" / "serials" / session
