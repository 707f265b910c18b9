"""How an agent is held, and private data registered from the window, against the stand-in supervisor."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from console.api.agents.agent_types import SourcesFileView
from console.api.messages import AgentDetailView, AgentView, HardeningView
from console.gui.pages.fleet.held import measure_head, measure_lines, type_lines, variable_head, variable_lines
from console.gui.pages.fleet.page import FleetPage
from console.gui.pages.kill_switch.lists import hosts_note
from console.gui.pages.network.page import NetworkPage
from console.gui.pages.network.register import RegisterDialog
from console.gui.widgets.safe_text import is_plain
from console.gui.window.main import Window
from tests.fakes import gui_fixture as fixture
from tests.fakes.operator_server import FakeHouse

House = Callable[..., FakeHouse]
Opener = Callable[..., Window]


def texts(widget: QWidget) -> str:
    return " | ".join(label.text() for label in widget.findChildren(QLabel) if label.isVisibleTo(widget))


def test_the_pane_tells_how_an_agent_is_held(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    make_house("mockup")
    window = open_window("fleet")
    page = window.page
    assert isinstance(page, FleetPage)
    card = page.pane.held
    page.view.choose("build-matrix")
    qtbot.waitUntil(lambda: "active (checked)" in card.sandbox.text())
    assert card.sandbox.text() == "13 of 15 protections active (checked)"
    words = "/tmp without programs: not available, because bubblewrap mounts nothing noexec"
    qtbot.waitUntil(lambda: words in texts(card.measures))
    assert "not root: uid 65534" not in texts(card.measures), "what is given waits behind the button"
    card.measures.more.click()
    qtbot.waitUntil(lambda: "not root: uid 65534" in texts(card.measures) and card.measures.more.text() == "Show less")
    assert "Values are never shown" in card.environment.text()
    qtbot.waitUntil(lambda: "CRM_TOKEN · named for its type, secret" in texts(card.names))
    assert "Left out: AWS_SECRET_ACCESS_KEY" in texts(card.names)
    qtbot.waitUntil(lambda: card.of_type.text() == "researcher.json")
    qtbot.waitUntil(lambda: "Not enforced: languages" in texts(card.narrows))
    page.view.choose("linux-x64")
    assert "13 of 15" not in texts(card.measures) and card.measures.more.text() != "Show less"


def test_the_pane_tells_that_its_rules_alone_bound_an_agent(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    window = open_window("fleet")
    page = window.page
    assert isinstance(page, FleetPage)
    new = AgentView(id="a-new", name="newest", session="c", state="running", profile="coding", profile_note="rules only, not contained")
    house.on_loop(lambda: house.supervisor.upsert(new))
    qtbot.waitUntil(lambda: page.view.choose("a-new"))
    qtbot.waitUntil(lambda: "Its rules (coding): rules only, not contained." in texts(page.pane))


def test_what_was_not_read_is_never_read_as_held() -> None:
    assert measure_head([])[1:] == ("warn", "triangle")
    views = [HardeningView(name="a", state="given", words="x", line="a: x"), HardeningView(name="b", state="unknown", line="b: UNKNOWN, ?")]
    words, role, shape = measure_head(views)
    assert words.startswith("1 of 2 protections") and (role, shape) == ("warn", "triangle")
    assert [line.words for line in measure_lines(views)] == ["b: UNKNOWN, ?", "a: x"]
    odd = HardeningView(name="c", state="perhaps", words="", line="")  # type: ignore[arg-type]
    assert (measure_lines([odd])[0].mark, measure_lines([odd])[0].quiet) == ("triangle", False)
    assert "not started by Watchfloor" in variable_head(None)[0]
    broken = SourcesFileView(agent_type="w", ok=False, error="w.json, memory: -1 is less than 1.", remedy="Fix it.")
    assert [(line.words, line.role) for line in type_lines(broken)] == [("w.json, memory: -1 is less than 1. Fix it.", "warn")]


def test_hostile_names_of_variables_stay_visible_words(qtbot: QtBot, make_house: House, open_window: Opener) -> None:
    make_house("mockup")
    page = open_window("fleet").page
    assert isinstance(page, FleetPage)
    detail: AgentDetailView = fixture.detail(fixture.mockup_agents()[0])
    assert detail.environment is not None
    for variable in detail.environment.variables:
        variable.name = "<b>X</b>\u202eY\n"
    card = page.pane.held
    card.clear(detail.agent.id)
    card.show_detail(detail)
    assert all(is_plain(label.text()) for label in card.findChildren(QLabel))
    assert all("=" not in line.words for line in variable_lines(detail.environment))


def test_by_keyboard_private_data_is_registered_and_the_session_is_tightened(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    boxes = house.supervisor.boxes
    window = open_window("network")
    window.goto("network", "sandboxes")
    page = window.page
    assert isinstance(page, NetworkPage)
    page.tabs.sandboxes.view.choose("inbox-reader")
    QTest.keyClick(page.tabs.sandboxes.view, Qt.Key.Key_D)
    qtbot.waitUntil(lambda: any(d.isVisible() for d in window.findChildren(RegisterDialog)))
    dialog = next(d for d in window.findChildren(RegisterDialog) if d.isVisible())
    qtbot.waitUntil(lambda: dialog.preview is not None)
    assert dialog.level == "CONFIDENTIAL" and boxes.registered[-1].dry_run
    assert dialog.sentence.text() == "The session will be Confidential, in Proxied: no agent's network changes."
    dialog.pills.pills["SECRET"].click()
    qtbot.waitUntil(lambda: dialog.sentence.text() == "The session will be Secret, in None: 1 agent will be switched.")
    dialog.reason.setText("quarterly review")
    assert not dialog.main.isEnabled(), "the dataset has no name yet"
    dialog.dataset.setText("customer letters")
    dialog.source.setText("crm")
    boxes.refuse = (503, "Everything was stopped.")
    dialog.main.click()
    qtbot.waitUntil(dialog.problem.isVisible)
    assert "stopped" in dialog.problem.text() and dialog.main.isEnabled()
    boxes.refuse = None
    dialog.main.click()
    qtbot.waitUntil(lambda: not any(d.isVisible() for d in window.findChildren(RegisterDialog)))
    sent = boxes.registered[-1]
    assert (sent.dataset, sent.sensitivity, sent.source, sent.reason, sent.dry_run) == (
        "customer letters", "SECRET", "crm", "quarterly review", False,
    )  # fmt: skip
    qtbot.waitUntil(lambda: window.fleet.rows["inbox-reader"].view.network_mode == "NONE")
    assert page.why_not("network.data") == "", "a session without network may still learn something"


def test_the_hosts_card_says_what_the_remote_path_is() -> None:
    view = fixture.kill_switch()
    words, role, shape = hosts_note(view.replaced(hosts=[]))
    assert "remote path: not ready (silent for 34 s)" in words and (role, shape) == ("warn", "triangle")
    proven = [p.replaced(state="proven", detail="") for p in view.paths]
    assert hosts_note(view.replaced(paths=proven))[1] == "text2"
    assert "remote path: ready." in hosts_note(view.replaced(paths=proven))[0]
    assert hosts_note(view.replaced(paths=[]))[0].startswith("No remote kill is configured")
