"""The adapters of one supervisor, as compose built them. Named here once so that flows can be read without their wiring."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from console.credentials.keyring_store import Store
from console.credentials.tokens import Tokens
from console.domain.agent import SandboxKind
from console.egress.service import Egress
from console.killswitch.client import GuardClient
from console.rollback.store import RollbackStore
from console.sandbox.interface import Sandbox
from console.services.activity.service import ActivityDesk
from console.services.budgets.burn_rate import BurnBook
from console.services.daemons.service import DaemonService
from console.services.fleet.core import Core
from console.services.notices.shown import Notices
from console.services.observe.own_agents import OwnAgents
from console.services.persistence.scan import Hunt
from console.services.records.record_writer import Scribe
from console.services.secrets.rotator import Rotator
from console.services.sessions.workspaces import Contexts
from console.settings.options import Options
from console.settings.places import Places
from console.sources.interface import Source
from console.sources.session_spend import SessionSpend
from console.supervisor.http.access import Trespasses

if TYPE_CHECKING:
    from console.services.remote.service import RemoteDesk
from console.services.evidence.snapshot_cache import Witness


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
    hunt: Hunt
    """Baselines and looks for what could bring an agent back."""
    contexts: Contexts
    """Sessions' workspaces over their life."""
    activity: ActivityDesk
    """What agents did, kept."""
    witness: Witness
    notices: Notices
    burn: BurnBook = field(default_factory=BurnBook)
    """How fast every node of a budget uses things up."""

    def notice(self, text: str, level: str = "amber") -> None:
        """Shows something on every console and keeps it for the next one; from any thread."""
        self.notices.show(text, level)
