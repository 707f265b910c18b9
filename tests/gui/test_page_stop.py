"""Receipts with what was found out later, what could bring an agent back, the armed light by path, rotation, workspaces."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from console.api.agents.sessions import ContextView
from console.api.armed import ArmedView, PathView
from console.api.persistence import FindingView, PersistenceReport
from console.api.secrets import RotationItemView, RotationView
from console.domain.errors import ConsoleError
from console.domain.kill import Connection, Outcome, Receipt, Suspect
from console.gui.pages.fleet.page import FleetPage
from console.gui.pages.fleet.workspace import WorkspaceDialog
from console.gui.pages.kill_switch.cards import path_words, proof_words
from console.gui.pages.kill_switch.page import KillSwitchPage
from console.gui.pages.kill_switch.rotation import RotationDialog
from console.gui.pages.receipt.page import ReceiptPage
from console.gui.pages.receipt.suspects import SuspectsDialog
from console.gui.widgets.facts import Facts
from console.gui.widgets.safe_text import is_plain
from console.gui.window.main import Window
from console.panic.guard_link import GuardLink, ask_beside
from tests.fakes import gui_fixture as fixture
from tests.fakes.operator_server import FakeHouse

Make = Callable[..., FakeHouse]
Open = Callable[..., Window]
HOSTILE = "<b>x</b>\u202e\x1b[31m" + "n" * 100_000


def amended() -> Receipt:
    """Said NOT PROVEN of one agent; it was dead 12 s later."""
    made = fixture.receipt(fixture.mockup_agents(), proven=True, kill_id="k-0036")
    then = {
        "outcome": "not_proven",
        "ms": 5000.0,
        "why": "Still there after SIGKILL.",
        "left": [{"pid": 7, "state": "D", "wchan": "nfs_wait"}],
    }
    late = replace(made.targets[7], ms=12_300.0, evidence={"populated": 0, "amended": [then]})
    words = f"{late.agent_id}: confirmed dead after the receipt was given, 12.3 s after the kill"
    targets = tuple(t for t in (*made.targets[:7], late, *made.targets[8:]) if t.outcome is not Outcome.BEST_EFFORT)
    return replace(made, targets=targets, amended=(words,))


def finding(**more: object) -> FindingView:
    base = {
        "root": "session:ctx-0000",
        "path": ".bashrc",
        "kind": "shell",
        "change": "changed",
        "runs": "every shell of the operator",
        "what": "x",
    }
    rest = {
        "before_sha256": "a",
        "after_sha256": "b",
        "uid": 0,
        "mtime": 1.0,
        "size": 3,
        "excerpt": "+ curl x",
        "could_write": "yes: in it",
    }
    return FindingView.read({**base, **rest, "note": "", **more})


def report(looked_at: float, *found: FindingView, session: str = "ctx-0000", **more: object) -> PersistenceReport:
    base = {"context_id": session, "looked_at": looked_at, "baseline_at": 1.0, "doubts": [], "findings": list(found), "left_out": 0}
    words = "quarantine: not available, because it comes with rollback"
    return PersistenceReport.read({**base, "not_looked": [], "quarantine": words, **more})


def receipt_page(window: Window, kill_id: str, qtbot: QtBot) -> ReceiptPage:
    window.goto("receipt", kill_id)
    page = window.page
    assert isinstance(page, ReceiptPage)
    qtbot.waitUntil(lambda: page.is_ready() and page._hunted)
    return page


def lines(facts: Facts) -> list[tuple[str, str]]:
    return [(fact.left, fact.left_role) for fact in facts._facts]


def said(widget: QWidget) -> str:
    return " ".join(w.accessibleName() for w in widget.findChildren(QWidget))


def test_an_amended_receipt_shows_what_it_said_then_and_when_it_was_proven(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    house.supervisor.receipts["k-0036"] = amended()
    page = receipt_page(open_window("fleet"), "k-0036", qtbot)
    assert page.head.headline.kind == "late" and "1 agent only after this receipt had said NOT PROVEN" in page.head.headline.text
    told = [left for left, _ in lines(page.side._sections["amended"])]
    assert told[1:] == [
        "said then: NOT PROVEN at +5.00 s",
        "pid 7 · state D, uninterruptible sleep · nfs_wait",
        "Still there after SIGKILL.",
        "since then: confirmed dead at +12.30 s",
    ]
    row = next(row for row in page.model.rows if row.is_late)
    assert row.words[0] == "Confirmed later" and not row.is_quiet
    assert page.model.words(page.model.rows.index(row), 4).startswith("said then: NOT PROVEN at +5.00 s")
    assert lines(page.side._sections["evidence"])[1][0] == "/var/lib/watchfloor/cases/k-0036"
    house.supervisor.receipts["k-0038"] = replace(amended(), kill_id="k-0038", targets=amended().targets[:7], amended=())
    page = receipt_page(page.window(), "k-0038", qtbot)  # type: ignore[arg-type]
    qtbot.waitUntil(lambda: page.head.headline.kind == "proven")
    assert not page.side._boxes["amended"].isVisible()


def test_survivors_best_effort_and_what_was_left_alone(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    bad = fixture.receipt(fixture.mockup_agents(), proven=False, kill_id="k-0036")
    house.supervisor.receipts["k-0036"] = replace(bad, excluded=("ide-helper: it is only observed",))
    page = receipt_page(open_window("fleet"), "k-0036", qtbot)
    told = lines(page.side._sections["survivors"])
    assert ("pid 48213 · state D, uninterruptible sleep", "warn") in told and ("waits in nfs_wait_bit_killable", "warn") in told
    assert "nfs_wait_bit_killable" in said(page.side)
    assert "ide-helper: it is only observed" in said(page.side)
    assert {row.words for row in page.model.rows if row.target.outcome is Outcome.BEST_EFFORT} == {("Best effort", "alert", "warn")}


def test_what_could_bring_an_agent_back_is_listed_with_who_runs_it(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    later = time.time() + 1000
    own = finding(path=".git/hooks/pre-commit", could_write="no: owned by root")
    house.supervisor.stops.reports = [
        report(later, own, finding(), left_out=3),
        report(later, finding(path="elsewhere"), session="another-kill"),
        report(1.0, session="ctx-0001"),
    ]
    window = open_window("fleet")
    page = receipt_page(window, "k-0036", qtbot)
    assert page.pills.pills["back"].text() == "Could come back 5", "another kill's session is not in it"
    told = lines(page.side._sections["back"])
    assert told[0] == ("Not known: the look was not whole", "warn") and "before this kill" in told[1][0]
    assert told[-2:] == [("Quarantine", "text2"), ("not available, because it comes with rollback", "text2")]
    window.activateWindow()
    page.do("receipt.back-list")
    assert page.place_view.isVisible() and [row.finding.path for row in page.places.rows] == [".bashrc", ".git/hooks/pre-commit"]
    assert page.places.words(0, 2) == "every shell of the operator" and page.places.words(0, 3) == "yes: in it"
    window.resize(1024, 700)
    assert not page.side.isVisible()
    QTest.keyClick(page.place_view, Qt.Key.Key_Return)
    if not page.side.isVisible():
        page.do("receipt.side")
    assert page.side.isVisible(), "narrow: the same key shows it"


def test_a_hunt_that_says_nothing_is_not_fine(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    window = open_window("fleet")
    page = receipt_page(window, "k-0036", qtbot)
    assert lines(page.side._sections["back"]) == [("Not known: none of its sessions was checked", "warn")]
    house.supervisor.stops.reports = [report(time.time() + 1000)]
    page.reader.read_hunt()
    qtbot.waitUntil(lambda: lines(page.side._sections["back"])[0] == ("Nothing differs from the baseline", "text"))
    house.stop()
    page.reader.read_hunt()
    qtbot.waitUntil(lambda: "did not answer" in lines(page.side._sections["back"])[0][0])


@pytest.mark.parametrize("size", [(1440, 900), (1024, 700)])
def test_hostile_receipts_and_findings_stay_words(size: tuple[int, int], make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    made = amended()
    then = {"outcome": HOSTILE, "ms": "x", "why": HOSTILE, "left": [{"pid": HOSTILE, "state": HOSTILE, "wchan": HOSTILE}, 5]}
    target = replace(made.targets[7], evidence={"amended": [then, "no"]})
    house.supervisor.receipts["k-0036"] = replace(made, targets=(target,), amended=(HOSTILE,), reason=HOSTILE, excluded=(HOSTILE,))
    found = finding(path=HOSTILE, runs=HOSTILE, excerpt=HOSTILE, could_write=HOSTILE)
    house.supervisor.stops.reports = [report(time.time() + 1000, found, doubts=[HOSTILE], quarantine=HOSTILE)]
    page = receipt_page(open_window("fleet", size), "k-0036", qtbot)
    page.do("receipt.back-list")
    page.grab()
    for model in (page.model, page.places):
        assert all(is_plain(model.words(r, c)) for r in range(len(model.rows)) for c in range(len(model.columns)))
    assert all(is_plain(w.accessibleName()) and len(w.accessibleName()) < 20_000 for w in page.findChildren(QWidget))


# --- the armed light, rotation ------------------------------------------------------------------------------------------


def test_each_path_says_how_it_was_proven_how_long_ago_and_why_it_is_amber(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    local = PathView(
        name="local", state="in_doubt", detail="the last canary was proven 300 s ago", proof_age_s=300.0, period_s=60, how="a canary"
    )
    remote = PathView(name="remote", state="proven", proof_age_s=4.0, worst_s=12.0, lease_left_s=56, facts=[("Epoch", "8")])
    absent = PathView(name="engine", state="unavailable", detail="not available, because no Docker engine listens on /run/x")
    paths = [local, absent, remote]
    why = ["local: the last canary was proven 300 s ago"]
    house.supervisor.status = house.supervisor.status.replaced(armed=ArmedView(state="in_doubt", why=why, paths=paths))
    house.supervisor.switch = house.supervisor.switch.replaced(state="in_doubt", paths=paths)
    window = open_window("kill-switch")
    page = window.page
    assert isinstance(page, KillSwitchPage)
    assert proof_words(local, 1060.0, 1000.0) == "proof 6 min old" and proof_words(remote, 1001.0, 1000.0) == "5 s ago"
    assert "tried every 60 s" in path_words(local) and "56 s were left" in path_words(remote)
    qtbot.waitUntil(lambda: page.cards["local"]._kind == "warn")
    assert "300 s ago" in page.cards["local"].accessibleName()
    engine = page.cards["engine"]
    assert engine._kind == "plain" and "Not on this host. not available" in engine.accessibleName(), "what a host lacks is no alarm"
    qtbot.waitUntil(lambda: why[0] in page._mode.text() and page._mode.isVisible())
    page.grab()


def test_secrets_show_who_refused_and_rotate_with_a_reason(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    items = [
        RotationItemView(name="jwt", kind="own", verifier="this server", ok=True, again="due"),
        RotationItemView(name="deploy<b>", kind="command", verifier="forge", ok=False, detail="HTTP 200: it was accepted"),
    ]
    house.supervisor.stops.rotation = RotationView(kept_in="a file", why_not_better=["no Secret Service"], items=items, unfinished=True)
    window = open_window("kill-switch")
    window.do("switch.rotation")
    first = dialog = window.findChildren(RotationDialog)[-1]
    qtbot.waitUntil(lambda: len(first.items._facts) == 2)
    assert "not proven" in dialog.last.text() and "because no Secret Service" in dialog.kept.text()
    assert (dialog.items._facts[0].mark, dialog.items._facts[1].mark) == ("ring", "triangle")
    assert not dialog.main.isEnabled()
    dialog.reason.setText("drill")
    dialog.main.click()
    qtbot.waitUntil(lambda: "every old value refused" in first.last.text())
    assert [e for e in house.supervisor.log if e[0] == "rotate"] == [("rotate", "", {"reason": "drill"})]
    dialog.close()
    house.supervisor.stops.rotation_refused = "The store is locked."
    window.do("switch.rotation")
    dialog = window.findChildren(RotationDialog)[-1]
    qtbot.waitUntil(lambda: dialog.problem.isVisible())
    assert "The store is locked." in dialog.problem.text() and "not known" in dialog.last.text()


# --- workspaces ---------------------------------------------------------------------------------------------------------


def test_a_workspace_is_shown_held_released_and_deleted_with_a_reason(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    now = time.time()
    session = house.supervisor.agents["support-triage"].session
    view = ContextView(context_id=session, path="/w", bytes=41_200_000, complete=True, measured_at=now, created_at=now, last_used=now)
    house.supervisor.stops.contexts = [view.replaced(goes_at=now + 86_400, over="over its bound of 40 MB")]
    window = open_window("fleet")
    page = window.pages["fleet"]
    assert isinstance(page, FleetPage)
    page.view.choose("release-captain")
    card = page.pane.workspace
    assert "no workspace" in card.none.text() and not card.buttons["hold"].isVisible()
    page.view.choose("support-triage")
    qtbot.waitUntil(lambda: bool(card.facts._facts))
    told = {fact.left: fact.right for fact in card.facts._facts}
    assert told["Size"].startswith("41.2 MB") and told["Stays"].startswith("until ") and "over its bound of 40 MB" in told
    assert not card.buttons["release"].isEnabled()

    def do(verb: str) -> WorkspaceDialog:
        card.buttons[verb].click()  # type: ignore[index]
        dialog = window.findChildren(WorkspaceDialog)[-1]
        assert not dialog.main.isEnabled()
        dialog.reason.setText("evidence")
        dialog.main.click()
        return dialog

    do("hold")
    qtbot.waitUntil(lambda: "root (uid 0): evidence" in {fact.left for fact in card.facts._facts})
    assert not card.buttons["delete"].isEnabled() and "release it first" in card.buttons["delete"].toolTip()
    do("release")
    qtbot.waitUntil(lambda: card.buttons["delete"].isEnabled())
    house.supervisor.stops.contexts = [view.replaced(agents_live=1)]
    refused = do("delete")
    qtbot.waitUntil(lambda: refused.problem.isVisible())
    assert "agents live in it" in refused.problem.text()
    house.supervisor.stops.contexts = [view]
    refused.main.click()
    qtbot.waitUntil(lambda: "no workspace" in card.none.text() and card.none.isVisible())
    assert [verb for verb, *_ in house.supervisor.log] == ["context-hold", "context-release", "context-delete", "context-delete"]


# --- suspects ----------------------------------------------------------------------------------------------------------------------------


def with_suspects() -> Receipt:
    made = fixture.receipt(fixture.mockup_agents(), proven=True, kill_id="k-0036")
    agent, peer = (
        made.targets[0].agent_id,
        Connection(made.targets[0].agent_id, "tcp", "127.0.0.1:5", "127.0.0.1:6", 40, 90, "postgres", 26, ""),
    )
    rows = [
        Suspect(agent, 41, 1, "/bin/sleep", 0, "sleep 600 & true", "postgres (process 40) started it", "arguments", True, 40),
        Suspect(agent, 42, 1, "/bin/sleep", 0, HOSTILE, "it works in the agent's folder", "working folder", False, 40),
    ]
    return replace(made, connections=(peer,), connections_state="recorded", suspects=tuple(rows))


def test_suspects_are_ended_by_name_and_what_became_of_each_is_shown(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    house.supervisor.receipts["k-0036"] = with_suspects()
    page = receipt_page(open_window("fleet"), "k-0036", qtbot)
    assert page.side.end_suspects.isVisible() and page.why_not("receipt.suspects") == ""
    page.do("receipt.suspects")
    dialog = page.window().findChild(SuspectsDialog)
    assert dialog is not None and dialog.chosen() == [41], "a suspect by working folder alone is never preselected"
    assert all(is_plain(box.text()) for box, _ in dialog.boxes) and dialog.main.text() == "Kill 1 process"
    dialog.boxes[1][0].click()
    house.guard.suspects_answer = {"ok": False, "error": "Process 42 is no suspect: nothing was killed.", "remedy": "Read the receipt."}
    dialog.main.click()
    qtbot.waitUntil(lambda: "nothing was killed" in dialog.problem.text() and dialog.main.isEnabled())
    dialog.boxes[0][0].click()
    words = "not killed: its number belongs to another process by now"
    ended = [{"pid": 42, "done": False, "words": words}, {"pid": 41, "done": True, "words": "killed"}]
    house.guard.suspects_answer = {"ok": True, "ended": ended, "n": 2, "n_done": 1}
    dialog.main.click()
    qtbot.waitUntil(lambda: dialog.told[42].text() == words)
    assert house.guard.suspects_asked == [("k-0036", [41, 42]), ("k-0036", [42])]
    assert not dialog.main.isVisible(), "one that was answered is not asked again"
    dialog.close()


def test_a_kill_without_suspects_and_a_guard_that_is_away(make_house: Make, open_window: Open, qtbot: QtBot) -> None:
    house = make_house()
    house.supervisor.receipts["k-0036"] = replace(with_suspects(), suspects=())
    page = receipt_page(open_window("fleet"), "k-0036", qtbot)
    assert not page.side.end_suspects.isVisible() and page.why_not("receipt.suspects") == "This kill has no suspects."
    link, told = GuardLink(None), list[ConsoleError]()
    ask_beside(link, 1.0, "suspects", print, told.append)
    assert "does not answer" in told[0].what
