"""Gemini CLI as an agent kind. Measured with 0.61 from npm, driven against a model on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from console.domain.conversation import GATE, POLICY
from console.sources.gemini import gate, stream
from console.sources.gemini.activity import ACTIVITY
from console.sources.gemini.transcripts import SOURCE, TRANSCRIPTS
from console.sources.home_dirs import read_foreign
from console.sources.hook_settings import HookCommand, JsonHook
from console.sources.interface import Source
from console.sources.kind import Kind, Lacks, Outlook, Start, Wanted
from console.sources.programs import Program
from console.sources.reading import at_of
from console.sources.session_files import SessionFiles, Written, newest
from console.sources.text import plain

PROGRAM = Program("gemini", "Gemini CLI", ("@google/gemini-cli",))
_PROJECTS_MAX = 1 << 20
_FIRST_MAX = 16_384


def sessions(home: Path, cwd: str, uid: int) -> Iterator[Written]:
    """Those of one folder: ``projects.json`` names its short name, below which its chats lie."""
    try:
        projects = json.loads(read_foreign(home / ".gemini" / "projects.json", _PROJECTS_MAX).data)["projects"]
        name = projects[cwd]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return
    if not isinstance(name, str) or not name or "/" in name or name in (".", ".."):
        return
    chats = home / ".gemini" / "tmp" / name / "chats"
    for path, changed in newest(chats, uid, lambda file: file.startswith("session-") and file.endswith(".jsonl")):
        session, began = _first(path)
        if session:
            yield Written(session, began, changed, chats)


@lru_cache(maxsize=1024)
def _first(path: Path) -> tuple[str, float]:
    """(session, when it began): the first line never changes."""
    try:
        line = read_foreign(path, _FIRST_MAX).data.partition(b"\n")[0]
        record = json.loads(line)
        return plain(record["sessionId"], 64), at_of(str(record.get("startTime", "")))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return "", 0.0


def _look(given: Outlook) -> Source:
    return SessionFiles(SOURCE, PROGRAM, sessions, given, "sub-agents by their own chats")


def _words(wanted: Wanted) -> tuple[str, ...]:
    model = ("--model", wanted.model) if wanted.model else ()
    return ("once" if wanted.once else "talk", "--acp", *(stream.JUDGED if wanted.judged else stream.UNJUDGED), *model)


def _files(command: HookCommand | None) -> dict[str, bytes]:
    return {GATE: stream.gate_of(command), POLICY: stream.policy(judged=command is not None)}


def _needs(path: Path) -> tuple[Path, ...]:
    node = gate.node_of(path)
    return (path.parent, *([] if node is None else [node])) if path.suffix == ".js" else ()


_START = Start(
    SOURCE,
    stream.GeminiStream,
    _words,
    stream.JUDGED,
    lambda _command, _servers: stream.settings(),
    ("/usr/local/bin/gemini", "/usr/bin/gemini"),
    (".local/bin/gemini",),
    addresses=("GOOGLE_GEMINI_BASE_URL",),
    models=dict.fromkeys(("GEMINI_API_KEY", "GOOGLE_API_KEY"), "generativelanguage.googleapis.com"),
    files=_files,
    needs=_needs,
    no_servers="Gemini CLI's question before a call of an MCP server names neither the server nor all arguments",
)
GEMINI = Kind(
    name="gemini",
    program=PROGRAM,
    look=_look,
    transcripts=TRANSCRIPTS,
    activity=ACTIVITY,
    sub_agents="chats of their own in a folder named like their session",
    hook=JsonHook(
        ".gemini/settings.json",
        gaps=(
            "A project's own .gemini/settings.json can add hooks and settings once its folder is trusted.",
            "A hook that ends with another status than 0 or 2, or that the program gives up on, lets the call through.",
            "Started with --acp, as editors do it (Agent Client Protocol), it runs no hooks: its calls are not checked (seen in 0.61).",
        ),
        event="BeforeTool",
        unit=1000,
        aliases={"write_todos": "TodoWrite", "enter_plan_mode": "EnterPlanMode", "exit_plan_mode": "ExitPlanMode"},
    ),
    start=_START,
    daemons=Lacks("it leaves no process behind that could start a session again"),
    quota=Lacks("its files do not say how much of its quota is used"),
)
