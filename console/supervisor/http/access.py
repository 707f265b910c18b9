"""What the operator's door lets through, and when: while killed, reads and the ways out; at no time a token that is not an operator's."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from console.api.endpoints import ENDPOINTS, TOKEN_CHECK, Endpoint
from console.domain.engine.command import Record
from console.domain.errors import Denied, Killed
from console.domain.roles.rights import OWNER, Right, Standing, member, refusal, roles_of
from console.services.routes.request_identity import GROUPS, PID, UID, person_of
from console.services.routes.responses import Handler, Handlers, body_of, routed
from console.services.secrets.calls import secret_call
from console.supervisor.http.asgi import App, Message, Scope
from console.supervisor.http.peers import Peer
from console.supervisor.http.polkit import BOUND_S, Polkit

PAUSE_S = 10.0
ASKERS = 1000
_LEAF = re.compile(r"/agents/([a-z0-9][a-z0-9-]{0,62})-[0-9a-f]{8}(?:/|$)", re.MULTILINE)


class Scribe(Protocol):
    """Who writes the audit."""

    def record(self, record: Record) -> None: ...


class Trespasses:
    """Requests for what the asker has no right to: refused anyway, and here recorded and shown, without letting a flood in."""

    def __init__(self, scribe: Scribe, notice: Callable[[str], None]) -> None:
        self._scribe, self._notice = scribe, notice
        self._last: dict[str, tuple[float, int]] = {}

    def note(self, who: str, what: str, person: dict[str, Any] | None = None, why: str = "which it has no right to") -> None:
        """At most one record of an asker in PAUSE_S; how many were left out is in the next. On the loop's thread.

        ``person``: of a member; each of a member's routes counts for itself.
        """
        at, key = time.monotonic(), who if person is None else f"{who} {what}"
        last, left_out = self._last.get(key, (at - PAUSE_S, 0))
        if at - last < PAUSE_S:
            self._last[key] = (last, left_out + 1)
            return
        if len(self._last) >= ASKERS:
            self._last.pop(next(iter(self._last)))
        self._last[key] = (at, 0)
        words = f"{who} asked for {what[:200]!r}, {why}" + (f" ({left_out} more were not recorded)" if left_out else "")
        data = {"asked": what[:200], **(person or {})}
        self._scribe.record(Record(who[:100], "route.refused", words, verdict="deny", data=data, must=True))
        self._notice(words[:400])

    def at_operators_door(self, peer: Peer) -> None:
        """Record that a process without an operator's rights connected to operator.sock."""
        leaf = _LEAF.search(peer.cgroups)
        who = f"agent:{leaf[1]}" if leaf else f"uid {peer.uid}"
        if peer.cgroups:
            self.note(who, "operator.sock")
        else:  # a command that gave up waiting is one of these, and it had every right
            self.note(who, "operator.sock", why="and ended before it could be told whether it may: refused")


@dataclass(frozen=True, slots=True)
class Gates:
    """What decides at the door."""

    is_killed: Callable[[], bool]
    is_operators: Callable[[str], bool]
    """Whether a token is an operator's, and still good."""
    trespasses: Trespasses
    polkit: Polkit

    def before(self, handlers: Handlers) -> list[Route]:
        """Routes to these handlers, behind the gates: a body is not even read when its request is refused.

        Raises ValueError when an endpoint of the table has no handler, or a handler has no endpoint in it.
        """
        if differs := handlers.keys() ^ set(ENDPOINTS):
            raise ValueError(f"not both in the table of endpoints and served: {', '.join(sorted(row.name for row in differs))}")
        return routed({row: self._gated(row, handler) for row, handler in handlers.items()})

    def _gated(self, row: Endpoint[Any, Any], handler: Handler) -> Handler:
        async def served(request: Request) -> Response:
            header = request.headers.get("authorization")
            # The place of the secrets may be slow: asked beside the loop, judged on it.
            good = await secret_call(self._is_good, header) if header is not None and row is not TOKEN_CHECK else False
            await self._check_right(request, row)
            self.check(row, header, is_good=good)
            return await handler(request)

        return served

    async def _check_right(self, request: Request, row: Endpoint[Any, Any]) -> None:
        """Raises Denied when the roles of the caller do not allow what is asked; what would change something is recorded."""
        standing = standing_of(request)
        if standing.is_owner or (right := await needed(request, row)) in standing.rights:
            return
        if right in self.polkit.grants and await self.polkit.allows(right, int(request.scope[UID]), int(request.scope[PID])):
            return
        if right not in (Right.READ, Right.EXPORT):
            person = {"needs": right.value, "path": request.url.path[:200], **await asyncio.to_thread(person_of, request)}
            self.trespasses.note(f"operator:{person['uid']}", f"{request.method} {row.path}", person)
        if right in self.polkit.grants:
            words = "Only root may do this on the host's instance, and polkit did not allow it."
            raise Denied(words, f"Answer polkit's question within {BOUND_S:g} s, or ask root.")
        raise refusal(right)

    def _is_good(self, authorization: str) -> bool:
        kind, _, token = authorization.partition(" ")
        return kind == "Bearer" and self.is_operators(token)

    def check(self, row: Endpoint[Any, Any], authorization: str | None, *, is_good: bool | None = None) -> None:
        """Raises Denied for a token that is not an operator's, Killed for what waits for rearm. ``is_good``: what was found out already."""
        # The check presents tokens in order to hear whether they are refused.
        if authorization is not None and row is not TOKEN_CHECK and not (self._is_good(authorization) if is_good is None else is_good):
            self.trespasses.note("a token that is not an operator's", row.name)
            raise Denied("This token is not an operator's, or not any more.", "Ask for a new one, or use operator.sock without a token.")
        if not row.is_open:
            refuse_while(self.is_killed())


async def needed(request: Request, row: Endpoint[Any, Any]) -> Right:
    """The right that a request to this endpoint needs. Raises UsageProblem for a body that its handler would refuse."""
    if isinstance(row.right, Right):
        return row.right
    field = row.right.field
    word = request.path_params[field] if field in request.path_params else getattr(await body_of(request, row.body), field)
    return row.right.rights.get(word, Right.ADMINISTER)


def standing_of(request: Request) -> Standing:
    """What the caller may do: everything as the instance's own account or root, else what the groups that the kernel names allow."""
    if int(request.scope.get(UID, -1)) in (os.geteuid(), 0):  # of nobody when the kernel did not say whose
        return OWNER
    return member(roles_of(request.scope.get(GROUPS, frozenset())))


def refuse_while(killed: bool) -> None:
    """The documented refusal: status 503, ErrorView with exit code 4."""
    if killed:
        raise Killed(
            "Everything was stopped: nothing starts and nothing changes until you rearm.", "Rearm first: watchfloor rearm --reason ..."
        )


class Presence:
    """When a client asked last: most verbs are gone when they have their answer, and listen to nothing."""

    def __init__(self) -> None:
        self.at = time.monotonic()

    def noting(self, app: App) -> App:
        """Return the app that notes each request."""

        async def noted(scope: Scope, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]) -> None:
            self.at = time.monotonic()
            await app(scope, receive, send)
            self.at = time.monotonic()

        return noted
