"""What a reviewer should know of an allowlist: marks on its entries, what a change changes, what it would have done to past requests.

Pure. Requests are judged by a function that is given, so that past and present are judged by the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from datetime import date, timedelta
from urllib.parse import urlsplit

from console.domain.network import Allowlist, AllowlistEntry, EgressRecord, Sensitivity, is_under

UNUSED_DAYS = 30
"""Days without use after which an entry is marked."""
SOON_DAYS = 14
"""A review that is due within so many days is announced."""
GROUPS_MAX = 200
OVERLAPS_MAX = 3
"""Entries named that make another one superfluous."""
EXAMPLES_MAX = 3

MULTI_TENANT = (
    "*.googleapis.com",
    "*.amazonaws.com",
    "*.blob.core.windows.net",
    "*.core.windows.net",
    "*.digitaloceanspaces.com",
    "*.r2.cloudflarestorage.com",
    "*.r2.dev",
    "*.cloudfront.net",
    "*.workers.dev",
    "*.pages.dev",
    "*.herokuapp.com",
    "*.vercel.app",
    "*.netlify.app",
    "*.firebaseio.com",
    "*.appspot.com",
    "*.run.app",
    "*.azurewebsites.net",
    "api.github.com",  # gists and repositories of anybody's account
    "*.github.io",
    "*.githubusercontent.com",
    "*.gitlab.io",
    "*.ngrok.io",
    "*.ngrok-free.app",
    "*.trycloudflare.com",
    "*.sharepoint.com",
    "*.slack.com",
    "*.discord.com",
    "*.telegram.org",
    "*.dropboxapi.com",
    "*.box.com",
    "*.wasabisys.com",
    "*.backblazeb2.com",
)
"""Hosts where anybody may have an account: who reaches them can send data to an account of an attacker's."""
PUBLISHING = (
    "gist.github.com",
    "gist.githubusercontent.com",
    "pastebin.com",
    "*.pastebin.com",
    "paste.debian.net",
    "dpaste.com",
    "dpaste.org",
    "hastebin.com",
    "ghostbin.com",
    "rentry.co",
    "termbin.com",
    "0x0.st",
    "transfer.sh",
    "file.io",
    "*.file.io",
    "wetransfer.com",
    "webhook.site",
    "*.webhook.site",
    "requestbin.com",
    "*.requestbin.com",
    "*.pipedream.net",
    "*.oast.fun",
    "*.oast.pro",
    "*.interact.sh",
    "*.burpcollaborator.net",
    "upload.pypi.org",
    "test.pypi.org",
)
"""Hosts made for publishing or collecting what one sends."""
_GOOGLE_STORAGE = (
    "storage.googleapis.com",
    "*.storage.googleapis.com",
    "www.googleapis.com",  # the JSON API by its older name: /storage/v1/b/BUCKET
    "*.www.googleapis.com",
    "storage.mtls.googleapis.com",
    "content-storage.googleapis.com",
    "storage-upload.googleapis.com",
    "storage-download.googleapis.com",
    "*.storage-upload.googleapis.com",
    "*.storage-download.googleapis.com",
    "commondatastorage.googleapis.com",
    "*.commondatastorage.googleapis.com",
    "*.rep.googleapis.com",  # regional endpoints
    "*.p.googleapis.com",  # private endpoints
    "private.googleapis.com",
    "restricted.googleapis.com",
    "storage.cloud.google.com",
)
"""Every name under which Google serves buckets."""
_SUFFIXES = ("co.uk", "com.au", "co.jp", "com.br", "co.in", "org.uk", "ac.uk", "co.nz", "com.cn", "co.za")
"""Where names are given to anybody at the third level: ``*.co.uk`` is as wide as ``*.com``."""

_OTHER_CAUSES = ("entry ", "not a request")
"""How the rule of a request begins that was blocked though an entry allowed it, or before any entry was asked (egress/access_log.py)."""

Judge = Callable[[Allowlist, EgressRecord], bool]


@dataclass(frozen=True, slots=True)
class Mark:
    """Something about an entry that its reviewer should see."""

    kind: str
    """``kill_file multi_tenant publishing wide lookalike open_methods overlap unused review_due private secret``"""
    words: str
    is_danger: bool = False


Superfluous = dict[str, tuple[Mark, ...]]


@dataclass(frozen=True, slots=True)
class Use:
    """How an entry was used."""

    last_used: float | None = None
    """Seconds since the epoch; None: never."""
    since: float | None = None
    """When the entry came into the list, seconds since the epoch; None: not known."""


@dataclass(frozen=True, slots=True)
class Change:
    """One entry that differs between two versions of the list."""

    entry_id: str
    what: str
    """``added``, ``removed`` or ``changed``."""
    host: str
    fields: tuple[tuple[str, str, str], ...] = ()
    """(field, before, after), for a changed entry."""


@dataclass(frozen=True, slots=True)
class Group:
    """Past requests of one kind that a change would have decided differently."""

    method: str
    host: str
    path: str
    """The first of them; others share method, host and verdict."""
    count: int
    agents: tuple[str, ...]
    last_at: float
    """Seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Backtest:
    """What a change would have done to recorded requests."""

    judged: int
    newly_allowed: tuple[Group, ...]
    newly_blocked: tuple[Group, ...]
    left_out: int
    """Blocked for what they were or where their name led, which a backtest cannot judge: no record says where."""
    changed: int
    """Requests decided differently, those in groups beyond the bound (GROUPS_MAX) included."""


def review(
    allowlist: Allowlist, use: dict[str, Use], now: float, kill_hosts: tuple[str, ...] = (), superfluous: Superfluous | None = None
) -> dict[str, tuple[Mark, ...]]:
    """Marks of every entry, dangers first. ``kill_hosts``: what ``kill_file_hosts`` says; ``superfluous``: what ``overlaps`` says.

    A long list takes its time: not for the thread of an event loop.
    """
    found: dict[str, tuple[Mark, ...]] = {}
    superfluous = overlaps(allowlist) if superfluous is None else superfluous
    for entry in allowlist.entries:
        marks = [
            *_dangers(entry, kill_hosts),
            *superfluous.get(entry.entry_id, ()),
            *_unused(use.get(entry.entry_id, Use()), now),
            *_due(entry, date.fromtimestamp(now)),
        ]
        found[entry.entry_id] = tuple(sorted(marks, key=lambda m: not m.is_danger))
    return found


def kill_file_hosts(bucket: str, endpoint: str) -> tuple[str, ...]:
    """Hosts, exact or ``*.``, under which the bucket of the kill file is served; none without a bucket."""
    if not bucket:
        return ()
    host = (urlsplit(endpoint).hostname or "").rstrip(".") if endpoint else ""
    return (host, f"*.{host}") if host else _GOOGLE_STORAGE


def _dangers(entry: AllowlistEntry, kill_hosts: tuple[str, ...]) -> Iterable[Mark]:
    if meets(entry.host, kill_hosts):
        yield Mark("kill_file", "leads to the host of the kill file: who reaches it may talk to the bucket", True)
    if meets(entry.host, PUBLISHING):
        yield Mark("publishing", "made for publishing or collecting what one sends", True)
    elif meets(entry.host, MULTI_TENANT):
        narrowed = " (narrowed by path)" if entry.paths and "/" not in entry.paths and entry.port != 443 else ""
        yield Mark("multi_tenant", f"an attacker may have an account there, so data can be sent to it{narrowed}", not narrowed)
    bare = entry.host.removeprefix("*.")
    if entry.host.startswith("*.") and ("." not in bare or bare in _SUFFIXES):
        yield Mark("wide", f"covers every name under {bare}", True)
    if any(label.startswith("xn--") for label in bare.split(".")):
        yield Mark("lookalike", f"reads as {_read_as(bare)} in other letters, and can look like a name that you know", True)
    if entry.port != 443 and not entry.methods:
        yield Mark("open_methods", "any method passes, also those that send or delete")
    if entry.may_receive is Sensitivity.SECRET:
        yield Mark("secret", "may receive SECRET data", True)
    if entry.private_networks:
        yield Mark("private", f"may lead to private addresses: {', '.join(entry.private_networks)}")


def _read_as(host: str) -> str:
    """The name as a browser may show it, letters beyond ASCII by their number (RFC 3492)."""
    try:
        return host.encode("ascii").decode("idna").encode("ascii", "backslashreplace").decode("ascii")
    except UnicodeError:
        return host


def meets(host: str, patterns: tuple[str, ...]) -> bool:
    """Whether a host, exact or ``*.``, covers or lies within any of the patterns."""
    for pattern in patterns:
        theirs, ours = pattern.removeprefix("*."), host.removeprefix("*.")
        if host == pattern:
            return True
        if pattern.startswith("*.") and (ours == theirs or ours.endswith("." + theirs)):
            return True
        if host.startswith("*.") and theirs.endswith("." + ours):
            return True
    return False


def overlaps(allowlist: Allowlist) -> Superfluous:
    """Entry id -> which other entries allow all of it; the same for a version of the list whenever it is asked."""
    places: dict[tuple[str, int], list[int]] = {}
    for at, entry in enumerate(allowlist.entries):
        places.setdefault((entry.host, entry.port), []).append(at)
    return {entry.entry_id: marks for at, entry in enumerate(allowlist.entries) if (marks := _overlaps(at, allowlist.entries, places))}


def _overlaps(at: int, entries: tuple[AllowlistEntry, ...], places: dict[tuple[str, int], list[int]]) -> tuple[Mark, ...]:
    entry, found = entries[at], list[Mark]()
    for place in sorted(place for host in _hosts_above(entry.host) for place in places.get((host, entry.port), ())):
        other = entries[place]
        if other.entry_id == entry.entry_id or not _is_within(entry, other):
            continue
        if at < place and _is_within(other, entry):
            continue  # the same: only the later one is superfluous
        if len(found) == OVERLAPS_MAX:
            return (*found, Mark("overlap", "superfluous: and so do others"))
        found.append(Mark("overlap", f"superfluous: entry {other.entry_id} ({other.host}:{other.port}) allows all of it"))
    return tuple(found)


def _hosts_above(host: str) -> Iterable[str]:
    """Every host, as an entry writes it, that may cover this one."""
    yield host
    labels = host.removeprefix("*.").split(".")
    for cut in range(1, len(labels)):
        yield "*." + ".".join(labels[cut:])


def _is_within(inner: AllowlistEntry, outer: AllowlistEntry) -> bool:
    """Whether everything that ``inner`` allows is allowed by ``outer`` too."""
    host = inner.host == outer.host or (
        outer.host.startswith("*.") and inner.host.removeprefix("*.").endswith(outer.host[1:]) and inner.host != outer.host[2:]
    )
    if not host or inner.port != outer.port or not set(inner.private_networks) <= set(outer.private_networks):
        return False
    if inner.port == 443:
        return True  # a tunnel is judged by host and port alone
    methods = not outer.methods or (bool(inner.methods) and set(inner.methods) <= set(outer.methods))
    paths = not outer.paths or (bool(inner.paths) and all(any(is_under(p, q) for q in outer.paths) for p in inner.paths))
    return methods and paths


def _unused(use: Use, now: float) -> Iterable[Mark]:
    day = 86400.0
    if use.last_used is not None and now - use.last_used > UNUSED_DAYS * day:
        yield Mark("unused", f"not used for {int((now - use.last_used) / day)} days")
    if use.last_used is None and use.since is not None and now - use.since > UNUSED_DAYS * day:
        yield Mark("unused", f"never used in {int((now - use.since) / day)} days")


def _due(entry: AllowlistEntry, today: date) -> Iterable[Mark]:
    if not entry.review_by:
        return
    try:
        due = date.fromisoformat(entry.review_by)
    except ValueError:
        yield Mark("review_due", "its review date cannot be read")
        return
    if due < today:
        yield Mark("review_due", f"review was due {due.isoformat()}")
    elif due - today <= timedelta(days=SOON_DAYS):
        yield Mark("review_due", f"review is due {due.isoformat()}")


def diff(old: Allowlist, new: Allowlist) -> tuple[Change, ...]:
    """What was added, removed and changed, by entry id."""
    before, after = {e.entry_id: e for e in old.entries}, {e.entry_id: e for e in new.entries}
    changes = [Change(i, "removed", e.host) for i, e in before.items() if i not in after]
    for entry_id, entry in after.items():
        past = before.get(entry_id)
        if past is None:
            changes.append(Change(entry_id, "added", entry.host))
        elif past != entry:
            differing = ((f.name, getattr(past, f.name), getattr(entry, f.name)) for f in fields(AllowlistEntry))
            changes.append(Change(entry_id, "changed", entry.host, tuple((n, _words(a), _words(b)) for n, a, b in differing if a != b)))
    return tuple(changes)


def _words(value: object) -> str:
    return (", ".join(map(str, value)) or "any") if isinstance(value, tuple) else str(value)


def backtest(old: Allowlist, new: Allowlist, records: Iterable[EgressRecord], judge: Judge) -> Backtest:
    """Judges every recorded request by both lists; those that the change decides differently are told, grouped by method and host.

    What was blocked for another cause than host, port, method or path (where its name led, what it was) is counted apart.
    """
    judged = left_out = 0
    allowed: dict[tuple[str, str], list[EgressRecord]] = {}
    blocked: dict[tuple[str, str], list[EgressRecord]] = {}
    for record in records:
        if not record.allowed and record.rule.startswith(_OTHER_CAUSES):
            left_out += 1
            continue
        judged += 1
        was, is_now = judge(old, record), judge(new, record)
        if was != is_now:
            (allowed if is_now else blocked).setdefault((record.method, record.host), []).append(record)
    changed = sum(map(len, (*allowed.values(), *blocked.values())))
    return Backtest(judged, _groups(allowed), _groups(blocked), left_out, changed)


def _groups(found: dict[tuple[str, str], list[EgressRecord]]) -> tuple[Group, ...]:
    groups = [
        Group(
            method,
            host,
            records[0].path,
            len(records),
            tuple(sorted({r.agent_id for r in records})[:EXAMPLES_MAX]),
            max(r.at for r in records),
        )
        for (method, host), records in found.items()
    ]
    return tuple(sorted(groups, key=lambda g: (-g.count, g.host, g.method))[:GROUPS_MAX])
