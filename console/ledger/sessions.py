"""The ratchet on disk: sensitivities and network modes of a session, append-only, read as the strictest ever seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Column, insert, select

from console.domain.errors import ConsoleError
from console.domain.network import LOOSEST, STRICTEST, NetworkMode, Sensitivity, higher, read_sensitivity, stricter_mode
from console.ledger.database import Database
from console.ledger.tables import ISOLATIONS, MODES, SENSITIVITIES

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Tightening:
    """What makes sessions stricter, and on whose word."""

    mode: NetworkMode
    """FULL: the mode is left alone."""
    why: str
    cause: str
    by: str
    at: float
    level: Sensitivity | None = None
    """None: no data was registered."""
    dataset: str = ""
    source: str = ""


class SessionTables(Database):
    """Promise 4: level and mode of a session only ever tighten, whatever is appended, across restarts."""

    def raise_sensitivity(
        self, context_id: str, level: Sensitivity, dataset: str, source: str, at: float, *, cause: str = "", by: str = ""
    ) -> None:
        """Records that data of ``level`` enters the session; durable on return (N8: before the data is handed out). Raises NotRecorded."""
        row = {"context_id": context_id, "level": str(read_sensitivity(level)), "dataset": dataset, "source": source, "at": at}
        with self.writing() as connection:
            connection.execute(insert(SENSITIVITIES), row | {"cause": cause, "changed_by": by})

    def level(self, context_id: str) -> Sensitivity:
        """The highest ever recorded; PUBLIC when none was. An unknown value, or a ledger that cannot be read, is SECRET."""
        try:
            return self._levels(context_id).get(context_id, Sensitivity.PUBLIC)
        except ConsoleError:
            # An unreadable ledger must not read as public data: deleting or damaging it would loosen the network.
            return Sensitivity.SECRET

    def levels(self) -> dict[str, Sensitivity]:
        """Level of every session that has one. Raises ConsoleError when the ledger cannot be read."""
        return self._levels(None)

    def restrict_mode(self, context_id: str, mode: NetworkMode, why: str, at: float, *, cause: str = "", by: str = "") -> None:
        """Records a network mode of the session; durable on return. A looser one changes nothing. Raises NotRecorded."""
        row = {"context_id": context_id, "mode": str(mode), "why": why, "at": at, "cause": cause, "changed_by": by}
        with self.writing() as connection:
            connection.execute(insert(MODES), row)

    def tighten_sessions(self, context_ids: Iterable[str], tightening: Tightening) -> None:
        """The same for several sessions, all or none of them; durable on return. Raises NotRecorded."""
        levels, modes = [], []
        for context_id in context_ids:
            origin = {"context_id": context_id, "at": tightening.at, "cause": tightening.cause, "changed_by": tightening.by}
            if tightening.level is not None:
                level = str(read_sensitivity(tightening.level))
                levels.append(origin | {"level": level, "dataset": tightening.dataset, "source": tightening.source})
            if tightening.mode.is_restricted:
                modes.append(origin | {"mode": str(tightening.mode), "why": tightening.why})
        with self.writing() as connection:
            for table, rows in ((SENSITIVITIES, levels), (MODES, modes)):
                if rows:
                    connection.execute(insert(table), rows)

    def mode(self, context_id: str) -> NetworkMode:
        """The strictest ever recorded; FULL when none was. An unknown value, or a ledger that cannot be read, is NONE."""
        try:
            return self._modes(context_id).get(context_id, LOOSEST)
        except ConsoleError:
            return STRICTEST

    def modes(self) -> dict[str, NetworkMode]:
        """Mode of every session that has one. Raises ConsoleError when the ledger cannot be read."""
        return self._modes(None)

    def isolate_session(self, context_id: str, words: str, at: float) -> None:
        """Isolate a session: its agents have no network until ``reconnect_session``. Durable on return. Raises NotRecorded."""
        self._isolation(context_id, 1, words, at)

    def reconnect_session(self, context_id: str, words: str, at: float) -> None:
        """Takes an operator's isolation of a session back; level and mode stay as they are. Raises NotRecorded."""
        self._isolation(context_id, 0, words, at)

    def _isolation(self, context_id: str, isolated: int, words: str, at: float) -> None:
        with self.writing() as connection:
            connection.execute(insert(ISOLATIONS), {"context_id": context_id, "isolated": isolated, "words": words, "at": at})

    def isolated_sessions(self) -> dict[str, str]:
        """Sessions that are isolated as such, with who and why. Raises ConsoleError when the ledger cannot be read."""
        table, found = ISOLATIONS.c, {}
        with self.reading() as connection:
            for context_id, isolated, words in connection.execute(
                select(table.context_id, table.isolated, table.words).order_by(table.seq)
            ):
                found[context_id] = "" if isolated == 0 else words or "isolated"
        return {context_id: words for context_id, words in found.items() if words}

    def _levels(self, context_id: str | None) -> dict[str, Sensitivity]:
        return self._tightest(SENSITIVITIES.c.context_id, SENSITIVITIES.c.level, read_sensitivity, higher, context_id)

    def _modes(self, context_id: str | None) -> dict[str, NetworkMode]:
        return self._tightest(MODES.c.context_id, MODES.c.mode, read_mode, stricter_mode, context_id)

    def _tightest(
        self, session: Column[str], kept: Column[str], read: Callable[[str], T], tighter: Callable[[T, T], T], context_id: str | None
    ) -> dict[str, T]:
        """Of each session, or of one, the tightest of all that was ever kept."""
        # The tightest is found here and not in SQL, which does not know the order of levels and modes.
        query = select(session, kept).distinct()
        if context_id is not None:
            query = query.where(session == context_id)
        found: dict[str, T] = {}
        with self.reading() as connection:
            for context, text in connection.execute(query):
                value = read(text)
                found[context] = tighter(found[context], value) if context in found else value
        return found


def read_mode(text: str) -> NetworkMode:
    """A stored mode; an unknown one is NONE."""
    try:
        return NetworkMode(text)
    except ValueError:
        return STRICTEST
