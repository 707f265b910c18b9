"""``watchfloor say AGENT TEXT``, ``interrupt AGENT`` and ``end AGENT``: talking to a program that ``run --agent`` started, and its end."""

from __future__ import annotations

import sys
from typing import Annotated

from console.api.agents.programs import EndedView, SaidView
from console.cli.link import connect
from console.cli.options import DangerousOk, Json, StateDir
from console.cli.syntax import Argument, Option, example
from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.domain.conversation import MOST_MESSAGE, MOST_WITHIN_S, checked_text
from console.domain.errors import ExitCode, UsageProblem

MOST_REASON = 500
Agent = Annotated[str, Argument(metavar="AGENT", help="Its id, as fleet shows it.")]


@example("a-1b2c3d4e 'Stop at the first failing test.'")
def say(
    agent: Agent,
    text: Annotated[str, Argument(metavar="TEXT", help="What to tell it; -: read it from standard input.")],
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


@example("a-1b2c3d4e")
def interrupt(agent: Agent, state_dir: StateDir = None, as_json: Json = False) -> int:
    """End what a started program is doing now; it stays, and takes messages. Done when the program confirms it."""
    with connect(state_dir) as client:
        return _told(client.interrupt(agent), as_json)


@example("a-1b2c3d4e --within 60")
def finish(
    agent: Agent,
    reason: Annotated[str, Option(help="Why; recorded.")] = "",
    within: Annotated[float, Option(min=0, max=MOST_WITHIN_S, metavar="SECONDS", help="Time for a turn under way to finish.")] = 30.0,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Tell a started program that no more messages come, and wait until it has ended. Nothing is killed. Exit 5: it still runs."""
    if len(reason) > MOST_REASON:
        raise UsageProblem(f"The reason has {len(reason):,} characters; at most {MOST_REASON} are taken.", "Shorten it.")
    with connect(state_dir) as client:
        view = client.end(agent, reason, within)
    if as_json:
        out.emit_view(view)
    else:
        out.say(_ending(view))
    return int({"ended": ExitCode.DONE, "runs": ExitCode.PENDING, "killed": ExitCode.DENIED}[view.done])


def _ending(view: EndedView) -> str:
    said = {"ended": "ended", "runs": "still active", "killed": "killed"}[view.done]
    doubt = f" (best effort: {plain(view.best_effort, 300)})" if view.best_effort else ""
    return f"{plain(view.id)}: {said}: {plain(view.words, 1000)}{doubt}"


def _told(view: SaidView, as_json: bool) -> int:
    if as_json:
        out.emit_view(view)
    else:
        out.say(f"{plain(view.id)}: {view.done}")
    return 0
