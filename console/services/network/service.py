"""The allowlist as reviewed configuration: validated by the real Envoy, recorded, applied live, confirmed, or the old list stays."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace

from console.api import messages as m
from console.domain.engine.command import Record
from console.domain.errors import Conflict, ConsoleError, Denied, Killed, NotFound, Unavailable, UsageProblem
from console.domain.network import Allowlist, AllowlistEntry
from console.egress.answers import Applied
from console.egress.service import Egress
from console.egress.url_test import judge_url
from console.policy.review.allowlist_review import Mark, Superfluous, Use, kill_file_hosts, meets, overlaps, review
from console.services.fleet.core import Core
from console.services.fleet.views import entry_from_body, entry_view
from console.services.notices.shown import Notice
from console.services.records.record_writer import Scribe
from console.settings.options import Options

WEEK_S = 7 * 86400
HISTORY_MAX = 5_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """A requested change of the list."""

    verb: str
    """``add edit remove revert import``, as the audit words it."""
    entries: tuple[AllowlistEntry, ...]
    base: int
    """The version these entries were made from; a change that came in between is never overwritten."""
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

    __slots__ = (
        "allowlist", "_newest", "kill_file_hosts", "_lock", "_since_of", "_overlaps_of", "_core", "_scribe", "_egress", "_options",
        "_notice"
    )  # fmt: skip

    def __init__(self, core: Core, scribe: Scribe, egress: Egress, options: Options, notice: Notice, allowlist: Allowlist) -> None:
        self._core, self._scribe, self._egress, self._options, self._notice = core, scribe, egress, options, notice
        self.allowlist = allowlist
        self._newest = allowlist.version
        """The newest version on disk; above the live one when Envoy refused it and the way back could not be kept."""
        remote = options.remote
        self.kill_file_hosts = kill_file_hosts(remote.bucket, remote.endpoint)
        self._lock = asyncio.Lock()
        self._since_of: tuple[int, dict[str, float]] = (-1, {})
        self._overlaps_of: tuple[Allowlist | None, Superfluous] = (None, {})

    async def view(self) -> m.AllowlistView:
        """The list with how each entry was used, and what a reviewer should see."""
        hits = await asyncio.to_thread(self._scribe.ledger.hits, time.time() - WEEK_S)
        live = self.allowlist
        marks = await asyncio.to_thread(self._marks, live, hits)
        entries = [entry_view(e, hits.get(e.entry_id, (0, None)), marks[e.entry_id]) for e in live.entries]
        state, detail = await asyncio.to_thread(self._health)
        boxes = len(self._egress.attached())
        return m.AllowlistView(version=live.version, entries=entries, envoy=state, envoy_detail=detail, sandboxes=boxes)  # type: ignore[arg-type]

    def _marks(self, live: Allowlist, hits: dict[str, tuple[int, float]]) -> dict[str, tuple[Mark, ...]]:
        """What a reviewer should see, in a thread: entries are compared with each other once for each version."""
        since = self._since()
        use = {e.entry_id: Use(hits[e.entry_id][1] if e.entry_id in hits else None, since.get(e.entry_id)) for e in live.entries}
        known, superfluous = self._overlaps_of
        if known is not live:
            superfluous = overlaps(live)
            self._overlaps_of = (live, superfluous)
        return review(live, use, time.time(), self.kill_file_hosts, superfluous)

    def looked_at(self, version: int | None) -> Allowlist:
        """The live list, to make a change from. Raises Conflict when ``version`` was looked at and another is live."""
        if version is not None and version != self.allowlist.version:
            raise _conflict(self.allowlist, version)
        return self.allowlist

    def _since(self) -> dict[str, float]:
        """Entry id -> when it first came into the list, of every entry there ever was; read once for each version."""
        if self._since_of[0] != self.allowlist.version:
            first: dict[str, float] = {}
            for version in reversed(self._scribe.ledger.allowlist_history(limit=HISTORY_MAX)):
                for entry in version.allowlist.entries:
                    first.setdefault(entry.entry_id, version.at)
            self._since_of = (self.allowlist.version, first)
        return self._since_of[1]

    def next_id(self, taken: tuple[AllowlistEntry, ...] = ()) -> str:
        """Return an id that no entry has or ever had, so that the use of an old entry is not counted for a new one."""
        known = [*self._since(), *(e.entry_id for e in (*self.allowlist.entries, *taken))]
        return f"e{1 + max((int(i[1:]) for i in known if i[1:].isdigit()), default=0)}"

    def _health(self) -> tuple[str, str]:
        available = self._egress.available()
        if not available.ok:
            return "unavailable", f"not available, because {available.reason}"
        return self._egress.health()

    async def add(self, body: m.AllowlistEntryBody, by: str) -> m.AllowlistChangedView:
        """A new entry."""
        live = self.looked_at(body.base_version)
        entry = entry_from_body(await asyncio.to_thread(self.next_id), body)
        _check_new(entry, live)
        return await self.change(Wanted("add", (*live.entries, entry), live.version, by, body.reason, entry))

    async def edit(self, entry_id: str, body: m.AllowlistEntryBody, by: str) -> m.AllowlistChangedView:
        """A changed entry."""
        live = self.looked_at(body.base_version)
        entry_of(live, entry_id)
        entry = entry_from_body(entry_id, body)
        _check_new(entry, live)
        entries = tuple(entry if e.entry_id == entry_id else e for e in live.entries)
        return await self.change(Wanted("edit", entries, live.version, by, body.reason, entry))

    async def remove(self, entry_id: str, base_version: int | None, by: str, reason: str) -> m.AllowlistChangedView:
        """An entry less: established tunnels are cut too."""
        if not reason.strip():
            raise UsageProblem("Removing an entry needs a reason.", "Add ?reason=...")
        live = self.looked_at(base_version)
        entry = entry_of(live, entry_id)
        entries = tuple(e for e in live.entries if e.entry_id != entry_id)
        return await self.change(Wanted("remove", entries, live.version, by, reason, entry))

    async def change(self, wanted: Wanted) -> m.AllowlistChangedView:
        """Validated, recorded, kept, applied, confirmed; or refused with why and the old list stays. Raises Killed, Conflict, Denied ..."""
        if self._core.state.killed:
            raise Killed("Everything was stopped: the allowlist cannot be changed until you rearm.", "Rearm first.")
        available = self._egress.available()
        if not available.ok:
            raise Unavailable(f"The change cannot be validated: Envoy is not available, because {available.reason}.", available.remedy)
        async with self._lock:
            if wanted.base != self.allowlist.version:
                raise _conflict(self.allowlist, wanted.base)
            for entry in wanted.entries:
                entry.check()
                if meets(entry.host, self.kill_file_hosts):  # an agent that reaches it could talk to the bucket
                    raise Denied(f"{entry.host} leads to the host of the kill file: agents never reach it.", "Name another host.")
            following = Allowlist(self._next_version(), wanted.entries)
            checked = await asyncio.to_thread(self._egress.validate, following)
            if not checked.ok:
                raise UsageProblem(f"Envoy refused the change: {checked.words}", "The old list is still live.")
            applied = await self._take(following, wanted)
        self._core.hub.publish("allowlist", {"version": following.version})
        boxes = f"{applied.sandboxes} sandbox{'' if applied.sandboxes == 1 else 'es'}"
        return m.AllowlistChangedView(
            version=following.version,
            entry_id=wanted.entry.entry_id if wanted.entry else "",
            validated_ms=checked.ms,
            applied_ms=applied.ms,
            sandboxes=applied.sandboxes,
            words=f"validated by Envoy in {checked.ms:.0f} ms · applied to {boxes} in {applied.ms:.0f} ms",
        )

    def _next_version(self) -> int:
        return max(self.allowlist.version, self._newest) + 1

    async def _take(self, following: Allowlist, wanted: Wanted) -> Applied:
        """In this order: recorded, kept, live. What a restart would not know is never live (promise 5)."""
        scribe, record = self._scribe, wanted.record(following.version)
        await asyncio.to_thread(scribe.record_first, record)
        try:
            await asyncio.to_thread(scribe.ledger.save_allowlist, following, wanted.by, wanted.reason, time.time())
        except ConsoleError as error:
            scribe.record(replace(record, verdict="failed", what=f"not kept: {error.what}"))
            raise
        self._newest = following.version
        applied = await asyncio.to_thread(self._egress.apply, following)
        if applied.ok:
            self.allowlist = following
            return applied
        scribe.record(replace(record, verdict="failed", what=f"not taken by Envoy: {applied.words}"))
        raise UsageProblem(f"Envoy did not take the change: {applied.words}", await self._take_back(following, applied.words))

    async def _take_back(self, refused: Allowlist, why: str) -> str:
        """Save the entries that stayed live as the newest version on disk too. Returns what to tell the caller."""
        old = Allowlist(refused.version + 1, self.allowlist.entries)
        reason = f"version {refused.version} was not taken by Envoy: {why}"[:500]
        try:
            await asyncio.to_thread(self._scribe.ledger.save_allowlist, old, "supervisor", reason, time.time())
        except ConsoleError:
            return "The old list is still live. That could not be kept, so the change is tried again at the next start."
        self.allowlist, self._newest = old, old.version
        return "The old list is still live."

    async def keep_from_the_kill_file(self) -> None:
        """At the start: entries older than the bucket that lead to it leave the list. It only tightens, so it is recorded after."""
        async with self._lock:
            live = self.allowlist
            gone = [e for e in live.entries if meets(e.host, self.kill_file_hosts)]
            if not gone:
                return
            kept = tuple(e for e in live.entries if e not in gone)
            self.allowlist = Allowlist(self._next_version(), kept)
            words = f"{', '.join(e.host for e in gone)} left the allowlist: it leads to the host of the kill file"
            scribe = self._scribe
            scribe.record(Wanted("remove", kept, live.version, "supervisor", words, what=words).record(self.allowlist.version))
            try:
                await asyncio.to_thread(scribe.ledger.save_allowlist, self.allowlist, "supervisor", words[:500], time.time())
                self._newest = self.allowlist.version
            except ConsoleError as error:
                words += f"; not kept, so it is done again at the next start: {error.what}"
            self._notice(words, "red")

    async def put_live(self) -> Applied:
        """At the start: the list as it is now, never one that a change replaced meanwhile."""
        async with self._lock:
            return await asyncio.to_thread(self._egress.apply, self.allowlist)

    async def test(self, body: m.UrlTestBody) -> m.UrlTestView:
        """Judges a URL by the live list, or by the list with a draft entry in it; with Envoy's word on the draft if asked."""
        allowlist = self.allowlist
        envoy_valid, envoy_words = None, ""
        if body.entry is not None:
            draft = entry_from_body("draft", body.entry)
            draft.check()
            kept = tuple(e for e in allowlist.entries if e.entry_id != body.replaces)
            _check_new(draft, Allowlist(allowlist.version, kept))
            allowlist = Allowlist(allowlist.version, (*kept, draft))
            if body.validate_with_envoy and self._egress.available().ok:
                checked = await asyncio.to_thread(self._egress.validate, allowlist)
                envoy_valid, envoy_words = checked.ok, checked.words
        judged = judge_url(allowlist, body.method, body.url)
        marks = await asyncio.to_thread(_marks_of_draft, allowlist, self.kill_file_hosts) if body.entry is not None else []
        return m.UrlTestView(
            allowed=judged.allowed,
            entry_id=judged.entry_id,
            reason=judged.reason,
            envoy_valid=envoy_valid,
            envoy_words=envoy_words,
            marks=marks,
        )


def _marks_of_draft(drafted: Allowlist, kill_hosts: tuple[str, ...]) -> list[m.MarkView]:
    """What a reviewer should see of the draft before it is saved: the last entry of the list. Blocks."""
    draft = drafted.entries[-1]
    found = review(drafted, {draft.entry_id: Use(None, time.time())}, time.time(), kill_hosts)[draft.entry_id]
    return [m.MarkView(kind=mark.kind, words=mark.words, danger=mark.is_danger) for mark in found]


def _check_new(entry: AllowlistEntry, live: Allowlist) -> None:
    """Raises UsageProblem for what cannot be enforced, and for what another entry allows exactly already."""
    entry.check_enforceable()
    for other in live.entries:
        if other.entry_id != entry.entry_id and other.is_same_as(entry):
            raise UsageProblem(
                f"Entry {other.entry_id} allows exactly this already: {other.host}:{other.port}.",
                "Change that entry, or remove it first: watchfloor allowlist list shows it.",
            )


def entry_of(allowlist: Allowlist, entry_id: str) -> AllowlistEntry:
    """An entry of a list. Raises NotFound."""
    for entry in allowlist.entries:
        if entry.entry_id == entry_id:
            return entry
    raise NotFound(f"There is no allowlist entry {entry_id[:40]!r}.", "watchfloor allowlist list shows the entries.")


def _conflict(live: Allowlist, version: int) -> Conflict:
    return Conflict(f"The allowlist is at version {live.version} now, not {version}.", "Look at it again, then repeat the change.")
