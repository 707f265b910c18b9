"""Envoy's generated configuration as text, read when it is first looked at and again after the list changed."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from console.api.messages import EnvoyConfigView
from console.gui.pages.interface import Desk
from console.gui.widgets.reading import PlainView

_NONE_YET = "Envoy has no configuration yet: it is written when the first sandbox is attached."


class ConfigView(PlainView):
    """What cannot be read is said in its place."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__("Generated Envoy configuration", wrap=False, parent=parent)
        self._desk = desk
        self._read = False

    def forget(self) -> None:
        """The list is another one: the next look reads again."""
        self._read = False

    def read(self) -> None:
        """Asks for it, unless it was read already."""
        if not self._read:
            asked = self._desk.requests.network.envoy_config().while_alive(self)
            asked.then(self._came).failed(lambda error: self.say(f"The configuration cannot be shown: {error}"))

    def _came(self, view: EnvoyConfigView) -> None:
        self._read = True
        self.say(view.text or _NONE_YET)
