"""The adapters of one supervisor, as compose built them. Named here once so that flows can be read without their wiring."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from console.credentials.keyring_store import Store
from console.credentials.tokens import Tokens
from console.domain.agent import SandboxKind
from console.egress.service import Egress
from console.killswitch.client import GuardClient
from console.rollback.store import RollbackStore
from console.sandbox.interface import Sandbox
from console.services.daemons.service import DaemonService
from console.services.fleet.core import Core
from console.services.records.record_writer import Scribe
from console.settings.options import Options
from console.settings.places import Places
from console.sources.interface import Source
from console.sources.session_spend import SessionSpend
from console.supervisor.activity import ActivityDesk
from console.supervisor.burn_book import BurnBook
from console.supervisor.contexts import Contexts
from console.supervisor.gates import Trespasses
from console.supervisor.hunt import Hunt
from console.supervisor.own_agents import OwnAgents
from console.supervisor.rotator import Rotator

if TYPE_CHECKING:
    from console.supervisor.remote import RemoteDesk
from console.supervisor.witness import Witness


@dataclass
class Parts:
    """Everything a flow may use."""

    places: Places
    options: Options
    core: Core
    scribe: Scribe
    guard: GuardClient
    egress: Egress
    sandboxes: dict[SandboxKind, Sandbox]
    rollback: RollbackStore
    keyring: Store
    tokens: Tokens
    rotator: Rotator
    sources: tuple[Source, ...]
    spend: SessionSpend | None
    """What transcripts say was spent."""
    own_agents: OwnAgents
    remote: RemoteDesk | None
    daemons: DaemonService
    """What could start an agent again outside of its tree."""
    trespasses: Trespasses
    hunt: Hunt | None = None
    """Baselines and looks for what could bring an agent back."""
    contexts: Contexts | None = None
    """Sessions' workspaces over their life."""
    activity: ActivityDesk | None = None
    """What agents did, kept."""
    witness: Witness = field(default_factory=Witness)
    burn: BurnBook = field(default_factory=BurnBook)
    """How fast every node of a budget uses things up."""
    notices: list[str] = field(default_factory=list)
    noticed: dict[str, float] = field(default_factory=dict)
    """When each was said last, seconds since the epoch: what was so an hour ago must not read as if it were now."""

    def notice(self, text: str, level: str = "amber") -> None:
        """Shows something on every console and keeps it for the next one; from any thread."""
        self.notices = [*(known for known in self.notices if known != text), text][-50:]
        self.noticed = {known: at for known, at in self.noticed.items() if known in self.notices} | {text: time.time()}
        loop = self.core.loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self.core.hub.publish, "notice", {"level": level, "text": text})

    def noticed_lines(self, most: int) -> list[str]:
        """The newest notices, each with when it was said last."""
        noticed = self.noticed
        return [f"{time.strftime('%m-%d %H:%M:%S', time.localtime(noticed.get(text, 0)))}  {text}" for text in self.notices[-most:]]
