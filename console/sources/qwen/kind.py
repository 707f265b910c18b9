"""Qwen Code as an agent kind. Measured with 0.24 from npm, driven against a model on loopback."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from console.sources.home_dirs import read_foreign
from console.sources.hook_settings import JsonHook
from console.sources.interface import Source
from console.sources.kind import Kind, Lacks, Outlook
from console.sources.programs import Program
from console.sources.qwen.activity import ACTIVITY
from console.sources.qwen.transcripts import SOURCE, TRANSCRIPTS
from console.sources.reading import at_of
from console.sources.session_files import SessionFiles, Written, newest

PROGRAM = Program("qwen", "Qwen Code", ("@qwen-code/qwen-code",))
_FIRST_MAX = 65_536
_ODD = re.compile(r"[^A-Za-z0-9]")


def sessions(home: Path, cwd: str, uid: int) -> Iterator[Written]:
    """Those of one folder."""
    chats = home / ".qwen" / "projects" / _ODD.sub("-", cwd) / "chats"
    for path, changed in newest(chats, uid, lambda file: file.endswith(".jsonl")):
        yield Written(path.stem[:64], _began(path), changed, chats)


@lru_cache(maxsize=1024)
def _began(path: Path) -> float:
    try:
        record = json.loads(read_foreign(path, _FIRST_MAX).data.partition(b"\n")[0])
        return at_of(str(record.get("timestamp", "")))
    except (OSError, ValueError, AttributeError, RecursionError):
        return 0.0


def _look(given: Outlook) -> Source:
    return SessionFiles(SOURCE, PROGRAM, sessions, given)


QWEN = Kind(
    name="qwen",
    program=PROGRAM,
    look=_look,
    transcripts=TRANSCRIPTS,
    activity=ACTIVITY,
    sub_agents=Lacks("its chats count what a sub-agent used with its session"),
    hook=JsonHook(
        ".qwen/settings.json",
        gaps=(
            "A project's own .qwen/settings.json can add hooks and settings once its folder is trusted.",
            "A hook that ends with another status than 0 or 2, or that the program gives up on, lets the call through.",
            "Qwen Code waits 60 s for a hook and then makes the call (seen in 0.24). So it is blocked when no person approves within 50 s.",
        ),
        unit=1000,
        most_s=60,
        aliases={"todo_write": "TodoWrite", "exit_plan_mode": "ExitPlanMode", "task_stop": "TaskStop"},
    ),
    start=Lacks("Watchfloor cannot send it messages; watchfloor run -- qwen starts it as any command"),
    daemons=Lacks("it leaves no process behind that could start a session again"),
    quota=Lacks("its files do not say how much of its quota is used"),
)
