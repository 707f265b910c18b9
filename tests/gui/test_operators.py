"""Operators stand by name in the window, as the supervisor tells it; the records keep their numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pytestqt.qtbot import QtBot

from console.api import endpoints as ep
from console.api.messages import KillSwitchBody
from console.api.records import AccountsView, AccountView
from console.domain.errors import ConsoleError
from console.gui.models.operators import OPERATORS, person
from console.gui.pages.audit.detail import as_json
from console.gui.pages.audit.page import AuditLogPage
from console.gui.pages.kill_switch.page import KillSwitchPage
from console.gui.pages.network.page import NetworkPage
from console.gui.widgets.rows import RowView
from console.gui.window.main import Window
from tests.fakes.operator_server import FakeHouse


@pytest.fixture(autouse=True)
def nobody_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a window that was just opened."""
    monkeypatch.setattr(OPERATORS, "_names", {})
    monkeypatch.setattr(OPERATORS, "_missing", {1000})


def test_an_operator_of_a_record_stands_by_name_and_the_record_keeps_the_number(
    make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    make_house("1").supervisor.names[1000] = ("ann", "Ann Adams")
    page = open_window("audit").page
    assert isinstance(page, AuditLogPage)
    rows = page.view.row_model
    at = next(number for number, row in enumerate(rows.rows) if row.actor == "operator:1000")
    actor = [column.key for column in rows.columns].index("actor")
    qtbot.waitUntil(lambda: rows.words(at, actor) == "ann (Ann Adams, uid 1000)")
    assert '"operator:1000"' in as_json(rows.rows[at])


def test_a_number_that_the_host_does_not_know_is_said_as_a_number_and_a_name_cannot_act_on_the_screen(
    make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot
) -> None:
    house = make_house("1")
    house.supervisor.names[7] = ("eve", "\u202e<b>root</b>")
    house.supervisor.switch = house.supervisor.switch.replaced(
        receipts=[row.replaced(by=f"operator:{number}") for number, row in zip((7, 8), house.supervisor.switch.receipts, strict=False)]
    )
    page = open_window("kill-switch").page
    assert isinstance(page, KillSwitchPage)

    def who() -> list[str]:
        return [
            view.row_model.words(at, 4)
            for view in page.findChildren(RowView)
            for at in range(len(view.row_model.rows))
            if len(view.row_model.columns) > 4
        ]

    qtbot.waitUntil(lambda: any(word.startswith("eve") for word in who()))
    assert [word for word in who() if "uid" in word] == ["eve (\\u202e<b>root</b>, uid 7)", "uid 8"]


def test_a_refusal_names_the_operator(make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot) -> None:
    house = make_house("1")
    house.supervisor.names[1000] = ("ann", "Ann Adams")
    window = open_window("audit")
    house.supervisor.refuse_rearm = "It was denied already by operator:1000."
    qtbot.waitUntil(lambda: person("operator:1000").startswith("ann"))
    refused: list[ConsoleError] = []
    window.desk.requests.ask(ep.SWITCH, body=KillSwitchBody(action="rearm", reason="now", kill_id="k-1")).failed(refused.append)
    qtbot.waitUntil(lambda: bool(refused))
    assert refused[0].what == "It was denied already by ann (Ann Adams, uid 1000)."


def test_an_open_pane_shows_a_name_that_comes_later(
    make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_house("1").supervisor.names[1000] = ("ann", "Ann Adams")
    asked_for = [""]
    monkeypatch.setattr(OPERATORS, "wanted", lambda: asked_for[0])
    page = open_window("audit").page
    assert isinstance(page, AuditLogPage)
    page.view.choose(str(next(row.seq for row in page.view.row_model.rows if row.actor == "operator:1000")))
    qtbot.waitUntil(lambda: "uid 1000" in page.pane.chips.accessibleName())
    asked_for[0] = "1000"
    qtbot.waitUntil(lambda: "ann (Ann Adams, uid 1000)" in page.pane.chips.accessibleName())


def test_who_logged_in_stands_beside_the_account() -> None:
    OPERATORS.learn(AccountsView(accounts=[AccountView(0, "root"), AccountView(1000, "ann", "Ann Adams")]))
    assert person("denied by operator:0/login:1000: no") == "denied by root (uid 0), logged in as ann (Ann Adams, uid 1000): no"


def test_the_pane_of_an_allowlist_version_shows_a_name_that_comes_later(
    make_house: Callable[..., FakeHouse], open_window: Callable[..., Window], qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_house("1").supervisor.names[1000] = ("ann", "Ann Adams")
    asked_for = [""]
    monkeypatch.setattr(OPERATORS, "wanted", lambda: asked_for[0])
    window = open_window("network")
    window.goto("network", "history")
    page = window.page
    assert isinstance(page, NetworkPage)
    why = page.tabs.history.why
    qtbot.waitUntil(lambda: "uid 1000" in why.text())
    asked_for[0] = "1000"
    qtbot.waitUntil(lambda: "ann (Ann Adams, uid 1000)" in why.text())
