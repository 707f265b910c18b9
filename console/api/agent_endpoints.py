"""Every endpoint of an agent's own socket: one row each. Its router and the second table of docs/reference/endpoints.md come from this.

There is none to grant, approve, release or stop anything. The socket is the identity: an agent speaks for itself alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import NoneType

from console.api import budgets as b
from console.api import messages as m
from console.api.agents import execute as x
from console.api.policy import asking as a
from console.api.policy import hooks as ho
from console.api.secrets import TokenView
from console.domain.message import Message


@dataclass(frozen=True, slots=True)
class AgentEndpoint:
    """One thing that an agent can ask of its supervisor."""

    method: str
    path: str
    """With ``{name}`` for one segment."""
    body: type[Message] | type[None]
    """NoneType: it takes none."""
    answer: type[Message]
    what: str

    @property
    def name(self) -> str:
        """Method and path."""
        return f"{self.method} {self.path}"

    @property
    def word(self) -> str:
        """What an agent would call it: the part of its path behind the version."""
        return self.path.split("/")[2]


SELF = AgentEndpoint("GET", "/v1/self", NoneType, m.AgentView, "This agent: its limits, what it used, its network mode.")
NOTICES = AgentEndpoint("GET", "/v1/notices", NoneType, m.NoticesView, "What changed for it, from behind the number `after` on.")
SPAWN = AgentEndpoint(
    "POST", "/v1/spawn", m.LaunchBody, m.LaunchedView, "Start an agent of its own; it never gets more than its parent has."
)
USAGE = AgentEndpoint("POST", "/v1/usage", m.UsageBody, m.AgentView, "Report what it used since its last report, or in all.")
RESERVE = AgentEndpoint("POST", "/v1/reserve", b.ReserveBody, b.ReservedView, "Set a call's cost aside before it is made.")
SETTLE = AgentEndpoint("POST", "/v1/settle", b.SettleBody, m.AgentView, "Say what a call took for which something was set aside.")
PERMISSION = AgentEndpoint("POST", "/v1/permission", a.AskBody, a.AskView, "Whether a tool call may be made. Only `allow` means go ahead.")
APPROVAL = AgentEndpoint("GET", "/v1/approvals/{approval_id}", NoneType, a.AskedView, "What became of a request that waited for a person.")
EXECUTE = AgentEndpoint("POST", "/v1/execute", x.ExecuteBody, x.ExecuteEnded, "Judge a tool call and make it; one JSON object a line.")
HOOK = AgentEndpoint("POST", "/v1/hook", ho.HookBody, ho.HookVerdict, "A tool call as a program's hook tells it, and the verdict.")
PRIVATE_DATA = AgentEndpoint(
    "POST", "/v1/private-data", m.PrivateDataBody, m.AgentView, "Register data, which tightens its network at once."
)
TOKEN = AgentEndpoint("POST", "/v1/token", NoneType, TokenView, "A new token of this agent, shown once, with the seconds that it lives.")

AGENT_ENDPOINTS = (SELF, NOTICES, SPAWN, USAGE, RESERVE, SETTLE, PERMISSION, APPROVAL, EXECUTE, HOOK, PRIVATE_DATA, TOKEN)
