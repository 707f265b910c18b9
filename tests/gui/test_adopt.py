"""Taking over an agent that was only seen: what was shown is what is sent, and what is left outside is said."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtGui import QColor
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from console.api.agents.daemons import DaemonView
from console.gui.pages.fleet.adopt import AdoptDialog
from console.gui.pages.fleet.page import FleetPage
from console.gui.theme.tokens import DARK
from console.gui.widgets.safe_text import is_plain
from console.gui.window.main import Window
from tests.fakes.operator_server import FakeHouse

House = Callable[..., FakeHouse]
Opener = Callable[..., Window]
SEEN = "eval-000"


def asked(window: Window, qtbot: QtBot) -> AdoptDialog:
    page = window.page
    assert isinstance(page, FleetPage)
    page.view.choose(SEEN)
    page.do("fleet.adopt")
    qtbot.waitUntil(lambda: any(d.isVisible() for d in window.findChildren(AdoptDialog)))
    dialog = next(d for d in window.findChildren(AdoptDialog) if d.isVisible())
    qtbot.waitUntil(lambda: dialog.view is not None)
    return dialog


def test_what_was_shown_is_what_is_adopted(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    window = open_window("fleet")
    page = window.page
    assert isinstance(page, FleetPage)
    page.view.choose("release-captain")
    assert page.why_not("fleet.adopt").startswith("It is held already") and not page.pane.adopt.isVisible()
    dialog = asked(window, qtbot)
    assert page.pane.adopt.isVisible() and dialog.main.isEnabled()
    assert "2 processes below it come along" in dialog.sentence.text()
    assert "claude <b>--resume</b>" in dialog.process.accessibleName()
    assert all(is_plain(label.text()) for label in dialog.findChildren(QLabel))
    [(box, orphan)] = dialog.orphans
    seen = box.grab().toImage()
    edge = {seen.pixelColor(x, seen.height() // 2).name() for x in range(4)}
    assert QColor(DARK.bar).name() in edge, "an empty box is seen on a dark ground"
    assert box.text().startswith("Also 4800: python3 && watch.py") and not box.isChecked(), "an orphan comes along only by choice"
    box.setChecked(True)
    house.supervisor.boxes.refuse = (409, "It is not the process that was shown.")
    dialog.main.click()
    qtbot.waitUntil(dialog.problem.isVisible)
    assert "not the process" in dialog.problem.text()
    house.supervisor.boxes.refuse = None
    qtbot.waitUntil(dialog.main.isEnabled)
    dialog.orphans[0][0].setChecked(True)
    dialog.main.click()
    qtbot.waitUntil(lambda: not any(d.isVisible() for d in window.findChildren(AdoptDialog)))
    sent = house.supervisor.boxes.adopted[-1]
    assert (sent.agent, sent.pid, sent.start_ticks, sent.exe, sent.uid) == (SEEN, 4711, 99, "/usr/bin/node", 1000)
    assert [(o.pid, o.start_ticks) for o in sent.also] == [(orphan.pid, orphan.start_ticks)]
    qtbot.waitUntil(lambda: window.fleet.rows[SEEN].view.control_level == "adopted")
    assert page.why_not("fleet.adopt").startswith("It is held already")


def test_what_cannot_be_adopted_says_why_and_what_is_left_outside_is_amber(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    boxes = house.supervisor.boxes
    window = open_window("fleet")
    whole = boxes.candidates
    boxes.candidates = whole.replaced(why_not="it is this console's own parent")
    dialog = asked(window, qtbot)
    assert dialog.problem.text() == "it is this console's own parent" and not dialog.main.isEnabled()
    dialog.close()
    nobody = [one.replaced(uid=None) for one in whole.candidates]
    boxes.candidates = whole.replaced(candidates=nobody)
    dialog = asked(window, qtbot)
    assert not dialog.main.isEnabled() and "whose it is, is not known" in dialog.problem.text()
    dialog.close()
    boxes.candidates = whole
    boxes.adopting = boxes.adopting.replaced(left={"4712": "it would not freeze"}, left_n=1, best_effort="1 process is outside")
    dialog = asked(window, qtbot)
    dialog.main.click()
    qtbot.waitUntil(lambda: "1 process left outside" in dialog.sentence.text())
    assert dialog.isVisible() and not dialog.main.isVisible() and dialog.cancel.text() == "Close"
    assert window.strip.notice is not None and window.strip.notice.level == "amber"
    dialog.close()


def test_daemons_and_what_stays_outside_are_shown_before_it_is_confirmed(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    daemon = DaemonView(name="the Claude service", pid=7, plan="stays outside", other_sessions=["s2"])
    house.supervisor.boxes.candidates = house.supervisor.boxes.candidates.replaced(daemons=[daemon], orphans=12)
    dialog = asked(open_window("fleet"), qtbot)
    said = " ".join(fact.left for fact in dialog.outside._facts)
    assert "the Claude service, process 7: stays outside; other sessions in it: s2" in said
    assert "12 processes outside may be its" in said and "lists it as a suspect" in said
