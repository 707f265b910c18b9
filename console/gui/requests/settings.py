"""The verbs of the settings: all of them, and a change of one."""

from __future__ import annotations

from console.api import endpoints as ep
from console.api.settings import SettingBody, SettingsView
from console.gui.link.http import Link
from console.gui.link.pending import Pending


class SettingsRequests:
    """Reads, and changes one at a time."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def view(self) -> Pending[SettingsView]:
        """Every setting with value, origin and lock."""
        return self._link.ask(ep.CONFIG)

    def change(self, body: SettingBody) -> Pending[SettingsView]:
        """On record first; it takes effect at the next start."""
        return self._link.ask(ep.CHANGE_CONFIG, body=body)
