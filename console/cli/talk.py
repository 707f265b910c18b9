"""``watchfloor say AGENT TEXT`` and ``watchfloor interrupt AGENT``: talking to a program that ``run --agent`` started."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from console.api.program_messages import SaidView
from console.cli import out
from console.cli.link import connect
from console.cli.options import DangerousOk, Json, StateDir, verb_app
from console.cli.plain import plain
from console.domain.conversation import MOST_MESSAGE, checked_text
from console.domain.errors import UsageProblem

Agent = Annotated[str, typer.Argument(metavar="AGENT", help="Its id, as fleet shows it.")]


def say(
    agent: Agent,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to tell it; -: read it from standard input.")],
    dangerous_ok: DangerousOk = "",
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Tell a started program something. On record first; refused, with why, when it is killed, frozen, over its budget or ended."""
    if text == "-":
        try:
            text = sys.stdin.read(MOST_MESSAGE + 1)
        except UnicodeDecodeError as error:
            raise UsageProblem("What stands on standard input is no text.", "Send UTF-8.") from error
    checked_text(text)
    with connect(state_dir) as client:
        return _told(client.say(agent, text, dangerous_ok), as_json)


def interrupt(agent: Agent, state_dir: StateDir = None, as_json: Json = False) -> int:
    """End what a started program is doing now; it stays, and takes messages. Done when the program confirms it."""
    with connect(state_dir) as client:
        return _told(client.interrupt(agent), as_json)


def _told(view: SaidView, as_json: bool) -> int:
    if as_json:
        out.emit(view.model_dump(exclude={"schema_version"}))
    else:
        out.say(f"{plain(view.id)}: {view.done}")
    return 0


APPS = {"say": verb_app(say), "interrupt": verb_app(interrupt)}
