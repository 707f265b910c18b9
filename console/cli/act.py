"""``watchfloor freeze | thaw | isolate | kill AGENT``: what an operator does to one agent or one tree."""

from __future__ import annotations

from typing import Annotated

import typer

from console.api.messages import ActView
from console.cli import out, receipts
from console.cli.link import connect
from console.cli.options import Json, StateDir, verb_app
from console.cli.plain import plain
from console.domain.kill import exit_code

Agent = Annotated[str, typer.Argument(metavar="AGENT", help="Its id, as watchfloor fleet lists it.")]
Tree = Annotated[bool, typer.Option("--tree", help="And everything below it.")]
Why = Annotated[str, typer.Option("--reason", metavar="WORDS", help="Why; recorded.")]


def freeze(agent: Agent, tree: Tree = False, reason: Why = "", state_dir: StateDir = None, as_json: Json = False) -> int:
    """Reversible stop: nothing of it runs, nothing is lost; thaw undoes it."""
    with connect(state_dir) as client:
        return _told("frozen", client.freeze(agent, tree=tree, reason=reason), as_json)


def thaw(agent: Agent, tree: Tree = False, reason: Why = "", state_dir: StateDir = None, as_json: Json = False) -> int:
    """Undo your freeze. Freezes with other causes (budget, heartbeat ...) stay."""
    with connect(state_dir) as client:
        return _told("thawed", client.thaw(agent, tree=tree, reason=reason), as_json)


def isolate(agent: Agent, tree: Tree = False, reason: Why = "", state_dir: StateDir = None, as_json: Json = False) -> int:
    """Cut off its network from now on. This only tightens; nothing undoes it."""
    with connect(state_dir) as client:
        return _told("isolated", client.isolate(agent, tree=tree, reason=reason), as_json)


def kill(agent: Agent, tree: Tree = False, reason: Why = "", state_dir: StateDir = None, as_json: Json = False) -> int:
    """Kill one agent, or its tree with --tree, and print the receipt."""
    with connect(state_dir) as client:
        receipt = client.kill(agent, tree=tree, reason=reason)
    receipts.show_receipt(receipt, as_json=as_json)
    return int(exit_code(receipt))


APPS = {"freeze": verb_app(freeze), "thaw": verb_app(thaw), "isolate": verb_app(isolate), "kill": verb_app(kill)}


def _told(done: str, answer: ActView, as_json: bool) -> int:
    if as_json:
        out.emit(answer.model_dump(exclude={"schema_version"}))
    else:
        if answer.agents:
            out.say(f"{done}: {', '.join(plain(a, 70) for a in answer.agents)}")
        for agent, why in answer.failed.items():
            out.note(f"not {done}: {plain(agent, 70)}: {plain(why, 500)}")
    return 1 if answer.failed or not answer.agents else 0
