"""The plug-in file: ours alone, as it was installed, and nobody else's is touched."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from console.domain.errors import UsageProblem
from console.sources.hook_settings import HookCommand
from console.sources.opencode.hook import PLACE, PluginHook

COMMAND = HookCommand("/usr/bin/python3", Path("/state dir/hooks/watchfloor-hook.py"), "opencode", Path('/run/a"b/hooks.sock'), 610)
HOOK = PluginHook()


def test_it_is_made_whole_found_again_and_taken_away() -> None:
    made = HOOK.added(b"", COMMAND, "f")
    assert HOOK.installed(b"", "f") == "" and HOOK.installed(made, "f") == shlex.join(COMMAND.words())
    assert HOOK.added(made, COMMAND, "f") == made and HOOK.removed(made, "f") == b""
    other = HookCommand("/py", COMMAND.hook, "opencode", COMMAND.socket, 20)
    assert HOOK.added(made, other, "f") == HOOK.added(b"", other, "f") != made


@pytest.mark.parametrize("data", [b"export const Mine = 1", b"\xff\xfe", b"\n\n// Watchfloor"])
def test_somebody_elses_file_is_not_touched(data: bytes) -> None:
    for act in (lambda: HOOK.installed(data, "f"), lambda: HOOK.added(data, COMMAND, "f"), lambda: HOOK.removed(data, "f")):
        with pytest.raises(UsageProblem, match="is not Watchfloor's"):
            act()


def test_a_file_that_opencode_does_not_load_or_that_was_changed_is_said() -> None:
    made, there = HOOK.added(b"", COMMAND, "f"), Path("/home/x") / PLACE
    assert HOOK.why_skipped(made, there) == ""
    assert "plugin" in HOOK.why_skipped(made, Path("/home/x/watchfloor.js"))
    assert "changed" in HOOK.why_skipped(made.replace(b"answer.code !== 0", b"false"), there)


DRIVER = """
import { readFileSync } from "node:fs"
const { Watchfloor } = await import(process.argv[2])
const sessions = { root: { id: "root" }, sub: { id: "sub", parentID: "root" } }
const client = {
  session: { get: async ({ path }) => ({ data: sessions[path.id] }) },
  mcp: { status: async () => ({ data: { "git hub": {}, git: {} } }) },
}
const hooks = await Watchfloor({ client, directory: "/work" })
for (const [tool, sessionID, args] of JSON.parse(process.argv[3])) {
  const input = { tool, sessionID, callID: "c1" }
  try {
    await hooks["tool.execute.before"](input, { args })
    const output = { output: "done" }
    await hooks["tool.execute.after"](input, output)
    console.log(JSON.stringify({ allowed: output.output }))
  } catch (error) { console.log(JSON.stringify({ blocked: error.message })) }
}
"""
ANSWERS = """
import json, os, sys
call = json.load(sys.stdin)
open(sys.argv[1], "a").write(json.dumps(call) + "\\n")
word = call["tool_input"].get("command", "")
if word == "deny": sys.stderr.write("Watchfloor: rule: no"); sys.exit(2)
if word == "killed": os.kill(os.getpid(), 9)
if word == "silent": sys.exit(2)
print(json.dumps({"hookSpecificOutput": {"additionalContext": "a notice"} if word == "notice" else {}}))
"""


def test_in_node_it_lets_through_an_allow_and_nothing_else(tmp_path: Path) -> None:
    node = shutil.which("node")
    assert node, "node is not there: packaging/test installs it"
    (tmp_path / "answers.py").write_text(ANSWERS)
    (tmp_path / "driver.mjs").write_text(DRIVER)
    command = [shutil.which("python3") or "python3", str(tmp_path / "answers.py"), str(tmp_path / "told")]
    lines = HOOK.added(b"", COMMAND, "f").decode().split("\n")
    lines[1] = f"const COMMAND = {json.dumps(command)}"
    (tmp_path / "plugin.mjs").write_text("\n".join(lines))
    calls = [
        ("bash", "root", {"command": "ok"}),
        ("bash", "sub", {"command": "notice", "workdir": "below"}),
        ("bash", "root", {"command": "deny"}),
        ("bash", "root", {"command": "killed"}),
        ("bash", "root", {"command": "silent"}),
        ("bash", "nobody", {"command": "ok"}),
        ("git_hub_get_issue", "root", {}),
        ("git_status", "root", {}),
    ]
    done = subprocess.run(
        [node, str(tmp_path / "driver.mjs"), str(tmp_path / "plugin.mjs"), json.dumps(calls)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    lines[1] = 'const COMMAND = ["/nonexistent/python3"]'
    (tmp_path / "broken.mjs").write_text("\n".join(lines))
    words = [node, str(tmp_path / "driver.mjs"), str(tmp_path / "broken.mjs"), json.dumps(calls[:1])]
    broken = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    assert "its hook cannot run. To install it again: watchfloor install-hook opencode" in json.loads(broken.stdout)["blocked"]
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert said[:2] == [{"allowed": "done"}, {"allowed": "done\na notice"}]
    assert [one["blocked"] for one in said[2:5]] == [
        "Watchfloor: rule: no",
        "Watchfloor: no call without an allow",
        "Watchfloor: no call without an allow",
    ]
    assert "is not known" in said[5]["blocked"] and [list(one) for one in said[6:]] == [["allowed"], ["allowed"]]
    told = [json.loads(line) for line in (tmp_path / "told").read_text().splitlines()]
    assert [(one["session_id"], one["agent_id"], one["cwd"]) for one in told[:2]] == [("root", "", "/work"), ("root", "sub", "/work/below")]
    assert [one["tool_name"] for one in told[-2:]] == ["mcp__git_hub__get_issue", "mcp__git__status"]

    lines[1] = 'const COMMAND = ["/nowhere/python3"]'
    (tmp_path / "plugin.mjs").write_text("\n".join(lines))
    done = subprocess.run(
        [node, str(tmp_path / "driver.mjs"), str(tmp_path / "plugin.mjs"), json.dumps(calls[:1])],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "ENOENT" in json.loads(done.stdout)["blocked"]


@pytest.mark.parametrize("command", ["5", "[" * 5000, "[1"])
def test_a_file_that_begins_like_ours_and_goes_on_otherwise_is_changed(command: str) -> None:
    """Whoever has the account can write it; looking at it must not fail."""
    first = PluginHook().added(b"", HookCommand("", Path(), "", Path(), 0), "x").splitlines()[0]
    for data in (first, first + b"\nconst COMMAND = " + command.encode()):
        PluginHook().installed(data, "x")
        assert "changed since" in PluginHook().why_skipped(data, Path("/home/ann") / PLACE)
