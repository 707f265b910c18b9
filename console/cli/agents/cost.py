"""``watchfloor cost``: what agents spent, by day, model, tree and project."""

from __future__ import annotations

from typing import Annotated

from console.cli.oneshot import oneshot
from console.cli.options import Json, StateDir
from console.cli.syntax import Option, example

Day = Annotated[str | None, Option(metavar="DAY", help="YYYY-MM-DD, local time.")]


@example("--json")
def cost(
    since: Day = None,
    until: Day = None,
    home: Annotated[str | None, Option(metavar="DIR", help="Look in this home alone, with sums of its own.")] = None,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """What agents spent by their own transcripts: by day, model, tree and project; needs no supervisor."""
    given = {"--since": since, "--until": until, "--home": home}
    return oneshot("cost", *(f"{name}={value}" for name, value in given.items() if value), state_dir=state_dir, as_json=as_json)
