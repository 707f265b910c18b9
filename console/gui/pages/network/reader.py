"""What the supervisor says of the allowlist and of recorded requests, and whether that is the newest."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from console.api import endpoints as ep
from console.api.messages import AllowlistView, EgressPage
from console.domain.errors import ConsoleError
from console.gui.pages.interface import Desk
from console.gui.timers import once

READ = 1000
"""Lines of the egress log read at first."""
_AGAIN_S = 5.0


class NetworkReader(QObject):
    """``list_came`` with the view and whether it is another version than before; ``egress_came`` with an EgressPage."""

    list_came = Signal(object, bool)
    egress_came = Signal(object)
    failed = Signal(str)
    """Why one of them could not be read."""

    def __init__(self, desk: Desk, parent: QObject) -> None:
        super().__init__(parent)
        self._desk = desk
        self.list: AllowlistView | None = None
        self.problem = ""
        """Why the newest could not be read."""
        self.is_stale = True
        """The list must be read again."""
        self.has_egress = False
        self._read_at = 0.0
        self._retry = once(self, int(_AGAIN_S * 1000), self.read_list)

    def forget_egress(self) -> None:
        """A request was not reported: the log has a gap."""
        self.is_stale, self.has_egress = True, False

    def catch_up(self) -> bool:
        """Reads what is missing or stale; True when the list is read again."""
        again = self.is_stale
        if again:
            self.read_list()
        if not self.has_egress:
            self._desk.requests.ask(ep.EGRESS, limit=READ).while_alive(self).then(self._egress_came).failed(self._failed)
        return again

    def again(self, now: float) -> None:
        """Marks and numbers of hits change without being told."""
        if now - self._read_at > _AGAIN_S:
            self.read_list()

    def read_list(self) -> None:
        """Asks for the allowlist."""
        self.is_stale = False
        self._read_at = self._desk.clock()
        self._desk.requests.ask(ep.ALLOWLIST).while_alive(self).then(self._list_came).failed(self._failed)

    def _failed(self, error: ConsoleError) -> None:
        self.problem = str(error)
        self.is_stale = True
        self.failed.emit(self.problem)

    def _egress_came(self, page: EgressPage) -> None:
        self.has_egress = True
        self.egress_came.emit(page)

    def _list_came(self, view: AllowlistView) -> None:
        is_newer = self.list is not None and self.list.version != view.version
        self.list, self.problem = view, ""
        if view.envoy == "failed":  # it stands in the navigation; that it is over is told by nobody while the page is hidden
            self._retry.start()
        self.list_came.emit(view, is_newer)
