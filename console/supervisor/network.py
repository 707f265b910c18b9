"""The allowlist as reviewed configuration: validated by the real Envoy, recorded, applied live, confirmed, or the old list stays."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from urllib.parse import urlsplit

from console.api import messages as m
from console.domain.command import Record
from console.domain.errors import Conflict, Denied, Killed, NotFound, Unavailable, UsageProblem
from console.domain.network import Allowlist, AllowlistEntry
from console.egress.url_test import judge_url
from console.supervisor.parts import Parts
from console.supervisor.views import entry_from_body, entry_view

WEEK_S = 7 * 86400


class NetworkDesk:
    """Holds the live list; one change at a time."""

    def __init__(self, parts: Parts, allowlist: Allowlist) -> None:
        self._parts = parts
        self.allowlist = allowlist
        self._lock = asyncio.Lock()

    async def view(self) -> m.AllowlistView:
        """The list with how each entry was used."""
        hits = await asyncio.to_thread(self._parts.scribe.ledger.hits, time.time() - WEEK_S)
        entries = [entry_view(entry, hits.get(entry.entry_id, (0, None))) for entry in self.allowlist.entries]
        state, detail = await asyncio.to_thread(self._health)
        boxes = len(self._parts.egress.attached())
        return m.AllowlistView(version=self.allowlist.version, entries=entries, envoy=state, envoy_detail=detail, sandboxes=boxes)  # type: ignore[arg-type]

    def _health(self) -> tuple[str, str]:
        available = self._parts.egress.available()
        if not available.ok:
            return "unavailable", f"not available, because {available.reason}"
        return self._parts.egress.health()

    async def add(self, body: m.AllowlistEntryBody, by: str) -> m.AllowlistChangedView:
        """A new entry."""
        number = 1 + max((int(e.entry_id[1:]) for e in self.allowlist.entries if e.entry_id[1:].isdigit()), default=self.allowlist.version)
        entry = entry_from_body(f"e{number}", body)
        return await self._change(entry, (*self.allowlist.entries, entry), body.base_version, by, body.reason, "add")

    async def edit(self, entry_id: str, body: m.AllowlistEntryBody, by: str) -> m.AllowlistChangedView:
        """A changed entry."""
        self._find(entry_id)
        entry = entry_from_body(entry_id, body)
        entries = tuple(entry if e.entry_id == entry_id else e for e in self.allowlist.entries)
        return await self._change(entry, entries, body.base_version, by, body.reason, "edit")

    async def remove(self, entry_id: str, base_version: int | None, by: str, reason: str) -> m.AllowlistChangedView:
        """An entry less: established tunnels are cut too."""
        if not reason.strip():
            raise UsageProblem("Removing an entry needs a reason.", "Add ?reason=...")
        entry = self._find(entry_id)
        entries = tuple(e for e in self.allowlist.entries if e.entry_id != entry_id)
        return await self._change(entry, entries, base_version, by, reason, "remove")

    def _find(self, entry_id: str) -> AllowlistEntry:
        for entry in self.allowlist.entries:
            if entry.entry_id == entry_id:
                return entry
        raise NotFound(f"There is no allowlist entry {entry_id[:40]!r}.", "watchfloor allowlist list shows the entries.")

    async def _change(
        self, entry: AllowlistEntry, entries: tuple[AllowlistEntry, ...], base: int | None, by: str, reason: str, verb: str
    ) -> m.AllowlistChangedView:
        parts = self._parts
        if parts.core.state.killed:
            raise Killed("The kill switch is latched: the allowlist cannot be changed.", "Rearm first.")
        if verb != "remove":
            entry.check()
            self._refuse_the_kill_files_host(entry)
        available = parts.egress.available()
        if not available.ok:
            raise Unavailable(f"The change cannot be validated: Envoy is not available, because {available.reason}.", available.remedy)
        async with self._lock:
            if base is not None and base != self.allowlist.version:
                raise Conflict(
                    f"The allowlist is at version {self.allowlist.version} now, not {base}.", "Look at it again, then repeat the change."
                )
            wanted = Allowlist(self.allowlist.version + 1, entries)
            checked = await asyncio.to_thread(parts.egress.validate, wanted)
            if not checked.ok:
                raise UsageProblem(f"Envoy refused the change: {checked.words}", "The old list is still live.")
            data = {"entry": entry.entry_id, "host": entry.host, "port": entry.port, "version": wanted.version, "reason": reason}
            record = Record(
                by, "allowlist." + verb, f"{verb} {entry.host}:{entry.port} (version {wanted.version})", verdict="allow", data=data
            )
            await asyncio.to_thread(parts.scribe.record_first, record)
            applied = await asyncio.to_thread(parts.egress.apply, wanted)
            if not applied.ok:
                parts.scribe.record(replace(record, verdict="failed", what=f"not taken by Envoy: {applied.words}"))
                raise UsageProblem(f"Envoy did not take the change: {applied.words}", "The old list is still live.")
            self.allowlist = wanted
            await asyncio.to_thread(parts.scribe.ledger.save_allowlist, wanted, by, reason, time.time())
        parts.core.hub.publish("allowlist", {"version": wanted.version})
        words = f"validated by Envoy in {checked.ms:.0f} ms · applied to {applied.sandboxes} sandboxes in {applied.ms:.0f} ms"
        return m.AllowlistChangedView(
            version=wanted.version,
            entry_id=entry.entry_id,
            validated_ms=checked.ms,
            applied_ms=applied.ms,
            sandboxes=applied.sandboxes,
            words=words,
        )

    def _refuse_the_kill_files_host(self, entry: AllowlistEntry) -> None:
        """An agent that reaches the kill file's host could talk to the bucket (THREATS.md, N7)."""
        remote = self._parts.options.remote
        host = (urlsplit(remote.endpoint).hostname or "") if remote.endpoint else "storage.googleapis.com"
        if remote.bucket and entry.covers_host(host):
            raise Denied(f"{host} holds the kill file: agents never reach it.", "Name another host.")

    async def test(self, body: m.UrlTestBody) -> m.UrlTestView:
        """Judges a URL by the live list, or by the list with a draft entry in it; with Envoy's word on the draft if asked."""
        allowlist = self.allowlist
        envoy_valid, envoy_words = None, ""
        if body.entry is not None:
            draft = entry_from_body("draft", body.entry)
            draft.check()
            allowlist = Allowlist(allowlist.version, (*allowlist.entries, draft))
            if body.validate_with_envoy and self._parts.egress.available().ok:
                checked = await asyncio.to_thread(self._parts.egress.validate, allowlist)
                envoy_valid, envoy_words = checked.ok, checked.words
        judged = judge_url(allowlist, body.method, body.url)
        return m.UrlTestView(
            allowed=judged.allowed, entry_id=judged.entry_id, reason=judged.reason, envoy_valid=envoy_valid, envoy_words=envoy_words
        )
