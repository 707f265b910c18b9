"""Deny is the default; a destructive call waits for its rollback record."""

from __future__ import annotations

import pytest

from console.domain import command as c
from console.domain import event as e
from console.domain.agent import AgentId
from console.domain.network import NetworkMode
from console.domain.permission import PermissionRequest, Verdict
from tests.fakes.playbook import Playbook


def ask(book: Playbook, tool: str, argument: str = "x") -> Playbook:
    return book >> e.PermissionAsked(book.at, book.boot, AgentId("a"), "r1", PermissionRequest(tool, argument))


@pytest.mark.parametrize("tool", ["run_python", "", "WRITE_FILE", "write_file ", "send_email", "x" * 100])
def test_what_no_rule_names_is_denied(tool: str) -> None:
    answer = ask(Playbook().run("a"), tool) << c.AnswerPermission
    assert answer.decision.verdict is Verdict.DENY


@pytest.mark.parametrize(("tool", "kind"), [("write_file", "file_write"), ("delete_file", "file_delete")])
def test_a_destructive_call_is_answered_only_through_its_snapshot(tool: str, kind: str) -> None:
    book = ask(Playbook().run("a"), tool, "data/x.txt")
    snapshot = book << c.SnapshotThenAnswer
    assert (snapshot.destructive, snapshot.path) == (kind, "data/x.txt")
    book.none(c.AnswerPermission)


def test_a_url_is_judged_by_the_agents_own_mode() -> None:
    book = ask(Playbook().run("a", network_mode=NetworkMode.PROXIED), "http_request", "https://x.example/")
    assert (book << c.JudgeUrl).mode is NetworkMode.PROXIED


def test_unknown_killed_stopped_and_frozen_are_denied() -> None:
    book = Playbook()
    assert (ask(book, "write_file") << c.AnswerPermission).decision.verdict is Verdict.DENY
    book.run("a")
    book >> e.FrozenSetChanged(book.at, book.boot, {AgentId("a"): ("operator",)})
    assert (ask(book, "write_file") << c.AnswerPermission).decision.reason == "frozen"
    book >> e.FrozenSetChanged(book.at, book.boot, {})
    book >> e.SoftStopChanged(book.at, book.boot, "no kill file")
    assert (ask(book, "write_file") << c.AnswerPermission).decision.rule == "stop"
    book >> e.KillStarted(book.at, book.boot, "k", None, "r", "b")
    assert (ask(book, "write_file") << c.AnswerPermission).decision.reason == "killed"
