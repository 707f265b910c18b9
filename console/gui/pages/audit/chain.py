"""The chain bar: how many records, and whether the chain is whole, broken, or not verified yet, with the age of that word."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from console.api.messages import StatusView
from console.api.records import AuditVerdict
from console.domain.errors import ConsoleError
from console.gui.kit.layout import fill_bar
from console.gui.theme import fonts
from console.gui.theme.tokens import ink
from console.gui.widgets.buttons import Button
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.text import Text
from console.gui.widgets.words import age, plural, took

OVERDUE_S = 60.0
"""New records are verified every ten seconds; a small log that still has unverified ones after this is amber."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the chain; ``whole`` None: it was not verified since the supervisor started."""

    whole: bool | None = None
    records: int | None = None
    """How many records were verified, when that is known."""
    first_bad: int | None = None
    why: str = ""
    at: float | None = None
    ms: float | None = None
    is_lost: bool = False
    """Earlier records are lost, and the loss was not acknowledged."""
    unknown: tuple[str, ...] = ()
    """What cannot be told though the chain is whole; never green."""


def known_of(verdict: AuditVerdict, ms: float) -> Known:
    """What an answer of Verify says."""
    return Known(verdict.whole, verdict.records, verdict.first_bad, verdict.why, verdict.checked_at, ms, unknown=tuple(verdict.unknown))


def newer(known: Known, status: StatusView | None) -> Known:
    """The status knows of a verification that was asked for elsewhere."""
    if status is not None and status.audit_lost:  # so it stays until it is acknowledged, whenever anything was verified
        return Known(False, first_bad=known.first_bad, why=status.audit_why, at=status.audit_checked_at, is_lost=True)
    known = Known() if known.is_lost and status is not None else known
    if status is None or status.audit_whole is None or status.audit_checked_at is None:
        return known
    if known.at is not None and status.audit_checked_at <= known.at + 0.001:
        return known
    return Known(status.audit_whole, status.audit_verified, why=status.audit_why, at=status.audit_checked_at)


def chain_words(known: Known, total: int, now: float) -> tuple[str, str, str, str]:
    """(sentence, what follows in grey, shape, colour)."""
    records = plural(total, "record")
    if known.whole is None:
        return (
            f"{records if total else 'Records not known'} · not verified yet",
            "V checks every hash, from the first record to the newest",
            "ring",
            "text2",
        )
    if known.is_lost:
        return f"{records} · records of before are lost", known.why, "alert", "danger"
    if not known.whole:
        where = f" · first bad record {known.first_bad:,}" if known.first_bad is not None else "" if known.why else " · V shows where"
        return f"{records} · log broken{where}", known.why, "alert", "danger"
    if known.unknown:
        said = f"{records} · log intact, verified {age(known.at, now)} · {plural(len(known.unknown), 'thing')} not known"
        return said, safe_text(known.unknown[0]), "triangle", "warn"
    since = total - known.records if known.records is not None else 0
    more = f"{since:,} written since then, not verified yet" if since > 0 else ""
    shape, role = ("triangle", "warn") if is_overdue(known, total, now) else ("check", "ok")
    return f"{records} · log intact{reach_words(known.records)}, verified {age(known.at, now)}", more, shape, role


def is_overdue(known: Known, total: int, now: float) -> bool:
    """Whether new records should have been verified by now: a log is verified for a fiftieth of the time, 20,000 records in a second."""
    if known.records is None or known.at is None or total <= known.records:
        return False
    return now - known.at > OVERDUE_S + total / 200


def reach_words(records: int | None) -> str:
    """Up to which record a log was verified."""
    return f" up to record {records:,}" if records else ""


class ChainBar(QWidget):
    """44 high, always visible; red when broken."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.known = Known()
        self.is_verifying = False
        self._role = "text2"
        self._problem = ""
        self.words = Text("", 13, fonts.SEMIBOLD)
        self.more = Text("", 12, fonts.REGULAR, "text2")
        self.took = Text("", 11, fonts.REGULAR, "text2", right=True)
        self.jump = Button("Go to it", "target", "danger", small=True, parent=self)
        self.jump.hide()
        self.acknowledge = Button("Acknowledge…", kind="danger", keys="A", small=True, parent=self)
        self.acknowledge.hide()
        self.verify = Button("Verify", "shield", keys="V", small=True, parent=self)
        fill_bar(self, self.words, (self.more, 1), self.took, self.jump, self.acknowledge, self.verify)

    def say(self, known: Known, total: int, now: float, *, silent: bool) -> None:
        """``silent``: the supervisor does not answer, so everything is stale and nothing is green."""
        self.known = known
        words, more, shape, role = chain_words(known, total, now)
        if self._problem:
            more = self._problem
        if role == "ok" and (silent or self._problem):
            role, shape = "text2", "ring"
        self._role = role
        if self.is_verifying:
            self.words.say(f"{plural(total, 'record')} · verifying…", "text2", "ring")
        else:
            self.words.say(words, role if role in ("danger", "warn") else "text", shape)
        self.more.say(more, "warn" if self._problem else "text2", "triangle" if self._problem else "")
        self.took.setText(
            f"verified {plural(known.records, 'record')} in {took(known.ms)}" if known.ms is not None and known.records is not None else ""
        )
        self.acknowledge.setVisible(known.is_lost)
        self.jump.setVisible(known.first_bad is not None and known.whole is False)
        self.verify.allow("It is being verified." if self.is_verifying else "")
        self.update()

    def failed(self, error: ConsoleError | None) -> None:
        """Verify could not be carried out; None: it could."""
        self._problem = f"Could not be verified: {error}" if error is not None else ""

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = ink()
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(colours.dangerbg if self._role == "danger" else colours.bg0))
        painter.fillRect(QRectF(0, self.height() - 1, self.width(), 1), QColor(colours.danger if self._role == "danger" else colours.line))
        painter.end()
