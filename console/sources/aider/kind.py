"""aider as an agent kind. Measured with 0.86 from PyPI, driven against a model on loopback."""

from __future__ import annotations

from console.sources.aider.history import ChatHistories
from console.sources.interface import Source
from console.sources.kind import Kind, Lacks, Outlook
from console.sources.programs import Program
from console.sources.session_files import SessionFiles

SOURCE = "aider"
PROGRAM = Program("aider", "aider", is_python=True)


def _look(given: Outlook) -> Source:
    histories = ChatHistories()
    return SessionFiles(SOURCE, PROGRAM, histories.sessions, given, spent=histories.spent)


AIDER = Kind(
    name="aider",
    program=PROGRAM,
    look=_look,
    transcripts=Lacks(
        "it writes sums for people, rounded to a cent, and no record of an answer: its row has them, watchfloor cost has not"
    ),
    activity=Lacks("its chat history is text for people, in which what a model said and what was done look alike"),
    sub_agents=Lacks("it has none: it works alone in its terminal"),
    hook=Lacks("it has no hooks: it asks in its own terminal, or never (--yes-always)"),
    start=Lacks("Watchfloor cannot send it messages; watchfloor run -- aider starts it as any command"),
    daemons=Lacks("it leaves no process behind that could start a session again"),
    quota=Lacks("its files do not say how much of a quota is used"),
    sums_itself=True,
)
