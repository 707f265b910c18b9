"""What a person saw in the window on a real instance, and what it says since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from console.api.agents.activity import ActivityRow
from console.api.ladder import ScopeBody
from console.api.messages import AgentView
from console.gui.models.fleet import Fleet, Row
from console.gui.models.seen import still_running
from console.gui.pages.activity.book import Item as ActivityItem
from console.gui.pages.activity.rows import lines_of
from console.gui.pages.approvals.book import Item
from console.gui.pages.approvals.page import ApprovalsPage
from console.gui.pages.approvals.words import end_words
from console.gui.pages.audit.chain import Known, chain_words
from console.gui.pages.audit.rows import moment, row_moment
from console.gui.pages.budgets.reasons import plain_reason
from console.gui.pages.fleet.header import hourly
from console.gui.pages.fleet.page import FleetPage
from console.gui.pages.fleet.rows import cell_words
from console.gui.pages.fleet.words import gauges
from console.gui.pages.kill_switch.rung_words import scope_words
from console.gui.pages.receipt.head import headline, open_points
from console.gui.pages.receipt.page import ReceiptPage
from console.gui.widgets.buttons import Button, Pill
from console.gui.widgets.choice import Choice
from console.gui.widgets.dialog import Dialog
from console.gui.widgets.words import clock, day_clock, recent_clock
from console.gui.window.alerts import kill_alert, state_alert
from console.gui.window.main import Window
from console.gui.window.sync import notice_words
from console.panic.guard_state import GuardState
from tests.fakes import approval_routes
from tests.fakes import gui_fixture as fixture
from tests.fakes.operator_server import FakeHouse

House = Callable[..., FakeHouse]
Opener = Callable[..., Window]


def agent(agent_id: str = "a", **more: object) -> AgentView:
    return AgentView.read({"id": agent_id, "name": agent_id, "session": "s", "control_level": "managed", "state": "running", **more})


# --- a press leaves those alone that were only seen: nothing is green while one of them runs -----------------------------


def test_who_was_only_seen_and_still_runs_after_a_press_is_in_the_headline_and_nothing_is_green() -> None:
    held = [a for a in fixture.mockup_agents() if a.control_level != "observed"]  # a target that is best effort is no proof by itself
    made = replace(fixture.receipt(held, proven=True, now=1000.0), survivors=())
    targets = {target.agent_id for target in made.targets}
    seen = agent("my <b>session", control_level="observed", started_at=made.pressed_at - 60)
    rows = [
        Row(seen),
        Row(agent("later", control_level="observed", started_at=made.pressed_at + 60)),
        Row(agent("gone", control_level="observed", state="lost", started_at=0.0)),
        Row(agent(next(iter(targets)), control_level="observed", started_at=0.0)),
        Row(agent("held", started_at=0.0)),
    ]
    names = still_running(made, rows)
    assert names == ["my <b>session"]
    assert still_running(replace(made, scope="agent"), rows) == [] == still_running(None, rows)
    assert headline(made, GuardState()).kind == "proven"
    head = headline(made, GuardState(), names)
    assert head.kind == "doubt" and head.text.endswith(" 1 only seen still runs.")
    best = fixture.receipt(fixture.mockup_agents(), proven=True, now=1000.0)
    unproven = fixture.receipt(held, proven=False, now=1000.0)
    evidence = {**made.targets[0].evidence, "amended": [{"outcome": "not_proven", "ms": 5000.0}]}
    later = replace(made, targets=(replace(made.targets[0], evidence=evidence), *made.targets[1:]))
    assert headline(later, GuardState()).kind == "late"
    for other in (best, unproven, later):  # whatever else the headline says, it names them, and it is never green
        head = headline(other, GuardState(), names)
        assert head.kind == "doubt" and head.text.startswith(headline(other, GuardState()).text) and "1 only seen still runs." in head.text
    assert open_points(made, names)[0] == "my <b>session: only seen, still runs; it was not signalled"
    alert = kill_alert(made, names)
    assert alert.title == "Killed, but 1 only seen still runs" and "Not signalled: my <b>session" in alert.text and alert.urgent
    assert kill_alert(made).title == "Killed"


def test_the_receipt_page_names_them(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    house = make_house("mockup")
    house.supervisor.agents["mine"] = agent("mine", control_level="observed", started_at=1.0)
    window = open_window("fleet")
    window.goto("receipt", "k-0038")
    page = window.page
    assert isinstance(page, ReceiptPage)
    qtbot.waitUntil(lambda: page.receipt is not None and "mine" in page.desk.fleet.rows)
    assert page.head.headline.kind == "doubt" and "only seen still runs" in page.head.headline.text
    assert "mine only seen, still runs" in page.side._sections["survivors"].accessibleName()


# --- no limit is not 0 % of one ------------------------------------------------------------------------------------------


def test_an_agent_without_a_limit_says_so_and_not_0_percent() -> None:
    assert cell_words(Row(agent(cost_usd=1.0)), "budget") == "no limit, $1.00"
    open_ended = {"cost_usd": None, "wall_s": None}  # as a supervisor says it
    assert cell_words(Row(agent(limits=open_ended, tree_limits=open_ended)), "budget") == "no limit, $0.00"
    assert cell_words(Row(agent(limits={"cost_usd": 5.0})), "budget") == "0% of the nearest limit, $0.00"
    assert cell_words(Row(agent(limits={"cost_usd": 5.0}, cost_usd=None)), "budget") == "? of the nearest limit, unknown"
    assert cell_words(Row(agent(budget_share=0.3)), "budget").startswith("30%")


# --- what was approved has a tick ----------------------------------------------------------------------------------------


def test_a_request_that_was_approved_has_a_tick_at_once(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    make_house("0").supervisor.approvals.waiting = approval_routes.mockup()
    page = open_window("approvals").page
    assert isinstance(page, ApprovalsPage)
    qtbot.waitUntil(lambda: page.why_not("approvals.once") == "")
    for action in ("approvals.once", "approvals.confirm", "approvals.confirm"):  # it publishes: two keys, and again to send it now
        page.do(action)

    def over() -> Item | None:
        item = page.inbox.current()
        return item if isinstance(item, Item) and not item.live else None

    qtbot.waitUntil(lambda: over() is not None)
    item = over()
    assert item is not None and end_words(item.first.row)[1] == "check"
    qtbot.waitUntil(lambda: page.pane.countdown._mark == "check")


# --- limits in words -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("agent limit cost_usd: 1.1 of 1", "cost $1.10 of $1.00 (agent limit)"),
        ("a-1 halted, tree limit wall_s: 3600.5 of 3600 (x)", "a-1 halted, wall time 1 h 00 min of 1 h 00 min (tree limit) (x)"),
        ("day limit tokens: 2e+06 of 1e+06", "tokens 2.0 M of 1.0 M (day limit)"),
        ("agent limit of_my_own: 1 of 2", "agent limit of_my_own: 1 of 2"),
        ("agent limit cost_usd: e.+ of 1", "agent limit cost_usd: e.+ of 1"),
        ("loop · 212 tickets", "loop · 212 tickets"),
    ],
)
def test_a_limit_is_named_in_its_unit(told: str, said: str) -> None:
    assert plain_reason(told) == said


def test_a_notice_names_the_agent_and_a_question_says_what_is_asked() -> None:
    fleet = Fleet()
    fleet.replace([agent("a-1", name="spender")])
    assert notice_words("a-1 halted, agent limit cost_usd: 1.1 of 1", fleet) == "spender halted, cost $1.10 of $1.00 (agent limit)"
    assert notice_words("Nothing of it", fleet) == "Nothing of it"
    asks = Row(agent("a", state="needs_ok", state_reason="waits for an approval", last_action="asks shell make deploy"))
    assert state_alert("needs_ok", [asks]).text == "a asks for permission: asks shell make deploy"
    over = Row(agent("a", state="over_budget", state_reason="agent limit cost_usd: 1.1 of 1"))
    assert "cost $1.10 of $1.00" in state_alert("over_budget", [over]).text


# --- keyboard: where the focus is can be seen ----------------------------------------------------------------------------


def different(one: QImage, other: QImage) -> int:
    return sum(one.pixelColor(x, y) != other.pixelColor(x, y) for x in range(one.width()) for y in range(one.height()))


@pytest.mark.parametrize("make", [lambda: Button("Adopt", kind="primary"), lambda: Pill("All"), lambda: Button("x", kind="danger")])
def test_focus_is_seen_on_whatever_has_an_edge_of_its_own(make: Callable[[], QWidget], open_window: Opener, qtbot: QtBot) -> None:
    assert callable(open_window)  # the application with its theme
    part = make()
    qtbot.addWidget(part)
    part.setMinimumWidth(90)
    if isinstance(part, Pill):
        part.setChecked(True)
    part.show()
    qtbot.waitExposed(part)
    part.clearFocus()
    plain = part.grab().toImage()
    part.setFocus()
    qtbot.waitUntil(part.hasFocus)
    assert different(plain, part.grab().toImage()) > 80


def test_a_dialog_has_an_edge_and_no_hole_below_its_title(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    make_house("mockup")
    window = open_window("budgets")
    window.do("budgets.forecast")
    [dialog] = window.findChildren(Dialog)
    qtbot.waitUntil(dialog.isVisible)
    corner = dialog.grab().toImage()
    assert corner.pixelColor(0, 40) != corner.pixelColor(4, 40)
    assert dialog.title.height() == dialog.title.heightForWidth(dialog.title.width())
    QTest.keyClick(dialog, Qt.Key.Key_Escape)


# --- the fleet's own words -----------------------------------------------------------------------------------------------


def test_counts_in_filters_have_their_thousands(make_house: House, open_window: Opener, qtbot: QtBot) -> None:
    make_house("5000")
    page = open_window("fleet").page
    assert isinstance(page, FleetPage)
    qtbot.waitUntil(lambda: page.table.bar.pills.pills["attention"].text() == "Attention 1,250")


def test_the_dead_burn_nothing_although_nobody_tells_it() -> None:
    fleet = Fleet()
    fleet.replace([agent("a", burn_usd_per_h=14.0), agent("b", burn_usd_per_h=0.5, control_level="observed")])
    fleet.burn_usd_per_h = 14.5
    assert hourly(fleet) == 14.5
    fleet.killed = True
    fleet.upsert(agent("a", state="killed", burn_usd_per_h=14.0))
    assert hourly(fleet) == 0.5
    fleet.killed = False
    fleet.upsert(agent("b", state="ended"))
    assert hourly(fleet) == 0.0


def test_a_question_counts_only_who_still_runs_below() -> None:
    fleet = Fleet()
    fleet.replace([agent("a"), agent("b", parent_id="a", state="ended"), agent("c", parent_id="a")])
    assert scope_words(ScopeBody(reach="tree", target="a"), fleet) == "a and 1 agent below it"
    fleet.upsert(agent("c", parent_id="a", state="killed"))
    assert scope_words(ScopeBody(reach="tree", target="a"), fleet) == "a"


def test_what_is_older_than_a_day_carries_its_day() -> None:
    now = 1_795_373_877.0
    assert recent_clock(now - 60, now) == clock(now - 60)
    assert recent_clock(now - 86_400, now) == day_clock(now - 86_400) != clock(now - 86_400)
    assert row_moment(now - 60, now) == moment(now - 60)
    assert row_moment(now - 86_400, now).startswith(day_clock(now - 86_400)) and row_moment(now + 60, now).startswith(day_clock(now)[:6])


# --- what a person did reads as such, and nobody else's words do ---------------------------------------------------------


def entry(**more: object) -> ActivityItem:
    row = {"seq": 1, "at": 1.0, "kind": "note", "who": "operator:0", "text": "agent.message: to a-1: and <b>the</b> docs", "audit": 15}
    return ActivityItem(ActivityRow.read(row | more))


def test_what_an_operator_wrote_and_did_is_said_as_a_person_says_it() -> None:
    said = lines_of(entry())
    assert (said.icon, said.title, said.main) == ("user", "root (uid 0)", "wrote: and <b>the</b> docs") and not said.foreign
    assert lines_of(entry(text="agent.interrupt: the turn of a-1")).main == "interrupted its turn"
    assert lines_of(entry(text="freeze: freeze agent a-1")).main == "freeze: freeze agent a-1"
    forged = lines_of(entry(audit=0))
    assert forged.title == "operator:0" and forged.foreign and forged.icon != "user", "an agent's own note calls itself what it likes"


def test_a_list_to_choose_from_has_an_arrow(open_window: Opener, qtbot: QtBot) -> None:
    assert callable(open_window)
    box = Choice()
    qtbot.addWidget(box)
    box.addItem("bubblewrap")
    box.resize(200, 28)
    box.show()
    qtbot.waitExposed(box)
    image = box.grab().toImage()
    arrow = {image.pixel(x, y) for x in range(180, 192) for y in range(8, 20)}
    assert len(arrow) > 1


def test_every_limit_has_its_gauge_and_a_broken_chain_sends_nobody_to_look_twice() -> None:
    lines = gauges(agent(limits={"step_s": 60.0, "consecutive_errors": 5.0}, usage={"step_s": 6.0, "consecutive_errors": 1.0}))
    assert [line[:3] for line in lines] == [("Step time", "6 s", "of 1 min 00 s"), ("Errors in a row", "1", "of 5")]
    broken = Known(whole=False, records=0, why="its trigger is missing", at=1.0)
    assert chain_words(broken, 43, 2.0)[:2] == ("43 records · log broken", "its trigger is missing")
    assert chain_words(Known(whole=False, at=1.0), 43, 2.0)[0].endswith("V shows where")
