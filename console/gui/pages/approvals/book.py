"""The inbox as the console keeps it: what waits, until when, and what became of what is still looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from console.api.policy.approvals import ApprovalRow, ApprovalsView
from console.gui.pages.approvals.words import gone_words


@dataclass(slots=True)
class Entry:
    """One request. ``ends_at`` in seconds of the caller's monotonic clock; ``gone`` says what became of it."""

    row: ApprovalRow
    ends_at: float
    gone: str = ""
    held: str = ""
    """The answer that was given to it here and is not sent yet, in words."""

    def left(self, at: float) -> float:
        """Seconds until it is denied by itself."""
        return max(0.0, self.ends_at - at)


@dataclass(slots=True)
class Item:
    """One line of the list: a request, or a group of similar ones; ``within`` is a request of an open group."""

    key: str
    entries: list[Entry]
    is_open: bool = False
    within: bool = False

    @property
    def first(self) -> Entry:
        return self.entries[0]

    @property
    def is_group(self) -> bool:
        return self.key.startswith("g:")

    @property
    def alike(self) -> str:
        """``equal`` when they ask for the same thing to the byte, else ``similar``."""
        return alike([one.row for one in self.entries])

    @property
    def live(self) -> list[Entry]:
        """Those that still wait."""
        return [one for one in self.entries if not one.gone]


@dataclass(slots=True)
class Book:
    """``take`` what the supervisor says; ``items`` for the list."""

    entries: dict[str, Entry] = field(default_factory=dict)
    decided: list[ApprovalRow] = field(default_factory=list)
    loaded: bool = False
    is_old: bool = False
    """The list is stale: an empty one does not mean that nothing waits."""
    problem: str = ""
    """Why it could not be read the last time."""
    items_waiting: int = 0
    oldest_at: float | None = None
    """Monotonic moment since which the oldest waits."""
    median_s: float | None = None
    per_hour: float = 0.0
    """Questions an hour in the last day."""
    rule_share: float | None = None
    """The share of them that a rule could have answered; None: there was no question."""
    denial_needs_reason: bool = False
    expired: list[ApprovalRow] = field(default_factory=list)
    """Requests that expired and of which no person was told yet."""

    def take(self, view: ApprovalsView, at: float) -> list[ApprovalRow]:
        """The inbox as it is now; returns requests that are new since the last look."""
        known, first = set(self.entries), not self.loaded
        ended = {row.id: row for row in view.decided}
        waiting = {row.id: row for row in view.waiting}
        for row in view.waiting:
            known_one = self.entries.get(row.id)
            self.entries[row.id] = Entry(row, at + row.left_s, held=known_one.held if known_one else "")
        for approval_id, entry in self.entries.items():
            if approval_id not in waiting:
                found = ended.get(approval_id)
                if found is not None and found.state == "expired" and not entry.gone:
                    self.expired.append(found)
                entry.gone = entry.gone or (gone_words(found) if found is not None else "not waiting any more")
                entry.row = found or entry.row
        self.decided, self.loaded = view.decided, True
        self.items_waiting = view.items
        self.oldest_at = None if view.oldest_wait_s is None else at - view.oldest_wait_s
        self.median_s = view.median_decide_s
        self.per_hour, self.rule_share = view.questions_per_hour, view.rule_share
        self.denial_needs_reason = view.denial_needs_reason
        return [] if first else [row for row in view.waiting if row.id not in known]

    def is_live(self, approval_id: str, at: float) -> bool:
        """Whether it still waits for an answer."""
        entry = self.entries.get(approval_id)
        return entry is not None and not entry.gone and entry.left(at) > 0

    def forget_gone(self, keep: set[str]) -> bool:
        """What is over goes from the list, but for ``keep``; whether anything went."""
        gone = [key for key, entry in self.entries.items() if entry.gone and key not in keep]
        for key in gone:
            del self.entries[key]
        return bool(gone)

    def waiting(self) -> list[Entry]:
        """The worst danger first, then the least time left."""
        return sorted((one for one in self.entries.values() if not one.gone), key=_urgency)

    def items(self, text: str, is_open: set[str]) -> list[Item]:
        """The worst danger first, then the least time left; requests of one group are one line, below it each of them while it is open."""
        words = text.lower().split()
        groups: dict[str, list[Entry]] = {}
        for entry in sorted(self.entries.values(), key=_urgency):
            if all(word in _hay(entry.row) for word in words):
                groups.setdefault(entry.row.group, []).append(entry)
        out: list[Item] = []
        for group, entries in groups.items():
            if len(entries) == 1:
                out.append(Item(f"r:{entries[0].row.id}", entries))
                continue
            out.append(Item(f"g:{group}", entries, is_open=group in is_open))
            if group in is_open:
                out.extend(Item(f"r:{entry.row.id}", [entry], within=True) for entry in entries)
        return out


def alike(rows: Sequence[ApprovalRow]) -> str:
    """``equal`` for requests that ask for the same thing to the byte, else ``similar``."""
    kinds = {row.equal for row in rows}
    return "equal" if len(kinds) == 1 and "" not in kinds else "similar"


def _urgency(entry: Entry) -> tuple[int, float, str]:
    return entry.row.danger_rank, entry.ends_at, entry.row.id


def _hay(row: ApprovalRow) -> str:
    return f"{row.agent_name}\0{row.agent_id}\0{row.root_name}\0{row.tool}\0{row.argument[:2000]}\0{row.rule}\0{row.id}".lower()
