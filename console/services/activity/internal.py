"""What our own machinery knows of what an agent did, as entries of its feed. Pure; nothing here comes from an agent's own files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from console.audit.record import Record
from console.domain.activity import PATH_KEPT, Entry, Kind
from console.domain.calls.permission import Verdict
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.network import EgressRecord

Said = tuple[str, Entry]
"""(agent id, entry)"""
_NANO = 10**9
_NOTED = frozenset(("started", "freeze", "kill"))
"""Of an agent's events those that no audit record about it alone says."""
_BAD = frozenset(("deny", "refused", "failed", "halt", "not_proven"))
_VERDICTS = frozenset(("allow", "deny", "ask"))
_AGENTS_MAX = 1000


def of_step(step: e.Event | c.Command, name: str) -> Iterator[Said]:
    """What an event or a command says. ``name`` is a fresh one."""
    match step:
        case e.PermissionAsked(at, _boot, agent_id, request_id, request):
            fits = len(request.cwd) <= PATH_KEPT  # a folder of which a part is missing is another one
            folder, lost = (request.cwd, 0) if fits else ("", len(request.cwd))
            call = Entry(
                Kind.TOOL_CALL, f"ask:{request_id}", at, request.argument, tool=request.tool, pair=request_id, ref=folder, left_out=lost
            )
            yield agent_id, call
        case e.CallJudged() if step.decision.verdict is Verdict.ASK:
            said = f"{step.decision.rule}: {step.decision.reason}"
            name = f"ask:{step.request_id}:judged"
            yield step.agent_id, Entry(Kind.VERDICT, name, step.at, said, who="waits for approval", pair=step.request_id, verdict="ask")
        case e.UsageReported(at, _boot, agent_id):
            used = step.cost_usd > 0 or step.tokens > 0 or step.tool_calls > 0 or step.iterations > 0
            cost = round(step.cost_usd * _NANO) if step.cost_usd > 0 else None
            text = step.action or ("reported by itself" if used else "")
            if text:
                yield agent_id, Entry(Kind.SPEND if used else Kind.MESSAGE, name, at, text, who="agent", tokens=step.tokens, cost_nano=cost)
        case c.NoteEvent(agent_id, kind, text) if kind in _NOTED:
            yield agent_id, Entry(Kind.NOTE, name, 0.0, f"{kind}: {text}" if text else kind, who="watchfloor")
        case c.ShowAgent(agent) if agent.parent_id is not None:
            yield agent.parent_id, Entry(Kind.SPAWN, f"spawn:{agent.agent_id}", agent.started_at, agent.name, ref=agent.agent_id)


def of_record(record: Record) -> Iterator[Said]:
    """An audit record, in the feed of everybody it names."""
    data: dict[str, Any] = record.data if isinstance(record.data, dict) else {}
    named = data.get("agents")
    ids = [record.agent_id, *(named if isinstance(named, list) else [])][: _AGENTS_MAX + 1]
    for agent_id in dict.fromkeys(i for i in ids if isinstance(i, str) and i):
        yield from ((agent_id, entry) for entry in _of_record(record, data))


def _of_record(record: Record, data: dict[str, Any]) -> Iterator[Entry]:
    verdict = record.verdict if record.verdict in _VERDICTS else ""
    pair, rollback_id = _text(data, "request_id"), _text(data, "rollback_id")
    is_asked = record.kind == "permission"
    kind = Kind.VERDICT if is_asked else Kind.ERROR if record.verdict in _BAD else Kind.NOTE
    text = record.what if is_asked else f"{record.kind}: {record.what}"
    yield Entry(
        kind,
        f"audit:{record.seq}",
        record.at,
        text,
        who=record.actor,
        pair=pair,
        verdict=verdict if is_asked else "",
        failed=record.verdict in _BAD,
        rollback_id=rollback_id,
        audit=record.seq,
    )
    if is_asked and rollback_id:
        what, _, path = record.what.partition(" ")
        yield Entry(
            Kind.FILE,
            f"audit:{record.seq}:file",
            record.at,
            f"{what} allowed; its record was written first",
            tool=what,
            ref=path,
            pair=pair,
            rollback_id=rollback_id,
            audit=record.seq,
        )


def of_egress(record: EgressRecord, name: str) -> Said:
    """One request through Envoy."""
    size = f", {record.bytes_up:,} up, {record.bytes_down:,} down" if record.bytes_up or record.bytes_down else ""
    text = (
        f"{record.method} {record.host}{record.path}: {'allowed' if record.allowed else 'blocked'}, {record.status}{size} ({record.rule})"
    )
    kind = Kind.NOTE if record.allowed else Kind.ERROR
    return record.agent_id, Entry(kind, name, record.at, text, who="network", tool="network", failed=not record.allowed)


def _text(data: dict[str, Any], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""
