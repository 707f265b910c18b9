"""Histories of several agent kinds for the benches: what the real programs wrote (tests/data), with ids, times and texts of their own.

Tool results of up to 40 kB lie between the answers, as they do in sessions of people. A session is about 1 MB.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

DATA = Path(__file__).resolve().parents[1] / "data"
WORDS = ("the", "build", "fails", "in", "module", "seven", "because", "of", "a", "missing", "import", "def", "return", "self", "None")
SESSION = 10**6
"""Bytes of one, about."""
BEGAN = datetime(2026, 10, 1, 20, tzinfo=UTC)
Record = dict[str, Any]


class Turns:
    """What differs from turn to turn, the same in every run."""

    def __init__(self, number: int) -> None:
        self.number, self.turn, self._chance = number, 0, random.Random(number)
        self._seconds = number * 10_000

    def next(self) -> None:
        self.turn += 1
        self.output = self._chance.randrange(20, 4000)

    def at(self) -> str:
        """A moment of its own: ccusage counts two records of one moment with equal numbers once."""
        self._seconds += 1
        return (BEGAN + timedelta(seconds=self._seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def name(self, name: object) -> str:
        return f"{name}-{self.number}-{self.turn}"

    def text(self) -> str:
        """Prose and code, with what JSON must escape."""
        size = self._chance.choice((200, 2000, 8000, 40_000))
        return "\n".join(" ".join(self._chance.choices(WORDS, k=12)) + ' "quoted\\path"' for _ in range(max(1, size // 90)))


def _claude_code(record: Record, turns: Turns) -> None:
    record["sessionId"], message = f"{turns.number:08x}-0000-4000-8000-000000000000", record.get("message", {})
    if record["type"] == "assistant":
        message["id"], record["timestamp"] = turns.name(message["id"]), turns.at()
        message["usage"]["output_tokens"] = turns.output
    elif record["type"] == "user":
        message["content"] = [{"type": "tool_result", "content": turns.text()}]


def _codex(record: Record, turns: Turns) -> None:
    record["timestamp"], payload, done = turns.at(), record["payload"], 2 * turns.turn - 2
    if payload.get("type") == "function_call_output":
        payload["output"] = turns.text()
    elif record["type"] == "token_usage_record":
        payload["response_id"] = turns.name(payload["response_id"])
    elif payload.get("type") == "token_count":
        total = payload["info"]["total_token_usage"]
        for name, count in payload["info"]["last_token_usage"].items():
            total[name] += done * count
    for name in ("id", "session_id", "thread_id"):
        if name in payload and str(payload[name]).startswith("01a1ffcf-dfdd"):
            payload[name] = f"{turns.number:08x}-dfdd-77a3-ace2-eaa2ca9f7954"


def _gemini(record: Record, turns: Turns) -> None:
    if "sessionId" in record:
        record["sessionId"] = f"{turns.number:08x}-7ff6-4818-a9e3-f79fdc0e8709"
    if "id" in record:
        record["id"], record["timestamp"] = turns.name(record["id"]), turns.at()
    for call in record.get("toolCalls", ()):
        call["result"][0]["functionResponse"]["response"]["output"] = call["resultDisplay"] = turns.text()


def _qwen(record: Record, turns: Turns) -> None:
    record["uuid"], record["timestamp"] = turns.name(record["uuid"]), turns.at()
    record["sessionId"] = f"{turns.number:08x}-8201-4184-85c4-9eeb9a2ce2e1"
    if record["type"] == "tool_result":
        record["message"]["parts"][0]["functionResponse"]["response"]["output"] = turns.text()


def _pi(record: Record, turns: Turns) -> None:
    record["id"], record["timestamp"], message = turns.name(record["id"]), turns.at(), record.get("message", {})
    if message.get("role") == "toolResult":
        message["content"][0]["text"] = turns.text()


class Lines(NamedTuple):
    """A kind that writes lines."""

    recording: str
    """Below tests/data."""
    folder: str
    """Below a home, for a project's number."""
    file: str
    """For a session's number."""
    change: Callable[[Record, Turns], None]
    once: int
    """Records that come once, at the beginning."""


LINES = {
    "claude": Lines(
        "claude-code/projects-tree/*/*.jsonl",
        ".claude/projects/-home-dev-proj{}",
        "{:08x}-0000-4000-8000-000000000000",
        _claude_code,
        0,
    ),
    "codex": Lines(
        "codex/rollout.jsonl", ".codex/sessions/2026/10/01", "rollout-2026-10-01T20-33-01-{:08x}-dfdd-77a3-ace2-eaa2ca9f7954", _codex, 4
    ),
    "gemini": Lines("gemini/*.jsonl", ".gemini/tmp/proj{}/chats", "session-2026-10-01T03-57-{:08x}", _gemini, 1),
    "qwen": Lines("qwen/*.jsonl", ".qwen/projects/-home-dev-proj{}/chats", "{:08x}-8201-4184-85c4-9eeb9a2ce2e1", _qwen, 0),
    "pi": Lines("pi/*.jsonl", ".pi/agent/sessions/--proj{}--", "2026-10-01T03-57-55-907Z_{:08x}-0140-736d-96d0-9f5d5bddfcd7", _pi, 3),
}
KINDS = (*LINES, "opencode")
"""As ccusage names them."""


def _turn(kind: Lines, records: list[Record], turns: Turns) -> str:
    """The lines of one turn: what it used is written more than once in some, so a history ends behind a whole one."""
    turns.next()
    found = []
    for record in records if turns.turn == 1 else records[kind.once :]:
        record = json.loads(json.dumps(record))
        kind.change(record, turns)
        found.append(json.dumps(record, separators=(",", ":")) + "\n")
    return "".join(found)


def write_lines(home: Path, kind: Lines, size: int) -> int:
    """Write sessions of a kind until there are ``size`` bytes; bytes in all."""
    records = [json.loads(line) for line in min(DATA.glob(kind.recording)).read_text().splitlines()]
    records = [record for record in records if record.get("type") != "cost-state"]
    total, number = 0, 0
    while total < size:
        folder, turns, written = home / kind.folder.format(number % 20), Turns(number), 0
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{kind.file.format(number)}.jsonl").open("w") as out:
            while written < SESSION:
                written += out.write(_turn(kind, records, turns))
        total += written
        number += 1
    return total


def write_opencode(home: Path, size: int) -> int:
    """Write the same into OpenCode's database, whose tool results are rows of a table of their own."""
    file = home / ".local" / "share" / "opencode" / "opencode.db"
    file.parent.mkdir(parents=True)
    db = sqlite3.connect(file)
    db.executescript((DATA / "opencode" / "activity.sql").read_text())
    session, message = "select * from session limit 1", "select data from message where data like '%\"assistant\"%' limit 1"
    columns, data = list(db.execute(session).fetchone()), json.loads(db.execute(message).fetchone()[0])
    for table in ("session", "message", "part"):
        db.execute(f"delete from {table}")
    total, number = 0, 0
    while total < size:
        turns, written = Turns(number), 0
        db.execute(f"insert into session values ({','.join('?' * len(columns))})", [f"ses_{number:08x}", *columns[1:]])
        while written < SESSION:
            turns.next()
            at = 1_795_670_000_000 + turns.turn
            name = turns.name("msg")
            data["time"] = {"created": at, "completed": at + 1}
            db.execute("insert into message values (?, ?, ?, ?, ?)", (name, f"ses_{number:08x}", at, at, json.dumps(data)))
            part = json.dumps({"type": "tool", "state": {"status": "completed", "output": turns.text()}})
            db.execute("insert into part values (?, ?, ?, ?, ?, ?)", (turns.name("prt"), name, f"ses_{number:08x}", at, at, part))
            written += len(part) + 400
        total += written
        number += 1
    db.commit()
    db.close()
    return file.stat().st_size


def write(home: Path, size: int, kinds: Collection[str] = KINDS) -> int:
    """Write histories of these kinds, of equal size; bytes in all."""
    share = size // len(kinds)
    return sum(write_lines(home, LINES[kind], share) if kind in LINES else write_opencode(home, share) for kind in kinds)
