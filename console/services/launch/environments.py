"""What each agent finds in its environment: built from nothing, with what its type adds, and kept by names so that it can be shown.

A type is an operator's to give: the agents that one starts have its type, whatever they ask for.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

from console.api.environment import EnvironmentView, VariableView
from console.domain.agent import Agent, AgentId, LaunchRequest
from console.domain.conversation import started_as
from console.domain.engine.command import Record
from console.domain.process.environment import Variable
from console.ledger.store import Ledger
from console.sandbox.environment import described, passed_on, scrub
from console.services.records.record_writer import Scribe
from console.settings.options import EnvironmentOptions, Options
from console.sources.kinds import STARTS

MOST_KNOWN = 2000
"""Agents whose names are kept in memory; the ledger has them all."""


@dataclass(frozen=True, slots=True)
class Given:
    """What an agent was started with, without the values."""

    agent_type: str
    variables: tuple[Variable, ...]
    left_out: tuple[str, ...]

    def words(self) -> str:
        """For the answer to a launch: what its type added, and every secret that was asked for; empty when there is nothing to say."""
        typed = [_shown(v) for v in self.variables if v.origin == "type"]
        asked = [_shown(v) for v in self.variables if v.origin == "launch" and v.secret]
        said = (
            [f"from the supervisor's environment, not from this shell's, as agents of type {self.agent_type}: {', '.join(typed)}"]
            if typed
            else []
        )
        said += [f"asked for with the launch: {', '.join(asked)}"] if asked else []
        return "; ".join((*said, *self.left_out))


def _shown(variable: Variable) -> str:
    return f"{variable.name} (SECRET)" if variable.secret else variable.name


def wanted_of(options: Options, agent_type: str, program: str) -> EnvironmentOptions | None:
    """The variables of the supervisor's that an agent gets: as the setting says of its type, else those that lead a program which we start
    to its model. None: nothing says."""
    if agent_type in options.environment or not program:
        return options.environment.get(agent_type)
    start = STARTS[program]
    return EnvironmentOptions(names=list(start.addresses), secrets=list(start.models))


class Environments:
    """Makes them, and remembers their names; on the event loop's thread."""

    __slots__ = ("_known", "_options", "_scribe", "_source")

    def __init__(self, options: Options, scribe: Scribe, source: Mapping[str, str] = os.environ) -> None:
        self._options, self._scribe, self._source = options, scribe, source
        self._known: dict[AgentId, Given] = {}

    async def make(self, agent: Agent, request: LaunchRequest, own: Mapping[str, str]) -> dict[str, str]:
        """The whole environment of a launch. Raises Denied and UsageProblem where a name or value may not be."""
        kind = request.agent_type
        if agent.parent_id is not None:
            before = await self.of(agent.parent_id)
            kind = before.agent_type if before is not None else ""
        started = started_as(request.argv) if agent.parent_id is None else None
        wanted = wanted_of(self._options, kind, started.program.value if started is not None else "")
        passed, left = passed_on(self._source, wanted.names, wanted.secrets) if wanted is not None else ({}, [])
        if kind not in self._options.environment:  # one key of those that a program takes is enough
            left = [f"no environment is set for agents of type {kind}"] if kind and wanted is None else []
        env = scrub(self._source, request.env, own, passed)
        names = described(env, passed, (name for name, _ in request.env), own, wanted.secrets if wanted is not None else ())
        given = Given(kind, names, tuple(left))
        if handed := [v.name for v in names if v.secret and v.origin == "type"]:
            # On record before it is given: no audit, no secret (promise 5).
            what = f"{agent.agent_id}, of type {kind}, is given {', '.join(handed)} of the supervisor's environment"
            data = {"agent_type": kind, "secrets": handed}
            record = Record("supervisor", "launch.secrets", what[:1000], verdict="allow", agent_id=agent.agent_id, data=data)
            await asyncio.to_thread(self._scribe.record_first, record)
        self._keep(agent.agent_id, given)
        if kind:  # what narrows it, and all that it starts, is on disk before it runs
            await asyncio.to_thread(self._scribe.ledger.kv_set, _key(agent.agent_id), _text(given))
        else:
            self._scribe.job(lambda: self._scribe.ledger.kv_set(_key(agent.agent_id), _text(given)))
        return env

    async def of(self, agent_id: AgentId) -> Given | None:
        """What it was started with; None: not known, as of agents that were not started here."""
        if agent_id not in self._known:
            found = await asyncio.to_thread(stored, self._scribe.ledger, agent_id)
            if found is None:
                return None
            self._keep(agent_id, found)
        return self._known[agent_id]

    async def view(self, agent_id: AgentId) -> EnvironmentView | None:
        """For the console."""
        given = await self.of(agent_id)
        if given is None:
            return None
        variables = [VariableView(name=v.name, origin=v.origin, secret=v.secret) for v in given.variables]  # type: ignore[arg-type]
        return EnvironmentView(agent_type=given.agent_type, variables=variables, left_out=list(given.left_out))

    def words(self, agent_id: AgentId) -> str:
        """What is to be said of it with its launch."""
        given = self._known.get(agent_id)
        return given.words() if given is not None else ""

    def _keep(self, agent_id: AgentId, given: Given) -> None:
        self._known.pop(agent_id, None)
        self._known[agent_id] = given
        while len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]


def stored(ledger: Ledger, agent_id: str) -> Given | None:
    """What the ledger kept of it."""
    text = ledger.kv_get(_key(agent_id))
    if text is None:
        return None
    try:
        data = json.loads(text)
        variables = tuple(Variable(str(n), str(o), bool(s)) for n, o, s in data["variables"])
        return Given(str(data["type"]), variables, tuple(str(w) for w in data["left_out"]))
    except (ValueError, KeyError, TypeError):
        return None  # damaged: not known


def is_damaged(ledger: Ledger, agent_id: str) -> bool:
    """Whether something was kept of it that cannot be read: its type is unknown, which is not the same as none."""
    return ledger.kv_get(_key(agent_id)) is not None and stored(ledger, agent_id) is None


def _key(agent_id: str) -> str:
    return f"environment.{agent_id}"


def _text(given: Given) -> str:
    variables = [[v.name, v.origin, v.secret] for v in given.variables]
    return json.dumps({"type": given.agent_type, "variables": variables, "left_out": given.left_out})
