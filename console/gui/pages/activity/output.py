"""What an agent's program wrote on stdout and stderr: its end, as plain text. Opened from its feed; follows while it is open."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.messages import OutputView
from console.domain.errors import ConsoleError
from console.gui.pages.activity.detail import whole_text
from console.gui.requests import Requests
from console.gui.theme import fonts
from console.gui.timers import every
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.reading import PlainView
from console.gui.widgets.text import Text

TAIL = 48_000
"""Bytes shown, the last there are; one answer of the supervisor holds more."""
_LOOK_MS = 1000


class OutputDialog(Dialog):
    """Reads on once a second until it is closed."""

    def __init__(self, requests: Requests, agent_id: str, name: str, size: int, parent: QWidget) -> None:
        super().__init__(f"Output of {name}", "Close", "primary", parent, width=760)
        self._requests, self._agent_id = requests, agent_id
        self._offset, self._text = max(0, size - TAIL), ""
        self._asked = False
        self.about = Text("Reading…", 12, fonts.REGULAR, "text2")
        self.view = PlainView("Output", parent=self)
        self.view.setMinimumHeight(420)
        self.body.addWidget(self.about)
        self.body.addWidget(self.view)
        self.cancel.hide()
        self.main.clicked.connect(self.accept)
        self._look = every(self, _LOOK_MS, self._read)
        self._look.start()
        self._read()

    def _read(self) -> None:
        if not self._asked:
            self._asked = True
            self._requests.ask(ep.OUTPUT, self._agent_id, offset=self._offset).while_alive(self).then(self._came).failed(self._failed)

    def _came(self, view: OutputView) -> None:
        self._asked = False
        if view.text:
            self._text = (self._text + view.text)[-TAIL:]
            self._offset = view.offset
            bar = self.view.verticalScrollBar()
            place, at_end = bar.value(), bar.value() >= bar.maximum()
            self.view.setPlainText(whole_text(self._text))
            bar.setValue(bar.maximum() if at_end else place)
        shown = len(self._text)
        before = f"the last {shown:,} of {view.total:,} bytes" if view.total > shown else f"{view.total:,} bytes"
        self.about.setText(f"{before} · {'it runs' if view.live else view.state.replace('_', ' ')}")

    def _failed(self, error: ConsoleError) -> None:
        self._asked = False
        self.about.setText(str(error))
