"""The allowlist as reviewed configuration: validated by the real Envoy, recorded, applied live, confirmed, or the old list stays."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from console.api import messages as m
from console.domain.command import Record
from console.domain.errors import Conflict, Denied, Killed, NotFound, Unavailable, UsageProblem
from console.domain.network import Allowlist, AllowlistEntry
from console.egress.url_test import judge_url
from console.policy.allowlist_review import Use, review
from console.supervisor.parts import Parts
from console.supervisor.views import entry_from_body, entry_view

WEEK_S = 7 * 86400
HISTORY_MAX = 5_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """A change of the list that somebody asks for."""

    verb: str
    """``add edit remove revert import``, as the audit words it."""
    entries: tuple[AllowlistEntry, ...]
    base: int | None
    """The version that was looked at; None: whatever is live."""
    by: str
    reason: str
    entry: AllowlistEntry | None = None
    """The one that changes, when it is one."""
    what: str = ""

    def record(self, version: int) -> Record:
        """For the audit, before it is applied."""
        one = self.entry
        words = f"{self.verb} {one.host}:{one.port}" if one is not None else self.what
        data = {"version": version, "reason": self.reason, "entries": len(self.entries)}
        if one is not None:
            data |= {"entry": one.entry_id, "host": one.host, "port": one.port}
        return Record(self.by, "allowlist." + self.verb, f"{words} (version {version})", verdict="allow", data=data)


class NetworkDesk:
    """Holds the live list; one change at a time."""

    def __init__(self, parts: Parts, allowlist: Allowlist) -> None:
        self._parts = parts
        self.allowlist = allowlist
        self._lock = asyncio.Lock()
        self._since_of: tuple[int, dict[str, float]] = (-1, {})

    async def view(self) -> m.AllowlistView:
        """The list with how each entry was used, and what a reviewer should see."""
        hits = await asyncio.to_thread(self._parts.scribe.ledger.hits, time.time() - WEEK_S)
        since = await asyncio.to_thread(self._since)
        use = {e.entry_id: Use(hits.get(e.entry_id, (0, None))[1], since.get(e.entry_id)) for e in self.allowlist.entries}
        marks = review(self.allowlist, use, time.time(), self.kill_file_host)
        entries = [entry_view(e, hits.get(e.entry_id, (0, None)), marks[e.entry_id]) for e in self.allowlist.entries]
        state, detail = await asyncio.to_thread(self._health)
        boxes = len(self._parts.egress.attached())
        return m.AllowlistView(version=self.allowlist.version, entries=entries, envoy=state, envoy_detail=detail, sandboxes=boxes)  # type: ignore[arg-type]

    @property
    def kill_file_host(self) -> str:
        """The host of the bucket of remote kill; empty when there is none."""
        remote = self._parts.options.remote
        host = (urlsplit(remote.endpoint).hostname or "") if remote.endpoint else "storage.googleapis.com"
        return host if remote.bucket else ""

    def _since(self) -> dict[str, float]:
        """Entry id -> when it first came into the list, of every entry there ever was; read once for each version."""
        if self._since_of[0] != self.allowlist.version:
            first: dict[str, float] = {}
            for version in reversed(self._parts.scribe.ledger.allowlist_history(limit=HISTORY_MAX)):
                for entry in version.allowlist.entries:
                    first.setdefault(entry.entry_id, version.at)
            self._since_of = (self.allowlist.version, first)
        return self._since_of[1]

    def next_id(self, taken: tuple[AllowlistEntry, ...] = ()) -> str:
        """An id that no entry has or ever had, so that what an old one was used for is not told of a new one."""
        known = [*self._since(), *(e.entry_id for e in (*self.allowlist.entries, *taken))]
        return f"e{1 + max((int(i[1:]) for i in known if i[1:].isdigit()), default=0)}"

    def _health(self) -> tuple[str, str]:
        available = self._parts.egress.available()
        if not available.ok:
            return "unavailable", f"not available, because {available.reason}"
        return self._parts.egress.health()

    async def add(self, body: m.AllowlistEntryBody, by: str) -> m.AllowlistChangedView:
        """A new entry."""
        entry = entry_from_body(await asyncio.to_thread(self.next_id), body)
        return await self.change(Wanted("add", (*self.allowlist.entries, entry), body.base_version, by, body.reason, entry))

    async def edit(self, entry_id: str, body: m.AllowlistEntryBody, by: str) -> m.AllowlistChangedView:
        """A changed entry."""
        self.find(entry_id)
        entry = entry_from_body(entry_id, body)
        entries = tuple(entry if e.entry_id == entry_id else e for e in self.allowlist.entries)
        return await self.change(Wanted("edit", entries, body.base_version, by, body.reason, entry))

    async def remove(self, entry_id: str, base_version: int | None, by: str, reason: str) -> m.AllowlistChangedView:
        """An entry less: established tunnels are cut too."""
        if not reason.strip():
            raise UsageProblem("Removing an entry needs a reason.", "Add ?reason=...")
        entry = self.find(entry_id)
        entries = tuple(e for e in self.allowlist.entries if e.entry_id != entry_id)
        return await self.change(Wanted("remove", entries, base_version, by, reason, entry))

    def find(self, entry_id: str) -> AllowlistEntry:
        """An entry of the live list. Raises NotFound."""
        for entry in self.allowlist.entries:
            if entry.entry_id == entry_id:
                return entry
        raise NotFound(f"There is no allowlist entry {entry_id[:40]!r}.", "watchfloor allowlist list shows the entries.")

    async def change(self, wanted: Wanted) -> m.AllowlistChangedView:
        """Validated, recorded, applied, confirmed; or refused with why, and the old list stays. Raises Killed, Conflict, Denied ..."""
        parts = self._parts
        if parts.core.state.killed:
            raise Killed("The kill switch is latched: the allowlist cannot be changed.", "Rearm first.")
        available = parts.egress.available()
        if not available.ok:
            raise Unavailable(f"The change cannot be validated: Envoy is not available, because {available.reason}.", available.remedy)
        async with self._lock:
            if wanted.base is not None and wanted.base != self.allowlist.version:
                raise Conflict(
                    f"The allowlist is at version {self.allowlist.version} now, not {wanted.base}.",
                    "Look at it again, then repeat the change.",
                )
            live = set(self.allowlist.entries)
            for entry in wanted.entries:
                if entry not in live:
                    entry.check()
                    self._refuse_the_kill_files_host(entry)
            following = Allowlist(self.allowlist.version + 1, wanted.entries)
            checked = await asyncio.to_thread(parts.egress.validate, following)
            if not checked.ok:
                raise UsageProblem(f"Envoy refused the change: {checked.words}", "The old list is still live.")
            record = wanted.record(following.version)
            await asyncio.to_thread(parts.scribe.record_first, record)
            applied = await asyncio.to_thread(parts.egress.apply, following)
            if not applied.ok:
                parts.scribe.record(replace(record, verdict="failed", what=f"not taken by Envoy: {applied.words}"))
                raise UsageProblem(f"Envoy did not take the change: {applied.words}", "The old list is still live.")
            self.allowlist = following
            await asyncio.to_thread(parts.scribe.ledger.save_allowlist, following, wanted.by, wanted.reason, time.time())
        parts.core.hub.publish("allowlist", {"version": following.version})
        boxes = f"{applied.sandboxes} sandbox{'' if applied.sandboxes == 1 else 'es'}"
        return m.AllowlistChangedView(
            version=following.version,
            entry_id=wanted.entry.entry_id if wanted.entry else "",
            validated_ms=checked.ms,
            applied_ms=applied.ms,
            sandboxes=applied.sandboxes,
            words=f"validated by Envoy in {checked.ms:.0f} ms · applied to {boxes} in {applied.ms:.0f} ms",
        )

    def _refuse_the_kill_files_host(self, entry: AllowlistEntry) -> None:
        """An agent that reaches the kill file's host could talk to the bucket (THREATS.md, N7)."""
        if self.kill_file_host and entry.covers_host(self.kill_file_host):
            raise Denied(f"{self.kill_file_host} holds the kill file: agents never reach it.", "Name another host.")

    async def test(self, body: m.UrlTestBody) -> m.UrlTestView:
        """Judges a URL by the live list, or by the list with a draft entry in it; with Envoy's word on the draft if asked."""
        allowlist = self.allowlist
        envoy_valid, envoy_words = None, ""
        if body.entry is not None:
            draft = entry_from_body("draft", body.entry)
            draft.check()
            kept = tuple(e for e in allowlist.entries if e.entry_id != body.replaces)
            allowlist = Allowlist(allowlist.version, (*kept, draft))
            if body.validate_with_envoy and self._parts.egress.available().ok:
                checked = await asyncio.to_thread(self._parts.egress.validate, allowlist)
                envoy_valid, envoy_words = checked.ok, checked.words
        judged = judge_url(allowlist, body.method, body.url)
        return m.UrlTestView(
            allowed=judged.allowed, entry_id=judged.entry_id, reason=judged.reason, envoy_valid=envoy_valid, envoy_words=envoy_words
        )
