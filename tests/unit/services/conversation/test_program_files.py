"""Which file stands for a type here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from console.domain.conversation import Program
from console.domain.errors import Unavailable
from console.services.conversation.program_files import agents_user, find_program
from tests.fakes.program_stage import Stage


def test_agents_are_the_settings_user_under_root_and_ourselves_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = Stage(tmp_path, **{"agents.uid": 1234, "agents.gid": 4321}).parts.options
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert agents_user(options) == (1234, 4321)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "getegid", lambda: 1001)
    assert agents_user(options) == (1000, 1001)


def test_each_type_has_its_own_setting_and_a_workspace_is_no_place_for_a_program(tmp_path: Path) -> None:
    stage = Stage(tmp_path, **{"programs.codex": "/nonexistent/codex"})
    assert find_program(stage.parts.options, stage.parts.places, Program.CLAUDE_CODE, 54321, 54321).path == stage.program.resolve()
    with pytest.raises(Unavailable, match="/nonexistent/codex: not there"):
        find_program(stage.parts.options, stage.parts.places, Program.CODEX, 54321, 54321)
    planted = stage.parts.places.workspaces_dir / "ctx" / "claude"
    planted.parent.mkdir(parents=True)
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    with pytest.raises(Unavailable, match="where agents write"):
        find_program(stage.parts.options, stage.parts.places, Program.CLAUDE_CODE, 54321, 54321, named=str(planted))
