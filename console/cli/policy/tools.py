"""``watchfloor policy tools sign | check``: the only way a program of a session's workspace comes onto an agent's PATH."""

from __future__ import annotations

from typing import Annotated

from console.cli.oneshot import oneshot
from console.cli.options import Json, StateDir
from console.cli.syntax import Argument, Option, Verbs, example

app = Verbs("Tools of a session's workspace: none is on a PATH but what an operator's key signed.")
Session = Annotated[str, Argument(metavar="SESSION", help="Session id, as watchfloor network sandboxes lists it.")]


@app.command("sign")
@example("c-1b2c3d4e --tool lint.sh --reason 'reviewed'")
def sign(
    session: Session,
    tool: Annotated[
        list[str],
        Option("--tool", metavar="NAME[=SHA256]", help="A file in its tools folder; repeatable; with a hash: these bytes only."),
    ],
    reason: Annotated[str, Option("--reason", metavar="WORDS", help="Why; kept in the manifest.")],
    key: Annotated[list[str] | None, Option("--key", metavar="FILE", help="A private key kept elsewhere; repeatable.")] = None,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Sign a session's tools with an operator's key; they replace those that were signed before."""
    more = [*(f"--tool={name}" for name in tool), *(f"--key={file}" for file in key or [])]
    return oneshot("tools", "sign", session, *more, f"--reason={reason}", state_dir=state_dir, as_json=as_json)


@app.command("check")
@example("c-1b2c3d4e")
def check(session: Session, state_dir: StateDir = None, as_json: Json = False) -> int:
    """What the next launch in this session would offer; exit 4 and why when it is nothing."""
    return oneshot("tools", "check", session, state_dir=state_dir, as_json=as_json)
