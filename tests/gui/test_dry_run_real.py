"""Dangers and dry-run from the window, on a real supervisor: confirmed in the dialog, planned, the plan seen whole and approved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from console.api.policy.dry_run import PlanCallView, PlanView, PreviewLine
from console.gui.pages.activity.page import ActivityPageView
from console.gui.pages.activity.talk import DangerDialog
from console.gui.pages.fleet.dry_run import DryRunCard, PlanDialog, plan_text
from console.gui.pages.fleet.new_agent import NewAgentDialog
from console.gui.pages.fleet.page import FleetPage
from console.gui.widgets.safe_text import is_plain
from console.gui.window.main import Window
from console.settings.options import save_options
from console.settings.places import Places, find_places
from tests.fakes.instance import Instance, until
from tests.fakes.standing import short_folder

QUIET = Path(__file__).parents[1] / "fakes" / "quiet_program.py"
TOY = (
    "import os, sys, time; sys.path.insert(0, os.environ['WATCHFLOOR_TOYS']); import client; agent = client.Agent(); "
    "note = 'terraform apply'; "
    "[(print(agent.permission('read_file', 'a.txt')['verdict'], flush=True), time.sleep(0.3)) for _ in range(10 ** 6)]"
)


@pytest.fixture
def places() -> Iterator[Places]:
    options = {"programs.claude_code": str(QUIET), "programs.memory_free_min_mib": 0}
    with short_folder() as folder:
        found = find_places(str(folder / "s"), create=True)
        save_options(found.settings_file, options)
        found.policy_file.write_text('{"permissions": {"allow": ["file(read:${WORKSPACE}/**)"]}}')
        yield found


@pytest.mark.usefixtures("forked")
def test_confirmed_planned_seen_whole_and_approved(places: Places, open_window: Callable[..., Window], qtbot: QtBot) -> None:
    with Instance(places.state_dir) as it:
        window = open_window("fleet")
        page = window.page
        assert isinstance(page, FleetPage)
        page.do("fleet.run")
        [dialog] = window.findChildren(NewAgentDialog)
        form = dialog.form
        qtbot.waitUntil(lambda: form.templates is not None)
        assert form.templates is not None
        form.kind.pills["command"].click()
        form.templates.pills["open"].click()
        form.command.setText(f'python3 -c "{TOY}"')
        form.dry_run.click()
        qtbot.waitUntil(dialog.dangers.isVisible)
        assert "change infrastructure: “terraform apply" in dialog.dangers.lines.text()
        assert not dialog.main.isEnabled() and "Say why" in dialog.why_not()
        dialog.dangers.reason.setText("it only says so")
        qtbot.waitUntil(dialog.main.isEnabled)
        dialog.main.click()
        qtbot.waitUntil(lambda: page.view.current() is not None)
        [agent] = it.api.fleet().agents
        assert agent.dry_run and any(row.kind == "danger.confirmed" for row in it.api.audit(q="it only says so").rows)
        card = page.findChild(DryRunCard)
        assert isinstance(card, DryRunCard)
        qtbot.waitUntil(lambda: "In dry-run, by " in card.state.text())
        until(lambda: it.api.plans(agent.id).plans)
        card.open()
        [seen] = window.findChildren(PlanDialog)
        qtbot.waitUntil(lambda: seen.plan is not None and bool(seen.text.toPlainText()))
        assert "1. read_file by " in seen.text.toPlainText() and seen.sha.text().startswith("sha256 ")
        assert not seen.main.isEnabled() and "Give a reason" in seen.why_not("approve")
        seen.reason.setText("as shown")
        assert not seen.why_not("approve")
        seen.main.click()
        qtbot.waitUntil(lambda: "allow\n" in it.output(agent.id))
        assert "done" in [plan.state for plan in it.api.plans(agent.id).plans] and it.output(agent.id).count("allow") == 1
        window.close()


@pytest.mark.usefixtures("forked")
def test_a_message_that_names_one_is_confirmed_below_the_feed(places: Places, open_window: Callable[..., Window], qtbot: QtBot) -> None:
    with Instance(places.state_dir) as it:
        from console.api.agents.programs import ProgramItem, ProgramsBody

        agent = it.api.start_programs(ProgramsBody(items=[ProgramItem(agent="claude-code", prompt="Begin")])).items[0].id
        window = open_window("fleet")
        window.goto("activity", agent)
        page = window.page
        assert isinstance(page, ActivityPageView)
        talk = page.talk
        qtbot.waitUntil(lambda: talk.agent_id == agent and not talk.why_not("say"))
        talk.field.setPlainText("now git push --force")
        talk.say()
        qtbot.waitUntil(lambda: any(one.isVisible() for one in window.findChildren(DangerDialog)))
        [asked] = window.findChildren(DangerDialog)
        assert "force push" in asked.found.text() and not asked.main.isEnabled() and "git push --force" in asked.message.text()
        assert "--force" not in it.output(agent), "nothing was sent yet"
        asked.reason.setText("the branch is mine")
        asked.main.click()
        qtbot.waitUntil(lambda: "push --force" in it.output(agent))
        assert any(row.kind == "danger.confirmed" for row in it.api.audit(q="the branch is mine").rows)
        window.close()


def test_a_hostile_plan_is_plain_and_whole() -> None:
    call = PlanCallView(
        seq=1, agent_id="a", agent_name="<b>\u202ex", tool="shell", argument="rm -rf /\u202e # safe\n" + "x" * 50_000 + "END",
        digest="0" * 64, verdict="ask", rule="<i>", reason="why", outcome="allow", outcome_words="w", at=0.0, state="planned", times=3,
        preview=[PreviewLine(kind="files", words="none\u200b", level="danger")],
    )  # fmt: skip
    told = plan_text(PlanView(id="p-1", head="a", state="open", sha256="0" * 64, opened_at=0.0, calls=[call], left_out=2))
    assert all(is_plain(line) for line in told.split("\n")) and "END" in told and "asked 3 times" in told and "2 calls more" in told
    assert "(!!)" in told
