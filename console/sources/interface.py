"""What every source of sightings offers, and what confines it. A source only looks: nothing it says decides who is signalled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from console.domain.agent import SourceReport
from console.sources.home_dirs import homes

UNVERIFIED = "unverified"
"""Status of a sighting that may be live but could not be proven to be its process; it never carries a ProcessIdentity."""

FINISHED = "finished"
"""Status of one that its own files say has finished."""

GONE = "gone"
"""Status of one that is not seen any more: for a moment it is told what it used to its end, and nothing else follows from it."""

YOUNG = "young"
"""Status of a session reported just now. It joins a row but makes none, until better informed sources had time to look."""

SAYS_OF_A_ROW = (UNVERIFIED, FINISHED, GONE, YOUNG)
"""Statuses that only our own code may give."""

MAX_SIGHTINGS = 1000
"""Per look and source; what lies beyond is counted in the report's reason, never dropped in silence."""

Pids = Literal["all"] | Callable[[int], bool]
"""Which processes may be seen: all, or those the callable says yes to."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """Where a source may look: everywhere (the default instance), or in one folder and among our own processes."""

    root: Path | None = None
    """The one home to look in; None: the homes of this host that we may read."""
    pids: Pids = "all"
    outside: bool = True
    """False: at agents of ours alone, in no other home."""

    def admits(self, pid: int) -> bool:
        """Whether this process may be shown."""
        return True if self.pids == "all" else self.pids(pid)

    def homes(self) -> list[Path]:
        """Return the homes in which programs of the host's accounts may have written."""
        return homes(self.root) if self.outside else []


ONLY_OURS = "Looks at agents of this instance alone: the option discover_root names another home to look in."


class Source(Protocol):
    """One kind of place where agents can be seen."""

    @property
    def name(self) -> str:
        """As it stands in ``Agent.source`` and in the status."""
        ...

    @property
    def can_see(self) -> str:
        """What it can see of an agent and what not, for people."""
        ...

    @property
    def can_stop(self) -> str:
        """What can be stopped of what it sees and what not, for people."""
        ...

    def folders(self) -> list[Path]:
        """Where a change makes another look worth while at once, as of the last look; none: it is only looked at now and then."""
        ...

    def look(self) -> SourceReport:
        """One look. Never raises; blocks for the source's own time-out at most; incremental where that saves work."""
        ...
