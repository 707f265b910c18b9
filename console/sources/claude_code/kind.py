"""Claude Code as an agent kind."""

from __future__ import annotations

import json
from collections.abc import Sequence

from console.sources.claude_code import program, stream
from console.sources.claude_code.activity import ACTIVITY
from console.sources.claude_code.daemons import ClaudeDaemons
from console.sources.claude_code.source import ClaudeCodeSource
from console.sources.claude_code.telemetry import TELEMETRY
from console.sources.claude_code.transcripts import TRANSCRIPTS
from console.sources.hook_settings import EVENT, HookCommand, JsonHook, group_of
from console.sources.interface import Source
from console.sources.kind import Kind, Lacks, Outlook, Servers, Start, Wanted, address
from console.wording.agent_kinds import GOES_ON


def _look(given: Outlook) -> Source:
    return ClaudeCodeSource(given.root, spend=given.spend, programs=given.programs, own=given.own, outside=given.outside)


def _words(wanted: Wanted) -> tuple[str, ...]:
    words = stream.WORDS_ONCE if wanted.once else stream.WORDS
    judged = stream.JUDGED if wanted.judged else ()
    return (*words, *stream.HELD_BY_SANDBOX, *judged, *(("--model", wanted.model) if wanted.model else ()))


def _told(command: HookCommand | None, _servers: Servers) -> str:
    # Said outright, so that no other settings can switch it off.
    return "{}" if command is None else json.dumps({"disableAllHooks": False, "hooks": {EVENT: [group_of(command)]}})


def _server(words: Sequence[str]) -> dict[str, object]:
    url = address(words)
    return {"type": "http", "url": url} if url else {"type": "stdio", "command": words[0], "args": [*words[1:]]}


def _servers(servers: Servers) -> str:
    return json.dumps({"mcpServers": {name: _server(words) for name, words in servers.items()}})


CLAUDE_CODE = Kind(
    name="claude-code",
    program=program.CLAUDE,
    look=_look,
    transcripts=TRANSCRIPTS,
    activity=ACTIVITY,
    sub_agents="notes and transcripts of their own beside their session's",
    hook=JsonHook(
        ".claude/settings.json",
        gaps=(
            'A project\'s own .claude/settings.json can switch it off ("disableAllHooks"); as root, --settings '
            "/etc/claude-code/managed-settings.json puts it where no project can. "
            "What watchfloor run --agent starts reads no such settings.",
            f"{GOES_ON[0].upper()}{GOES_ON[1:]}.",
        ),
    ),
    start=Start(
        "claude-code",
        stream.ClaudeStream,
        _words,
        stream.JUDGED,
        _told,
        program.USUAL,
        program.IN_HOME,
        addresses=("ANTHROPIC_BASE_URL",),
        models=dict.fromkeys(("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"), "api.anthropic.com"),
        servers=_servers,
        says_cost=True,
    ),
    daemons=ClaudeDaemons(),
    quota=Lacks("Claude Code's own files do not say how much of its subscription's window is used"),
    windows=("5 h", "week"),
    telemetry=TELEMETRY,
    is_woken_by_sums=True,
)
