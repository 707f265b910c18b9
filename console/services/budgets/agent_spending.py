"""What an agent says about spending on its own socket: usage, and calls set aside and settled. What is refused is recorded."""

from __future__ import annotations

import asyncio
import secrets

from starlette.requests import Request
from starlette.responses import Response

from console.api import messages as m
from console.api.budgets import ReserveBody, ReservedView, SettleBody
from console.domain.agent import AgentId
from console.domain.budget import RESERVABLE, Reservation, Usage, checked_increment
from console.domain.engine import event as e
from console.domain.errors import ConsoleError, NotFound, NotRecorded, UsageProblem
from console.domain.message import Message
from console.services.fleet.core import Core, now
from console.services.fleet.spent import tell_spend
from console.services.fleet.views import agent_view
from console.services.records.record_writer import Scribe
from console.services.routes.responses import answer, body_of


class AgentSpending:
    """Three routes of one agent's socket."""

    __slots__ = ("_id", "_core", "_scribe")

    def __init__(self, agent_id: AgentId, core: Core, scribe: Scribe) -> None:
        self._id, self._core, self._scribe = agent_id, core, scribe

    async def usage(self, request: Request) -> Response:
        """POST /v1/usage."""
        try:
            body = await body_of(request, m.UsageBody)
        except UsageProblem as error:  # what is no number at all is as much on record as one that may not be
            self._core.post(e.UsageRefused(*now(), self._id, str(error)))
            raise
        spent, errors = self._checked(body), self._errors(body.errors)
        if body.totals:
            spent = self._grown(spent)
        self._meter(spent)
        self._core.post(
            e.UsageReported(
                *now(), self._id, spent.iterations, spent.tokens, spent.tool_calls, spent.cost_usd, action=body.action, errors=errors
            )
        )
        return await self._kept()

    async def reserve(self, request: Request) -> Response:
        """POST /v1/reserve."""
        body = await body_of(request, ReserveBody)
        estimate = self._checked(body)
        if estimate == Usage():
            raise UsageProblem("Nothing is to be set aside.", "Name iterations, tokens, tool_calls or cost_usd.")
        at, boot = now()
        reservation = Reservation(f"{self._id}.{body.key or secrets.token_hex(8)}", self._id, estimate, boot + body.ttl_s, body.tool)
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._core.answers[reservation.reservation_id] = future
        self._core.post(e.ReservationAsked(at, boot, reservation))
        refused = await future
        if isinstance(refused, ConsoleError):
            raise refused
        try:
            await self._core.saved()
        except NotRecorded:
            # No record, no call: it is given back, for the agent was never told to go ahead.
            self._core.post(e.ReservationSettled(*now(), reservation.reservation_id, Usage()))
            raise
        held = self._core.state.budget.reservations.get(reservation.reservation_id, reservation)
        return answer(ReservedView(id=reservation.reservation_id, expires_in_s=max(0.0, held.expires_boot - boot)))

    async def settle(self, request: Request) -> Response:
        """POST /v1/settle."""
        body = await body_of(request, SettleBody)
        used, errors = self._checked(body), self._errors(body.errors)
        held = self._core.state.budget.reservations.get(body.id)
        if held is None or held.agent_id != self._id:
            raise NotFound("No such call is under way.", "It was settled already, or not in time: then it is counted in full.")
        self._meter(used)
        self._core.post(e.ReservationSettled(*now(), body.id, used, errors))
        return await self._kept()

    async def _kept(self) -> Response:
        await self._core.saved()  # what was acknowledged survives a crash
        return answer(agent_view(self._core.state.agents[self._id], self._core.state, self._core.meters, now()[0]))

    def _checked(self, body: Message) -> Usage:
        numbers = {name: self._number(name, getattr(body, name)) for name in RESERVABLE}
        return Usage(int(numbers["iterations"]), int(numbers["tokens"]), 0.0, int(numbers["tool_calls"]), float(numbers["cost_usd"]))

    def _errors(self, value: object) -> int:
        return int(self._number("errors", value))

    def _number(self, name: str, value: object) -> float:
        try:
            return checked_increment(name, value)
        except UsageProblem as error:
            self._core.post(e.UsageRefused(*now(), self._id, str(error)))
            raise

    def _grown(self, total: Usage) -> Usage:
        """Totals as increments. Raises UsageProblem, on record, for one that is lower than it was."""
        had = self._core.state.agents[self._id].usage
        for name in RESERVABLE:
            if round(getattr(total, name), 9) < round(getattr(had, name), 9):
                error = UsageProblem(
                    f"Usage {name} went down from {getattr(had, name):g} to {getattr(total, name):g}.", "It only ever grows."
                )
                self._core.post(e.UsageRefused(*now(), self._id, str(error)))
                raise error
        return Usage(
            iterations=total.iterations - had.iterations,
            tokens=total.tokens - had.tokens,
            tool_calls=total.tool_calls - had.tool_calls,
            cost_usd=max(0.0, total.cost_usd - had.cost_usd),
        )

    def _meter(self, spent: Usage) -> None:
        tell_spend(self._core, self._scribe, self._id, now()[0], spent.cost_usd, spent.tokens)
