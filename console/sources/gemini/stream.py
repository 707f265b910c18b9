"""Gemini CLI as a started program: the Agent Client Protocol through our gate, which judges its calls and tells what its answers used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from console.sources.activity.acp import AcpStream
from console.sources.activity.program_stream import Heard, part, shown, word
from console.sources.gemini import gate
from console.sources.gemini.transcripts import SOURCE, ChatLines
from console.sources.hook_settings import HookCommand
from console.sources.reading import Reading
from console.sources.spend.transcript_files import Opened

JUDGED = ("--approval-mode", "default")
UNJUDGED = ("--approval-mode", "auto_edit")
ASKED = ("run_shell_command", "write_file", "replace", "read_file")
"""Tools whose questions say all that they do."""
HARMLESS = ("write_todos", "update_topic")


def settings() -> str:
    """Return its settings, one line: nothing but quiet."""
    quiet = {"enableAutoUpdate": False, "enableAutoUpdateNotification": False}
    return json.dumps({"general": quiet, "privacy": {"usageStatisticsEnabled": False}})


def policy(*, judged: bool) -> bytes:
    """Return the policy of a program: each tool that can be judged asks, and the model is offered no other."""

    def rule(tools: object, decision: str, priority: int) -> str:
        return f'[[rule]]\ntoolName = {json.dumps(tools)}\ndecision = "{decision}"\npriority = {priority}\n'

    if not judged:
        return rule("*", "allow", 999).encode()
    return "".join((rule([*ASKED], "ask_user", 999), rule([*HARMLESS], "allow", 998), rule("*", "deny", 1))).encode()


def gate_of(command: HookCommand | None) -> bytes:
    """Return the gate of a program, with the hook that it asks."""
    words = json.dumps(command.words() if command is not None else [])
    return Path(gate.__file__).read_bytes() + f'\n\nif __name__ == "__main__":\n    sys.exit(main({words}, sys.argv[1:]))\n'.encode()


class GeminiStream(AcpStream):
    """One program's stream. Not thread-safe."""

    source = SOURCE

    def _model(self, result: dict[str, Any]) -> str:
        return word(part(result, "models"), "currentModelId")

    def _called(self, update: dict[str, Any]) -> Heard:
        heard = super()._called(update)
        for event in heard.events:
            if event["kind"] == "tool_result" and event["error"]:
                event["text"] = _reason(event["text"])
        return heard

    def _notified(self, method: str, params: dict[str, Any]) -> Heard:
        if method != gate.ANSWER:
            return super()._notified(method, params)
        seen = Opened("/gemini/chats/told.jsonl", 0, ours=True, state=self.session, seen=Reading())
        answers = [*ChatLines(seen).take(msgspec.json.encode(params) + b"\n")]
        odd = [{"kind": "trouble", "text": f"usage that no model gives was not counted: {shown(params, 300)}"}]
        return Heard(odd if not answers else [], answers)


def _reason(text: str) -> str:
    """The words of our refusal, which the program's error holds as the choice that it did not offer."""
    try:
        return str(json.loads(text)[0]["received"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return text
