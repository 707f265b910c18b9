"""``run --agent`` and ``--batch``: items from the command line and from files, what is printed, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from console.cli.start.run import as_installed
from console.cli.start.run_program import batch_of, item_of
from console.domain.errors import UsageProblem
from tests.fakes.canned_api import CannedApi
from tests.fakes.verbs import Watchfloor

STATUS = {"instance": "i", "host": "h", "version": "1", "state_dir": "/", "mode": "root", "killed": False, "pid": 1}
REACH = [{"what": "files", "words": "\x1b[31mits workspace", "amber": True}]
STARTED = {"id": "a-1", "control_level": "managed", "network_mode": "FULL", "reach": REACH, "notes": ["note"]}


@pytest.fixture
def ready(api: CannedApi) -> CannedApi:
    api.say("GET /api/status", STATUS)
    return api


def started(api: CannedApi) -> list[Any]:
    return [a.body["items"] for a in api.asked if a.path == "/api/programs"]


def test_one_program_gets_the_prompt_behind_the_dashes_and_says_its_reach_on_stderr(watchfloor: Watchfloor, ready: CannedApi) -> None:
    ready.say("POST /api/programs", {"items": [STARTED]})
    said = watchfloor("run", "--agent", "codex", "--model", "m", "--limit", "cost=2.5", "--sandbox", "bubblewrap", "--", "do", "it --now")
    assert (said.code, said.out) == (0, "a-1\n") and "its workspace (!)" in said.err and "\x1b" not in said.err
    (items,) = started(ready)
    want = {"agent": "codex", "prompt": "do it --now", "model": "m", "limits": {"cost_usd": 2.5}, "sandbox": "bubblewrap", "once": False}
    assert items[0].items() >= want.items()


def test_a_dry_run_starts_nothing_and_ends_with_the_refusals_code(watchfloor: Watchfloor, ready: CannedApi) -> None:
    ready.say("POST /api/programs/preview", {"items": [{"agent": "codex", "reach": REACH}]})
    said = watchfloor("run", "--agent", "codex", "--dry-run", "--", "p")
    assert said.code == 0 and "at worst" in said.out and started(ready) == []
    ready.say("POST /api/programs/preview", {"items": [{"agent": "codex", "why_not": "Memory is short: 5 MiB", "exit_code": 1}]})
    said = watchfloor("run", "--agent", "codex", "--dry-run", "--", "p")
    assert said.code == 1 and "5 MiB" in said.out


def test_a_dry_run_whose_words_name_a_danger_ends_as_the_start_would(watchfloor: Watchfloor, ready: CannedApi) -> None:
    ready.say("POST /api/programs/preview", {"items": [{"agent": "codex", "dangers": ["force push (prompt)"]}]})
    said = watchfloor("run", "--agent", "codex", "--dry-run", "--", "p")
    assert said.code == 4 and "force push (prompt): refused until it is confirmed" in said.out
    assert watchfloor("run", "--agent", "codex", "--dry-run", "--json", "--", "p").code == 4
    assert watchfloor("run", "--agent", "codex", "--dry-run", "--dangerous-ok", " ", "--", "p").code == 4
    said = watchfloor("run", "--agent", "codex", "--dry-run", "--dangerous-ok", "reviewed", "--", "p")
    assert said.code == 0 and "confirmed with --dangerous-ok" in said.out


def test_a_dry_run_of_a_command_starts_nothing_either(watchfloor: Watchfloor, ready: CannedApi) -> None:
    seen = {"agent": "command", "reach": [{"what": "servers", "words": "it starts what its settings name", "amber": True}]}
    ready.say("POST /api/programs/preview-command", seen)
    said = watchfloor("run", "--dry-run", "--network", "none", "--", "gemini", "-p", "x")
    assert said.code == 0 and "command, at worst:" in said.out and "servers it starts what its settings name (!)" in said.out
    (asked,) = [a for a in ready.asked if a.method == "POST"]
    assert asked.path == "/api/programs/preview-command" and asked.body["network_mode"] == "NONE"
    ready.say("POST /api/programs/preview-command", {"agent": "command", "why_not": "Killed.", "exit_code": 4})
    said = watchfloor("run", "--dry-run", "--json", "--", "gemini")
    assert said.code == 4 and '"why_not": "Killed."' in said.out


def test_a_command_that_only_the_operators_path_has_is_run_by_its_whole_path(
    watchfloor: Watchfloor, ready: CannedApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("wf-tool", "#!/usr/bin/env wf-node\n"), ("wf-node", "#!/bin/sh\n"), ("ls", "")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    node, tool = str(tmp_path / "wf-node"), str(tmp_path / "wf-tool")
    assert as_installed(("wf-tool", "-p", "x")) == (node, tool, "-p", "x") and as_installed(("wf-node",)) == (node,)
    for kept in (("ls", "-l"), ("./wf-tool",), ("wf-none",), ()):
        assert as_installed(kept) == kept, "an agent's own PATH comes first, and what is nowhere is told by the start"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", ".")
    assert as_installed(("wf-tool",)) == ("wf-tool",)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    ready.say("POST /api/launch", STARTED)
    said = watchfloor("run", "--", "wf-tool", "-p")
    assert f"note: wf-tool is {tool}, by your PATH; {node} runs it" in said.err
    (asked,) = [a for a in ready.asked if a.method == "POST"]
    assert (asked.body["argv"], asked.body["name"]) == ([node, tool, "-p"], "wf-tool")
    watchfloor("run", "--sandbox", "docker", "--", "wf-tool")
    assert ready.asked[-1].body["argv"] == ["wf-tool"], "a container has programs of its own"


def test_what_did_not_start_is_said_and_ends_with_its_code(watchfloor: Watchfloor, ready: CannedApi, tmp_path: Path) -> None:
    file = tmp_path / "b.jsonl"
    file.write_text('{"agent": "codex", "prompt": "a"}\n{"agent": "claude-code", "prompt": "b", "once": true}\n')
    ready.say("POST /api/programs", {"items": [STARTED, {"error": "No room.", "exit_code": 4}]})
    said = watchfloor("run", "--batch", str(file), "--sensitivity", "internal")
    assert said.code == 4 and said.out == "a-1\n" and "item 2 was not started: No room." in said.err
    (items,) = started(ready)
    assert (
        [i["agent"] for i in items] == ["codex", "claude-code"] and {i["sensitivity"] for i in items} == {"INTERNAL"} and items[1]["once"]
    )


def told(seq: int, kind: str, text: str, **more: Any) -> dict[str, Any]:
    return {"seq": seq, "kind": kind, "text": text, "size": len(text), "at": 1.8e9, **more}


def does(api: CannedApi, *pages: list[dict[str, Any]], code: int | None = 0, state: str = "ended") -> None:
    """What the program of ``STARTED`` does, page by page, and how it ends with the last."""
    newest = 0
    answers, outputs = list[Any](), list[Any]()
    for number, rows in enumerate((*pages, []), 1):
        newest = max([newest, *(row["seq"] for row in rows)])
        answers.append((200, json.dumps({"agent_id": "a-1", "rows": rows, "count": newest, "newest": newest}).encode()))
        live = number < len(pages)
        outputs.append((200, json.dumps({"text": '{"type": "raw"}\n', "live": live, "exit_code": None if live else code}).encode()))
    api.say("POST /api/programs", {"items": [STARTED]})
    api.say("GET /api/approvals", {})
    api.say("GET /api/agents/a-1", {"agent": {"id": "a-1", "name": "x", "state": state, "program": "claude-code"}})
    api.answers |= {"GET /api/agents/a-1/activity": answers, "GET /api/agents/a-1/output": outputs}


ENDED = told(90, "note", "agent.ended: a-1 ended: exit code 0", who="supervisor", audit=9)


def test_one_that_is_waited_for_shows_lines_for_a_person_and_its_answer_alone_on_stdout(
    watchfloor: Watchfloor, ready: CannedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.cli.agents.activity._LOOK_S", 0.01)
    long = "the answer\x1b[2J\n" + "\n".join(f"line {n}" for n in range(40))
    first = [
        told(1, "message", "I will look.", who="assistant"),
        told(2, "tool_call", "command: ls", tool="Bash"),
        told(3, "tool_result", "a.txt"),
        told(4, "message", "A child's word", who="assistant (sub-agent)"),
    ]
    last = [told(5, "message", long[:20], who="assistant", size=len(long)), told(6, "spend", "7 tokens", cost_usd=0.5)]
    does(ready, first, last, [told(7, "note", f"turn ended: {long[:9]}", who="program"), ENDED])
    ready.say("GET /api/agents/a-1/activity/5", {"row": told(5, "message", long, who="assistant")})
    said = watchfloor("run", "--agent", "claude-code", "--once", "--wait", "--", "p")
    assert said.code == 0 and said.out == long.replace("\x1b", "\\e") + "\n"
    for words in ("message assistant  I will look.", "tool call Bash  command: ls", "tool result  a.txt", "A child's word", "$0.5"):
        assert words in said.err, said.err
    assert "raw" not in said.err.replace("raw output", "") and "the answer" not in said.err and "\x1b" not in said.err
    assert said.err.endswith("agent a-1 ended with exit code 0; its raw output: watchfloor agent output a-1\n")


def test_a_program_that_fails_or_is_killed_while_it_is_waited_for_ends_with_its_code_and_why(
    watchfloor: Watchfloor, ready: CannedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.cli.agents.activity._LOOK_S", 0.01)
    monkeypatch.setattr("console.cli.agents.activity._LATE_S", 0.05)
    does(ready, [told(1, "error", "turn failed: no credit", who="program", failed=True), ENDED], code=3, state="failed")
    said = watchfloor("run", "--agent", "claude-code", "--once", "--wait", "--", "p")
    assert (said.code, said.out) == (3, "") and "no credit" in said.err and "ended with exit code 3" in said.err
    does(ready, [told(1, "message", "so far", who="assistant")], code=None, state="killed")
    said = watchfloor("run", "--agent", "claude-code", "--wait", "--", "p")
    assert (said.code, said.out) == (1, "so far\n") and "agent a-1: killed" in said.err
    ready.refuse("GET /api/agents/a-1/activity", 501, "Activity is not available.")
    said = watchfloor("run", "--agent", "claude-code", "--wait", "--", "p")
    assert "Activity is not available. What it writes follows as it is." in said.err and "raw" in said.out


def asks(request: str, argument: str, **more: Any) -> dict[str, Any]:
    same = {"agent_id": "a-1", "root_id": "a-1", "tool": "shell", "rule": "r", "reason": "", "digest": "d", "group": "g", "asked_at": 1.8e9}
    return {**same, "id": request, "argument": argument, "left_s": 595.0, "state": "waiting", "scope": "once", **more}


def test_one_that_is_waited_for_says_at_once_what_of_its_tree_waits_for_a_person(
    watchfloor: Watchfloor, ready: CannedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.cli.agents.activity._LOOK_S", 0.01)
    monkeypatch.setattr("console.cli.agents.output.LOOK_S", 0.01)
    monkeypatch.setattr("console.cli.start.run._LOOK_S", 0.0)
    waiting = [
        asks("q-1", "make \x1b[2J"),
        asks("q-2", "of a child", agent_id="a-2"),
        asks("q-3", "of another", agent_id="a-9", root_id="a-9"),
    ]
    does(ready, [], [told(1, "spend", "7 tokens")], [ENDED])
    ready.say("GET /api/approvals", {"waiting": waiting})
    said = watchfloor("run", "--agent", "claude-code", "--once", "--wait", "--", "p")
    assert said.err.count("a-1 waits for you: shell make \\e[2J (denied without an answer within 10 min)") == 1, said.err
    assert "watchfloor approval approve q-1" in said.err and "watchfloor approval deny q-1" in said.err
    assert "a-2 waits for you" in said.err and "q-3" not in said.err and "a-9" not in said.err

    does(ready, [], [])
    ready.say("GET /api/approvals", {"waiting": waiting})
    ready.say("GET /api/agents/a-1", {"agent": {"id": "a-1", "name": "x", "state": "ended"}})
    said = watchfloor("run", "--agent", "claude-code", "--wait", "--", "p")
    assert said.err.count("watchfloor approval approve q-1") == 1, "of what shows its raw output too"


WRONG = [
    ("--agent", "bash", "--", "x"), ("--agent", "", "--", "x"), ("--batch", ""), ("--agent", "codex"),
    ("--agent", "codex", "--parent", "a", "--", "x"), ("--model", "m", "--", "x"),
    ("--batch", "/nonexistent"), ("--batch", "/dev/null"), ("--batch", "/dev/null", "--", "x"), ("--dry-run",),
    ("--agent", "codex", "--limit", "cost=-1", "--", "x"), ("--agent", "codex", "--wait", "--json", "--", "x"),
    ("--agent", "codex", "--", "-p", "x"),
    ("--again", "a-1", "--dry-run"), ("--again", "a-1", "--network", "NONE"), ("--again", "a-1", "--limit", "cost=1"),
    ("--again", "a-1", "--agent", "codex"), ("--again", "a-1", "--name", ""), ("--again", "a-1", "--", "x"),
]  # fmt: skip


@pytest.mark.parametrize("argv", WRONG)
def test_what_makes_no_sense_is_refused_before_anything_is_asked(watchfloor: Watchfloor, ready: CannedApi, argv: tuple[str, ...]) -> None:
    assert watchfloor("run", *argv).code == 2
    assert [a.path for a in ready.asked if a.method == "POST"] == []


def test_an_unknown_program_a_missing_prompt_and_an_empty_file_are_said_in_our_words(tmp_path: Path) -> None:
    for agent, prompt, word in (
        ("qwen", "p", "Qwen Code cannot be started with --agent, because Watchfloor cannot send it messages"),
        ("nano", "p", "'nano' is no program that --agent knows"),
        ("codex", " ", "no prompt"),
    ):
        with pytest.raises(UsageProblem, match=word) as refused:
            item_of(agent, prompt)
        assert "--agent" in refused.value.remedy
    file = tmp_path / "empty.yaml"
    file.write_text("# nothing\n")
    with pytest.raises(UsageProblem, match="holds no item"):
        batch_of(str(file), {})


@pytest.mark.parametrize(
    "text",
    ["- 1\n", "[", "{a", '{"agent": "codex", "prompt": "x"}\n{"agent"', "- {agent: codex, prompt: x, argv: [a]}",
     "!!python/object:os.system x",
     "- {agent: codex}\n", "\n".join(json.dumps({"agent": "codex", "prompt": "p"}) for _ in range(51)), "a: &a [x]\nb: [*a, *a]\n"],
)  # fmt: skip
def test_a_broken_batch_is_refused_whole(tmp_path: Path, text: str) -> None:
    file = tmp_path / "b"
    file.write_text(text)
    with pytest.raises(UsageProblem):
        batch_of(str(file), {})
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageProblem):
        batch_of(str(file), {})


def test_the_command_lines_options_are_a_batchs_defaults(tmp_path: Path) -> None:
    file = tmp_path / "b.yaml"
    file.write_text("- {prompt: one}\n- {prompt: two, sandbox: docker, agent: codex}\n")
    one, two = batch_of(str(file), {"agent": "claude-code", "sandbox": "bubblewrap"})
    assert (one.agent, one.sandbox, two.agent, two.sandbox) == ("claude-code", "bubblewrap", "codex", "docker")
    assert item_of("codex", "p", once=True).once
