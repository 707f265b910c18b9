"""``watchfloor agent output AGENT``: what an agent that Watchfloor started wrote. The text is hostile: nothing of it acts on a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from console.cli.link import connect
from console.cli.options import Json, StateDir
from console.cli.syntax import Argument, Option, example
from console.cli.terminal import out
from console.cli.terminal.plain import plain, plain_block

if TYPE_CHECKING:
    from console.api.client.api_client import ApiClient
    from console.api.messages import OutputView

LOOK_S = 0.2
END = 10**14
"""An offset behind the end of every output: the answer says how long it is."""
_KEPT = 512 * 1024
"""Bytes before the end in which the last lines are looked for."""


@example("a-1b2c3d4e --rows 20 --follow")
def output(
    agent: Annotated[str, Argument(metavar="AGENT", help="Its id, as watchfloor fleet lists it.")],
    rows: Annotated[int, Option("--rows", "-n", min=1, max=100_000, help="Last lines shown.")] = 50,
    follow: Annotated[bool, Option("--follow", "-f", help="Go on with new ones until it ends, or Ctrl-C.")] = False,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """The last lines that an agent wrote. Of an agent that was only seen nothing is recorded: see activity."""
    with connect(state_dir) as client:
        text, seen = last_lines(client, agent, rows)
        if as_json:
            out.emit({"agent": agent, "text": text, "total": seen.total, "live": seen.live, "exit_code": seen.exit_code})
            return 0
        out.write(plain_block(text) + ("" if follow or not text or text.endswith("\n") else "\n"))
        if not seen.total and not (follow and seen.live):
            out.note(f"Nothing that {plain(agent, 70)} wrote is recorded. What it did: watchfloor activity {plain(agent, 70)}")
        if follow:
            follow_on(client, agent, seen.offset)
    return 0


def last_lines(client: ApiClient, agent: str, rows: int) -> tuple[str, OutputView]:
    """(the last lines, the answer that they end with). Raises NotFound."""
    start = max(0, client.output(agent, END).total - _KEPT)
    seen, parts = client.output(agent, start), list[str]()
    while seen.text:
        parts.append(seen.text)
        if seen.offset >= seen.total:
            break
        seen = client.output(agent, seen.offset)
    lines = "".join(parts).splitlines(keepends=True)
    return "".join(lines[-rows:]), seen


def follow_on(client: ApiClient, agent: str, offset: int = 0, beside: Callable[[], None] = lambda: None) -> OutputView | None:
    """Write the output from there on until the agent has ended; the last answer. None: the reader of stdout went away.

    ``beside`` is called before each look.
    """
    while not out.gone():
        beside()
        piece = client.output(agent, offset)
        out.write(plain_block(piece.text))
        moved, offset = piece.offset > offset, piece.offset
        if not piece.live and offset >= piece.total:
            return piece
        if not moved:
            time.sleep(LOOK_S)
    return None
