"""Reviewing the allowlist: its history and the way back, what a change would have done to recorded requests, and files."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import replace

from console.api import allowlist_review as r
from console.api import messages as m
from console.domain.errors import NotFound, UsageProblem
from console.domain.network import Allowlist, AllowlistEntry, EgressRecord
from console.egress.allowlist_file import read_file, write_file
from console.egress.url_test import judge_request
from console.policy.review.allowlist_review import Backtest, Change, Group, backtest, diff
from console.services.fleet.views import entry_from_body
from console.services.network.service import NetworkDesk, Wanted, entry_of
from console.services.records.record_writer import Scribe

RECORDS_MAX = 100_000
"""As many recorded requests as one backtest judges (about a second)."""
DAY_S = 86400.0
SHOWN_MAX = 200


class ReviewDesk:
    """Works on the live list of a NetworkDesk, through the same gate as every change."""

    __slots__ = ("_scribe", "_network")

    def __init__(self, scribe: Scribe, network: NetworkDesk) -> None:
        self._scribe = scribe
        self._network = network

    async def history(self, limit: int = SHOWN_MAX) -> r.AllowlistHistoryView:
        """Versions with what each changed, newest first."""
        versions = await asyncio.to_thread(self._scribe.ledger.allowlist_history, limit + 1)
        views = []
        for at, version in enumerate(versions[:limit]):
            before = versions[at + 1].allowlist if at + 1 < len(versions) else Allowlist()
            views.append(
                r.AllowlistVersionView(
                    version=version.allowlist.version,
                    by=version.by,
                    reason=version.reason,
                    at=version.at,
                    entries=len(version.allowlist.entries),
                    readable=version.readable,
                    changes=_changes(diff(before, version.allowlist)),
                )
            )
        return r.AllowlistHistoryView(live=self._network.allowlist.version, versions=views)

    async def revert(self, body: r.RevertBody, by: str) -> m.AllowlistChangedView:
        """The entries of an old version become the newest version. Raises NotFound, UsageProblem and what any change raises."""
        if not body.reason.strip():
            raise UsageProblem("Going back needs a reason.", "Give one with --reason.")
        live = self._network.looked_at(body.base_version)
        entries = await asyncio.to_thread(self._version, body.version)
        if entries == live.entries:
            raise UsageProblem(f"Version {body.version} is what is live: nothing changes.", "Choose another version.")
        what = f"back to version {body.version}"
        return await self._network.change(Wanted("revert", entries, live.version, by, body.reason, what=what))

    def _version(self, version: int) -> tuple[AllowlistEntry, ...]:
        if version == 0:
            return ()
        for past in self._scribe.ledger.allowlist_history(limit=10**6):
            if past.allowlist.version == version:
                if not past.readable:
                    raise UsageProblem(f"Version {version} is stored damaged.", "Choose another version.")
                return past.allowlist.entries
        raise NotFound(f"There is no version {version}.", "watchfloor allowlist history shows them.")

    async def backtest(self, body: r.BacktestBody) -> r.BacktestView:
        """What one change would have done to the recorded requests of the last days."""
        return await self._judge(await asyncio.to_thread(self._drafted, body), body.days)

    def _drafted(self, body: r.BacktestBody) -> tuple[AllowlistEntry, ...]:
        asked = [body.entry is not None, body.remove is not None, body.version is not None]
        if sum(asked) != 1 or (body.replaces is not None and body.entry is None):
            raise UsageProblem("A backtest takes one change.", "Give an entry (with replaces when it changes one), remove, or version.")
        if body.version is not None:
            return self._version(body.version)
        live = self._network.allowlist.entries
        gone = body.remove or body.replaces
        if gone is not None:
            entry_of(self._network.allowlist, gone)
            live = tuple(e for e in live if e.entry_id != gone)
        if body.entry is None:
            return live
        draft = entry_from_body(body.replaces or "draft", body.entry)
        draft.check()
        draft.check_enforceable()
        return (*live, draft)

    async def _judge(self, entries: tuple[AllowlistEntry, ...], days: int) -> r.BacktestView:
        since = time.time() - days * DAY_S
        live = self._network.allowlist
        wanted = Allowlist(live.version + 1, entries)
        records, more = await asyncio.to_thread(self._scribe.ledger.egress_since, since, RECORDS_MAX)
        found = await asyncio.to_thread(backtest, live, wanted, records, _passes)
        return _view(found, days, more, _leads(live) != _leads(wanted))

    def export(self) -> r.AllowlistFileView:
        """The live list as a file."""
        live = self._network.allowlist
        return r.AllowlistFileView(version=live.version, text=write_file(live.entries))

    async def take_file(self, body: r.ImportBody, by: str) -> r.ImportView:
        """Entries of a file join or replace the live list; with ``dry_run`` only what would change is told."""
        wanted = await asyncio.to_thread(lambda: read_file(body.text).entries)
        live = self._network.looked_at(body.base_version)
        entries = await asyncio.to_thread(self._joined, live, wanted, body.replace)
        changes = diff(live, Allowlist(0, entries))
        tested = await self._judge(entries, body.days)
        if body.dry_run or not changes:
            words = "nothing differs" if not changes else f"{_count(changes)} would change; {tested.words}"
            return r.ImportView(version=live.version, applied=False, changes=_changes(changes), backtest=tested, words=words)
        if not body.reason.strip():
            raise UsageProblem("Importing needs a reason.", "Give one with --reason.")
        what = f"{_count(changes)} from a file"
        done = await self._network.change(Wanted("import", entries, live.version, by, body.reason, what=what))
        return r.ImportView(version=done.version, applied=True, changes=_changes(changes), backtest=tested, words=done.words)

    def _joined(self, live: Allowlist, wanted: tuple[AllowlistEntry, ...], replaces: bool) -> tuple[AllowlistEntry, ...]:
        """Entries keep their ids: the same destination is the same entry, with what the file says of it.

        A list may hold one destination twice (it is marked superfluous); then the first of the file is the first of the list, and so on.
        """
        known: dict[tuple[object, ...], list[AllowlistEntry]] = {}
        for entry in live.entries:
            known.setdefault(_destination(entry), []).append(entry)
        seen: Counter[tuple[object, ...]] = Counter()
        said: list[AllowlistEntry] = []
        for entry in wanted:
            destination = _destination(entry)
            same, number = known.get(destination, []), seen[destination]
            if number >= max(1, len(same)):
                raise UsageProblem(f"{entry.host}:{entry.port} is in the file twice.", "Write one entry for it.")
            seen[destination] += 1
            entry_id = same[number].entry_id if same else self._network.next_id(tuple(said))
            if not same or not entry.is_same_as(same[number]):  # what is in the list already stays as it was reviewed
                entry.check_enforceable()
            said.append(replace(entry, entry_id=entry_id))
        if replaces:
            return tuple(said)
        changed = {e.entry_id: e for e in said}
        kept = tuple(changed.pop(e.entry_id, e) for e in live.entries)
        return (*kept, *changed.values())


def _destination(entry: AllowlistEntry) -> tuple[object, ...]:
    return entry.host, entry.port, entry.methods, entry.paths


def _passes(allowlist: Allowlist, record: EgressRecord) -> bool:
    authority = record.host
    if record.method == "CONNECT" and not authority.rpartition(":")[2].isdigit():
        authority += ":443"  # the log leaves the usual port out
    return judge_request(allowlist, record.method, authority, record.path).allowed


def _count(changes: tuple[Change, ...]) -> str:
    return f"{len(changes)} entr{'y' if len(changes) == 1 else 'ies'}"


def _changes(changes: tuple[Change, ...]) -> list[r.EntryChangeView]:
    return [
        r.EntryChangeView(
            entry_id=c.entry_id,
            what=c.what,  # type: ignore[arg-type]
            host=c.host,
            fields=[r.FieldChangeView(field=f, before=b, after=a) for f, b, a in c.fields],
        )
        for c in changes
    ]


def _leads(allowlist: Allowlist) -> set[tuple[str, int, str]]:
    """Where names may lead besides public addresses. No record says where one led, so no backtest can judge it."""
    return {(e.host, e.port, network) for e in allowlist.entries for network in e.private_networks}


def _view(found: Backtest, days: int, more: bool, leads_elsewhere: bool) -> r.BacktestView:
    def groups(given: tuple[Group, ...]) -> list[r.BacktestGroup]:
        return [
            r.BacktestGroup(method=g.method, host=g.host, path=g.path, count=g.count, agents=list(g.agents), last_at=g.last_at)
            for g in given
        ]

    allowed, blocked = sum(g.count for g in found.newly_allowed), sum(g.count for g in found.newly_blocked)
    if not found.judged:
        words = f"no request of the last {days} days is recorded"
    elif not found.changed:
        words = f"none of {found.judged} requests of the last {days} days would have been decided differently"
    else:
        words = (
            f"of {found.judged} requests of the last {days} days, {allowed} more would have passed and {blocked} would have been blocked"
        )
    if more:
        words += " (the newest; more are recorded)"
    if leads_elsewhere:
        words += "; what the change of private networks lets through or blocks is not known: no record says where a name led"
    elif allowed:
        words += ", if their names lead where an entry lets them"
    return r.BacktestView(
        days=days,
        judged=found.judged,
        changed=found.changed,
        left_out=found.left_out,
        incomplete=more,
        newly_allowed=groups(found.newly_allowed),
        newly_blocked=groups(found.newly_blocked),
        words=words,
    )
