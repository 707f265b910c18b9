"""Snapshots and the stream: what was missed while a snapshot was on its way is read after it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication

from console.api.messages import FleetView, KillSwitchView, StatusView
from console.domain.errors import TimedOut
from console.gui.link.decode import Read
from console.gui.link.events import Events
from console.gui.link.guard import GuardLink
from console.gui.link.http import Link
from console.gui.link.pending import Pending
from console.gui.models.fleet import Fleet
from console.gui.models.switch import Switch
from console.gui.notices import Notices
from console.gui.requests import Requests
from console.gui.window.sync import Sync


class Guard(QObject):
    alive = Signal(bool)
    status_came = Signal(dict)


class Asked:
    """Requests of which the fleet's answers are given by the test."""

    def __init__(self) -> None:
        self.fleets: list[Pending[FleetView]] = []
        self.fleet = SimpleNamespace(fleet=self._fleet)
        self.switch = SimpleNamespace(look=lambda: Pending[KillSwitchView]())

    def status(self) -> Pending[StatusView]:
        return Pending()

    def _fleet(self) -> Pending[FleetView]:
        self.fleets.append(Pending())
        return self.fleets[-1]


@pytest.mark.parametrize("comes", [True, False], ids=["an older snapshot", "no snapshot"])
def test_what_was_missed_while_a_snapshot_was_on_its_way_is_read_after_it(comes: bool, qapp: QApplication) -> None:
    asked, events, guard = Asked(), Events(Link(None)), Guard()
    sync = Sync(cast(Requests, asked), events, cast(GuardLink, guard), Fleet(), Switch(), Notices(), lambda: 0.0)
    events._running = True
    sync.read_all()
    events._take(Read(0, None, "900"))
    assert len(asked.fleets) == 1, "one at a time"
    if comes:
        asked.fleets[0].resolve(FleetView(agents=[], seq=100))
    else:
        asked.fleets[0].reject(TimedOut("no answer"))
    assert len(asked.fleets) == 2
    asked.fleets[1].resolve(FleetView(agents=[], seq=900))
    assert len(asked.fleets) == 2, "and only then"
    sync.read_all()
    events._take(Read(0, None, "950"))
    asked.fleets[2].resolve(FleetView(agents=[], seq=950))
    assert len(asked.fleets) == 3, "that snapshot has it"
