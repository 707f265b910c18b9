"""Every dialog in the smallest window: nothing in it is cut off, it fits, and a button that is off says why."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtWidgets import QAbstractButton, QApplication, QDialog, QScrollArea
from pytestqt.qtbot import QtBot

from console.gui.pages.network.page import NetworkPage
from console.gui.widgets.text import Text
from console.gui.window.main import Window
from tests.fakes import approval_routes
from tests.fakes.operator_server import FakeHouse

Make = Callable[..., FakeHouse]
Open = Callable[..., Window]
_ASKED = {
    "fleet": "fleet.pause fleet.stop-tree fleet.isolate fleet.run fleet.data fleet.hook fleet.setup console.keys",
    "approvals": "approvals.rule approvals.reason",
    "network": "network.remove network.stricter network.back",
    "budgets": "budgets.limits budgets.forecast",
    "settings": "settings.change",
    "kill-switch": "switch.passphrase switch.rotation switch.freeze switch.rearm",
}


def _opened(window: Window, action: str, house: FakeHouse, qtbot: QtBot) -> QDialog:
    front = window.page
    assert front is not None
    if action == "switch.rearm":
        house.on_loop(house.guard.press_now)
        qtbot.waitUntil(lambda: window.switch.is_killed and window.switch.receipt is not None)
        window.goto("kill-switch", "")
    elif isinstance(front, NetworkPage) and action != "network.remove":
        front.tabs.choose("history" if action == "network.back" else "sandboxes")
        if action == "network.back":
            view = front.tabs.history.view
            qtbot.waitUntil(lambda: view.row_model.rowCount() > 2)
            view.choose(str(view.row_model.rows[2].version))
    window.do(action)
    qtbot.waitUntil(lambda: any(one.isVisible() for one in window.findChildren(QDialog)))
    return next(one for one in window.findChildren(QDialog) if one.isVisible())


@pytest.mark.parametrize("page", list(_ASKED))
def test_dialogs_fit_800_x_560(page: str, make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house("mockup")
    house.supervisor.approvals.waiting = approval_routes.mockup()
    window = open_window(page, (800, 560))
    for action in _ASKED[page].split():
        dialog = _opened(window, action, house, qtbot)
        qtbot.waitUntil(lambda: window.wires.link.in_flight == 0)  # what it asked for is answered
        QApplication.processEvents()
        _check(dialog, window, action)
        dialog.reject()
        qtbot.waitUntil(lambda: not any(one.isVisible() for one in window.findChildren(QDialog)))


def _check(dialog: QDialog, window: Window, action: str) -> None:
    assert dialog.height() <= window.height() and dialog.width() <= window.width(), action
    for area in dialog.findChildren(QScrollArea):
        assert not area.isVisible() or area.horizontalScrollBar().maximum() == 0, f"{action}: fields are cut off"
    for text in dialog.findChildren(Text):
        wanted = text.heightForWidth(text.width()) - 3 if text.hasHeightForWidth() else text.minimumSizeHint().height() - 2
        assert not text.isVisible() or not text.text() or text.height() >= wanted, f"{action}: {text.text()!r} is cut off"
    for button in dialog.findChildren(QAbstractButton):
        assert not button.isVisible() or button.isEnabled() or (button.toolTip() and button.accessibleDescription()), button.text()
