"""OpenCode as an agent kind, and Kilo, which is made from it. Measured with OpenCode 1.18 from npm, driven against a model on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from console.domain.conversation import PLUGIN
from console.sources.hook_settings import HookCommand
from console.sources.interface import Source
from console.sources.kind import Kind, Lacks, Outlook, Servers, Start, Wanted, address
from console.sources.opencode import stream
from console.sources.opencode.activity import ACTIVITY, KILO_ACTIVITY
from console.sources.opencode.hook import PluginHook, started_plugin
from console.sources.opencode.transcripts import KILO, KILO_TRANSCRIPTS, SOURCE, TRANSCRIPTS, connect, is_under_way
from console.sources.programs import Program
from console.sources.session_files import SessionFiles, Written, newest
from console.sources.text import plain

PROGRAM = Program("opencode", "OpenCode", ("opencode-ai", "opencode"))
KILO_PROGRAM = Program("kilo", "Kilo", ("@kilocode/cli",), native=False)
_SESSIONS = """
select id, time_created, time_updated, (
    select substr(data, 1, 4096) from message where session_id = session.id and length(data) < 4096 and data like '%"assistant"%'
    order by time_created desc, id desc limit 1)
from session where directory = ? and (parent_id is null or parent_id = '') order by time_updated desc limit 20"""
OWED = "its first answer is not over: OpenCode writes what an answer used once its tool calls have ended"
_NOT_STARTED = Lacks("Watchfloor cannot send it messages; watchfloor run -- starts it as any command")


def sessions(name: str, home: Path, cwd: str, uid: int) -> Iterator[Written]:
    """Yield the sessions of one folder, from the database of its account."""
    import sqlite3

    folder = home / ".local" / "share" / name
    for path, _ in newest(folder, uid, lambda file: file.startswith(name) and file.endswith(".db"), 3):
        try:
            with closing(connect(str(path))) as database:
                rows = database.execute(_SESSIONS, (cwd,)).fetchall()
        except sqlite3.Error:
            continue  # what is wrong with it is told where it is read
        for session, created, updated, last in rows:
            if isinstance(created, int | float) and isinstance(updated, int | float):
                owed = OWED if is_under_way(last) else ""
                yield Written(plain(session, 64), created / 1000, updated / 1000, folder, owed)


def _look(source: str, program: Program, given: Outlook) -> Source:
    return SessionFiles(source, program, partial(sessions, source), given, "sub-agents by the sessions below it")


def _words(wanted: Wanted) -> tuple[str, ...]:
    words = stream.WORDS_ONCE if wanted.once else stream.WORDS
    judged = stream.JUDGED if wanted.judged else stream.UNJUDGED
    return (stream.settings(wanted.model, wanted.base_url, judged=wanted.judged), *words, *judged)


def _told(command: HookCommand | None, servers: Servers) -> str:
    plugin = {} if command is None else {"plugin": [(command.hook.parent / PLUGIN).as_uri()]}
    return json.dumps({**plugin, "mcp": {name: _server(words) for name, words in servers.items()}})


def _server(words: Sequence[str]) -> dict[str, object]:
    url = address(words)
    return {"type": "remote", "url": url} if url else {"type": "local", "command": [*words]}


def _native(path: Path) -> Path:
    """Return the program itself: npm's file is a script in its place, where its package's own script did not run."""
    with path.open("rb") as file:
        if file.read(4) == b"\x7fELF":
            return path
    package = path.parent.parent
    for root in (package / "node_modules", package.parent):
        for found in sorted(root.glob("opencode-linux-*/bin/opencode")):
            return found.resolve(strict=True)
    raise ValueError("it is a script whose program is not beside it")


_START = Start(
    SOURCE,
    stream.OpenCodeStream,
    _words,
    stream.JUDGED,
    _told,
    ("/usr/local/bin/opencode", "/usr/bin/opencode", "/opt/opencode/bin/opencode"),
    (".local/bin/opencode", ".opencode/bin/opencode"),
    addresses=("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"),
    models={
        "ANTHROPIC_API_KEY": "api.anthropic.com",
        "OPENAI_API_KEY": "api.openai.com",
        "GEMINI_API_KEY": "generativelanguage.googleapis.com",
        "OPENROUTER_API_KEY": "openrouter.ai",
    },
    keyless="opencode.ai",
    files=lambda command: {PLUGIN: started_plugin(command)} if command is not None else {},
    native=_native,
)


def _kind(name: str, program: Program) -> Kind:
    return Kind(
        name=name,
        program=program,
        look=partial(_look, name, program),
        transcripts=TRANSCRIPTS if name == SOURCE else KILO_TRANSCRIPTS,
        activity=ACTIVITY if name == SOURCE else KILO_ACTIVITY,
        sub_agents="sessions whose parent is the session, in the same database",
        hook=PluginHook() if name == SOURCE else Lacks("its hooks are plug-ins that run inside it; ours was tried with OpenCode alone"),
        start=_START if name == SOURCE else _NOT_STARTED,
        daemons=Lacks("a server that it was told to run (opencode serve) is a process of its own and a row of its own"),
        quota=Lacks("its files do not say how much of a quota is used"),
    )


OPENCODE, KILOCODE = _kind(SOURCE, PROGRAM), _kind(KILO, KILO_PROGRAM)
