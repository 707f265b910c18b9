"""Snapshots and the stream: what was missed while a snapshot was on its way is read after it."""

from __future__ import annotations

from typing import Any, cast

import pytest
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication

from console.api import endpoints as ep
from console.api.messages import FleetView, StatusView
from console.api.records import AuditVerdict
from console.domain.errors import TimedOut
from console.gui.link.decode import Read
from console.gui.link.events import Events
from console.gui.link.http import Link
from console.gui.link.pending import Pending
from console.gui.models.fleet import Fleet
from console.gui.models.switch import Switch
from console.gui.notices import Notices
from console.gui.requests import Requests
from console.gui.window.sync import SOON_CHECKED, Sync
from console.panic.guard_link import GuardLink


class Guard(QObject):
    alive = Signal(bool)
    status_came = Signal(dict)


class Asked:
    """Requests of which the fleet's answers are given by the test."""

    def __init__(self) -> None:
        self.fleets: list[Pending[FleetView]] = []
        self.statuses: list[Pending[StatusView]] = []
        self.checks: list[Pending[AuditVerdict]] = []

    def ask(self, endpoint: ep.Endpoint[Any, Any], **_sent: object) -> Pending[Any]:
        lists: dict[ep.Endpoint[Any, Any], list[Any]] = {ep.FLEET: self.fleets, ep.STATUS: self.statuses, ep.VERIFY_AUDIT: self.checks}
        kept = lists.setdefault(endpoint, [])
        asked: Pending[Any] = Pending()
        kept.append(asked)
        return asked


def status(**facts: object) -> StatusView:
    of = {"instance": "i", "host": "h", "version": "1", "state_dir": "/s", "mode": "root", "killed": False}
    return StatusView.read(of | facts)


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


def test_an_audit_log_that_nobody_has_checked_is_checked_once_and_a_long_one_when_somebody_asks(qapp: QApplication) -> None:
    asked, guard, switch = Asked(), Guard(), Switch()
    sync = Sync(cast(Requests, asked), Events(Link(None)), cast(GuardLink, guard), Fleet(), switch, Notices(), lambda: 0.0)

    def told(**facts: object) -> None:
        sync._read_status()
        asked.statuses[-1].resolve(status(**facts))

    told(pid=7, audit_records=SOON_CHECKED + 1)
    told(pid=7, audit_records=12, audit_whole=False)
    assert asked.checks == [], "too long to be read by itself; checked already"
    told(pid=7, audit_records=12)
    told(pid=7, audit_records=13)
    assert len(asked.checks) == 1
    asked.checks[0].resolve(AuditVerdict(whole=True, records=13))
    asked.statuses[-1].resolve(status(audit_whole=True, audit_records=13, pid=7))
    assert switch.status is not None and switch.status.audit_whole is True
    told(pid=8, audit_records=13)
    assert len(asked.checks) == 2, "another supervisor has not looked"


def test_new_audit_records_are_verified_by_themselves_and_never_all_the_time(qapp: QApplication) -> None:
    asked, guard, switch, now = Asked(), Guard(), Switch(), [1000.0]
    sync = Sync(cast(Requests, asked), Events(Link(None)), cast(GuardLink, guard), Fleet(), switch, Notices(), lambda: now[0])

    def told(records: int, verified: int) -> None:
        sync._read_status()
        asked.statuses[-1].resolve(status(pid=7, audit_records=records, audit_whole=True, audit_verified=verified))

    told(90_000, 90_000)
    assert asked.checks == [], "nothing new"
    told(90_003, 90_000)
    told(90_004, 90_000)
    assert len(asked.checks) == 1, "one at a time"
    now[0] += 2.0
    asked.checks[0].resolve(AuditVerdict(whole=True, records=90_004))
    told(90_005, 90_004)
    now[0] += 60.0
    told(90_006, 90_004)
    assert len(asked.checks) == 1, "two seconds of work are enough for a hundred"
    now[0] += 41.0
    told(90_007, 90_004)
    assert len(asked.checks) == 2
    asked.checks[1].reject(TimedOut("no answer"))
    now[0] += 11.0
    told(90_008, 90_004)
    assert len(asked.checks) == 3
