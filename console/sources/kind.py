"""What an agent kind offers: one value for each capability, and one that says why where a kind lacks it. ``kinds`` lists them all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from console.sources.activity.files import Activity
from console.sources.activity.program_stream import Stream
from console.sources.daemons.interface import Daemons
from console.sources.home_dirs import OwnHome
from console.sources.hook_settings import HookCommand
from console.sources.interface import Source
from console.sources.programs import Program, Programs
from console.sources.quota import Window
from console.sources.spend.of_session import SessionSpend
from console.sources.spend.transcript_files import Transcripts
from console.sources.telemetry.dialect import Telemetry


@dataclass(frozen=True, slots=True)
class Lacks:
    """A capability that a kind does not have."""

    why: str
    """For people; it reads on after "not available, because"."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a kind's source looks with."""

    root: Path | None
    """The one home to look in; None: the homes of this host."""
    spend: SessionSpend | None
    programs: Programs
    own: Callable[[], list[OwnHome]]
    """Homes of agents that were started here."""
    outside: bool
    """False: at those alone."""


class Hook(Protocol):
    """How a program is told to ask us before each tool call."""

    @property
    def place(self) -> str:
        """Its settings file, below a home."""
        ...

    @property
    def gaps(self) -> tuple[str, ...]:
        """What the hook of a user cannot hold, for people."""
        ...

    @property
    def advice(self) -> str:
        """What a person must do once it is installed, or empty."""
        ...

    @property
    def aliases(self) -> Mapping[str, str]:
        """What its tools without an effect of their own are called in the program whose names our rules use. In other programs such a
        name may mean anything. A tool that starts a sub-agent is among them where the sub-agent's own calls were seen to be judged."""
        ...

    def installed(self, data: bytes, name: str) -> str:
        """The command of our hook in these settings, or empty. Raises UsageProblem: they cannot be read."""
        ...

    def added(self, data: bytes, command: HookCommand, name: str) -> bytes:
        """The settings with our hook before every tool call, once. Raises UsageProblem."""
        ...

    def removed(self, data: bytes, name: str) -> bytes:
        """The settings without our hook. Raises UsageProblem."""
        ...

    def why_skipped(self, data: bytes, file: Path) -> str:
        """Why the program would not run our hook in these settings, or empty."""
        ...


Servers = Mapping[str, Sequence[str]]
"""MCP servers that a started program gets, by name: an address, or the words of a command."""


def address(words: Sequence[str]) -> str:
    """The address of a server that is reached by one; empty: it is a command."""
    return words[0] if words[0].startswith(("http://", "https://")) else ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a start of a program asks for."""

    model: str
    once: bool
    """It answers one prompt and ends."""
    judged: bool
    """Its tool calls are put before us."""
    base_url: str
    """Where its model answers, if that is set for its type; empty: where it usually does."""


@dataclass(frozen=True, slots=True)
class Start:
    """How a program is started and talked to."""

    name: str
    """As ``run --agent`` takes it."""
    stream: Callable[[], Stream]
    words: Callable[[Wanted], tuple[str, ...]]
    """Its own arguments."""
    judged: tuple[str, ...]
    """Those among them by which it is known that its calls are judged."""
    told: Callable[[HookCommand | None, Servers], str]
    """One line that names our hook; None: its calls are not judged. It names MCP servers too, where the program takes both in one."""
    usual: tuple[str, ...]
    """Whole paths at which installers put its file."""
    in_home: tuple[str, ...]
    """The same below a home."""
    addresses: tuple[str, ...]
    """Variables in which it reads the address of its model's API."""
    models: Mapping[str, str]
    """Variables in which it reads a key for it, and the host at which a model answers that takes this key; one is enough."""
    keyless: str = ""
    """The host at which a model answers without a key, where the program may choose such a one itself."""
    servers: Callable[[Servers], str] = lambda _servers: ""
    """Another line that names MCP servers, where they have one of their own."""
    files: Callable[[HookCommand | None], Mapping[str, bytes]] = lambda _command: {}
    """Files beside that line, by name, where the program asks by them; None: its calls are not judged."""
    no_servers: str = ""
    """Why it gets no MCP servers; empty: it does."""
    doubt: Callable[[str, bool], str] = lambda _version, _talks: ""
    """(version, whether it is talked to) -> why it may skip our hook, or empty."""
    native: Callable[[Path], Path] = lambda path: path
    """The program that a resolved file leads to. Raises ValueError where there is none."""
    needs: Callable[[Path], tuple[Path, ...]] = lambda _path: ()
    """What of this machine it needs beside that file: the folder of a script first, then what runs it."""
    says_cost: bool = False
    """Whether it tells what its answers cost, of models without a known price too."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of agent."""

    name: str
    """For commands and rules."""
    program: Program
    look: Callable[[Outlook], Source] | Lacks
    """Finds its sessions; where it is lacking, its processes are seen all the same."""
    transcripts: Transcripts | Lacks
    activity: Activity | Lacks
    sub_agents: str | Lacks
    """By what they are seen, for people."""
    hook: Hook | Lacks
    start: Start | Lacks
    daemons: Daemons | Lacks
    quota: Callable[[Iterable[Path]], list[Window]] | Lacks
    windows: tuple[str, ...] = ()
    """Windows that its vendor's subscriptions are known to have: each is shown, or why it is not known."""
    telemetry: Telemetry | Lacks = Lacks("what it sends is read by OpenTelemetry's own conventions")
    """Words of its own in what it sends by OpenTelemetry."""
    is_woken_by_sums: bool = False
    """Whether a transcript that grows says nothing that its source shows but sums."""
    sums_itself: bool = False
    """Whether its source says what a session used though there are no transcripts that are read."""

    @property
    def why_unread(self) -> str:
        """Why nothing reads what it spends, or empty."""
        return "" if self.sums_itself or not isinstance(self.transcripts, Lacks) else self.transcripts.why
