"""Which program file is started for a type, judged by this instance's settings and by who agents are here."""

from __future__ import annotations

import os
from pathlib import Path

from console.domain.conversation import Program
from console.sandbox.programs import Found, find
from console.supervisor.parts import Parts


def agents_user(parts: Parts) -> tuple[int, int]:
    """(uid, gid) that agents have here."""
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    return parts.options.agents.uid, parts.options.agents.gid


def find_program(parts: Parts, program: Program, uid: int, gid: int, *, named: str = "") -> Found:
    """The file. ``named``: judged again just before a start, in place of a search. Raises Unavailable. Blocks for a moment."""
    options = parts.options.programs
    set_path = options.claude_code if program is Program.CLAUDE_CODE else options.codex
    return find(
        program, named or set_path, Path.home(), uid, gid, (parts.places.state_dir, parts.places.workspaces_dir), os.environ.get("PATH", "")
    )
