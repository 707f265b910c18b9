"""An agent's activity in the terminal: readable, harmless, machine-readable."""

from __future__ import annotations

from typing import Any

from tests.fakes.canned_api import CannedApi
from tests.fakes.verbs import Watchfloor

HOSTILE = "\x1b]0;owned\x07\u202e[bold]x[/bold]\nsecond\rline"


def row(seq: int, kind: str = "message", **more: Any) -> dict[str, Any]:
    return {"seq": seq, "kind": kind, "at": 1.8e9, "text": f"text {seq}", "size": 6, **more}


def page(*rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"agent_id": "a", "rows": list(rows), "count": len(rows), "newest": max((r["seq"] for r in rows), default=0), **more}


def test_it_says_what_was_done_and_what_is_missing(watchfloor: Watchfloor, api: CannedApi) -> None:
    rows = (
        row(1, "message", who="user", text="do it\n" + "\n".join(f"line {n}" for n in range(30))),
        row(2, "tool_call", tool="Bash", pair="t", text="command: ls"),
        row(3, "verdict", pair="t", verdict="deny", audit=7),
        row(4, "spend", tool="m", cost_usd=None, tokens=5),
        row(5, "spend", tool="m", cost_usd=0.0101, left_out=9000),
        row(6, "file", tool="edit", ref="/x.txt"),
    )
    api.say("GET /api/agents/a/activity", page(*rows, dropped=12, words="Kept here: the program's own file is gone."))
    said = watchfloor("activity", "a").out
    assert "message user  do it" in said and "18 more lines" in said
    assert "tool call Bash  command: ls" in said and "verdict deny (audit 7)" in said
    assert "unpriced" in said and "$0.0101" in said and "9,000 more characters" in said and "/x.txt" in said
    assert "12 older entries were dropped" in said and "own file is gone" in said


def test_hostile_text_acts_on_no_terminal(watchfloor: Watchfloor, api: CannedApi) -> None:
    fields = dict.fromkeys(("text", "who", "tool", "verdict", "ref"), HOSTILE)
    api.say("GET /api/agents/a/activity", page(row(1, "tool_call", **fields), words=HOSTILE))
    for argv in (("activity", "a"), ("activity", "a", "--json")):
        said = watchfloor(*argv)
        assert said.code == 0 and not set(said.out) & {"\x1b", "\x07", "\r", "\u202e"}


def test_json_is_one_object_and_nothing_is_said_plainly(watchfloor: Watchfloor, api: CannedApi) -> None:
    api.say("GET /api/agents/a/activity", page())
    data = watchfloor("activity", "a", "--json").json
    assert data["schema_version"] == 1 and data["rows"] == [] and data["agent_id"] == "a"
    assert "Nothing is kept" in watchfloor("activity", "a").out
