"""The part of a feed that is in hand: a run of entries, oldest first, that grows at both ends; a call holds what came of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from console.api.agents.activity import ActivityRow

PAGE = 200
TRIM_FROM, TRIM_TO = 20_000, 15_000
"""While following, what lies further back is dropped; scrolling reads it again."""


class Item:
    """One line of the feed: an entry, and for a call what came of it."""

    __slots__ = ("lines", "result", "row", "verdicts")

    def __init__(self, row: ActivityRow) -> None:
        self.row = row
        self.verdicts: list[ActivityRow] = []
        self.result: ActivityRow | None = None
        self.lines: object = None
        """As it is painted, made when it is first seen."""

    @property
    def key(self) -> str:
        """Known by it in the list."""
        return str(self.row.seq)

    @property
    def verdict(self) -> ActivityRow | None:
        """The one that counts: a refusal wins, else the last."""
        found = [v for v in self.verdicts if v.verdict == "deny"] or self.verdicts
        return found[-1] if found else None

    @property
    def audit(self) -> int:
        """Number of the audit record behind it; 0: none."""
        return self.row.audit or next((v.audit for v in self.verdicts if v.audit), 0)

    @property
    def rollback_id(self) -> str:
        """Of the record by which it can be put back, or empty."""
        return self.row.rollback_id or next((v.rollback_id for v in self.verdicts if v.rollback_id), "")


class Book:
    """Entries of one question of one agent. ``items`` is the very list the view shows: callers say where it grew."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.newest = 0
        """Number up to which the lower end was read."""
        self.oldest = 0
        self.at_start = False
        self.turns: dict[int, tuple[float, int]] = {}
        """Turn -> (USD, answers without a price) of what is in hand."""
        self._calls: dict[str, Item] = {}
        self._orphans: dict[str, list[Item]] = {}

    def clear(self) -> None:
        """Another question: nothing of the old one holds."""
        self.__init__()  # type: ignore[misc]

    def older(self, rows: Sequence[ActivityRow], *, at_start: bool) -> tuple[list[Item], list[Item]]:
        """A page from above: (items that come before all others, items that found their call in it and are lines of their own no more)."""
        fresh = [row for row in rows if not self.oldest or row.seq < self.oldest]
        self.at_start = at_start
        if fresh:
            self.oldest = fresh[0].seq
            self.newest = self.newest or fresh[-1].seq
        found = self._folded(fresh)
        adopted: list[Item] = []
        for item in found:
            for orphan in self._orphans.pop(item.row.pair, []) if item.row.kind == "tool_call" and item.row.pair else []:
                if orphan not in found:
                    _attach(item, orphan.row)
                    adopted.append(orphan)
        return found, adopted

    def newer(self, rows: Sequence[ActivityRow]) -> list[Item]:
        """A page from below: the items to append."""
        fresh = [row for row in rows if row.seq > self.newest]
        if fresh:
            self.newest, self.oldest = fresh[-1].seq, self.oldest or fresh[0].seq
        return self._folded(fresh)

    def trimmed(self) -> int:
        """How many items of the upper end should go now."""
        return len(self.items) - TRIM_TO if len(self.items) > TRIM_FROM else 0

    def forget(self, many: int) -> None:
        """The first ``many`` items are gone from the list."""
        self.at_start = False
        self.oldest = self.items[0].row.seq if self.items else 0
        for pair in [p for p, item in self._calls.items() if item.row.seq < self.oldest]:
            del self._calls[pair]

    def _folded(self, rows: Sequence[ActivityRow]) -> list[Item]:
        found: list[Item] = []
        for row in rows:
            self._count(row)
            call = self._calls.get(row.pair) if row.pair else None
            if call is not None and row.kind in ("verdict", "tool_result"):
                _attach(call, row)
                continue
            item = Item(row)
            found.append(item)
            if row.pair and row.kind == "tool_call":
                self._calls[row.pair] = item
            elif row.pair and row.kind in ("verdict", "tool_result"):
                self._orphans.setdefault(row.pair, []).append(item)
        return found

    def _count(self, row: ActivityRow) -> None:
        if row.kind == "spend" and row.turn:
            cost, unpriced = self.turns.get(row.turn, (0.0, 0))
            self.turns[row.turn] = (cost + (row.cost_usd or 0.0), unpriced + (row.cost_usd is None))


def _attach(call: Item, row: ActivityRow) -> None:
    if row.kind == "verdict":
        call.verdicts.append(row)
    else:
        call.result = row
    call.lines = None
