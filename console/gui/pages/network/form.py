"""The fields of one allowlist entry; what they hold is read as a whole or refused with the field named."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPlainTextEdit, QVBoxLayout, QWidget

from console.api.messages import AllowlistEntryBody, AllowlistEntryView
from console.domain.errors import UsageProblem
from console.domain.message import Malformed
from console.domain.network import METHODS
from console.gui.kit.layout import STRETCH, column, row
from console.gui.pages.network.draft import TLS_PORT
from console.gui.pages.network.entries import LEVELS
from console.gui.theme import fonts
from console.gui.widgets.buttons import Pill
from console.gui.widgets.choice import Choice
from console.gui.widgets.text import Text

_PER_LINE = 4
_TLS_NOTE = "HTTPS is not decrypted, so only host and port are checked. Methods and paths are checked for plain HTTP."


@dataclass(frozen=True, slots=True)
class Written:
    """Exactly what stands in the fields."""

    host: str = ""
    port: str = "443"
    methods: tuple[str, ...] = ()
    paths: str = ""
    may_receive: str = "INTERNAL"
    owner: str = ""
    reason: str = ""
    review_by: str = ""
    private: str = ""

    def body(self, base_version: int | None) -> AllowlistEntryBody:
        """What is sent. Raises UsageProblem with the field named."""
        if not (self.port.isascii() and self.port.isdigit() and 1 <= int(self.port[:6]) <= 65535):
            raise UsageProblem(f"Port {self.port[:20]!r} is not a TCP port.", "Give a number from 1 to 65535.")
        if self.review_by:
            try:
                date.fromisoformat(self.review_by)
            except ValueError as error:
                raise UsageProblem(f"Review by {self.review_by[:20]!r} is not a date.", "Write it as 2027-02-19.") from error
        try:
            return AllowlistEntryBody.made(
                host=self.host,
                port=int(self.port),
                methods=list(self.methods),
                paths=self.paths.split("\n") if self.paths else [],
                reason=self.reason,
                owner=self.owner,
                review_by=self.review_by,
                may_receive=self.may_receive,
                private_networks=[part for part in self.private.replace(",", " ").split() if part],
                base_version=base_version,
            )
        except Malformed as error:
            raise UsageProblem(f"{error.where.partition('.')[0] or 'A field'} cannot be sent as it is.", error.words) from error


def written(view: AllowlistEntryView) -> Written:
    """The fields an entry fills."""
    return Written(
        host=view.host,
        port=str(view.port),
        methods=tuple(m for m in METHODS if m in view.methods) + tuple(m for m in view.methods if m not in METHODS),
        paths="\n".join(view.paths),
        may_receive=view.may_receive,
        owner=view.owner,
        reason=view.reason,
        review_by=view.review_by,
        private=", ".join(view.private_networks),
    )


class EntryForm(QWidget):
    """``changed`` with every edit. ``now`` is exactly what stands there."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._odd: tuple[str, ...] = ()
        """Methods of the entry that have no button here; they stay."""
        self.host = self._line("Host", mono=True, longest=260)
        self.port = self._line("Port", mono=True, longest=6)
        self.methods = {name: Pill(name, self, alone=True) for name in METHODS}
        self.paths = QPlainTextEdit(self)
        self.paths.setFont(fonts.mono(12))
        self.paths.setFixedHeight(56)
        self.paths.setAccessibleName("Paths, one a line")
        self.paths.setTabChangesFocus(True)
        self.may_receive = Choice(self)
        self.may_receive.setAccessibleName("Most sensitive data allowed")
        self.may_receive.setToolTip("Sessions with more sensitive data do not reach it.")
        for level, words in LEVELS.items():
            self.may_receive.addItem(words, level)
        self.owner = self._line("Owner", longest=100)
        self.reason = self._line("Reason", longest=500)
        self.review_by = self._line("Review by", longest=10, hint="2027-02-19", mono=True)
        self.private = self._line("Private networks", longest=400, hint="none: public addresses only", mono=True)
        self.tls = Text(_TLS_NOTE, 11, fonts.REGULAR, "text2", wrap=True)
        self._build()
        self.paths.textChanged.connect(self._edited)
        self.may_receive.currentIndexChanged.connect(lambda _index: self._edited())
        for pill in self.methods.values():
            pill.toggled.connect(lambda _on: self._edited())

    def _line(self, name: str, *, mono: bool = False, longest: int, hint: str = "") -> QLineEdit:
        field = QLineEdit(self)
        field.setAccessibleName(name)
        field.setMaxLength(longest)
        field.setPlaceholderText(hint)
        if mono:
            field.setFont(fonts.mono(12))
        field.textChanged.connect(lambda _text: self._edited())
        return field

    def _build(self) -> None:
        pills = list(self.methods.values())
        lines = (row(*line, STRETCH, spacing=6) for line in (pills[:_PER_LINE], pills[_PER_LINE:]))
        column(
            _pair(("Host", self.host, 4), ("Port", self.port, 1)),
            column(Text("Methods (none: any)", 11, fonts.MEDIUM, "text2"), *lines, spacing=4),
            _labelled("Paths, one a line (none: any)", self.paths),
            self.tls,
            _pair(("Most sensitive data allowed", self.may_receive, 1), ("Owner", self.owner, 1)),
            _pair(("Reason", self.reason, 2), ("Review by", self.review_by, 1)),
            _labelled("Private networks it may lead to", self.private),
            spacing=10,
            on=self,
        )

    def now(self) -> Written:
        """Exactly what stands in the fields."""
        return Written(
            host=self.host.text(),
            port=self.port.text(),
            methods=tuple(name for name, pill in self.methods.items() if pill.isChecked()) + self._odd,
            paths=self.paths.toPlainText(),
            may_receive=str(self.may_receive.currentData()),
            owner=self.owner.text(),
            reason=self.reason.text(),
            review_by=self.review_by.text(),
            private=self.private.text(),
        )

    def fill(self, text: Written) -> None:
        """Puts an entry into the fields; ``changed`` is emitted once."""
        was = self.blockSignals(True)
        self._odd = tuple(m for m in text.methods if m not in self.methods)
        for name, pill in self.methods.items():
            pill.setChecked(name in text.methods)
        self.host.setText(text.host)
        self.port.setText(text.port)
        self.paths.setPlainText(text.paths)
        self.may_receive.setCurrentIndex(max(0, self.may_receive.findData(text.may_receive)))
        self.owner.setText(text.owner)
        self.reason.setText(text.reason)
        self.review_by.setText(text.review_by)
        self.private.setText(text.private)
        self.blockSignals(was)
        self._edited()

    def _edited(self) -> None:
        self.tls.setVisible(self.port.text() == str(TLS_PORT))
        self.changed.emit()


def _labelled(words: str, field: QWidget) -> QVBoxLayout:
    return column(Text(words, 11, fonts.MEDIUM, "text2"), field, spacing=3)


def _pair(*parts: tuple[str, QWidget, int]) -> QHBoxLayout:
    return row(*((_labelled(words, field), share) for words, field, share in parts), spacing=12)
