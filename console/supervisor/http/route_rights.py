"""Which right each route of operator.sock needs: one table. A route that is not in it is for root alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request

from console.api.ladder import LadderBody, SwitchBody
from console.domain.roles.rights import Right
from console.services.routes.responses import body_of

STOPS = frozenset({"freeze", "isolate", "kill"})
STARTS = frozenset({"thaw", "reconnect"})
Chosen = Callable[[Request], Awaitable[Right]]
"""The right of a route that does several things. It reads what the handler reads, by the same message."""


def _of_word(word: str) -> Right:
    return Right.KILL if word in STOPS else Right.OPERATE if word in STARTS else Right.ADMINISTER


async def _of_step(request: Request) -> Right:
    return _of_word((await body_of(request, LadderBody)).action)


async def _of_switch(request: Request) -> Right:
    return Right.KILL if (await body_of(request, SwitchBody)).action == "activate" else Right.REARM


async def _of_agents_verb(request: Request) -> Right:
    return _of_word(request.path_params["verb"])


async def _of_sessions_verb(request: Request) -> Right:
    return {"hold": Right.OPERATE, "delete": Right.OPERATE, "release": Right.RELEASE}.get(request.path_params["verb"], Right.ADMINISTER)


_BY_RIGHT: dict[Right, str] = {
    Right.READ: """
        GET /api/status
        GET /api/webhook
        GET /api/fleet
        GET /api/agents/{id}
        GET /api/agents/{id}/activity
        GET /api/agents/{id}/activity/{seq}
        GET /api/agents/{id}/output
        GET /api/adopt/candidates
        GET /api/allowlist
        GET /api/allowlist/history
        GET /api/approvals
        GET /api/approvals/grants
        GET /api/approvals/{id}
        GET /api/approvals/{id}/draft
        GET /api/approvals/{id}/rule
        GET /api/audit
        GET /api/budgets
        GET /api/budgets/history
        GET /api/budgets/node
        GET /api/budgets/pictures
        GET /api/contexts
        GET /api/contexts/{id}/modes
        GET /api/egress
        GET /api/envoy/config
        GET /api/events
        GET /api/first-run
        GET /api/hooks
        GET /api/kill-switch
        GET /api/kill-switch/rearm
        GET /api/ladder/preview
        GET /api/mcp
        GET /api/passphrase
        GET /api/persistence
        GET /api/plans/{agent}
        GET /api/policy
        GET /api/policy/calls
        GET /api/policy/lint
        GET /api/policy/profiles
        GET /api/policy/profiles/compare
        GET /api/policy/sequences
        GET /api/policy/tools
        GET /api/programs
        GET /api/receipts
        GET /api/receipts/{id}
        GET /api/rollback
        GET /api/rollback/{id}
        GET /api/rotation
        GET /api/settings
        GET /api/sources
        GET /metrics
        GET /metrics/sessions
        POST /api/allowlist/backtest
        POST /api/allowlist/test
        POST /api/audit/verify
        POST /api/ladder/preview
        POST /api/policy/backtest
        POST /api/policy/explain
        """,
    Right.EXPORT: """
        GET /api/allowlist/file
        GET /api/audit/export
        """,
    Right.KILL: """
        POST /api/kill-switch/test
        POST /api/agents/{id}/kill
        POST /api/remote/retry
        """,
    Right.OPERATE: """
        POST /api/adopt
        POST /api/agents
        POST /api/agents/{id}/again
        POST /api/agents/{id}/end
        POST /api/agents/{id}/interrupt
        POST /api/agents/{id}/message
        POST /api/agents/{id}/revoke-token
        POST /api/allowlist
        PUT /api/allowlist/{id}
        DELETE /api/allowlist/{id}
        POST /api/allowlist/import
        POST /api/allowlist/revert
        POST /api/approvals
        POST /api/approvals/grants/end
        POST /api/approvals/{id}/rule
        POST /api/budgets
        POST /api/dry-run
        POST /api/network/private-data
        POST /api/network/stricter
        POST /api/plans
        POST /api/policy
        POST /api/policy/exact/remove
        POST /api/policy/profiles
        POST /api/programs
        POST /api/programs/preview
        POST /api/programs/preview-command
        """,
    # Settings name accounts and programs that root starts: no role has this, and polkit lets an administrator alone.
    Right.SETTINGS: """
        POST /api/api-key
        POST /api/rotation
        POST /api/rotation/value
        POST /api/settings
        POST /api/webhook
        POST /api/webhook/remove
        POST /api/webhook/test
        """,
    # What reads root's own files, writes them, holds keys, or ends the supervisor.
    Right.ADMINISTER: """
        GET /api/hooks/{program}/preview
        GET /api/token-check
        POST /api/audit/acknowledge
        POST /api/keys/retire
        POST /api/passphrase
        POST /api/rollback/{id}/restore
        POST /api/shutdown
        POST /api/tokens
        """,
}
RIGHTS: dict[str, Right | Chosen] = {
    **{route.strip(): right for right, routes in _BY_RIGHT.items() for route in routes.strip().splitlines()},
    "POST /api/kill-switch": _of_switch,
    "POST /api/ladder": _of_step,
    "POST /api/agents/{id}/{verb:str}": _of_agents_verb,
    "POST /api/contexts/{id}/{verb:str}": _of_sessions_verb,
}
"""By method and path."""


async def needed(request: Request, path: str) -> Right:
    """The right that a request to the route ``path`` needs. Raises UsageProblem for a body that its handler would refuse."""
    method = "GET" if request.method == "HEAD" else request.method
    found = RIGHTS.get(f"{method} {path}", Right.ADMINISTER)
    return found if isinstance(found, Right) else await found(request)
