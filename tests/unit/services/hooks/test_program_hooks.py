"""What a started program is told of our hook: in its own words, where it cannot write, and nothing that its workspace can undo."""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

from console.domain.conversation import GATE, HOOKED, PLUGIN, SERVERS, Program, Started
from console.services.hooks.program_hooks import furnish, is_judged, remove
from console.sources.codex.kind import OWN_KEY
from console.sources.codex.trust import trusted_hash
from console.sources.hook_settings import HookCommand
from console.sources.kinds import STARTS

ODD = Path("/tmp/a \"b\" 'c' \\ {é}")  # noqa: S108 - never written


def started(program: Program, *words: str) -> Started:
    return Started(program, "prompt", "/bin/program", True, words)


def test_claude_codes_settings_put_it_before_every_tool_and_cannot_be_switched_off() -> None:
    command = HookCommand("/usr/bin/python3", ODD / "watchfloor-hook.py", "claude-code", ODD / "agent.sock", 610)
    line = STARTS[Program.CLAUDE_CODE].told(command, {})
    settings = json.loads(line)
    (group,) = settings["hooks"]["PreToolUse"]
    assert settings["disableAllHooks"] is False and group["matcher"] == "*" and "\n" not in line
    (hook,) = group["hooks"]
    assert hook["command"] == command.line() and hook["timeout"] > 610
    assert shlex.split(hook["command"])[-3:] == ["||", "exit", "2"] and str(ODD / "agent.sock") in shlex.split(hook["command"])


def test_codexs_setting_says_the_same_in_one_word_of_its_own() -> None:
    command = HookCommand("/usr/bin/python3", ODD / "watchfloor-hook.py", "codex", ODD / "agent.sock", 610)
    line = STARTS[Program.CODEX].told(command, {})
    table = tomllib.loads(line)["hooks"]
    (group,) = table["PreToolUse"]
    assert group["matcher"] == "*" and group["hooks"] == [{"type": "command", "command": command.line(), "timeout": 630}]
    trust = trusted_hash(group, group["hooks"][0])  # its app-server has no option that trusts a hook
    assert table["state"] == {OWN_KEY: {"enabled": True, "trusted_hash": trust}} and "\n" not in line


def test_only_one_that_was_started_so_is_told_of_it(tmp_path: Path) -> None:
    for program in Program:
        judged = started(program, "-p", *STARTS[program].judged, "--more")
        assert is_judged(judged) and not is_judged(started(program, "-p")) and not is_judged(started(program))
        furnish(judged, tmp_path, tmp_path / "agent.sock", 600.0, {}, boxed=True)
        text = (tmp_path / HOOKED).read_text()
        told = "".join((tmp_path / name).read_text() for name in (HOOKED, PLUGIN, GATE) if (tmp_path / name).exists())
        assert str(tmp_path / "watchfloor-hook.py") in told and "/usr/bin/python3" in told and text.count("\n") == 1
        assert not (tmp_path / PLUGIN).exists() or str(tmp_path / PLUGIN) in text
        assert (tmp_path / "watchfloor-hook.py").stat().st_mode & 0o777 == 0o644
        furnish(started(program, "-p"), tmp_path, tmp_path / "agent.sock", 600.0, {}, boxed=True)
        assert "watchfloor-hook" not in (tmp_path / HOOKED).read_text()
        remove(tmp_path)
        assert list(tmp_path.iterdir()) == []
        remove(tmp_path)


def test_the_servers_of_an_allowlist_are_told_in_the_words_of_each_program(tmp_path: Path) -> None:
    servers = {"docs": ["https://docs.example/mcp"], "db-1": ['/opt/db "mcp"', "--all", "é"]}

    def told(program: Program, servers: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
        for words in (STARTS[program].judged, ()):
            furnish(started(program, *words), tmp_path, tmp_path / "agent.sock", 600.0, servers, boxed=True)
            yield (tmp_path / HOOKED).read_text(), (tmp_path / SERVERS).read_text()

    for _, line in told(Program.CLAUDE_CODE, servers):
        assert json.loads(line)["mcpServers"] == {
            "docs": {"type": "http", "url": "https://docs.example/mcp"},
            "db-1": {"type": "stdio", "command": '/opt/db "mcp"', "args": ["--all", "é"]},
        }
    for _, line in told(Program.CODEX, servers):
        assert tomllib.loads(line)["mcp_servers"] == {
            "docs": {"url": "https://docs.example/mcp"},
            "db-1": {"command": '/opt/db "mcp"', "args": ["--all", "é"]},
        }
    for line, _ in told(Program.OPENCODE, servers):
        assert json.loads(line)["mcp"] == {
            "docs": {"type": "remote", "url": "https://docs.example/mcp"},
            "db-1": {"type": "local", "command": ['/opt/db "mcp"', "--all", "é"]},
        }
    for program in Program:
        for lines in told(program, {}):
            assert "docs" not in "".join(lines) and [line.count("\n") for line in lines] == [1, 1], (
                "one that was taken from the list is gone"
            )
