"""A person looks at the rules from the window, on a real supervisor: what an agent did is there, a call is explained, a rule is changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from pytestqt.qtbot import QtBot

from console.gui.pages.fleet.page import FleetPage
from console.gui.pages.fleet.verdicts import shape_of
from console.gui.pages.policy.page import PolicyPage
from console.gui.window.main import Window
from console.settings.places import Places, find_places
from tests.fakes.instance import Instance
from tests.fakes.standing import short_folder

CALLS = "".join(
    f"v = agent.permission({tool!r}, {argument!r}); print({argument!r}, v['verdict'], flush=True)\n"
    for tool, argument in (("shell", "ls -la"), ("shell", "sudo id"), ("read_file", ".env"))
)


@pytest.fixture
def places() -> Iterator[Places]:
    with short_folder() as folder:
        yield find_places(str(folder / "s"), create=True)


@pytest.mark.usefixtures("forked")
def test_what_an_agent_did_is_seen_explained_and_ruled(places: Places, open_window: Callable[..., Window], qtbot: QtBot) -> None:
    with Instance(places.state_dir) as it:
        agent = it.python(CALLS + "time.sleep(300)")
        it.says(agent, ".env allow")
        window = open_window("fleet")
        fleet: object = window.page
        assert isinstance(fleet, FleetPage)
        stream = fleet.pane.verdicts
        qtbot.waitUntil(lambda: [shape_of(item)[0] for item in stream.model.rows] == ["Allowed", "Denied", "Allowed"])
        denied = stream.model.rows[1]
        assert denied.row.text == "sudo id" and denied.audit and not stream.why_not_explain(denied)
        stream.open(denied)
        qtbot.waitUntil(lambda: isinstance(window.page, PolicyPage))
        page = window.page
        assert isinstance(page, PolicyPage)
        explain = page.tabs.explain
        qtbot.waitUntil(lambda: explain.shown is not None)
        assert explain.verdict.text() == "Deny: shell(sudo:*)" and agent in explain.lines.lines[-1].words
        explain.tool.setText("http_request")
        explain.call.setPlainText("https://out.example/")
        qtbot.waitUntil(lambda: explain.shown is not None)
        assert explain.shown is not None and explain.shown.rule == "sequence credential-then-network", (
            "as its lineage has read a credential"
        )
        window.goto("policy", "rules")
        qtbot.waitUntil(lambda: {row.rule: row.hits for row in page.tabs.rules.model.rows}.get("shell(sudo:*)") == 1)
        qtbot.waitUntil(page.is_ready)
        qtbot.waitUntil(lambda: page.header.facts.state[0] == "In force")
        assert page.reader.policy is not None and page.reader.policy.is_default
        window.goto("policy", "sequences")
        qtbot.waitUntil(lambda: [row.agent_id for row in page.tabs.sequences.mark_model.rows] == [agent])
        window.goto("policy", "backtest")
        page.tabs.backtest.field.setPlainText("shell(ls:*)")
        qtbot.waitUntil(lambda: page.tabs.backtest.tried is not None)
        assert page.tabs.backtest.words.text() == "Would have decided 1 of 3 differently, 0 of them looser."
        page.tabs.backtest.reason.setText("nobody lists")
        page.do("policy.save")
        qtbot.waitUntil(lambda: page.reader.policy is not None and not page.reader.policy.is_default)
        assert "shell(ls:*)" in json.loads(places.policy_file.read_text())["permissions"]["deny"]
        assert any(row.kind == "policy.changed" and "nobody lists" in row.what for row in it.api.audit(q="policy.changed").rows)
        window.goto("policy", "explain")
        explain.tool.setText("shell")
        explain.call.setPlainText("ls")
        qtbot.waitUntil(lambda: explain.shown is not None and explain.shown.verdict == "deny")
        places.policy_file.write_text("{")
        page.resync()
        qtbot.waitUntil(lambda: page.header.facts.state[0] == "Newest file NOT in force")
        assert "the last good rules stay in force" in page.tabs.rules.problem.text() and page.tabs.rules.model.rows
        window.close()
