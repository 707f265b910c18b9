"""Alerts: the six things that an operator must hear of without looking. Each is raised once, from what the engine and the followers decide.

Nothing here decides whether something happened. The engine's events and commands, the kill switch's state and the return watch are read.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from console.api.alerts import AlertKind, AlertView
from console.api.armed import ArmedView
from console.domain.agent import AgentId
from console.domain.calls.approval import Approval
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.errors import ExitCode
from console.domain.kill import Outcome, Receipt, Return, StepStatus, worst_outcomes
from console.domain.verdict import verdict
from console.enforcement.state import EngineState

KEPT = 2000
"""Ids of alerts that were raised: the same is not raised twice."""
NAMED = 20
"""Agents that one alert names; it says how many there are."""
TEXT = 500
"""Letters of one text of an agent."""
LOST_S = 10.0
"""The kill switch is not ready for this long before that is an alert: an engine that restarts is none."""
START_S = 90.0
"""A supervisor that was never ready for this long after its start has lost readiness as well."""
_ID = re.compile(r"[^A-Za-z0-9_-]")
Out = Callable[[AlertView], None]


class Alerts:
    """On the loop's thread. What takes an alert must not block."""

    __slots__ = ("_state", "_host", "_instance", "_redact", "_outs", "_raised", "_doubt_since", "_lost_from", "_is_lost")

    def __init__(
        self, state: Callable[[], EngineState], host: str, instance: str, redact: Callable[[Any], Any], outs: Sequence[Out]
    ) -> None:
        """``redact`` takes known secrets out of plain data; ``outs`` each take every alert."""
        self._state, self._host, self._instance, self._redact, self._outs = state, host, instance, redact, outs
        self._raised: dict[str, None] = {}
        self._doubt_since: float | None = None
        self._lost_from = time.monotonic() + START_S
        self._is_lost = False

    def heard(self, step: e.Event | c.Command) -> None:
        """Take an event of the engine's, or a command that it gave."""
        match step:
            case e.KillStarted(kill_id=kill_id, agent_ids=None, reason=reason, by=by):
                live = len(self._state().live)
                self._raise(AlertKind.PANIC, kill_id, {"kill_id": kill_id, "reason": reason, "by": by, "agents_running": live})
            case e.KillJudged(receipt=receipt):
                self._judged(receipt)
            case c.HaltAgents(agent_ids, reason):
                self._halted(agent_ids, reason)
            case c.KeepApproval(approval, None):
                self._asked(approval)
            case c.Record(kind="budget.over", agent_id=agent_id, what=what):
                facts = {"agents": self._named([agent_id]), "agents_total": 1, "reason": what, "stopped": False}
                self._raise(AlertKind.LIMIT_REACHED, f"{agent_id}-{_new_mark()}", facts)
            case _:
                pass

    def light(self, seen: ArmedView) -> None:
        """Take the state of the kill switch, looked at now."""
        tick = time.monotonic()
        if seen.state != "in_doubt":
            self._doubt_since, self._lost_from, self._is_lost = None, 0.0, False
            return
        self._doubt_since = tick if self._doubt_since is None else self._doubt_since
        if not self._is_lost and tick >= max(self._doubt_since + LOST_S, self._lost_from):
            self._is_lost = True
            self._raise(AlertKind.READINESS_LOST, _new_mark(), {"why": list(seen.why[:NAMED])})

    def returned(self, receipt: Receipt, row: Return) -> None:
        """Take a process of a killed session that ran again, as the return watch saw it."""
        facts = {"kill_id": receipt.kill_id, **self._names(row.agent_id), "session": row.session, "pid": row.pid, "seconds": row.seconds}
        facts |= {"recognised_by": row.by, "certain": row.certain, "killed_again": row.killed, "confirmed_dead": row.proven}
        self._raise(AlertKind.CAME_BACK, f"{receipt.kill_id}-{row.agent_id}-{row.pid}-{row.start_ticks}-{row.by}", facts)
        self._judged(receipt)  # a kill whose session came back for certain is not confirmed

    def ran_again(self, receipt: Receipt, agent_id: str, pid: int) -> None:
        """Take a killed session that runs after its return watch; it was not stopped."""
        facts = {"kill_id": receipt.kill_id, **self._names(agent_id), "pid": pid, "certain": True, "killed_again": False}
        self._raise(AlertKind.CAME_BACK, f"{receipt.kill_id}-{agent_id}-{pid}-after", facts)

    def test(self) -> AlertView:
        """Return an alert that says only that it is a test. Nothing else takes it."""
        return self._made(AlertKind.TEST, _new_mark(), {})

    def _judged(self, receipt: Receipt) -> None:
        """A kill is not confirmed: at once where something may run, else when the receipt is complete."""
        found = verdict(receipt)
        is_open = receipt.zero.status is StepStatus.PENDING or (not receipt.complete and found.exit_code is not ExitCode.NOT_PROVEN)
        if found.is_confirmed or is_open:
            return
        left = [(i, outcome) for i, outcome in worst_outcomes(receipt.targets).items() if outcome is not Outcome.PROVEN_ZERO]
        facts: dict[str, Any] = {"kill_id": receipt.kill_id, "reason": receipt.reason, "by": receipt.by, "result": found.short}
        facts |= {"may_run": found.may_run, "agents_total": len(left), "survivors": len(receipt.survivors)}
        facts["agents"] = [self._names(i) | {"outcome": outcome.words} for i, outcome in left[:NAMED]]
        self._raise(AlertKind.NOT_CONFIRMED, receipt.kill_id, facts)

    def _halted(self, agent_ids: Sequence[AgentId], reason: str) -> None:
        halt = next((agent.halt for i in agent_ids if (agent := self._state().agents.get(i)) is not None and agent.halt is not None), None)
        facts: dict[str, Any] = {"agents": self._named(agent_ids), "agents_total": len(agent_ids), "reason": reason, "stopped": True}
        if halt is not None:
            facts |= {"scope": halt.scope, "limit": halt.limit, "cap": halt.cap, "used": halt.used}
        self._raise(AlertKind.LIMIT_REACHED, f"{agent_ids[0]}-{_new_mark()}", facts)

    def _asked(self, approval: Approval) -> None:
        request = approval.request
        facts = {"approval_id": approval.approval_id, **self._names(approval.agent_id), "session": approval.context_id}
        facts |= {"tool": request.tool, "argument": request.argument, "rule": approval.rule, "reason": approval.reason}
        left = max(0.0, approval.expires_boot - time.clock_gettime(time.CLOCK_BOOTTIME))
        self._raise(AlertKind.APPROVAL_WAITING, approval.approval_id, facts | {"danger": approval.danger, "denied_in_s": round(left)})

    def _named(self, agent_ids: Iterable[str]) -> list[dict[str, str]]:
        return [self._names(i) for i in list(agent_ids)[:NAMED]]

    def _names(self, agent_id: str) -> dict[str, str]:
        agent = self._state().agents.get(AgentId(agent_id))
        return {"agent_id": agent_id, "name": agent.name if agent is not None else ""}

    def _raise(self, kind: AlertKind, mark: str, facts: dict[str, Any]) -> None:
        alert = self._made(kind, mark, facts)
        if alert.id in self._raised:
            return
        self._raised[alert.id] = None
        while len(self._raised) > KEPT:
            del self._raised[next(iter(self._raised))]
        for out in self._outs:
            out(alert)

    def _made(self, kind: AlertKind, mark: str, facts: dict[str, Any]) -> AlertView:
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        alert_id = _ID.sub("-", f"{kind}-{mark}")[:120]
        bounded: dict[str, Any] = _bounded(self._redact(facts))
        return AlertView(id=alert_id, event=kind, time=at, host=self._host, instance=self._instance, facts=bounded)


def _new_mark() -> str:
    """For what has no id of its own."""
    return secrets.token_hex(6)


def _bounded(data: Any) -> Any:
    """Plain data with every text cut to ``TEXT`` letters; a lone surrogate, which is no text, is escaped."""
    if isinstance(data, str):
        return data[:TEXT].encode("utf-8", "backslashreplace").decode()
    if isinstance(data, dict):
        return {key: _bounded(value) for key, value in data.items()}
    return [_bounded(one) for one in data] if isinstance(data, list) else data
