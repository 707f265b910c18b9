"""The desk of activity: what comes in is clean, bounded, kept once; who is seen is followed; files that are gone stay readable here."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.credentials.redaction import Redactor
from console.domain.activity import TEXT_KEPT, Entry, Kind
from console.domain.agent import AgentId, Sighting, SourceReport
from console.domain.calls.permission import PermissionRequest
from console.domain.conversation import TALKING
from console.domain.engine import event as e
from console.domain.errors import ConsoleError, NotFound, Unavailable
from console.enforcement.identity import observed_id
from console.ledger.activity_file import Bounds
from console.services.activity import follow as activity_follow
from console.services.activity import intake as activity_intake
from console.services.activity.service import ActivityDesk
from console.sources.activity import files as activity_files
from console.sources.change_tracker import Freshness

PROGRAM = ("/bin/sh", "-c", TALKING, "claude-code", "", "hi")
SESSION = "11111111-1111-4111-8111-111111111111"


class Stage:
    """A desk without its thread: ``turn`` is one round of it."""

    def __init__(self, folder: Path, fresh: Freshness | None = None) -> None:
        self.home = folder / "home"
        self.projects = self.home / ".claude" / "projects" / "-work-x"
        self.projects.mkdir(parents=True)
        self.redactor = Redactor()
        state = SimpleNamespace(agents={}, rows={})
        self.state = state
        core: Any = SimpleNamespace(state=state, loop=None)
        self.core = core
        self.desk = ActivityDesk(folder / "a.db", Bounds(), core, self.redactor.redact, self.home, folder / "workspaces", fresh)
        self.main = self.projects / f"{SESSION}.jsonl"

    def sees(self, *keys: str, **fields: Any) -> list[AgentId]:
        uid = self.home.stat().st_uid
        given = {"source": "claude_code", "name": "", "process": None, "session": SESSION, "cwd": "/work/x", "seen_at": 0.0} | fields
        top = f"{uid}-7-1"
        seen = [Sighting(key=f"{top}-{k}" if k else top, parent_key=top if k else None, part=k, **given) for k in keys]
        for one in seen:
            self.state.agents.setdefault(observed_id(one), SimpleNamespace(context_id="c"))
        self.desk.heard(e.Sighted(time.time(), 0.0, (SourceReport(given["source"], True, "", tuple(seen)),)))
        return [observed_id(one) for one in seen]

    def writes(self, file: Path, *texts: str, **more: Any) -> None:
        with file.open("a") as out:
            for text in texts:
                record = {"type": "user", "uuid": text, "timestamp": "2026-11-21T20:28:03.957Z", "message": {"content": text}, **more}
                out.write(json.dumps(record) + "\n")

    def texts(self, agent_id: str, **asked: Any) -> list[str]:
        for _ in range(4):
            self.desk.turn()
        assert not self.desk.problem, self.desk.problem
        wanted: dict[str, Any] = {"before": None, "after": None, "limit": 500} | asked
        return [row.entry.text for row in self.desk.window(agent_id, **wanted).rows]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    made.desk.end()


def test_a_session_that_is_seen_is_followed_and_its_file_may_go(stage: Stage) -> None:
    [agent] = stage.sees("")
    stage.writes(stage.main, "one", "two")
    assert stage.texts(agent) == ["one", "two"]
    stage.writes(stage.main, "three")
    assert stage.texts(agent) == ["one", "two", "three"]
    stage.main.unlink()
    assert stage.texts(agent) == ["one", "two", "three"]
    assert "program's own file is gone" in stage.desk.words(agent)


def test_one_who_is_seen_no_more_is_followed_no_more_until_somebody_looks(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    [agent] = stage.sees("")
    stage.writes(stage.main, "one")
    assert stage.texts(agent) == ["one"]
    following = stage.desk.following
    assert following is not None and following._files
    monkeypatch.setattr(activity_follow, "LINGER_S", -1.0)
    stage.sees()
    stage.writes(stage.main, "two")
    assert stage.texts(agent) == ["one"] and not following._files and not following._turns.due(1e9)
    monkeypatch.undo()
    stage.desk.window(agent, before=None, after=None, limit=1)
    assert stage.texts(agent) == ["one", "two"]


def test_a_supervisor_that_starts_again_goes_on_and_doubles_nothing(stage: Stage, tmp_path: Path) -> None:
    [agent] = stage.sees("")
    stage.writes(stage.main, "one", "two")
    assert len(stage.texts(agent)) == 2
    stage.desk.end()
    stage.desk = ActivityDesk(tmp_path / "a.db", Bounds(), stage.core, stage.redactor.redact, stage.home, tmp_path)
    stage.writes(stage.main, "three")
    stage.desk.window(agent, before=None, after=None, limit=1)
    assert stage.texts(agent) == ["one", "two", "three"], "one who ended is read again when it is looked at"
    stage.main.write_text("")
    stage.writes(stage.main, "one", "two", "three", "four")
    assert stage.texts(agent) == ["one", "two", "three", "four"], "a rewritten file is read anew, and nothing is doubled"


def test_a_sub_agents_file_is_its_own_and_a_record_that_claims_another_agent_stays_where_it_stands(stage: Stage) -> None:
    subs = stage.projects / SESSION / "subagents"
    subs.mkdir(parents=True)
    top, sub = stage.sees("", "abc")
    stage.writes(stage.main, "own", agentId="abc", sessionId="another")
    stage.writes(subs / "agent-abc.jsonl", "the child's", agentId="zzz")
    assert stage.texts(top) == ["own"] and stage.texts(sub) == ["the child's"]


def test_a_sub_agent_that_was_gone_before_it_was_seen_is_shown_with_its_session(stage: Stage) -> None:
    subs = stage.projects / SESSION / "subagents"
    subs.mkdir(parents=True)
    [top] = stage.sees("")
    stage.writes(stage.main, "own")
    stage.writes(subs / "agent-abc.jsonl", "quick")
    stage.writes(subs / "agent-def.jsonl", "not yet known")
    (subs / "agent-abc.meta.json").write_text('{"finished": true}')
    assert sorted(stage.texts(top)) == ["own", "quick"]


def test_anothers_file_and_a_link_are_not_read_and_it_is_said(stage: Stage) -> None:
    [agent] = stage.sees("")
    secret = stage.home / "secret"
    stage.writes(secret, "not for this feed")
    stage.main.symlink_to(secret)
    assert stage.texts(agent) == [] and "not read" in stage.desk.words(agent)


def test_an_agent_of_ours_is_read_below_its_own_home_alone(stage: Stage, tmp_path: Path) -> None:
    stage.state.agents[AgentId("a-1")] = SimpleNamespace(context_id="c1")
    home = tmp_path / "workspaces" / "c1"
    (home / ".claude" / "projects" / "-work-x").mkdir(parents=True)
    stage.writes(home / ".claude" / "projects" / "-work-x" / f"{SESSION}.jsonl", "mine")
    stage.writes(stage.main, "the operator's own")
    uid = stage.home.stat().st_uid
    stage.state.rows[f"claude_code\0{uid}-7-1"] = AgentId("a-1")
    stage.sees("", agent_id="a-1")
    assert stage.texts("a-1") == ["mine"]
    (home / ".claude").rename(home / "old")
    (home / ".claude").symlink_to(stage.home / ".claude")
    assert stage.desk.following is not None
    stage.desk.following._files.clear()
    assert stage.texts("a-1") == ["mine"], "a link leads nowhere"


def test_secrets_are_taken_out_before_anything_is_cut(stage: Stage, tmp_path: Path) -> None:
    stage.redactor.learn("S3CRET-" + "x" * 500)
    [agent] = stage.sees("")
    secret = "S3CRET-" + "x" * 500
    stage.writes(stage.main, secret, "a" * (TEXT_KEPT - 100) + secret, "b" * 1_000_000)
    found = stage.texts(agent)
    raw = b"".join(path.read_bytes() for path in tmp_path.glob("a.db*"))
    assert b"S3CRET" not in raw and found[0] == "[secret]"
    last = stage.desk.window(agent, before=None, after=None, limit=1).rows[0]
    assert last.entry.left_out == 1_000_000 - TEXT_KEPT and last.size == TEXT_KEPT
    assert stage.texts(agent, query="[secret]")


def test_moments_lie_neither_in_the_future_nor_nowhere(stage: Stage) -> None:
    [agent] = stage.sees("")
    with stage.main.open("a") as out:
        for at in ("2031-01-01T00:00:00Z", "nonsense", ""):
            out.write(json.dumps({"type": "user", "timestamp": at, "message": {"content": at or "none"}}) + "\n")
    stage.texts(agent)
    assert all(time.time() - 60 < row.entry.at <= time.time() for row in stage.desk.window(agent, before=None, after=None, limit=9).rows)


def test_what_comes_too_fast_is_counted_and_said(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity_intake, "WAITING_MAX", 10)
    for n in range(25):
        stage.desk.heard(e.PermissionAsked(1.0, 1.0, AgentId("a-1"), f"r{n}", PermissionRequest("read_file", f"{n}")))
    found = stage.texts("a-1")
    assert len(found) == 11 and found[-1].startswith("15 entries are missing")


def test_while_the_disk_refuses_no_more_is_held_than_fits(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity_intake, "SIZE_MAX", 1_000_000)
    intake = stage.desk.intake
    for _round in range(3):
        for n in range(40):
            stage.desk.heard(e.PermissionAsked(1.0, 1.0, AgentId("a-1"), f"r{_round}-{n}", PermissionRequest("read_file", "x" * 60_000)))
        held = intake.taken()
        assert sum(len(one.text) for entries in held.values() for one in entries) <= 1_100_000
        intake.give_back(held)
    for entries in intake.taken().values():
        assert entries[-1].text.endswith("are missing here: they came faster than they can be kept.")
    stage.desk.heard(e.PermissionAsked(1.0, 1.0, AgentId("a-1"), "later", PermissionRequest("read_file", "room again")))
    assert "room again" in [entry.text for entry in intake.taken()["a-1"]]


def test_a_disk_that_refuses_is_said_and_nothing_is_lost(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    [agent] = stage.sees("")
    stage.writes(stage.main, "from its file")
    stage.desk.heard(e.PermissionAsked(1.0, 1.0, agent, "r", PermissionRequest("x", "asked")))

    def refuses(*_: Any, **__: Any) -> Any:
        raise ConsoleError("the disk is full")

    assert stage.desk.store is not None
    monkeypatch.setattr(stage.desk.store, "add", refuses)
    stage.desk.turn()
    assert "disk is full" in stage.desk.problem
    assert "disk is full" in caplog.text and "Traceback" not in caplog.text
    monkeypatch.undo()
    assert sorted(stage.texts(agent)) == ["asked", "from its file"]


def test_what_a_disk_refused_in_the_middle_of_a_turn_is_read_again_though_a_watch_tells_of_nothing_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity_files, "SEEK_S", 0.0)  # what a watch tells is believed from the first search on
    fresh = Freshness()
    stage = Stage(tmp_path, fresh)
    fresh.begins("w", [str(stage.projects)])
    (session,) = stage.sees("")
    stage.writes(stage.main, "one")
    assert stage.texts(session) == ["one"]
    assert stage.desk.store is not None
    keeps, kept = stage.desk.store.together, []

    @contextmanager
    def refuses_at_the_end() -> Iterator[None]:
        with keeps():
            yield
            kept.append(1)
            raise ConsoleError("the disk is full")

    stage.writes(stage.main, "two")
    fresh.changed([str(stage.main)])
    monkeypatch.setattr(stage.desk.store, "together", refuses_at_the_end)
    stage.desk.turn()
    assert kept and "disk is full" in stage.desk.problem
    monkeypatch.setattr(stage.desk.store, "together", keeps)
    assert stage.texts(session) == ["one", "two"], "it was read to its end, and nothing of that was kept"
    stage.desk.end()


def test_who_tells_by_itself_is_followed_no_more(stage: Stage) -> None:
    (session,) = stage.sees("")
    stage.writes(stage.main, "one")
    assert stage.texts(session) == ["one"]
    stage.desk.intake.streams[session] = 1
    stage.sees("")
    stage.writes(stage.main, "two")
    assert stage.texts(session) == ["one"]


def test_another_session_in_the_same_row_is_followed_too(stage: Stage) -> None:
    (session,) = stage.sees("")
    other = SESSION.replace("1", "2")
    stage.writes(stage.main, "one")
    assert stage.texts(session) == ["one"]
    stage.sees("", session=other)
    stage.writes(stage.projects / f"{other}.jsonl", "two")
    assert stage.texts(session) == ["one", "two"]


def test_what_one_file_breaks_keeps_no_other_from_being_read(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    from console.sources.claude_code.activity import ClaudeLines

    real = ClaudeLines.take

    def take(self: ClaudeLines, line: bytes) -> list[Entry]:
        if b"bomb" in line:
            raise AttributeError("a shape that nobody thought of")
        return real(self, line)

    monkeypatch.setattr(ClaudeLines, "take", take)
    subs = stage.projects / SESSION / "subagents"
    subs.mkdir(parents=True)
    top, sub = stage.sees("", "abc")
    stage.writes(stage.main, "bomb")
    stage.writes(subs / "agent-abc.jsonl", "the child's")
    assert stage.texts(sub) == ["the child's"] and "could not be read" in stage.texts(top)[0]
    monkeypatch.setattr(ClaudeLines, "state", take)
    stage.writes(stage.main, "more")
    stage.writes(subs / "agent-abc.jsonl", "again")
    stage.texts(sub)
    assert "not read" in stage.desk.words(top)


def test_a_stream_is_kept_once_and_its_transcript_is_then_not_followed(stage: Stage) -> None:
    [agent] = stage.sees("")
    stage.desk.on_event(agent, {"kind": "message", "role": "assistant", "text": "hi", "at": 5.0, "offset": 10, "n": 0})
    stage.desk.on_event(agent, {"kind": "message", "role": "assistant", "text": "hi", "at": 5.0, "offset": 10, "n": 0})
    stage.writes(stage.main, "hi")
    stage.sees("")
    assert stage.texts(agent) == ["hi"]


def test_what_a_programs_stream_tells_is_not_told_again_as_its_usage(stage: Stage) -> None:
    program, other = AgentId("a-1"), AgentId("a-2")
    stage.state.agents |= {program: SimpleNamespace(argv=PROGRAM), other: SimpleNamespace(argv=("python3",))}
    for agent in (program, other):
        stage.desk.heard(e.UsageReported(1.0, 1.0, agent, tokens=5, cost_usd=0.5))
    for n, (tokens, usd) in enumerate(((3, 0.3), (2, 0.2))):
        told = {"kind": "usage", "answer": "m", "model": "x", "tokens": tokens, "cost_usd": usd, "at": 5.0, "offset": 9, "n": n}
        stage.desk.on_event(program, told)
    stage.texts(program)
    for agent in (program, other):
        rows = stage.desk.window(agent, before=None, after=None, limit=9).rows
        assert sum(row.entry.cost_nano or 0 for row in rows) == 500_000_000


def test_a_store_that_cannot_be_opened_refuses_with_why(tmp_path: Path) -> None:
    (tmp_path / "a.db").mkdir()
    core: Any = SimpleNamespace(state=None, loop=None)
    desk = ActivityDesk(tmp_path / "a.db", Bounds(), core, str, None, tmp_path)
    desk.start()
    desk.heard(e.PermissionAsked(1.0, 1.0, AgentId("a"), "r", PermissionRequest("x", "y")))
    with pytest.raises(Unavailable, match="not available, because"):
        desk.window("a", before=None, after=None, limit=1)
    desk.end()


def test_one_entry_or_none(stage: Stage) -> None:
    stage.desk.intake.put("a", Entry(Kind.NOTE, "x", 1.0, "y"))
    stage.desk.turn()
    assert stage.desk.one("a", 1).entry.text == "y"
    with pytest.raises(NotFound):
        stage.desk.one("a", 99)
