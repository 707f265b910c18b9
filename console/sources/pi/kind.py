"""pi as an agent kind, and OpenClaw, which is made from it. Measured with pi 0.73 from npm, driven against a model on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from console.sources.interface import Source
from console.sources.kind import Kind, Lacks, Outlook
from console.sources.pi.activity import ACTIVITY
from console.sources.pi.transcripts import OPENCLAW_TRANSCRIPTS, SOURCE, TRANSCRIPTS
from console.sources.programs import Program
from console.sources.reading import at_of
from console.sources.session_files import SessionFiles, Written, newest

PROGRAM = Program("pi", "pi", ("@mariozechner/pi-coding-agent", "@earendil-works/pi-coding-agent"), native=False)
_NO_HOOK = Lacks("it runs extensions in its own process, which its own tools can change: it has no hook that another program answers")
_NOT_STARTED = Lacks("Watchfloor cannot send it messages; watchfloor run -- starts it as any command")
_NO_DAEMON = Lacks("it leaves no process behind that could start a session again")
_NO_QUOTA = Lacks("its files do not say how much of a quota is used")


def sessions(home: Path, cwd: str, uid: int) -> Iterator[Written]:
    """Those of one folder. A file is named TIME_ID, with dashes for the colons of the time."""
    slug = cwd.lstrip("/").replace("/", "-").replace(":", "-")
    folder = home / ".pi" / "agent" / "sessions" / f"--{slug}--"
    for path, changed in newest(folder, uid, lambda file: file.endswith(".jsonl") and "_" in file):
        began, _, session = path.stem.partition("_")
        day, _, clock = began.partition("T")
        hour = clock.rstrip("Z").split("-")
        yield Written(session[:64], at_of(f"{day}T{':'.join(hour[:3])}.{hour[3]}+00:00") if len(hour) == 4 else 0.0, changed, folder)


def _look(given: Outlook) -> Source:
    return SessionFiles(SOURCE, PROGRAM, sessions, given)


PI = Kind(
    name="pi",
    program=PROGRAM,
    look=_look,
    transcripts=TRANSCRIPTS,
    activity=ACTIVITY,
    sub_agents=Lacks("it has none: an extension that starts others starts other processes of pi"),
    hook=_NO_HOOK,
    start=_NOT_STARTED,
    daemons=_NO_DAEMON,
    quota=_NO_QUOTA,
)
OPENCLAW = Kind(
    name="openclaw",
    program=Program("openclaw", "OpenClaw", ("openclaw",)),
    look=Lacks("one gateway process runs the sessions of all its agents: which one a process works for is not told"),
    transcripts=OPENCLAW_TRANSCRIPTS,
    activity=Lacks("one gateway process runs the sessions of all its agents"),
    sub_agents=Lacks("one gateway process runs the sessions of all its agents"),
    hook=_NO_HOOK,
    start=_NOT_STARTED,
    daemons=Lacks("its gateway is the process itself"),
    quota=_NO_QUOTA,
)
