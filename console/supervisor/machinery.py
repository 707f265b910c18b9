"""What one supervisor opens before anything is joined: its files, its keys, its guard, its network, and what watches this host."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from console.credentials.keyring_store import Store
from console.credentials.plan import FILE as PLAN_FILE
from console.credentials.tokens import Tokens
from console.domain.agent import AgentId
from console.domain.engine.command import Record
from console.domain.errors import ConsoleError
from console.domain.network import EgressRecord
from console.egress.service import Egress
from console.killswitch.client.guard_client import GuardClient
from console.killswitch.client.start import START_S
from console.ledger.activity_file import Bounds
from console.rollback.store import RollbackStore
from console.services.activity.service import ActivityDesk
from console.services.alerts.raised import Alerts
from console.services.daemons.service import DaemonService
from console.services.evidence.snapshot_cache import Witness
from console.services.fleet.core import Core
from console.services.fleet.views import egress_view
from console.services.hooks.installation import wrote
from console.services.notices.shown import Notices
from console.services.observe.own_agents import OwnAgents
from console.services.persistence.scan import Hunt
from console.services.records.record_writer import Scribe, note_head
from console.services.records.storage_open import (
    DAMAGED,
    MISSING,
    forget_loss,
    note_loss,
    noted_loss,
    open_audit,
    open_ledger,
    start_killed,
)
from console.services.secrets.rotator import Rotator
from console.services.sessions.workspaces import Contexts
from console.services.stop.observed_targets import asked_of, note_session
from console.services.webhook.service import Webhook
from console.settings.options import Options
from console.settings.places import Places
from console.sources.change_tracker import Freshness
from console.supervisor.adapters import sandboxes_of, sources_of, spend_of
from console.supervisor.http.access import Trespasses
from console.supervisor.http.redaction import hide_in_logs
from console.supervisor.revive import ensure_guard

if TYPE_CHECKING:
    from console.services.remote.service import RemoteDesk


class Machinery:
    """Opened in order, and closed in order. Services are given what they use of it, never all of it."""

    def __init__(self, places: Places, options: Options, core: Core, relay_died: Callable[[str], None]) -> None:
        """``relay_died``: called from a thread with the id of an agent whose way out has ended."""
        self._places, self._options, self._core = places, options, core
        self._open_files()
        self.keyring = Store(places.instance_id, places.keys_dir, backend=options.secrets_in(places.is_default))
        hide_in_logs(self.keyring.redactor)
        self.notices = Notices(core.publish_from_thread)
        self.notice = notice = self.notices.show
        self.spend, self.own_agents = spend_of(places, options), OwnAgents(places)
        self.activity = self._activity(self.keyring.redactor.redact, self.spend.fresh)
        redact = self.keyring.redactor.redact_data
        self.scribe = scribe = Scribe(self.ledger, self.audit, lambda text: notice(text, "red"), self.activity.recorded, redact)
        self.guard = GuardClient(places.guard_supervisor_sock)
        self.guard_status = self.guard.call("status", timeout_s=START_S)
        self.tokens = Tokens(self.keyring)
        self.tokens.ensure()
        self.egress = self._egress(relay_died)
        self.remote = _remote(places, options)
        self.sandboxes = sandboxes_of(options)
        self.rollback = RollbackStore(places.rollback_dir, places.workspaces_dir)
        self.rotator = Rotator(self.tokens, places.state_dir / PLAN_FILE, places.operator_sock)
        self.sources = sources_of(places, options, self.spend, self.own_agents)
        self.trespasses = Trespasses(scribe, notice)
        self.webhook = Webhook(places.state_dir, self.keyring, scribe, notice)
        publish = lambda alert: core.hub.publish("alert", alert.as_data())  # noqa: E731
        self.alerts = Alerts(lambda: core.state, options.host(), places.instance_id, redact, (publish, self.webhook.take))
        self.daemons = DaemonService(lambda: asked_of(core.state), self.guard.call, partial(note_session, scribe), notice, self.alerts)
        self.hunt = Hunt(places, options, lambda: core.state, scribe.record, notice, self.keyring.redactor.redact, partial(wrote, places))
        self.contexts = Contexts(places.workspaces_dir, options.workspaces, self.ledger, lambda: core.state, scribe.record_first, notice)
        self.witness = Witness(options.evidence.refresh_s, options.evidence.processes_max)

    def _open_files(self) -> None:
        """Open ledger, guard and audit log. A loss is noted before a new file is made."""
        places = self._places
        if not places.ledger_db.exists() and places.audit_db.exists() and not noted_loss(places.state_dir):
            note_loss(places.state_dir, MISSING)
        self.ledger, _ = open_ledger(places.ledger_db)
        self.ledger_lost = noted_loss(places.state_dir)
        self.guard_pid = ensure_guard(places, self._options)
        if self.ledger_lost == DAMAGED:
            start_killed(places, self.ledger_lost)
        self.audit, self.set_aside = open_audit(places)
        with suppress(ConsoleError):  # a disk that refuses keeps no supervisor from starting
            note_head(self.ledger, self.audit)

    def _activity(self, redact: Callable[[str], str], fresh: Freshness) -> ActivityDesk:
        places, kept = self._places, self._options.activity
        bounds = Bounds(kept.per_agent, kept.total, kept.max_mib)
        root = Path(self._options.discover_root) if self._options.discover_root else None
        return ActivityDesk(places.activity_db, bounds, self._core, redact, root, places.workspaces_dir, fresh)

    def _egress(self, relay_died: Callable[[str], None]) -> Egress:
        places, options, notice = self._places, self._options, self.notice
        return Egress(
            places.egress_dir,
            places.run_dir,
            self._egress_seen,
            on_relay_death=relay_died,
            on_words=lambda agent_id, words: notice(f"{agent_id}: {words}"),
            netns=Path(options.egress.netns) if options.egress.netns else None,
            hosts=options.egress.hosts,
            relay_cgroup=_relays(self.guard_status),
            engine=options.engine(),
            state_dir=places.state_dir,
        )

    def _egress_seen(self, record: EgressRecord) -> None:
        """From the access log's thread: kept, shown live."""
        self.scribe.egress(record)
        self.activity.egress(record)
        loop = self._core.loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._egress_show, record)

    def _egress_show(self, record: EgressRecord) -> None:
        view = egress_view(record, self._core.state.agents.get(AgentId(record.agent_id)))
        self._core.hub.publish("egress", view.as_data())

    def tell_losses(self, lost: list[Record]) -> None:
        """What this start found lost is on record and shown, once operators can ask."""
        for record in lost:
            self.scribe.record(record)
            self.notice(record.what, "red")
        if self.ledger_lost:
            forget_loss(self._places.state_dir)

    def close(self, last: Callable[[], None]) -> None:
        """Ends it all, the ledger after whatever may still write; ``last``: called before that."""
        if self.remote is not None:
            self.remote.stop()
        with suppress(ConsoleError, OSError):
            self.egress.stop()
        self.scribe.record(Record("supervisor", "supervisor.ended", f"pid {os.getpid()}"))
        self.scribe.close()
        self.activity.end()
        self.rollback.close()
        self.contexts.close()
        self.spend.end()
        last()
        self.audit.close()
        self.ledger.close()
        with suppress(ConsoleError):
            self.guard.call("heartbeat", planned_restart_s=120)


def _remote(places: Places, options: Options) -> RemoteDesk | None:
    if not options.remote.bucket:
        return None
    # Google's client takes most of a second to load: only a host that uses a bucket waits for it.
    from console.services.remote.service import RemoteDesk

    state_file = places.state_dir / "remote-state.json"
    return RemoteDesk(options.remote, places.keys_dir, state_file, options.host(), bool(options.remote.endpoint))


def _relays(status: dict[str, Any]) -> Path | None:
    """Where relays live, so that the guard can cut them by killing their cgroup; None without cgroups."""
    root = str((status.get("caps") or {}).get("cgroup", "")).removeprefix("v2 ")
    return Path(root) / "relays" if root else None
