"""Which profile judges which agents: an operator's choices, kept in the ledger and on record. No agent can choose one."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Protocol

from console.api.policy import policy_data
from console.api.policy import rules as p
from console.domain.agent import Agent, AgentId
from console.domain.calls.profile import OWN, ProfileTable
from console.domain.engine.command import Record
from console.domain.errors import ConsoleError, NotFound, UsageProblem
from console.domain.ids import ControlLevel
from console.domain.process.environment import check_agent_type
from console.ledger.store import Ledger
from console.policy.rules.last_good import Kept
from console.policy.rules.profiles import WORK, Profile
from console.services.records.record_writer import Scribe

_KEY = "policy.profiles"
TYPES_MAX = 200
ACCEPTED_MAX = 2_000


class Types(Protocol):
    """The part that knows the types with which agents were started."""

    known: dict[AgentId, str]
    """The types that were looked up, by agent."""

    def type_of(self, agent: Agent) -> str:
        """Empty: it has none, or is only seen. Blocks. Raises ConsoleError."""
        ...


class Profiles:
    """Thread-safe. ``types`` says which type an agent was started with."""

    __slots__ = ("_lock", "_choices", "_accepted", "_table", "_ledger", "_scribe", "_types")

    def __init__(self, table: ProfileTable, ledger: Ledger, scribe: Scribe, types: Types) -> None:
        self._table, self._ledger, self._scribe, self._types = table, ledger, scribe, types
        self._lock = threading.Lock()
        self._choices = _read(ledger)
        self._accepted: set[str] = set()
        table.chosen = {one.agent_type: one.profile for one in self._choices}
        table.types = types.known

    def of(self, agent: Agent, kept: Kept) -> Profile | None:
        """The profile of an agent; None: the rules that an operator wrote. Blocks. Raises ConsoleError."""
        self._table.own_rules = kept.good != policy_data.default_rules()
        self._types.type_of(agent)  # known from now on, after a restart too
        name = self._table.of(agent)
        return None if name == OWN else policy_data.profile(name)

    def is_accepted(self, agent: Agent) -> bool:
        """Whether a human allowed its session to run programs of the workspace, outside of a sandbox. Blocks."""
        seen = agent.control_level is ControlLevel.OBSERVED
        key = f"tree {agent.root_id}" if seen else f"session {agent.context_id}"
        if key in self._accepted:
            return True
        found = self._ledger.was_approved(WORK, None if seen else agent.context_id, agent.root_id)
        if found and len(self._accepted) < ACCEPTED_MAX:
            self._accepted.add(key)
        return found

    def view(self) -> p.ProfilesView:
        """Each profile, and what was chosen."""
        known = [policy_data.profile(name) for name in policy_data.PROFILES]
        return p.ProfilesView(
            profiles=[p.ProfileRow(name=one.name, title=one.title, why=one.why) for one in known],
            choices=list(self._choices),
            own_rules=self._table.own_rules,
        )

    async def choose(self, body: p.ProfileBody, by: str) -> p.ProfilesView:
        """Chooses a profile for a type of agents, or takes the choice back; on record first. Raises UsageProblem, NotFound, NotRecorded."""
        kind = check_agent_type(body.agent_type)
        if body.profile:
            policy_data.profile(body.profile)
        elif kind not in self._table.chosen:
            raise NotFound(f"No profile was chosen for {kind}.", "policy profile shows what was chosen.")
        data = {"agent_type": kind, "profile": body.profile, "before": self._table.chosen.get(kind, "")}
        what = f"{kind}: {body.profile or 'the default'}: {body.reason}"
        await asyncio.to_thread(self._scribe.record_first, Record(by, "policy.profile", what, verdict="ok", data=data))
        await asyncio.to_thread(self._keep, kind, body, by)
        return self.view()

    def _keep(self, kind: str, body: p.ProfileBody, by: str) -> None:
        with self._lock:
            left = [one for one in self._choices if one.agent_type != kind]
            if body.profile:
                left.append(p.ProfileChoice(agent_type=kind, profile=body.profile, reason=body.reason, by=by, at=time.time()))
            if len(left) > TYPES_MAX:
                raise UsageProblem(f"More than {TYPES_MAX} types have a profile.", "Take one back first.")
            self._ledger.kv_set(_KEY, json.dumps([one.as_data() for one in left]))
            self._choices = left
            self._table.chosen = {one.agent_type: one.profile for one in left}


def _read(ledger: Ledger) -> list[p.ProfileChoice]:
    """What was chosen. What cannot be read was not: then the defaults hold, of which none is *observe*."""
    try:
        found = [p.ProfileChoice.read(one) for one in json.loads(ledger.kv_get(_KEY) or "[]")]
        for one in found:
            policy_data.profile(one.profile)
    except (ValueError, TypeError, ConsoleError):
        return []
    return found
