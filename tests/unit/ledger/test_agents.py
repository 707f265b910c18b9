from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import event

from console.domain.agent import Agent, AgentId, AgentState, ContextId, ProcessIdentity, SandboxKind
from console.domain.budget import Limits, Usage, first_breach
from console.domain.errors import NotRecorded
from console.domain.ids import ControlLevel
from console.domain.network import NetworkMode, Sensitivity
from console.ledger.store import Ledger


def agent(agent_id: str = "a1", **changes: object) -> Agent:
    base = Agent(
        agent_id=AgentId(agent_id),
        name="<b>bob</b>\n\0\ud800",
        parent_id=None,
        root_id=AgentId("a1"),
        depth=1,
        context_id=ContextId("c1"),
        control_level=ControlLevel.MANAGED,
        sandbox=SandboxKind.NONE,
        started_at=1000.25,
        argv=("python3", "x\udcff"),
        limits=Limits(iterations=3, cost_usd=2.5),
        tree_limits=Limits(tokens=10),
        state=AgentState.RUNNING,
        state_reason="started",
        usage=Usage(iterations=1, tokens=2, wall_s=3.5, tool_calls=4, cost_usd=0.1 + 0.2),
        sensitivity=Sensitivity.CONFIDENTIAL,
        network_mode=NetworkMode.PROXIED,
        network_enforced=True,
        isolated="operator:0: <i>leaks</i>\ud800",
        cut_off=True,
        process=ProcessIdentity(42, 4711),
        causes=("operator", "hold"),
        exit_code=None,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def edit(path: Path, sql: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(sql)
    connection.close()


def test_every_field_comes_back(ledger: Ledger) -> None:
    first = agent()
    ended = agent(
        "a2", parent_id=AgentId("a1"), depth=2, state=AgentState.KILLED, ended_at=5.0, exit_code=-9, process=None, container_id="f" * 64
    )
    ledger.save_agents([first, ended])
    assert ledger.agents() == [first, ended]


def test_saving_again_changes_it_and_survives_a_restart(ledger: Ledger) -> None:
    ledger.save_agents([agent()])
    later = agent(state=AgentState.HALTED, ended_at=9.0, usage=Usage(tokens=10**15))
    ledger.save_agents([later])
    again = Ledger(ledger.path)
    assert again.agents() == [later]
    again.close()


def test_live_ones_come_first_and_are_never_cut_by_ended_ones(ledger: Ledger) -> None:
    ledger.save_agents([agent(f"e{i}", state=AgentState.ENDED, started_at=5000.0 + i) for i in range(20)])
    ledger.save_agents([agent("old"), agent("alive", state=AgentState.ALIVE_AFTER_KILL, started_at=2000.0)])
    assert [a.agent_id for a in ledger.agents(limit=3)] == ["alive", "old", "e19"]
    assert [a.agent_id for a in ledger.agents(include_ended=False)] == ["alive", "old"]


def test_a_batch_is_all_or_nothing(ledger: Ledger) -> None:
    with pytest.raises(NotRecorded):
        ledger.save_agents([agent("ok"), agent("bad", started_at=float("nan"))])
    assert ledger.agents() == []


def test_what_this_version_cannot_read_is_taken_as_the_worse(ledger: Ledger) -> None:
    ledger.save_agents([agent()])
    edit(
        ledger.path,
        "UPDATE agents SET state='serene', control_level='adored', sandbox='x', sensitivity='nice', network_mode='OPEN',"
        " limits='{', usage='[]', process='?', argv='3', causes='null'",
    )
    [found] = ledger.agents()
    assert found.state is AgentState.ALIVE_AFTER_KILL
    assert "serene" in found.state_reason
    assert found.control_level is ControlLevel.OBSERVED
    assert found.sensitivity is Sensitivity.SECRET
    assert found.network_mode is NetworkMode.NONE
    assert found.process is None
    assert found.argv == () and found.causes == ()
    assert first_breach(found.usage, found.limits, "agent") is not None


def test_events_newest_first_and_bounded(ledger: Ledger) -> None:
    ledger.add_events([("a1", float(i), "tick", f"n{i}") for i in range(30)])
    ledger.add_events([("a2", 1.0, "tick", "other")])
    assert [line.text for line in ledger.events("a1", limit=3)] == ["n29", "n28", "n27"]
    assert ledger.events("nobody") == []


def test_notices_are_paged_by_number_and_only_ones_own(ledger: Ledger) -> None:
    for i in range(5):
        ledger.add_notice("a1" if i % 2 else "a2", float(i), "mode", f"n{i}")
    first = ledger.notices("a2")
    assert [line.text for line in first] == ["n0", "n2", "n4"]
    assert [line.text for line in ledger.notices("a2", after=first[0].seq)] == ["n2", "n4"]
    assert ledger.notices("a2", after=10**30) == []


def test_nothing_to_save_is_no_transaction(ledger: Ledger) -> None:
    ledger.save_agents([])
    ledger.add_events([])
    assert ledger.agents() == []


def test_what_an_agent_used_is_written_alone_and_anything_else_of_it_whole(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    asked: list[str] = []
    event.listen(ledger._engine, "before_cursor_execute", lambda *said: asked.append(said[2].split()[0]))
    one = agent()

    def saved(now: Agent) -> str:
        asked.clear()
        ledger.save_agents([now])
        assert ledger.agents() == [now]
        return asked[1]

    assert saved(one) == "INSERT"
    one = one.changed(usage=Usage(tokens=7, cost_usd=0.5), last_action="\ud800 x", last_action_at=9.5)
    assert saved(one) == "UPDATE"
    one = one.changed(usage=Usage(tokens=8), state_reason="other")
    assert saved(one) == "INSERT"
    assert saved(one.changed(usage=Usage(tokens=9))) == "UPDATE"
    one = one.changed(state=AgentState.ENDED)
    assert saved(one) == "INSERT"
    assert saved(one.changed(usage=Usage(tokens=10))) == "INSERT", "of one that ended nothing is kept in mind"
    ledger.close()


def test_what_was_refused_by_the_disk_is_not_taken_for_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    one = agent()
    ledger.save_agents([one])
    monkeypatch.setattr("console.ledger.database.failpoint", refuse)
    with pytest.raises(NotRecorded):
        ledger.save_agents([one.changed(name="other")])
    monkeypatch.undo()
    other = one.changed(name="other").changed(usage=Usage(tokens=3))
    ledger.save_agents([other])
    assert ledger.agents() == [other]
    ledger.close()


def test_a_row_that_somebody_else_took_out_is_written_whole_again(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    one = agent()
    ledger.save_agents([one])
    with sqlite3.connect(tmp_path / "ledger.db") as db:
        db.execute("delete from agents")
    db.close()
    used = one.changed(usage=Usage(tokens=3))
    ledger.save_agents([used])
    assert ledger.agents() == [used]
    ledger.close()


def refuse(name: str) -> None:
    if name == "ledger.commit":
        raise OSError("no space left")
