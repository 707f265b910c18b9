"""The policy page against the stand-in supervisor: rules, lint, a call explained while it is typed, sequences, a change tried and saved."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from console.api.messages import AgentView
from console.api.policy import page as v
from console.api.policy import rules as p
from console.gui.kit.table import words_of
from console.gui.pages.fleet.page import FleetPage
from console.gui.pages.policy import tools
from console.gui.pages.policy.backtest import changed_words
from console.gui.pages.policy.header import head_facts
from console.gui.pages.policy.page import PolicyPage
from console.gui.pages.policy.profiles import ChooseDialog
from console.gui.pages.policy.rules import COLUMNS, mark_words
from console.gui.pages.policy.words import AskedCall, asked_call, explain_argument, kind_words, means
from console.gui.widgets.safe_text import is_plain
from console.gui.window.main import Window
from tests.fakes import policy_routes as fake
from tests.fakes.approval_routes import HOSTILE
from tests.fakes.operator_server import FakeHouse

House = Callable[..., FakeHouse]
Opener = Callable[..., Window]


def page_of(window: Window) -> PolicyPage:
    assert isinstance(window.page, PolicyPage)
    return window.page


def key(window: Window, code: Qt.Key, mods: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    QTest.keyClick(QApplication.focusWidget() or window, code, mods)


@pytest.fixture
def house(make_house: House) -> FakeHouse:
    """Two agents: the rules are what is looked at."""
    made = make_house("0")
    for name in ("dependency-audit", "cve-lookup"):
        made.supervisor.agents[name] = AgentView(id=name, name=name, session=f"ctx-{name}", control_level="managed", state="running")
    return made


def test_lists_of_any_length(house: FakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    page = page_of(open_window("policy"))
    for number in (0, 1, 200, 10_000):
        house.supervisor.policy.policy = fake.rules(number)
        page.resync()
        qtbot.waitUntil(lambda wanted=number: len(page.tabs.rules.model.rows) == wanted)  # type: ignore[misc]
        qtbot.waitUntil(lambda: not page.reader.reading)
        assert page.tabs.rules.empty.isVisible() == (number == 0) and page.pane.isVisible() == (number > 0)
        if not number:
            assert "every call is denied" in page.tabs.rules.empty.text()


def test_rules_stand_deny_before_ask_before_allow_with_hits_last_use_and_place(house: FakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("policy")
    page = page_of(window)
    order = [row.list for row in page.tabs.rules.model.rows]
    assert order == sorted(order, key=["deny", "ask", "allow"].index) and set(order) == {"deny", "ask", "allow"}
    rows = {row.rule: row for row in page.tabs.rules.model.rows}
    assert words_of(COLUMNS)(rows["shell(sudo:*)"], "hits") == "decided 41 calls in 14 days"
    assert mark_words(rows["file(read:/etc/shadow)"]) == "never used in 14 d"
    assert mark_words(rows["shell(find:*)"]).startswith("NOT in force: find runs")
    page.tabs.rules.view.choose("allow shell(ls:*)")
    qtbot.waitUntil(lambda: len(page.pane.calls_model.rows) == 3)
    told = " ".join(line.words for line in page.pane.lines.lines)
    assert "A command that begins with ls" in told and "line 11 of /var/lib/watchfloor/policy.json" in told and "640 calls" in told
    QTest.keyClick(page.tabs.bar.search, Qt.Key.Key_G)
    page.tabs.bar.search.setText("never")
    assert [row.rule for row in page.tabs.rules.model.rows] == ["file(read:/etc/shadow)", "shell(terraform apply:*)", "shell(find:*)"]
    assert page.tabs.bar.shown.text() == "3 of 12 shown"
    page.tabs.rules.view.setFocus()
    window.resize(1024, 700)
    qtbot.waitUntil(lambda: page.is_narrow and not page.pane.isVisible())
    key(window, Qt.Key.Key_Return)
    assert page.pane.isVisible()
    key(window, Qt.Key.Key_Return)
    assert not page.pane.isVisible()


def test_a_file_that_is_not_in_force_is_red_and_says_what_is(house: FakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    broken = "settings.json: line 12, column 3: Expecting ',' delimiter."
    house.supervisor.policy.policy = fake.rules().replaced(problem=broken)
    page = page_of(open_window("policy"))
    assert page.header.facts.state == ("Newest file NOT in force", "diamond", "danger") and "last good" in page.header.facts.line
    assert (
        page.tabs.rules.problem.isVisible()
        and broken in page.tabs.rules.problem.text()
        and "last good rules stay in force" in page.tabs.rules.problem.text()
    )
    badge = page.badge()
    assert badge is not None and badge.kind == "danger"
    house.supervisor.policy.policy = p.PolicyView(problem="it is empty", is_default=False)
    page.resync()
    qtbot.waitUntil(lambda: not page.tabs.rules.model.rows)
    assert page.header.facts.state[0] == "Everything is denied" and "every call is denied" in page.tabs.rules.problem.text()
    qtbot.waitUntil(lambda: not page.reader.reading)
    house.supervisor.policy.broken = house.supervisor.approvals.broken_policy = "The ledger cannot be read."
    page.resync()
    qtbot.waitUntil(lambda: "ledger cannot be read" in page.header.facts.line and "ledger cannot be read" in page.tabs.lint.problem.text())
    assert page.header.facts.state[2] == "warn"
    page.tabs.explain.call.setPlainText("ls")
    qtbot.waitUntil(lambda: page.tabs.explain.verdict.text().startswith("Not known:"))


@pytest.mark.parametrize("tab", ["rules", "lint", "matrix", "sequences"])
def test_what_cannot_be_read_anew_says_that_it_is_old(tab: str, house: FakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("policy")
    page = page_of(window)
    table = getattr(page.tabs, tab)
    shown = page.tabs.sequences.patterns.model() if tab == "sequences" else table.model
    window.goto("policy", tab)
    qtbot.waitUntil(lambda: shown.rowCount() > 0 and not page.reader.reading)
    before = table.problem.text()
    assert "Old" not in before
    house.supervisor.policy.broken = house.supervisor.approvals.broken_policy = "The ledger cannot be read."
    page.resync()
    qtbot.waitUntil(lambda: table.problem.isVisible() and table.problem.text().startswith("Old, read at "))
    assert "ledger cannot be read" in table.problem.text() and shown.rowCount() > 0, "what was read stays, and is called old"
    qtbot.waitUntil(lambda: not page.reader.reading)
    house.supervisor.policy.broken = house.supervisor.approvals.broken_policy = ""
    page.resync()
    qtbot.waitUntil(lambda: table.problem.text() == before)


def test_unknown_is_never_green() -> None:
    view = fake.rules()
    assert head_facts(view, "", stale=False).state[2] == "ok"
    for told in (
        head_facts(None, "", stale=False),
        head_facts(view, "it is away", stale=False),
        head_facts(view, "", stale=True),
        head_facts(view.replaced(problem="x"), "", stale=False),
    ):
        assert told.state[2] != "ok"
    unjudged = p.PolicyTryView(recorded=0, changed=0, looser=0)
    assert "not known" in changed_words(unjudged)


def test_findings_tools_and_sequences_each_by_its_key(house: FakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("policy")
    page = page_of(window)
    key(window, Qt.Key.Key_L)
    qtbot.waitUntil(lambda: page.tabs.bar.tabs.chosen() == "lint" and page.tabs.lint.view.current() is not None)
    assert page.tabs.bar.tabs.pills["lint"].text() == "Lint 3"
    told = [line.words for line in page.pane.lines.lines]
    assert told[0].startswith("Refused: find runs") and "shell(sudo:*)" in told and "file(write:/etc/**)" in told

    def scoped() -> None:
        agent = house.supervisor.agents["cve-lookup"]
        house.supervisor.upsert(agent.replaced(scopes=["READ_FS"], state="running"))

    house.on_loop(scoped)
    key(window, Qt.Key.Key_M)
    qtbot.waitUntil(lambda: len(page.tabs.matrix.model.rows) == 4)
    assert page.tabs.matrix.problem.text() == "Bounds of a permission matrix: none is in force."
    page.tabs.matrix.view.choose(tools.key_of(next(row for row in page.tabs.matrix.model.rows if row.names == ["delete_file"])))
    qtbot.waitUntil(lambda: window.fleet.rows["cve-lookup"].view.scopes == ["READ_FS"])
    page.show_pane()
    told = [line.words for line in page.pane.lines.lines]
    assert any(line.startswith("DELETE_FS: granted at the start") and "Denied to cve-lookup" in line for line in told)
    key(window, Qt.Key.Key_S)
    qtbot.waitUntil(lambda: len(page.tabs.sequences.mark_model.rows) == 1)
    assert "1 step in 1 lineage" in page.tabs.sequences.strip.words.text()
    assert any("action read and paths" in line.words for line in page.pane.lines.lines)
    assert page.why_not("policy.agent")
    page.tabs.sequences.marks.setFocus()
    page.tabs.sequences.marks.setCurrentIndex(page.tabs.sequences.mark_model.index(0, 0))
    assert "never taken back" in page.pane.lines.lines[0].words
    key(window, Qt.Key.Key_J)
    qtbot.waitUntil(lambda: isinstance(window.page, FleetPage))
    assert isinstance(window.page, FleetPage) and window.page.view.current().id == "dependency-audit"
    house.supervisor.policy.sequences = v.SequencesView(problem="line 3 is no sequence")
    window.goto("policy", "sequences")
    qtbot.waitUntil(lambda: page.tabs.sequences.problem.isVisible())
    assert "NOT in force: line 3" in page.tabs.sequences.problem.text() and "every call is denied" in page.tabs.sequences.no_patterns.text()


def test_a_call_is_explained_while_it_is_typed(house: FakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("policy")
    page = page_of(window)
    key(window, Qt.Key.Key_E)
    assert QApplication.focusWidget() is page.tabs.explain.call
    QTest.keyClicks(page.tabs.explain.call, "ls && rm -rf /srv")
    qtbot.waitUntil(lambda: page.tabs.explain.shown is not None)
    assert page.tabs.explain.verdict.text() == "Deny: shell(rm:*)"
    assert [(row.verdict, row.rule) for row in page.tabs.explain.model.rows] == [("allow", "shell(ls:*)"), ("deny", "shell(rm:*)")]
    page.tabs.explain.agent.setText("dependency-audit")
    assert page.tabs.explain.shown is None, "the old answer is none any more"
    qtbot.waitUntil(lambda: page.tabs.explain.shown is not None)
    assert house.supervisor.policy.asked[-1].agent_id == "dependency-audit"
    many = len(house.supervisor.policy.asked)
    page.tabs.explain.agent.setText("nobody-of-that-name")
    assert "No agent of that name" in page.tabs.explain.verdict.text() and not page.tabs.explain.model.rows
    qtbot.wait(350)
    assert len(house.supervisor.policy.asked) == many
    page.tabs.explain.agent.setText("")
    body, _ = page.tabs.explain.asked()
    assert body is not None
    page.tabs.explain.call.setPlainText("rm x")
    page.tabs.explain._came(body, fake.explained(body))
    assert page.tabs.explain.shown is None and not page.tabs.explain.model.rows, "an answer for other words is none"


def test_a_recorded_call_is_judged_exactly_and_shown_in_codes(house: FakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("policy")
    page = page_of(window)
    window.goto("policy", explain_argument(AskedCall("shell", HOSTILE[2], "dependency-audit", "/w")))
    qtbot.waitUntil(lambda: page.tabs.explain.shown is not None)
    body = house.supervisor.policy.asked[-1]
    assert (body.argument, body.agent_id, body.cwd) == (HOSTILE[2], "dependency-audit", "/w")
    assert (
        "\x1b" not in page.tabs.explain.call.toPlainText()
        and "\\x1b[31m" in page.tabs.explain.call.toPlainText()
        and page.tabs.explain.hidden.isVisible()
    )
    page.tabs.explain.call.setPlainText("ls")
    qtbot.waitUntil(lambda: page.tabs.explain.shown is not None)
    assert house.supervisor.policy.asked[-1].argument == "ls" and not page.tabs.explain.hidden.isVisible()
    window.goto("policy", explain_argument(AskedCall("shell", "ls", "gone")))
    qtbot.waitUntil(lambda: page.tabs.explain.shown is not None)
    assert house.supervisor.policy.asked[-1].agent_id == "" and "no longer in the fleet" in page.tabs.explain.whose.text()


def test_calls_of_a_rule_that_decided_another_are_read_again(house: FakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    """The pane must not go on saying that none was decided, or show the old ones, beside a count that grew."""
    room = house.supervisor.policy
    room.policy = fake.rules(1)
    calls, room.calls = [one.replaced(rule=room.policy.rules[0].rule) for one in room.calls], []
    page = page_of(open_window("policy"))
    qtbot.waitUntil(lambda: "No recorded call" in page.pane.no_calls.text() and not page.reader.reading)
    room.calls = calls
    used = room.policy.rules[0].replaced(hits=room.policy.rules[0].hits + len(calls), last_at=1.0)
    room.policy = room.policy.replaced(rules=[used])
    page.resync()
    qtbot.waitUntil(lambda: len(page.pane.calls_model.rows) == len(calls) > 0)


def test_what_is_asked_for_by_another_page_is_read_strictly() -> None:
    call = AskedCall("shell", "ls \u202e\n\x00", "a", "/w")
    assert asked_call(explain_argument(call)) == call
    for other in ("", "rules", "explain ", "explain [1,2,3,4]", 'explain ["a"]', "explain {}", 'xexplain ["a","b","c","d"]'):
        assert asked_call(other) is None


def test_a_change_is_tried_first_and_saved_with_a_reason(house: FakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("policy")
    page = page_of(window)
    key(window, Qt.Key.Key_B)
    back = page.tabs.backtest
    back.modes.pills["allow"].click()
    back.field.setFocus()
    QTest.keyClicks(back.field, "shell(cargo publish:*)")
    assert back.why_not() == "The recorded calls were not checked with exactly this yet."
    qtbot.waitUntil(lambda: back.tried is not None)
    assert back.words.text().startswith("Would have decided 14 of 2,310 differently, 1 of them looser.")
    assert [row.looser for row in back.view.row_model.rows] == [True, False], "the looser ones first"
    assert back.why_not() == "A reason is needed." and not back.save.isEnabled()
    back.reason.setText("releases")
    key(window, Qt.Key.Key_S, Qt.KeyboardModifier.ControlModifier)
    saved = house.supervisor.approvals.saved
    qtbot.waitUntil(lambda: len(saved) == 1)
    assert (saved[0].text, saved[0].base_sha256, saved[0].reason) == ("tried ['shell(cargo publish:*)']", "b" * 64, "releases")
    qtbot.waitUntil(lambda: back.field.toPlainText() == "")
    back.field.setPlainText("shell(ls\u202e:*)")
    assert "without hidden characters" in back.words.text() and back.body()[0] is None


def test_what_was_tried_over_other_rules_is_not_saved(house: FakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("policy", wait=True)
    window.goto("policy", "backtest")
    page = page_of(window)
    back = page.tabs.backtest
    back.modes.pills["file"].click()
    qtbot.waitUntil(lambda: '"shell(ls:*)"' in back.field.toPlainText())
    back.field.setPlainText(back.field.toPlainText().replace("ls", "cat"))
    back.reason.setText("r")
    qtbot.waitUntil(lambda: back.tried is not None and not back.why_not())
    house.supervisor.policy.policy = fake.rules().replaced(sha256="d" * 64)
    page.resync()
    qtbot.waitUntil(lambda: page.reader.policy is not None and page.reader.policy.sha256 == "d" * 64)
    assert "Other rules are in force" in back.why_not()
    back.put_in_force()
    qtbot.wait(50)
    assert not house.supervisor.approvals.saved and back.problem.isVisible()


def test_an_answer_over_rules_that_hold_no_more_is_not_taken_for_the_newer_one(house: FakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    """It holds the older rules whole: put over the newer ones it would take back what somebody changed."""
    window = open_window("policy", wait=True)
    window.goto("policy", "backtest")
    back = page_of(window).tabs.backtest
    back.field.setPlainText("shell(ls:*)")
    back.reason.setText("r")
    qtbot.waitUntil(lambda: back.tried is not None and not back.why_not())
    late, old = back._asked, back.tried
    assert late is not None and old is not None
    back.take(fake.rules().replaced(sha256="d" * 64))
    back._late.stop()
    back.attempt()
    back._came(late, old)
    assert back.tried is None and back.why_not(), "what is put in force was tried over what is in force"


def test_hostile_text_is_shown_never_obeyed(house: FakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    room = house.supervisor.policy
    room.policy = fake.hostile_rules()
    room.findings = v.LintView(
        findings=[v.LintFinding(severity=t, kind=t, rule=t, what=t, swallows=[t[:300]], swallows_count=9) for t in HOSTILE], count=99
    )
    room.tools = v.ToolsView(
        tools=[v.ToolRow(names=[t[:500]] * 3, family=t[:90], action=t[:90], scopes=[t[:90]], judged=t, constraints=t) for t in HOSTILE]
    )
    steps = [v.SequenceStep(name=t[:300], takes=t) for t in HOSTILE]
    marks = [
        v.MarkRow(pattern=t[:99], step=t, value=t, agent_id=t[:99], session=t, root_id=t, lineage=t[:99], at=1e300, text=t) for t in HOSTILE
    ]
    patterns = [v.SequenceRow(name=t[:300], why=t, steps=steps, same=t[:99], tighten=t[:99]) for t in HOSTILE]
    room.sequences = v.SequencesView(patterns=patterns, marks=marks, problem=HOSTILE[2])
    room.answer = v.ExplainView(
        verdict=HOSTILE[0], rule=HOSTILE[1], reason=HOSTILE[2], words=HOSTILE[4], sequences=list(HOSTILE),
        parts=[v.ExplainedPart(text=t, verdict=t[:20], rule=t, step=t[:90], reason=t) for t in HOSTILE],
        steps=[v.ExplainedStep(argv=[t[:900]], program=t[:300]) for t in HOSTILE],
    )  # fmt: skip
    window = open_window("policy")
    page = page_of(window)
    for tab in ("rules", "lint", "matrix", "sequences", "explain"):
        window.goto("policy", tab)
        if tab == "explain":
            page.tabs.explain.call.setPlainText("ls")
        qtbot.wait(60)
        qtbot.waitUntil(page.is_ready)
        for listing in (page.tabs.rules, page.tabs.lint, page.tabs.matrix):
            if listing is page.tabs.stack.currentWidget():
                for row in range(len(listing.model.rows)):
                    listing.view.setCurrentIndex(listing.model.index(row, 0))
                    page.show_pane()
        window.grab()
        shown = [label for label in window.findChildren(QLabel) if label.isVisible()]
        assert all(label.textFormat() is Qt.TextFormat.PlainText for label in shown)
        assert all(is_plain(label.text()) for label in shown), [label.text() for label in shown if not is_plain(label.text())]
    qtbot.waitUntil(lambda: page.tabs.explain.shown is not None)
    assert page.tabs.explain.verdict.text().startswith("Unknown:")


def test_a_matrix_is_never_called_in_force_when_it_is_not() -> None:
    shown = {
        state: tools.matrix_words(v.ToolsView(matrix="why.", matrix_state=state))[1:] for state in ("none", "last_good", "unknown", "", "x")
    }
    assert shown["none"] == ("text2", "ring") and shown["last_good"] == shown["unknown"] == ("danger", "diamond")
    assert shown[""] == shown["x"] == ("warn", "triangle") and tools.matrix_words(v.ToolsView(matrix_state="in_force"))[0] == ""


def test_rules_are_told_in_words() -> None:
    assert [kind_words(rule) for rule in ("shell(a:*)", "file(delete:/x)", "network(outbound:*)", "odd")] == [
        "Command", "File, delete", "Host", "Not known",
    ]  # fmt: skip
    assert means("shell(*)") == "Every command." and means("shell(pwd)") == "Exactly the command pwd"
    assert "to delete" in means("file(delete:/x/**)").lower() and means("network(outbound:a.b)") == "To reach a.b"


def test_profiles_stand_side_by_side_and_one_is_chosen_with_a_reason(house: FakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    window = open_window("policy")
    page = page_of(window)
    page.tabs.rules.view.setFocus()
    key(window, Qt.Key.Key_P)
    tab = page.tabs.profiles
    qtbot.waitUntil(lambda: tab.tried is not None and tab.view is not None)
    strict, coding, observe = tab.cards
    assert "In force for Claude Code, Codex" in coding.judges.text() and "no agents" in strict.judges.text()
    assert "Would ask 79, 6%" in coding.counts.accessibleName()
    assert [row.argument for row in tab.calls.row_model.rows] == ["git push origin main", "npm install left-pad", "make test"]
    assert "26 calls of 1,402 left out" in tab.left_out.text() and tab.left_out.isVisible()
    tab.kind.setFocus()
    key(window, Qt.Key.Key_Down)
    assert tab.kind.currentData() == "codex" and observe.choose.text() == "Choose for Codex…"
    observe.choose.setFocus()
    key(window, Qt.Key.Key_Space)
    dialog = window.findChild(ChooseDialog)
    assert dialog is not None and any("No tool call is blocked" in one.text() for one in dialog.findChildren(QLabel))
    assert not dialog.main.isEnabled()
    QTest.keyClicks(dialog.reason, "a trial for a week")
    dialog.main.click()
    qtbot.waitUntil(lambda: "In force for Codex" in observe.judges.text())
    assert house.supervisor.policy.profiles.choices[0].reason == "a trial for a week"
    assert "Codex" not in coding.judges.text() and not observe.choose.isEnabled()


def test_a_comparison_without_calls_and_one_that_fails_say_so(house: FakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    house.supervisor.policy.compared = p.ProfilesTriedView(counts=[p.ProfileCount(name=name) for name in ("strict", "coding", "observe")])
    page = page_of(open_window("policy"))
    page.do("policy.profiles")
    tab = page.tabs.profiles
    qtbot.waitUntil(lambda: tab.tried is not None and tab.view is not None)
    assert tab.empty.isVisible() and "nothing to compare" in tab.empty.text()
    assert "none" in tab.cards[0].counts.accessibleName()
    house.supervisor.policy.broken = "The ledger cannot be read."
    tab.read()
    qtbot.waitUntil(lambda: "ledger cannot be read" in tab.problem.text() and tab.problem.isVisible())


def test_hostile_calls_and_types_are_shown_as_text_among_the_profiles(house: FakeHouse, open_window: Opener, qtbot: QtBot) -> None:
    house.supervisor.policy.compared = fake.compared(texts=tuple(text[:1000] for text in HOSTILE))
    odd = p.ProfileChoice(agent_type="<b>x</b>\u202e", profile="strict", reason="r", by="b", at=1.0)
    house.supervisor.policy.profiles = fake.profiles().replaced(choices=[odd], own_rules=True)
    page = page_of(open_window("policy"))
    page.do("policy.profiles")
    tab = page.tabs.profiles
    qtbot.waitUntil(lambda: tab.tried is not None and tab.view is not None)
    assert tab.own.isVisible() and is_plain(tab.cards[0].judges.text()) and is_plain(tab.kind.itemText(tab.kind.count() - 1))
    assert len(tab.calls.row_model.rows) == len(HOSTILE)
