"""One line that says whether an agent would reach a URL: by the live list, and by the list with the open draft."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QWidget

from console.api import endpoints as ep
from console.api.messages import AllowlistEntryBody, UrlTestBody, UrlTestView
from console.domain.errors import ConsoleError
from console.gui.pages.interface import Desk
from console.gui.pages.network.draft import asked_for
from console.gui.theme import fonts
from console.gui.timers import once
from console.gui.widgets.buttons import SearchField
from console.gui.widgets.side_pane import Foot
from console.gui.widgets.text import Text

AFTER_MS = 250
Draft = Callable[[], tuple[str, AllowlistEntryBody] | None]
"""(entry id or empty, body) of the open draft, or None."""


class UrlField(SearchField):
    """Esc clears, like the other fields of the bar."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Test a URL", "T", parent=parent)
        self.setFont(fonts.mono(12))
        self.setMaxLength(2000)


class TestLine(Foot):
    """Hidden while the field is empty. ``field`` is placed by the page."""

    __test__ = False

    def __init__(self, desk: Desk, draft: Draft, field: QLineEdit, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk, self._draft, self.field = desk, draft, field
        self.setFixedHeight(32)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 0, 16, 0)
        row.setSpacing(24)
        self.live = Text("", 12, fonts.REGULAR, "text2")
        self.drafted = Text("", 12, fonts.REGULAR, "text2")
        row.addWidget(self.live, 1)
        row.addWidget(self.drafted, 1)
        self._late = once(self, AFTER_MS, self.ask)
        field.textChanged.connect(lambda _text: self.again())
        self.hide()

    def again(self) -> None:
        """Field, list or draft changed: the old answer is no answer any more."""
        text = self.field.text().strip()
        self.setVisible(bool(text))
        self.drafted.hide()
        if text:
            self.live.say("Asking…", "text2", "ring")
            self._late.start()
        else:
            self._late.stop()

    def ask(self) -> None:
        """Asks about exactly what stands in the field."""
        text = self.field.text().strip()
        method, url = asked_for(text)
        network = self._desk.requests
        asked = network.ask(ep.TEST_URL, body=UrlTestBody(url=url[:2000], method=method)).while_alive(self)
        asked.then(lambda view: self._say(self.live, text, "Live list", view)).failed(lambda error: self._fail(self.live, text, error))
        open_draft = self._draft()
        if open_draft is None:
            return
        entry_id, body = open_draft
        asked = network.ask(ep.TEST_URL, body=UrlTestBody(url=url[:2000], method=method, entry=body, replaces=entry_id or None))
        asked.while_alive(self).then(lambda view: self._say(self.drafted, text, "With the draft", view)).failed(
            lambda error: self._fail(self.drafted, text, error)
        )

    def _say(self, line: Text, text: str, where: str, view: UrlTestView) -> None:
        if text != self.field.text().strip():
            return
        if view.allowed:
            which = "the draft" if view.entry_id == "draft" else view.reason
            line.say(f"{where}: allowed by {which}", "text", "check")
        else:
            line.say(f"{where}: blocked, {view.reason.replace('entry draft', 'the draft')}", "danger", "ban")
        line.show()

    def _fail(self, line: Text, text: str, error: ConsoleError) -> None:
        if text == self.field.text().strip():
            line.say(str(error), "warn", "triangle")
            line.show()
