"""What differs between two looks, and whether the agents of a session could have done it. Pure: no clock, no disk."""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice

from console.rollback.persistence.findings import Change, Entry, Finding, Report, Snapshot, Writers, short, shown
from console.rollback.persistence.masking import masked

# An agent can write any number of such files; a report that holds them all could not be shown or kept.
LISTED = 500
"""Findings of one report; more are counted."""
SHOWN_LINES = 12
SHOWN = 800
Hide = Callable[[str], str]
"""Takes the secrets out that this instance knows."""
Wrote = Callable[[str, bytes], bool]
"""Whether this instance itself makes these bytes of a file with that hash; an empty one: of no file."""


def diff(before: Snapshot | None, now: Snapshot) -> Iterator[tuple[Change, Entry | None, Entry]]:
    """(change, as it was, as it is) of everything that is not as it was; what is gone comes as it was.

    Without a snapshot to compare with, or where that one did not look at all of a root, what is new to us is ``unverified``.
    """
    old = {e.key: e for e in before.entries} if before is not None else {}
    here = {e.key for e in now.entries}
    for entry in now.entries:
        was = old.get(entry.key)
        if was is None:
            known = before is not None and before.is_whole(entry.root)
            yield (Change.ADDED if known else Change.UNVERIFIED), None, entry
        elif was.mark != entry.mark:
            yield Change.CHANGED, was, entry
    for was in old.values():
        # What a look that was cut short did not meet may still be there, and must not read as removed.
        if was.key not in here and now.is_whole(was.root):
            yield Change.REMOVED, was, was


def report(
    context_id: str,
    before: Snapshot | None,
    now: Snapshot,
    who: Writers,
    doubts: tuple[str, ...] = (),
    not_looked: tuple[str, ...] = (),
    hide: Hide = str,
    wrote: Wrote = lambda _before, _now: False,
) -> Report:
    """One session's report; what lies outside its workspace comes first. ``hide`` sees every text of it before it is shown or kept.

    What we ``wrote`` ourselves, a hook in a program's settings, is no finding.
    """
    missing = () if before is not None or doubts else ("there is no baseline",)
    cut = tuple(f"{shown(r.label, 80)}: {r.why}" for r in now.roots if not r.whole)
    holes = (
        tuple(f"{shown(r.label, 80)}: the baseline did not see all of it ({r.why})" for r in before.roots if not r.whole) if before else ()
    )
    found = sorted(
        (d for d in diff(before, now) if not _is_ours(*d, wrote)), key=lambda d: (d[2].root.startswith("session:"), d[2].root, d[2].path)
    )
    listed = (finding(change, was, it, who, now.path_of(it.root), hide) for change, was, it in found[:LISTED])
    return Report(
        context_id=context_id,
        looked_at=now.taken_at,
        baseline_at=before.taken_at if before is not None else None,
        doubts=tuple(hide(words) for words in (*doubts, *missing, *cut, *holes)),
        findings=tuple(listed),
        left_out=max(0, len(found) - LISTED),
        not_looked=not_looked,
    )


def _is_ours(change: Change, was: Entry | None, it: Entry, wrote: Wrote) -> bool:
    """By all of its bytes: what is larger than the text that is kept, or differs in anything else, is a finding."""
    if change is Change.REMOVED or it.root.startswith("session:") or (it.what, it.target, it.executable) != ("file", "", False):
        return False
    is_as_it_was = was is None or (was.what, was.target, was.executable) == ("file", "", False)
    is_whole = hashlib.sha256(it.text).hexdigest() == it.digest
    return is_as_it_was and is_whole and wrote(was.digest if was is not None else "", it.text)


def bounded(reports: Iterable[Report], findings_max: int, bytes_max: int) -> list[Report]:
    """Every report, in its order, with findings until together they are that many or weigh that much as JSON; the rest is counted.

    The newest look is filled first. An agent decides how many places it changes and how much it writes there.
    """
    reports = list(reports)
    cut: dict[int, Report] = {}
    count = size = 0
    for at in sorted(range(len(reports)), key=lambda n: reports[n].looked_at, reverse=True):
        one = reports[at]
        kept: list[Finding] = []
        for found in one.findings:
            weight = len(json.dumps([found.path, found.excerpt, found.note, found.could_write])) + 400
            if count >= findings_max or size + weight > bytes_max:
                break
            kept.append(found)
            count, size = count + 1, size + weight
        cut[at] = replace(one, findings=tuple(kept), left_out=one.left_out + len(one.findings) - len(kept))
    return [cut[at] for at in range(len(reports))]


def finding(change: Change, was: Entry | None, it: Entry, who: Writers, top: str, hide: Hide = str) -> Finding:
    """One difference in words that can be shown; ``it`` as it is now, or as it was when it is gone. ``top``: where its root lies."""
    path = f"{top.rstrip('/')}/{it.path}"
    entry = None if change is Change.REMOVED else it
    return Finding(
        root=shown(it.root, 200),
        path=shown(hide(path)),
        kind=it.kind,
        change=change,
        runs=it.runs,
        what=it.what,
        before_sha256=_digest(was),
        after_sha256=_digest(entry),
        uid=entry.uid if entry is not None else None,
        mtime=entry.mtime if entry is not None else None,
        size=entry.size if entry is not None else None,
        excerpt=excerpt_of(entry.text, frozenset(was.lines) if was is not None else frozenset(), hide) if entry is not None else "",
        could_write=could_write(it, who),
        note="; ".join(n for n in (shown(it.note), f"leads to {shown(hide(it.target))}" if it.target else "", _turned(was, entry)) if n),
    )


def _digest(entry: Entry | None) -> str:
    return entry.digest if entry is not None and not entry.digest.startswith("stamp:") else ""


def _turned(was: Entry | None, entry: Entry | None) -> str:
    if was is None or entry is None:
        return ""
    if was.what != entry.what:
        return f"it was a {was.what}"
    return "it can be executed now" if entry.executable and not was.executable else ""


def could_write(entry: Entry, who: Writers) -> str:
    """By the owner and mode of the file and of its folder, and by what the session's agents could see."""
    if entry.root == f"session:{who.session}":
        return "yes: it is in the session's workspace"
    if not who.saw_host:
        return "no: the session's agents saw their workspace alone"
    if who.uid == 0:
        return "yes: the session's agents ran as root"
    if entry.uid == who.uid and entry.what != "link":
        return f"yes: it belongs to uid {who.uid}, under which they ran"
    folder_uid, folder_gid, folder_mode = entry.folder
    if _may_write(who, folder_uid, folder_gid, folder_mode):
        return f"yes: uid {who.uid}, under which they ran, may write its folder"
    if entry.what == "file" and _may_write(who, entry.uid, entry.gid, entry.mode):
        return f"yes: uid {who.uid}, under which they ran, may write it"
    return f"no: they ran under uid {who.uid}, which may write neither it nor its folder"


def _may_write(who: Writers, uid: int, gid: int, mode: int) -> bool:
    if uid == who.uid:
        return True  # an owner may give the right back to itself
    return bool(mode & (stat.S_IWGRP if gid == who.gid else stat.S_IWOTH))


def excerpt_of(text: bytes, known: frozenset[str], hide: Hide = str) -> str:
    """Return the lines that are not known, escaped, without what is or looks like a credential, bounded."""
    # Secrets are hidden before the text is cut and escaped: a cut or escaped secret would not be recognised any more.
    if b"\0" in text[:4096]:
        return "(not text)"
    lines = text.splitlines()
    new = [bool(line.strip()) and short(line) not in known for line in lines]
    clean = masked(hide(line.decode("utf-8", "surrogateescape")) for line in lines)
    words = "\n".join(islice((shown(said, 160) for said, is_new in zip(clean, new, strict=True) if is_new), SHOWN_LINES))
    return words[:SHOWN] + (f"\n… {sum(new) - SHOWN_LINES} more lines" if sum(new) > SHOWN_LINES else "")
