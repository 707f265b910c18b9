"""What hooks of the real programs told, in our words; and what hostile ones could tell."""

from __future__ import annotations

import json
from typing import Any

import pytest

from console.api.policy import policy_data
from console.domain.errors import UsageProblem
from console.policy.tools.catalogue import tool_of
from console.services.hooks.calls import ARGUMENT_MAX, read_call

BASE = {"session_id": "ca2200bd-a045", "hook_event_name": "PreToolUse", "cwd": "/home/dev/proj", "tool_use_id": "toolu_1"}


def call(name: str, given: Any, **more: Any) -> Any:
    return read_call("claude-code", {**BASE, "tool_name": name, "tool_input": given, **more}).request


def test_a_tool_without_an_effect_is_known_in_its_own_program_alone() -> None:
    def tool(program: str, name: str) -> str:
        request = read_call(program, {**BASE, "tool_name": name, "tool_input": {}}).request
        assert request is not None
        return request.tool

    assert [tool("opencode", name) for name in ("task", "todowrite")] == ["Task", "TodoWrite"]
    assert [tool("claude-code", name) for name in ("task", "todowrite")] == ["task", "todowrite"]
    assert tool("gemini", "invoke_agent") == "invoke_agent" and tool("qwen", "agent") == "agent"


def test_a_server_that_the_program_names_is_told_from_its_tool() -> None:
    told = {"server_name": "git_hub", "tool_name": "get_issue", "command": "x"}
    assert call("mcp_git_hub_get_issue", {}, mcp_context=told).tool == "mcp__git_hub__get_issue"
    odd: Any
    for odd in ({"server_name": 7}, [], None, {"tool_name": "x"}):
        assert call("mcp_git_hub_get_issue", {}, mcp_context=odd).tool == "mcp_git_hub_get_issue"


PATCH = "*** Begin Patch\n*** Add File: a.txt\n+x\n*** End Patch"


@pytest.mark.parametrize(
    ("name", "given", "tool", "argument"),
    [
        ("Bash", {"command": "ls -la", "description": "list"}, "shell", "ls -la"),
        ("exec_command", {"cmd": "grep x"}, "shell", "grep x"),
        ("shell", {"command": ["git", "push"]}, "argv", '["git", "push"]'),
        ("Write", {"file_path": "/p/x", "content": "y"}, "write_file", "/p/x"),
        ("Edit", {"file_path": "/p/x"}, "write_file", "/p/x"),
        ("apply_patch", {"command": PATCH}, "apply_patch", PATCH),
        ("patch", {"patchText": PATCH}, "apply_patch", PATCH),
        ("NotebookEdit", {"notebook_path": "/p/n.ipynb"}, "write_file", "/p/n.ipynb"),
        ("Read", {"file_path": "/etc/shadow"}, "read_file", "/etc/shadow"),
        ("Grep", {"pattern": "x"}, "read_file", "."),
        ("Grep", {"pattern": "x", "path": "/etc"}, "read_file", "/etc"),  # what it finds it shows
        ("Glob", {"pattern": "**/*.py"}, "list_files", "."),
        ("Glob", {"pattern": "src/*.py"}, "list_files", "./src"),
        ("Glob", {"pattern": "/etc/ssh/*", "path": "/p"}, "list_files", "/etc/ssh/"),
        ("Glob", {"pattern": "/*"}, "list_files", "/"),
        ("Glob", {"pattern": "../x*"}, "list_files", "./.."),
        ("Glob", {"pattern": "*/../../etc/*"}, "list_files", "/"),
        ("Glob", {"pattern": "{a,/etc}/*"}, "list_files", "/"),
        ("Glob", {"pattern": "src/**/*.{ts,tsx}"}, "list_files", "./src"),
        ("Glob", {"pattern": 7}, "list_files", "/"),
        ("read_file", {"file_path": "/etc/shadow"}, "read_file", "/etc/shadow"),
        ("list_dir", {"dir_path": "/etc"}, "list_files", "/etc"),
        ("grep_files", {"pattern": "x"}, "read_file", "."),
        ("WebFetch", {"url": "https://h/x", "prompt": "p"}, "http_request", "https://h/x"),
        ("run_shell_command", {"command": "echo x", "description": "say"}, "shell", "echo x"),
        ("replace", {"file_path": "/p/x", "old_string": "a"}, "write_file", "/p/x"),
        ("read_file", {"absolute_path": "/etc/shadow"}, "read_file", "/etc/shadow"),
        ("list_directory", {"path": "/etc"}, "list_files", "/etc"),
        ("glob", {"pattern": "/etc/ssh/*", "dir_path": "/p"}, "list_files", "/etc/ssh/"),
        ("grep_search", {"pattern": "x"}, "read_file", "."),
        ("bash", {"command": "ls", "description": "x"}, "shell", "ls"),
        ("read", {"filePath": "/etc/shadow"}, "read_file", "/etc/shadow"),
        ("write", {"filePath": "/p/x", "content": "y"}, "write_file", "/p/x"),
        ("edit", {"filePath": "/p/x", "oldString": "a"}, "write_file", "/p/x"),
        ("grep", {"pattern": "x"}, "read_file", "."),
        ("list", {"path": "/etc"}, "list_files", "/etc"),
        ("webfetch", {"url": "https://h/x", "format": "text"}, "http_request", "https://h/x"),
    ],
)
def test_calls_that_are_known_are_judged_by_what_they_do(name: str, given: Any, tool: str, argument: str) -> None:
    request = call(name, given)
    assert (request.tool, request.argument, request.cwd, request.call_id) == (tool, argument, "/home/dev/proj", "toolu_1")
    assert json.loads(request.detail) == given


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("mcp__crm__send", {"to": "x"}),
        ("patch", "*** Begin Patch\n*** End Patch"),
        ("shell_command", {"command": "rm -rf /"}),
    ],
)
def test_what_has_no_argument_to_be_judged_by_is_judged_whole_under_its_own_name(name: str, given: Any) -> None:
    request = call(name, given)
    assert request.tool == name and request.argument == request.detail


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("list_directory", {"dir_path": ".", "path": "/etc"}),  # by which of the two it goes is not known
        ("Bash", {"command": 7}),
        ("Bash", {}),
        ("Bash", {"command": ["a", 7]}),
        ("Write", {"file_path": ["/x"]}),
        ("apply_patch", "*** Begin Patch"),
        ("apply_patch", {"command": PATCH, "input": PATCH}),
        ("Write", {"content": "x"}),
        ("WebFetch", {"url": None}),
        ("read_file", {"target": "/etc/shadow"}),
        ("delete_file", {"path": "/etc/passwd"}),
        ("run_python", {"code": "1"}),
        ("terminal", {"line": "rm -r x"}),
    ],
)
def test_the_words_of_a_call_are_never_taken_for_the_path_or_command_of_a_tool_of_its_name(name: str, given: Any) -> None:
    """Otherwise {"file_path": "/etc/shadow"} as such would be a file in the workspace, which may be read."""
    request = call(name, given)
    assert request.tool == f"{name} call" and request.argument == request.detail
    assert tool_of(policy_data.tools(), request.tool).family == "other"  # a human is asked


def test_a_sub_agent_is_named_and_other_events_ask_nothing() -> None:
    seen = read_call("codex", {**BASE, "agent_id": "a66", "hook_event_name": "SubagentStart"})
    assert (seen.session, seen.sub_agent, seen.request) == ("ca2200bd-a045", "a66", None)


@pytest.mark.parametrize("event", [None, "", 7, "pretooluse", "PreToolUse ", "PreToolCall", ["PreToolUse"]])
def test_an_event_that_is_not_known_to_ask_nothing_is_judged_or_refused_never_waved_through(event: Any) -> None:
    asked = read_call("claude-code", {**BASE, "hook_event_name": event, "tool_name": "Bash", "tool_input": {"command": "rm -r x"}})
    assert asked.request is not None and asked.request.argument == "rm -r x"
    with pytest.raises(UsageProblem):
        read_call("claude-code", {**BASE, "hook_event_name": event})


@pytest.mark.parametrize(
    "more",
    [
        {"session_id": None},
        {"session_id": "../../x"},
        {"session_id": "x\ny"},
        {"session_id": "x" * 200},
        {"agent_id": "a b"},
        {"tool_name": 7},
        {"tool_name": ""},
        {"tool_name": "x" * 101},
    ],
)
def test_what_cannot_be_told_apart_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(UsageProblem):
        read_call("claude-code", {**BASE, "tool_name": "Bash", "tool_input": {"command": "ls"}, **more})


def test_an_unknown_program_is_refused() -> None:
    with pytest.raises(UsageProblem):
        read_call("other", dict(BASE))


def test_nothing_is_judged_in_part() -> None:
    assert call("Bash", {"command": "x" * ARGUMENT_MAX}).argument == "x" * ARGUMENT_MAX
    with pytest.raises(UsageProblem):
        call("Bash", {"command": "x" * (ARGUMENT_MAX + 1)})
    with pytest.raises(UsageProblem):
        call("Write", {"file_path": "/p", "content": "x" * 300_000})


@pytest.mark.parametrize("cwd", ["", "relative", "/" + "x" * 5000, None, 7])
def test_a_working_folder_that_is_none_is_left_out(cwd: Any) -> None:
    assert call("Bash", {"command": "ls"}, cwd=cwd).cwd == ""
