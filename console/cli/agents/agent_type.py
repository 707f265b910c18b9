"""``watchfloor agent-type list``: what each agent type has. ``watchfloor sandbox show AGENT``: what its sandbox was found to be made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from console.cli.link import connect
from console.cli.options import Json, StateDir
from console.cli.syntax import Argument, example
from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.domain.errors import ExitCode, NotFound

if TYPE_CHECKING:
    from console.api.agents.agent_types import SourcesView
    from console.api.messages import SourceView


def sources(state_dir: StateDir = None, as_json: Json = False) -> int:
    """What each agent type has (sources/TYPE.json of the state directory): what is enforced, shown, or wrong; and who looks for agents.

    Exit 2 when a file is broken.
    """
    with connect(state_dir) as client:
        seen, lookers = client.sources(), client.status().sources
    if as_json:
        out.emit({**seen.as_data(), "discovery": [one.as_data() for one in lookers]})
    else:
        _show(seen)
        out.say("Agents are looked for by:")
        for line in discovery_lines(lookers):
            out.say(f"  {line}")
    return int(ExitCode.DONE if all(one.ok for one in seen.types) else ExitCode.USAGE)


def discovery_lines(lookers: list[SourceView]) -> list[str]:
    """Each source of sightings with how it fares, in its own words."""
    return [plain(f"{one.source}: {one.state or 'not known'}, {one.sees} seen. {one.reason}", 400) for one in lookers]


def _show(seen: SourcesView) -> None:
    if not seen.types:
        out.say(f"No agent type has a file in {seen.folder}.")
    for one in seen.types:
        out.say(plain(one.agent_type if one.ok else f"{one.agent_type}: REFUSED: {one.error} {one.remedy}", 500))
        for line in one.enforced:
            out.say(f"  {plain(line, 500)}")
        for line in one.not_enforced:
            out.say(f"  not enforced: {plain(line, 500)}")


@example("a-1b2c3d4e")
def hardening(
    agent: Annotated[str, Argument(metavar="AGENT", help="Its id, as watchfloor fleet shows it.")],
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """What an agent's sandbox is made of, read back from inside before the agent ran: each measure, or why it is not to be had."""
    with connect(state_dir) as client:
        seen = client.agent(agent).hardening
    if not seen:
        why = "What its sandbox is made of is not known: it was only seen, or has not started yet."
        raise NotFound(why, "watchfloor fleet lists the agents.")
    if as_json:
        out.emit({"agent": agent, "hardening": [one.as_data() for one in seen]})
        return int(ExitCode.DONE)
    for one in seen:
        out.say(plain(one.line, 500))
    return int(ExitCode.DONE)
