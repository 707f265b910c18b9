"""The part of the log that is in hand: a run of records, newest first, that grows at both ends. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from console.api.records import AuditRow

PAGE = 200
TRIMMED = 2000
"""While following, what lies further back is dropped; scrolling reads it again."""


class Book:
    """Rows of one query. ``newest`` is the number of the newest record there is, shown or not."""

    def __init__(self) -> None:
        self.rows: list[AuditRow] = []
        self.query = ""
        self.newest = 0
        self.total = 0
        self.seen = 0
        """Up to which number the log has been read at the upper end."""
        self.at_end = False
        """There is nothing older."""

    def clear(self, query: str) -> None:
        """Another query: nothing of the old one holds."""
        self.rows, self.query, self.at_end, self.seen = [], query, False, 0

    def know(self, newest: int, total: int) -> None:
        """How far the log goes."""
        self.newest, self.total = max(self.newest, newest), max(self.total, total)

    @property
    def waiting(self) -> int:
        """Records written since the upper end was read."""
        return max(0, self.newest - self.seen) if self.seen else 0

    def oldest(self) -> int | None:
        """Where the next older page begins; None for the newest page."""
        return self.rows[-1].seq if self.rows else None

    def take_older(self, page: Sequence[AuditRow]) -> list[AuditRow]:
        """A further page; returns the rows that were added."""
        before = self.oldest()
        fresh = [row for row in page if before is None or row.seq < before]
        self.rows.extend(fresh)
        self.at_end = _is_last(page)
        if self.rows and not self.seen:
            self.seen = self.rows[0].seq
        return fresh

    def take_newest(self, page: Sequence[AuditRow], newest: int) -> None:
        """The newest page: joined to what is there, or in its place when it does not reach it."""
        top = self.rows[0].seq if self.rows else 0
        fresh = [row for row in page if row.seq > top]
        if len(fresh) == PAGE or not self.rows:
            self.rows = list(page)
            self.at_end = _is_last(page)
        else:
            self.rows = [*fresh, *self.rows]
            if len(self.rows) > TRIMMED:
                self.rows, self.at_end = self.rows[:TRIMMED], False
        self.know(newest, newest)
        self.seen = max(newest, self.rows[0].seq if self.rows else 0)


def _is_last(page: Sequence[AuditRow]) -> bool:
    """Numbers begin with 1 and have no gaps."""
    return len(page) < PAGE or page[-1].seq <= 1
