"""``watchfloor remote watch``: the headless poller. Its work is in rooms this one may not import; it runs as a program of its own."""

from __future__ import annotations

from typing import Annotated

from console.cli.oneshot import oneshot
from console.cli.options import Json, StateDir
from console.cli.syntax import Option


def watch(
    once: Annotated[bool, Option("--once", help="One poll, with all that follows from it.")] = False,
    standby: Annotated[bool, Option("--standby", help="Wait while a supervisor polls; take over whenever none does.")] = False,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Poll the remote kill file without a supervisor: stops on a kill order, never loosens anything."""
    more = [*(["--once"] if once else []), *(["--standby"] if standby else [])]
    return oneshot("watch", *more, state_dir=state_dir, as_json=as_json)
