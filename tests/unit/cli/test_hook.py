"""The verb that programs may be told to run before a tool call: whatever goes wrong, it blocks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from console.api.policy.hooks import HooksView, ProgramHook
from console.cli.hook import hook_words, installed_in
from console.wording.agent_kinds import PLACES
from tests.fakes.instance import ROOT

CALL = json.dumps({"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}})


@pytest.mark.parametrize(
    "words", [[], ["other"], ["claude-code", "more"], ["codex", "--bad"], ["claude-code"], ["codex", "--state-dir", "\n"]]
)
def test_whatever_is_wrong_blocks(tmp_path: Path, words: list[str]) -> None:
    where = [] if "--state-dir" in words else ["--state-dir", str(tmp_path / "none")]
    argv = [sys.executable, "-m", "console", "hook", *words, *where]
    done = subprocess.run(argv, cwd=ROOT, input=CALL, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and done.stderr and '"allow"' not in done.stdout
    assert list(tmp_path.iterdir()) == []  # it makes nothing


def test_a_program_is_never_called_enforced_before_a_call_was_judged(tmp_path: Path) -> None:
    assert installed_in(tmp_path) == dict.fromkeys(PLACES, False)
    file = tmp_path / PLACES["codex"]
    file.parent.mkdir()
    file.write_text('{"hooks": "/x/hooks/watchfloor-hook.py"}')
    assert {name for name, is_there in installed_in(tmp_path).items() if is_there} == {"codex"}
    heard = HooksView(programs=[ProgramHook(program="codex", calls=3, last_at=1.0)])
    assert hook_words("codex", installed=True, view=HooksView()) == "installed; not enforced: no call has reached this supervisor"
    assert "enforced: 3 calls" in hook_words("codex", installed=True, view=heard)
    assert "no supervisor answers: its calls are blocked" in hook_words("codex", installed=True, view=None)
    assert "not enforced" in hook_words("claude-code", installed=False, view=heard)
