"""Which program file is started for a type, judged by this instance's settings and by who agents are here."""

from __future__ import annotations

import os
from pathlib import Path

from console.domain.conversation import Program
from console.sandbox.programs import Found, find
from console.settings.options import Options
from console.settings.places import Places
from console.sources.kinds import STARTS


def agents_user(options: Options) -> tuple[int, int]:
    """(uid, gid) that agents have here."""
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    return options.agents.uid, options.agents.gid


def find_program(options: Options, places: Places, program: Program, uid: int, gid: int, *, named: str = "") -> Found:
    """The file. ``named``: judged again just before a start, in place of a search. Raises Unavailable. Blocks for a moment."""
    start, never_in = STARTS[program.value], (places.state_dir, places.workspaces_dir)
    return find(start, named or options.programs.path_of(start.name), Path.home(), uid, gid, never_in, os.environ.get("PATH", ""))
