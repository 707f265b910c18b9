"""Reviewing the allowlist in the console: marks, history with its way back, what a change would have done."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from console.api.allowlist_review import BacktestGroup, BacktestView
from console.api.messages import MarkView
from console.gui.pages.network.editor import RemoveDialog
from console.gui.pages.network.history import RevertDialog
from console.gui.pages.network.page import NetworkPage
from console.gui.widgets.safe_text import is_plain
from console.gui.window.main import Window
from tests.fakes.gui_fixture import HOSTILE_NAMES
from tests.fakes.operator_server import FakeHouse
from tests.fakes.pages_routes import FakeRooms

Open = Callable[..., Window]
TOKENS = BacktestGroup(method="GET", host="packages.internal", path="/me/tokens", count=3, agents=["x"], last_at=0)
SERDE = BacktestGroup(method="GET", host="packages.internal", path="/api/v1/serde", count=41, agents=["x"], last_at=0)
LOST = BacktestGroup(method="POST", host="packages.internal", path="/up", count=2, agents=["y"], last_at=0)


@pytest.fixture
def rooms(make_house: Callable[..., FakeHouse]) -> FakeRooms:
    return make_house("mockup").supervisor.rooms


def page_of(window: Window) -> NetworkPage:
    page = window.page
    assert isinstance(page, NetworkPage)
    return page


def asked(rooms: FakeRooms, verb: str) -> list[dict[str, object]]:
    return [body for name, _, body in rooms.log if name == verb]


def test_marks_stand_before_the_reason_and_can_be_filtered(rooms: FakeRooms, open_window: Open, qtbot: QtBot) -> None:
    page = page_of(open_window("network"))
    column = [c.key for c in page.tabs.model.columns].index("reason")
    words = {row.id: page.tabs.model.words(number, column) for number, row in enumerate(page.tabs.model.rows)}
    assert words["e4"].startswith("not used for 31 days; DANGER: an attacker may have an account") and "DANGER" not in words["e8"]
    page.tabs.bar.tabs.pills["marked"].click()
    assert [row.id for row in page.tabs.model.rows] == ["e4", "e8", "e11"] and page.tabs.bar.tabs.pills["marked"].text() == "Warnings 3"
    page.tabs.view.choose("e4")
    page.do("network.edit")
    assert page.drawer.marks.isVisible() and "attacker" in page.drawer.marks.text() and page.drawer.marks._role == "danger"
    page.drawer.close_draft()
    page.do("network.new")
    assert not page.drawer.marks.isVisible(), "marks of another entry"


def test_a_draft_is_backtested_in_place_of_its_entry_before_it_can_be_saved(rooms: FakeRooms, open_window: Open, qtbot: QtBot) -> None:
    rooms.backtest = BacktestView(
        days=30, judged=2310, changed=46, left_out=7, newly_allowed=[SERDE, TOKENS], newly_blocked=[LOST], words="44 more, 2 fewer."
    )
    page = page_of(open_window("network"))
    page.tabs.view.choose("e10")
    page.do("network.edit")
    drawer = page.drawer
    assert not drawer.test.isVisible()
    drawer.form.paths.setPlainText("/")
    assert drawer.why_not_save()
    qtbot.waitUntil(lambda: drawer.save.isEnabled())
    assert asked(rooms, "backtest")[-1]["replaces"] == "e10" == asked(rooms, "test")[-1]["replaces"]
    lines = {fact.left: fact for fact in drawer.test.groups._facts}
    assert (
        drawer.test.words.text() == "44 more, 2 fewer." and "2,310" in drawer.test._days.text() and "7 blocked" in drawer.test.bounds.text()
    )
    assert lines["GET packages.internal/me/tokens"].left_role == "warn" and lines["GET packages.internal/api/v1/serde"].left_role == "text"
    assert lines["POST packages.internal/up"].left_role == "danger"
    rooms.refuse_backtest = "The ledger is away."
    drawer.form.paths.setPlainText("/simple/x")
    qtbot.waitUntil(lambda: "not known: The ledger is away." in drawer.test.words.text())
    qtbot.waitUntil(lambda: drawer.save.isEnabled())
    assert not drawer.test.groups._facts, "the old answer is none any more"


def test_the_history_shows_what_changed_and_leads_back_with_a_reason(rooms: FakeRooms, open_window: Open, qtbot: QtBot) -> None:
    window = open_window("network")
    page = page_of(window)
    page.do("network.history")
    history = page.tabs.history
    qtbot.waitUntil(lambda: len(history.view.row_model.rows) == 9)
    assert history.why_not() == "This is the live version." and page.why_not("network.back") == "This is the live version."
    history.view.choose("117")
    lines = [(fact.left, fact.left_role) for fact in history.diff._facts]
    assert ("− paths: any", "text2") in lines and ("+ paths: /simple/", "text") in lines
    history.view.choose("114")
    assert "damaged" in history.why_not() and "damaged" in history.title.text()
    history.view.choose("117")
    history.back.click()
    dialog = window.findChildren(RevertDialog)[-1]
    first = dialog
    assert not dialog.main.isEnabled()
    qtbot.waitUntil(lambda: "Nothing would have changed." in first.test.words.text())
    dialog.reason.setText("v118 was a mistake")
    rooms.version = 130
    dialog.main.click()
    qtbot.waitUntil(lambda: "version 130" in first.problem.text())
    assert not dialog.main.isEnabled()
    dialog.reject()
    qtbot.waitUntil(lambda: history.live == 130)
    history.back.click()
    dialog = window.findChildren(RevertDialog)[-1]
    dialog.reason.setText("v118 was a mistake")
    dialog.main.click()
    qtbot.waitUntil(lambda: page.reader.list is not None and page.reader.list.version == 131)
    assert asked(rooms, "revert")[-1] == {"version": 117, "reason": "v118 was a mistake", "base_version": 130}
    qtbot.waitUntil(lambda: history.view.row_model.rows[0].version == 131)


def test_removing_says_what_it_would_have_blocked(rooms: FakeRooms, open_window: Open, qtbot: QtBot) -> None:
    rooms.backtest = BacktestView(days=30, judged=10, changed=2, newly_blocked=[LOST], words="2 requests would have been blocked.")
    window = open_window("network")
    page_of(window).tabs.view.choose("e10")
    page_of(window).do("network.remove")
    dialog = window.findChild(RemoveDialog)
    assert dialog is not None
    qtbot.waitUntil(lambda: dialog.test.words.text() == "2 requests would have been blocked.")
    assert asked(rooms, "backtest")[-1]["remove"] == "e10"


def test_hostile_history_marks_and_paths_stay_words(rooms: FakeRooms, open_window: Open, qtbot: QtBot) -> None:
    long = "/<b>x</b>\u202e" + "n" * 100_000
    rooms.backtest = BacktestView(days=30, judged=1, changed=1, newly_allowed=[TOKENS.replaced(path=long)], words=HOSTILE_NAMES[4])
    rooms.versions = [v.replaced(reason=name, by=name) for v, name in zip(rooms.versions, HOSTILE_NAMES, strict=False)]
    rooms.entries[0] = rooms.entries[0].replaced(marks=[MarkView(kind=HOSTILE_NAMES[4], words=long, danger=True)])
    window = open_window("network")
    page = page_of(window)
    page.do("network.edit")
    page.drawer.form.reason.setText("more")
    qtbot.waitUntil(lambda: bool(page.drawer.test.groups._facts))
    page.do("network.history")
    qtbot.waitUntil(lambda: len(page.tabs.history.view.row_model.rows) == 9)
    window.grab()
    model = page.tabs.history.view.row_model
    assert all(is_plain(model.words(r, c)) for r in range(9) for c in range(len(model.columns)))
    assert all(is_plain(w.accessibleName()) and len(w.accessibleName()) < 5000 for w in page.findChildren(QWidget))
