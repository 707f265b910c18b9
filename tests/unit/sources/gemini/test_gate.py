"""The gate of a started Gemini CLI: what it asks the hook, what it refuses by itself, whose turn it is, and what answers used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from console.sources.gemini import gate
from console.sources.gemini.stream import gate_of
from console.sources.hook_settings import HookCommand

PROGRAM = """
import json, os, sys
for line in sys.stdin:
    record = json.loads(line)
    with open(os.environ["HEARD"], "a") as file:
        file.write(line)
    name, method = record.get("id"), record.get("method")
    if method == "session/new":
        print(json.dumps({"id": name, "result": {"sessionId": "0123456789"}}), flush=True)
    elif method == "initialize":
        print(json.dumps({"id": name, "result": {"agentInfo": {}}}), flush=True)
    elif method == "session/prompt":
        text = record["params"]["prompt"][0]["text"]
        if text.startswith("{"):
            params = {"sessionId": "0123456789", "toolCall": json.loads(text)}
            print(json.dumps({"id": 7, "method": "session/request_permission", "params": params}), flush=True)
        elif text != "wait":
            print(json.dumps({"id": name, "result": {"stopReason": "end_turn"}}), flush=True)
    elif name == 7:
        print(json.dumps({"id": "p1", "result": {"stopReason": "end_turn"}}), flush=True)
"""
HOOK = """
import os, sys, time
call = sys.stdin.read()
with open(os.environ["ASKED"], "w") as file:
    file.write(call)
if "slow" in call:
    time.sleep(60)
if "denied" in call:
    print("Watchfloor: rule one: not this", file=sys.stderr)
    sys.exit(2)
sys.exit(1 if "broken" in call else 0)
"""


class Talk:
    """One gate with a program that asks what its prompt says."""

    def __init__(self, folder: Path, *, once: bool = False, judged: bool = True) -> None:
        self.folder, self.heard, self.asked = folder, folder / "heard", folder / "asked"
        (folder / "program").write_text(f"#!{sys.executable}\n{PROGRAM}")
        (folder / "program").chmod(0o755)
        (folder / "hook.py").write_text(HOOK)
        command = HookCommand(sys.executable, folder / "hook.py", "gemini", folder / "agent.sock", 5) if judged else None
        (folder / "gate.py").write_bytes(gate_of(command))
        argv = [sys.executable, "-I", "-S", str(folder / "gate.py"), "once" if once else "talk", str(folder / "program")]
        env = {"PATH": "/usr/bin:/bin", "HEARD": str(self.heard), "ASKED": str(self.asked), "GEMINI_CLI_HOME": str(folder)}
        self.process = subprocess.Popen(argv, cwd=folder, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def say(self, **record: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(record).encode() + b"\n")
        self.process.stdin.flush()

    def prompt(self, name: str, text: object) -> None:
        text = text if isinstance(text, str) else json.dumps(text)
        self.say(id=name, method="session/prompt", params={"sessionId": "0123456789", "prompt": [{"type": "text", "text": text}]})

    def line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def told(self, count: int) -> list[dict[str, Any]]:
        """What the program heard, once it is so many lines."""
        end = time.monotonic() + 20
        while not self.heard.exists() or self.heard.read_bytes().count(b"\n") < count:
            assert time.monotonic() < end, self.heard.exists() and self.heard.read_text()
            time.sleep(0.01)
        return [json.loads(line) for line in self.heard.read_text().splitlines()]


@contextmanager
def talk(folder: Path, **how: bool) -> Iterator[Talk]:
    one = Talk(folder, **how)
    try:
        yield one
    finally:
        one.process.kill()
        one.process.wait()
        for pipe in (one.process.stdin, one.process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()


def shell(command: str, text: str = f"{gate.HERE}/w] (work)") -> dict[str, Any]:
    return {
        "toolCallId": "c1",
        "kind": "execute",
        "title": command,
        "content": [{"type": "content", "content": {"type": "text", "text": text}}],
    }


def answer(folder: Path, call: dict[str, Any], **how: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the program was answered, and how Watchfloor was told of the call."""
    with talk(folder, **how) as one:
        one.prompt("p1", call)
        update = one.line()["params"]["update"]
        return one.told(2)[1]["result"], update


def test_a_call_goes_to_the_hook_and_only_its_clean_end_allows_it(tmp_path: Path) -> None:
    allowed, update = answer(tmp_path, shell("ls -la"))
    assert allowed == gate.ALLOW and (update["title"], update["rawInput"]) == ("run_shell_command", {"command": "ls -la"})
    asked = json.loads((tmp_path / "asked").read_text())
    assert (asked["tool_name"], asked["tool_input"], asked["session_id"]) == ("run_shell_command", {"command": "ls -la"}, "0123456789")
    assert asked["cwd"] == str(tmp_path.resolve()) and asked["tool_use_id"] == "c1" and asked["hook_event_name"] == "BeforeTool"
    for command, words in (("denied", "Watchfloor: rule one: not this"), ("broken", "Watchfloor: no call without an allow")):
        (tmp_path / "heard").unlink()
        refused, _ = answer(tmp_path, shell(command))
        assert refused["outcome"] == {"outcome": "selected", "optionId": words}


@pytest.mark.parametrize(
    ("call", "tool", "given"),
    [
        (
            {"kind": "edit", "content": [{"type": "diff", "path": "/w/a", "newText": "n"}]},
            "write_file",
            {"file_path": "/w/a", "content": "n"},
        ),
        ({"kind": "read", "locations": [{"path": "/w/b"}], "content": []}, "read_file", {"file_path": "/w/b"}),
    ],
)
def test_a_file_is_judged_by_its_whole_path(call: dict[str, Any], tool: str, given: dict[str, Any]) -> None:
    assert gate.call_of(call) == (tool, given, "")


@pytest.mark.parametrize(
    "call",
    [
        shell("rm x", "[in /etc] (work)"),
        shell("rm x", ""),
        {"kind": "execute", "title": "rm x"},
        {"kind": "execute", "title": ["rm"], "content": []},
        {"kind": "edit", "content": []},
        {"kind": "edit", "content": [{"type": "diff", "path": 1}]},
        {"kind": "edit", "content": [{"type": "diff", "path": "/a"}, {"type": "diff", "path": "/b"}]},
        {"kind": "read", "locations": []},
        {"kind": "read", "locations": [{"path": "/a"}, {"path": "/b"}]},
        {"kind": "fetch", "title": "https://x"},
        {"kind": "other", "title": "ls"},
        {},
    ],
)
def test_what_a_question_does_not_say_whole_is_refused_without_the_hook(call: dict[str, Any]) -> None:
    assert gate.call_of(call)[2].startswith("Watchfloor: this ")


def test_the_hook_is_not_asked_about_what_cannot_be_judged_and_nothing_is_refused_where_no_call_is_judged(tmp_path: Path) -> None:
    refused, _ = answer(tmp_path, {"kind": "fetch"})
    assert "cannot be judged" in refused["outcome"]["optionId"] and not (tmp_path / "asked").exists()
    (tmp_path / "heard").unlink()
    assert answer(tmp_path, {"kind": "fetch"}, judged=False)[0] == gate.ALLOW


@pytest.mark.parametrize("waits", [True, False], ids=["the hook waits", "it was not asked yet"])
def test_a_second_prompt_waits_for_the_end_of_the_turn_and_the_end_of_input_for_both(tmp_path: Path, waits: bool) -> None:
    with talk(tmp_path) as one:
        one.prompt("p1", shell("slow"))
        one.prompt("p2", "and another thing")
        assert one.process.stdin is not None
        until = time.monotonic() + 20
        while waits and not one.asked.exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        one.say(method="session/cancel", params={"sessionId": "0123456789"})
        one.process.stdin.close()
        heard = sorted(one.told(4), key=lambda record: record.get("method") == "session/cancel")
        assert [record.get("method") for record in heard] == ["session/prompt", None, "session/prompt", "session/cancel"]
        assert heard[1]["result"] == gate.CANCELLED and heard[2]["id"] == "p2"
        assert one.process.wait(20) == 0


def test_one_that_is_asked_once_speaks_the_protocol_by_itself_and_ends(tmp_path: Path) -> None:
    with talk(tmp_path, once=True) as one:
        said, _ = one.process.communicate(b"hello\nyou", 20)
        heard = one.told(3)
    assert [record["method"] for record in heard] == ["initialize", "session/new", "session/prompt"]
    assert heard[2]["params"]["prompt"] == [{"type": "text", "text": "hello\nyou"}]
    assert [json.loads(line)["id"] for line in said.splitlines()] == ["session", "prompt"]


def test_each_answer_that_the_chat_holds_is_told_once_and_whole_lines_alone(tmp_path: Path) -> None:
    chat = tmp_path / ".gemini" / "tmp" / "w" / "chats" / "session-2026-11-27T16-04-01234567.jsonl"
    chat.parent.mkdir(parents=True)
    used = {"input": 5, "output": 1, "cached": 0}
    one = {"id": "a", "timestamp": "2026-11-27T16:04:11.263Z", "type": "gemini", "model": "m", "tokens": used, "content": "secret"}
    chat.write_text(
        "".join(json.dumps(line) + "\n" for line in (one, {**one, "toolCalls": []}, {"type": "user", "tokens": used})) + '{"tokens'
    )
    with talk(tmp_path, once=True) as it:
        said, _ = it.process.communicate(b"hello", 20)
    told = [json.loads(line) for line in said.splitlines() if b"watchfloor/answer" in line]
    assert [record["params"] for record in told] == [{name: one[name] for name in ("id", "timestamp", "type", "model", "tokens")}]


def test_it_does_not_start_where_the_machine_has_policies_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "SYSTEM_POLICIES", str(tmp_path))
    (tmp_path / "own.toml").touch()
    assert gate.main([], ["talk", "/bin/false"]) == 1


def test_a_script_runs_with_the_node_of_its_own_package_manager(tmp_path: Path) -> None:
    script = tmp_path / "lib" / "node_modules" / "@google" / "gemini-cli" / "bundle" / "gemini.js"
    assert gate.command("/opt/gemini", ["-a"]) == ["/opt/gemini", "-a"]
    node = tmp_path / "bin" / "node"
    node.parent.mkdir()
    node.write_text("")
    os.chmod(node, 0o755)
    assert gate.command(str(script), ["-a"]) == [str(node.resolve()), str(script), "-a"]
