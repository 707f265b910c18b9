"""What stands between an allow and its answer."""

from __future__ import annotations

import pytest

from console.domain.agent import AgentId
from console.domain.calls.permission import Decision, PermissionRequest, Verdict
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.network import NetworkMode
from console.enforcement.approvals import permit, stopped
from tests.fakes.playbook import Playbook

ALLOW = Decision(Verdict.ALLOW, "rule", "why")


def allowed(book: Playbook, tool: str, argument: str = "x") -> Playbook:
    book.out = list(permit(book.state, AgentId("a"), "r1", PermissionRequest(tool, argument), ALLOW))
    return book


@pytest.mark.parametrize(("tool", "kind"), [("write_file", "file_write"), ("delete_file", "file_delete")])
def test_a_destructive_call_is_answered_only_through_its_snapshot(tool: str, kind: str) -> None:
    book = allowed(Playbook().run("a"), tool, "data/x.txt")
    snapshot = book << c.SnapshotThenAnswer
    assert (snapshot.destructive, snapshot.path) == (kind, "data/x.txt")
    book.none(c.AnswerPermission)


def test_a_url_is_judged_by_the_agents_own_mode() -> None:
    book = allowed(Playbook().run("a", network_mode=NetworkMode.PROXIED), "http_request", "https://x.example/")
    assert (book << c.JudgeUrl).mode is NetworkMode.PROXIED


def test_anything_else_is_answered() -> None:
    assert (allowed(Playbook().run("a"), "read_file") << c.AnswerPermission).decision == ALLOW


def test_who_is_being_stopped_is_not_permitted_anything() -> None:
    book = Playbook().run("a")
    assert stopped(book.state, book.agent("a")) is None
    book >> e.StopAsked(book.at, book.boot, (AgentId("a"),), None)
    assert (allowed(book, "read_file") << c.AnswerPermission).decision.reason == "being stopped"
    assert (allowed(Playbook(), "read_file") << c.AnswerPermission).decision.rule == "agent"
