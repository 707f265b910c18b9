"""What an agent kind says of its daemons: how to find one, which sessions it hosts, and the program's own command that drops one session.

A daemon is found from the session's process upwards, by the kernel's parent links. A file is never the reason why a process is a daemon, so
an agent can only point at what started it. docs/explanation/daemons.md has the measured facts behind each kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from console.domain.agent import ProcessIdentity
from console.sources.daemons.processes import Processes


@dataclass(frozen=True, slots=True)
class Hosted:
    """One session that a daemon hosts, by the kernel's word."""

    session: str
    """The program's own id of it; a kind may know only its first letters."""
    child: ProcessIdentity | None
    """The child of the daemon below which the session runs; None: it runs inside the daemon itself."""
    sign: str = ""
    """Path of a unix socket that only the process of this session listens on; empty: there is none."""


@dataclass(frozen=True, slots=True)
class Idle:
    """A child of a daemon that waits for a session and hosts none."""

    child: ProcessIdentity
    sign: str
    """Path of the unix socket that is there as long as it waits."""


@dataclass(frozen=True, slots=True)
class FoundDaemon:
    """A daemon of one session's process."""

    kind: str
    """Of the agent, as in ``Program.name``."""
    name: str
    """For people."""
    process: ProcessIdentity
    exe: str
    uid: int
    hosted: tuple[Hosted, ...] = ()
    idle: tuple[Idle, ...] = ()
    unknown: tuple[ProcessIdentity, ...] = ()
    """Children that are neither. The sessions in them are no target of a kill."""
    refused: str = ""
    """Why it is named and never signalled; empty: every mark was proven."""
    home: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Variables by which its program finds its folder: HOME, and the kind's own."""


@dataclass(frozen=True, slots=True)
class SharedJob:
    """A program that serves many purposes (tmux, systemd, cron ...) and the one job in it that would start the agent again."""

    program: str
    """``tmux``, ``screen``, ``systemd``, ``pm2``, ``container engine``, ``cron`` or ``at``."""
    process: ProcessIdentity | None
    exe: str
    uid: int
    job: str
    """Which job, for people; empty: it cannot be told."""
    command: tuple[str, ...] = ()
    """What removes exactly that job; empty: its interface has no such command."""


class Daemons(Protocol):
    """One agent kind's daemons."""

    @property
    def kind(self) -> str:
        """As in ``Program.name``."""
        ...

    @property
    def resume_words(self) -> tuple[str, ...]:
        """Arguments of the program behind which a session's id stands when it is started again."""
        ...

    @property
    def variables(self) -> tuple[str, ...]:
        """Environment variables in which the program tells its children the session's id."""
        ...

    def find(self, line: Sequence[ProcessIdentity], processes: Processes) -> FoundDaemon | None:
        """The daemon of a session. ``line``: the session's process, then its ancestors. None: it has none."""
        ...

    def transcript(self, process: ProcessIdentity, session: str) -> Path | None:
        """The file that the session is written to as it goes on; None: not known."""
        ...

    def drop(self, daemon: FoundDaemon, session: str) -> tuple[str, ...]:
        """The program's own command that ends one session and keeps the others; empty: it has none for this session."""
        ...
