"""Who may start or say what names dangerous operations: an operator with a reason that is on record, an agent never."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.agent import AgentId, LaunchRequest
from console.domain.conversation import Program, command_line
from console.domain.engine.command import Record
from console.domain.errors import Denied, NotRecorded, Unconfirmed
from console.services.policy import config_fallback
from console.services.policy.dangerous_operations import DangerDesk

APPLY = LaunchRequest(("sh", "-c", "terraform apply"))


class Book:
    def __init__(self) -> None:
        self.records: list[Record] = []
        self.full = False

    def record(self, record: Record) -> None:
        self.records.append(record)

    def record_first(self, record: Record) -> None:
        if self.full:
            raise NotRecorded("no room", "")
        self.records.append(record)


def stage(folder: Path) -> tuple[DangerDesk, Book, list[str]]:
    book, notices = Book(), list[str]()
    parts: Any = SimpleNamespace(
        places=SimpleNamespace(policy_file=folder / "policy.json"), scribe=book, notice=lambda text, level="amber": notices.append(text)
    )
    return DangerDesk(parts.places, parts.scribe, parts.notice), book, notices


async def test_an_operator_confirms_with_a_reason_that_is_on_record_first(tmp_path: Path) -> None:
    desk, book, _ = stage(tmp_path)
    with pytest.raises(Unconfirmed, match="terraform apply"):
        await desk.weigh(APPLY, "operator:0")
    with pytest.raises(Unconfirmed):
        await desk.weigh(LaunchRequest(APPLY.argv, dangerous_ok="  "), "operator:0")
    await desk.weigh(LaunchRequest(APPLY.argv, dangerous_ok="planned"), "operator:0")
    assert [(r.kind, r.verdict) for r in book.records] == [("danger.shown", "ask")] * 2 + [("danger.confirmed", "allow")]
    assert "planned" in book.records[-1].what and book.records[-1].data["dangers"][0]["words"] == "terraform apply"
    book.full = True
    with pytest.raises(NotRecorded):
        await desk.weigh(LaunchRequest(APPLY.argv, dangerous_ok="planned"), "operator:0")
    await desk.weigh(LaunchRequest(("sleep", "1")), "operator:0")


async def test_an_agent_is_refused_whatever_it_confirms(tmp_path: Path) -> None:
    desk, book, notices = stage(tmp_path)
    for request in (APPLY, LaunchRequest(("env",), env=(("X", "terraform apply"),))):
        with pytest.raises(Denied, match="only an operator"):
            await desk.weigh(request, "agent:a-1")
    with pytest.raises(Denied, match="confirms nothing"):
        await desk.weigh(LaunchRequest(("sleep", "1"), dangerous_ok="I may"), "agent:a-1")
    assert [r.kind for r in book.records] == ["danger.refused"] * 2 and notices


async def test_of_a_started_program_its_prompt_is_read_and_not_our_own_shell_line(tmp_path: Path) -> None:
    desk, _, _ = stage(tmp_path)
    [found] = desk.of_launch(LaunchRequest(command_line(Program.CODEX, "go on: terraform destroy", "/usr/bin/codex", (), talks=True)))
    assert found.where == "prompt"
    assert desk.of_launch(LaunchRequest(command_line(Program.CLAUDE_CODE, "tidy up", "/usr/bin/claude", (), talks=False))) == ()


async def test_a_command_dressed_as_a_started_program_is_read_as_what_runs(tmp_path: Path) -> None:
    """The line around it is ours, the program and its words are whoever asks for it."""
    desk, _, _ = stage(tmp_path)
    dressed = command_line(Program.CODEX, "hello", "/usr/bin/terraform", ("apply", "-auto-approve"), talks=False)
    with pytest.raises(Denied):
        await desk.weigh(LaunchRequest(dressed), "agent:a-1")


async def test_a_message_is_read_too(tmp_path: Path) -> None:
    desk, book, _ = stage(tmp_path)
    with pytest.raises(Unconfirmed):
        await desk.weigh_text(AgentId("a-1"), "git push --force", "operator:0", "")
    await desk.weigh_text(AgentId("a-1"), "git push --force", "operator:0", "mine")
    await desk.weigh_text(AgentId("a-1"), "git push", "operator:0", "")
    assert [r.kind for r in book.records] == ["danger.shown", "danger.confirmed"]


async def test_a_list_of_ones_own_is_taken_up_and_a_broken_one_changes_nothing(tmp_path: Path) -> None:
    desk, _, notices = stage(tmp_path)
    mine, request = tmp_path / "dangers.json", LaunchRequest(("gatectl", "open"))
    mine.write_text(json.dumps({"dangers": [{"name": "gate", "why": "it opens", "program": "gatectl", "words": "open"}]}))
    assert desk.of_launch(request) and desk.of_launch(APPLY)
    for text in ("{", '{"dangers": [{"name": "x"}]}', "[]", "\xff"):
        mine.write_text(text, encoding="latin-1")
        assert desk.of_launch(request) and desk.of_launch(APPLY)
    assert notices and all(str(mine) in one for one in notices)
    desk, _, notices = stage(tmp_path)
    assert desk.of_launch(request) and len(notices) == 1, "after a restart too"
    mine.unlink()
    mine.symlink_to("nowhere")
    assert desk.of_launch(request)
    mine.unlink()
    assert not desk.of_launch(request) and desk.of_launch(APPLY)
    assert not stage(tmp_path)[0].of_launch(request)


async def test_an_own_list_that_a_restart_would_not_know_of_is_said_and_kept_as_soon_as_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_anything: object, **_more: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    desk, _, notices = stage(tmp_path)
    monkeypatch.setattr(config_fallback, "AGAIN_S", 0.0)
    with monkeypatch.context() as full:
        full.setattr(config_fallback, "replace_file", no_room)
        full.setattr(os, "link", no_room)
        own = {"dangers": [{"name": "gate", "why": "it opens", "program": "gatectl", "words": "open"}]}
        (tmp_path / "dangers.json").write_text(json.dumps(own))
        assert desk.of_launch(LaunchRequest(("gatectl", "open")))
        assert "No space left" in desk.list.problem and "a restart goes without it" in notices[0]
    desk.list.current()
    assert desk.list.problem == "" and (tmp_path / ".dangers-last-good.json").read_bytes() == (tmp_path / "dangers.json").read_bytes()
    (tmp_path / "dangers.json").unlink()
    desk.list.current()
    assert list(tmp_path.iterdir()) == []
