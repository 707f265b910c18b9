"""Stand between a started Gemini CLI and Watchfloor: ``python3 -I -S gate.py talk|once PROGRAM [ARGUMENT ...]``.

It runs alone, with the standard library, beside the agent's own socket. Gemini CLI runs no hooks where it takes messages. It asks its
client before each call instead (Agent Client Protocol), and this file answers: by Watchfloor's hook, with no for all else.
Other lines pass as they are, and one more for each answer of its model, from the chat that the program writes. ``once``: standard input is
one prompt; this file speaks the protocol itself and ends with the turn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

ANSWER = "watchfloor/answer"
"""The method of the lines that tell what an answer used."""
SYSTEM_POLICIES = "/etc/gemini-cli/policies"
"""Where the machine's own policies lie. With one there the program passes over ours in silence."""
HERE = "[current working directory "
"""How a shell command is explained that runs where the program stands. The name of another folder cannot be told from words behind it."""
ALLOW = {"outcome": {"outcome": "selected", "optionId": "proceed_once"}}
CANCELLED = {"outcome": {"outcome": "cancelled"}}
ABLE = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
Record = dict[str, Any]


class Gate:
    """One program, its questions and its turns."""

    def __init__(self, hook: list[str], argv: list[str], *, once: bool) -> None:
        """``hook``: the words of its command; none: each call is allowed."""
        self.hook, self.once, self.chat = hook, once, Chat()
        self.program = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lock = threading.RLock()
        self.asking: list[subprocess.Popen[bytes]] = []
        """Hooks that wait for a verdict."""
        self.turn: object = None
        """The id of the prompt that is being answered. A second one would break its turn off, so it waits in ``prompts``."""
        self.prompts: deque[bytes] = deque()
        self.is_cancelled = False
        """The turn was broken off: each question of it is."""
        self.is_over = False
        """No more comes from Watchfloor."""

    def run(self) -> int:
        """Until the program ends. Returns its exit status."""
        threading.Thread(target=self.hear, daemon=True).start()
        assert self.program.stdout is not None
        for line in self.program.stdout:
            record = parsed(line)
            self.chat.tell()
            if record.get("method") == "session/request_permission" and "id" in record:
                self.ask(record["id"], part(record, "params"))
            else:
                self.pass_on(line, record)
        self.chat.tell()
        return self.program.wait()

    # --- what Watchfloor says

    def hear(self) -> None:
        """Read it to its end."""
        if self.once:
            text = sys.stdin.read()
            self.tell({"id": "begin", "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": ABLE}})
            self.prompts.append(text.encode())
            return
        for line in sys.stdin.buffer:
            method = parsed(line).get("method")
            with self.lock:
                if method == "session/prompt":
                    self.prompts.append(line)
                    self.next()
                    continue
                if method == "session/cancel":
                    self.is_cancelled = True
                    for hook in self.asking:
                        hook.kill()
                self.send(line)
        with self.lock:
            self.is_over = True
            self.next()

    def next(self) -> None:
        """Begin the next turn, or end the program's input when none can come."""
        with self.lock:
            if self.turn is None and self.prompts:
                line = self.prompts.popleft()
                self.turn, self.is_cancelled = parsed(line).get("id"), False
                self.send(line)
            elif self.turn is None and self.is_over:
                assert self.program.stdin is not None
                with suppress(OSError):
                    self.program.stdin.close()

    # --- what the program says

    def pass_on(self, line: bytes, record: Record) -> None:
        """One line of the program's; its answers begin what comes next."""
        name, result = record.get("id"), part(record, "result")
        session = result.get("sessionId")
        if isinstance(session, str):
            self.chat.session = session
        if self.once and name == "begin" and result:
            self.tell({"id": "session", "method": "session/new", "params": {"cwd": str(Path.cwd()), "mcpServers": []}})
            return
        say(line)
        with self.lock:
            if self.once and name in ("begin", "session"):
                text = [{"type": "text", "text": self.prompts.popleft().decode()}]
                prompt = {"id": "prompt", "method": "session/prompt", "params": {"sessionId": session, "prompt": text}}
                self.prompts += [json.dumps({"jsonrpc": "2.0", **prompt}).encode() + b"\n"] if session else []
                self.is_over = True
                self.next()
            elif name is not None and name == self.turn and "method" not in record:
                self.turn = None
                self.next()

    def ask(self, name: object, params: Record) -> None:
        """Answer one question when its verdict is there."""
        call = part(params, "toolCall")
        tool, given, why = call_of(call)
        update = {"sessionUpdate": "tool_call", "toolCallId": call.get("toolCallId"), "title": tool or call.get("title")}
        update |= {"status": "in_progress", "rawInput": given}
        say(encoded({"method": "session/update", "params": {"sessionId": params.get("sessionId"), "update": update}}))
        if why and self.hook:
            self.tell({"id": name, "result": refusal(why)})
        elif not self.hook:
            self.tell({"id": name, "result": ALLOW})
        else:
            payload = {"hook_event_name": "BeforeTool", "session_id": params.get("sessionId"), "cwd": str(Path.cwd())}
            payload |= {"tool_name": tool, "tool_input": given, "tool_use_id": call.get("toolCallId")}
            threading.Thread(target=self.judge, args=(name, json.dumps(payload).encode()), daemon=True).start()

    def judge(self, name: object, payload: bytes) -> None:
        """One run of the hook: its status 0 allows, everything else refuses."""
        with self.lock:
            if self.is_cancelled:
                self.tell({"id": name, "result": CANCELLED})
                return
            hook = subprocess.Popen(self.hook, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            self.asking.append(hook)
        words = hook.communicate(payload)[1].decode("utf-8", "replace").strip()
        with self.lock:
            self.asking.remove(hook)
        refused = CANCELLED if hook.returncode < 0 else refusal(words or "Watchfloor: no call without an allow")
        self.tell({"id": name, "result": ALLOW if hook.returncode == 0 else refused})

    def tell(self, message: Record) -> None:
        """One message of ours to the program."""
        self.send(encoded(message))

    def send(self, line: bytes) -> None:
        """One line to the program, whole."""
        assert self.program.stdin is not None
        with self.lock, suppress(OSError, ValueError):
            self.program.stdin.write(line)
            self.program.stdin.flush()


class Chat:
    """What the program writes down of its session: an answer is there before its calls are asked for."""

    def __init__(self) -> None:
        self.session = ""
        self._at = 0
        self._told: set[str] = set()

    def tell(self) -> None:
        """Tell Watchfloor of each answer that is new."""
        chats = Path(os.environ["GEMINI_CLI_HOME"]) / ".gemini" / "tmp"
        path = next(chats.glob(f"*/chats/session-*-{self.session[:8]}.jsonl"), None) if self.session else None
        if path is None:
            return
        with path.open("rb") as file:
            file.seek(self._at)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._at += len(whole)
        for line in whole.splitlines():
            record = parsed(line) if b'"tokens"' in line else {}
            if record.get("type") == "gemini" and isinstance(record.get("tokens"), dict) and record.get("id") not in self._told:
                self._told.add(str(record["id"]))
                say(
                    encoded(
                        {"method": ANSWER, "params": {name: record.get(name) for name in ("id", "timestamp", "type", "model", "tokens")}}
                    )
                )


def call_of(call: Record) -> tuple[str, Record, str]:
    """(tool, its input, why it cannot be judged or empty). A question names no tool; each that the policy lets ask is of another kind."""
    kind, content, places = call.get("kind"), call.get("content"), call.get("locations")
    blocks = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
    if kind == "execute" and isinstance(call.get("title"), str):
        text = part(blocks[0], "content").get("text") if len(blocks) == 1 else None
        is_here = isinstance(text, str) and text.startswith(HERE)
        why = "" if is_here else "Watchfloor: this folder cannot be judged. Leave dir_path out, and begin the command with cd"
        return "run_shell_command", {"command": call["title"]}, why
    if kind == "edit" and len(blocks) == 1 and blocks[0].get("type") == "diff" and isinstance(blocks[0].get("path"), str):
        return "write_file", {"file_path": blocks[0]["path"], "content": blocks[0].get("newText")}, ""
    if kind == "read" and isinstance(places, list) and len(places) == 1 and isinstance(places[0], dict) and places[0].get("path"):
        return "read_file", {"file_path": places[0]["path"]}, ""
    return "", {}, "Watchfloor: this call cannot be judged, because its question does not say what it does"


def refusal(why: str) -> Record:
    """A refusal has no place for its reason. A choice that was not offered fails the call, and the program's error names the choice."""
    return {"outcome": {"outcome": "selected", "optionId": why[:2000]}}


def part(record: Record, name: str) -> Record:
    """A field that should be an object."""
    found = record.get(name)
    return found if isinstance(found, dict) else {}


def parsed(line: bytes) -> Record:
    """The line as an object; an empty one where it is none."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def encoded(message: Record) -> bytes:
    """One line of the protocol."""
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def say(line: bytes) -> None:
    """One line to Watchfloor."""
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def node_of(script: Path) -> Path | None:
    """The Node that a package manager put beside a script; None: the one of PATH."""
    beside = [folder / name / "node" for folder in script.parents for name in ("bin", ".bin")]
    return next((file.resolve() for file in beside if os.access(file, os.X_OK)), None)


def command(program: str, arguments: list[str]) -> list[str]:
    """Its command: npm's file is a script for Node."""
    return [str(node_of(Path(program)) or "node"), program, *arguments] if program.endswith(".js") else [program, *arguments]


def main(hook: list[str], argv: list[str]) -> int:
    """Run the program behind its gate."""
    if any(Path(SYSTEM_POLICIES).glob("*.toml")):
        print(f"Watchfloor: Gemini CLI does not start, because it would pass over the policy that makes it ask: {SYSTEM_POLICIES} has one")
        return 1
    return Gate(hook, command(argv[1], argv[2:]), once=argv[0] == "once").run()
