"""Settings of the programs: our hook goes in once, comes out whole, and nothing of the user's is touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from console.domain.errors import UsageProblem
from console.sources.hook_settings import ANSWER_S, HookCommand, JsonHook, installed, read_file, with_hook, without_hook, written

COMMAND = HookCommand("/usr/bin/python3", Path("/state dir/hooks/watchfloor-hook.py"), "claude-code", Path("/run/hooks.sock"), 610)
MINE = {"matcher": "Bash", "hooks": [{"type": "command", "command": "echo mine"}]}
JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=9), lambda x: st.lists(x, max_size=3), max_leaves=6)


def test_it_goes_in_front_and_the_program_waits_longer_than_the_hook() -> None:
    settings = with_hook({"hooks": {"PreToolUse": [MINE], "Stop": [1]}, "model": "x"}, COMMAND, "f")
    first, second = settings["hooks"]["PreToolUse"]
    assert (second, settings["hooks"]["Stop"], settings["model"]) == (MINE, [1], "x")
    assert first["matcher"] == "*" and first["hooks"][0]["timeout"] == 610 + ANSWER_S
    assert first["hooks"][0]["command"] == (
        "/usr/bin/python3 -I -S '/state dir/hooks/watchfloor-hook.py' claude-code /run/hooks.sock 610"
        """ || /bin/sh -c 'echo "Watchfloor: no call without an allow. Unless a reason stands before this, the hook did not answer or """
        """cannot run: watchfloor doctor tells why, watchfloor install-hook installs it again. """
        """If Watchfloor is gone, take its hook out of the settings here." >&2; exit 2' || exit 2"""
    )


def test_where_a_program_waits_for_no_hook_longer_ours_blocks_before_it_gives_up() -> None:
    hook = JsonHook("settings.json", (), unit=1000, most_s=60)
    short = hook.added(b"", COMMAND, "f")
    (made,) = json.loads(short)["hooks"]["PreToolUse"][0]["hooks"]
    assert " claude-code /run/hooks.sock 50 || " in made["command"] and made["timeout"] == 70_000
    assert hook.why_skipped(short, Path("f")) == "" == hook.why_skipped(b"", Path("f"))
    older = JsonHook("settings.json", (), unit=1000).added(b"", COMMAND, "f")
    assert hook.why_skipped(older, Path("f")).startswith("the program gives up on it after 60 s and makes the call")


def test_twice_is_once_and_a_new_command_takes_the_place_of_the_old() -> None:
    once = with_hook({}, COMMAND, "f")
    assert with_hook(once, COMMAND, "f") == once
    other = HookCommand("/py", COMMAND.hook, "claude-code", Path("/other.sock"), 20)
    assert installed(with_hook(once, other, "f"), "f") == other.line() and len(with_hook(once, other, "f")["hooks"]["PreToolUse"]) == 1


@example({}, [None], True)
@given(st.dictionaries(st.sampled_from(["model", "env", "x"]), JSON), st.lists(st.just(MINE) | JSON, max_size=3), st.booleans())
def test_what_goes_in_comes_out_and_leaves_the_rest_as_it_was(rest: dict[str, Any], groups: list[Any], has_hooks: bool) -> None:
    settings = {**rest, **({"hooks": {"PreToolUse": groups}} if has_hooks and groups else {})}
    settings = json.loads(json.dumps(settings))
    assert without_hook(with_hook(settings, COMMAND, "f"), "f") == settings and without_hook(settings, "f") == settings


def test_a_group_that_holds_ours_and_the_users_keeps_the_users() -> None:
    ours = with_hook({}, COMMAND, "f")["hooks"]["PreToolUse"][0]["hooks"][0]
    mixed = {"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [ours, MINE["hooks"][0]]}]}}
    assert without_hook(mixed, "f") == {"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [MINE["hooks"][0]]}]}}


@pytest.mark.parametrize("data", [b"{", b"[]", b"7", b"{" * 5000, b'"x"', b"\xff", b'{"a": NaN' * 3])
def test_a_file_that_cannot_be_read_is_not_changed(data: bytes) -> None:
    with pytest.raises(UsageProblem):
        read_file(data, "f")


@pytest.mark.parametrize("settings", [{"hooks": []}, {"hooks": "x"}, {"hooks": {"PreToolUse": {}}}, {"hooks": {"PreToolUse": "x"}}])
def test_hooks_that_are_none_are_said(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageProblem):
        with_hook(settings, COMMAND, "f")


def test_no_file_is_no_settings_and_what_is_written_reads_back() -> None:
    assert read_file(b"", "f") == {} == read_file(b" \n", "f")
    settings = {"a": "\u202e\u00e4", "b": [1, {"c": None}]}
    assert read_file(written(settings), "f") == settings
