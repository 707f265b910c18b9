"""Receipts for people and programs: the headline, the steps, the targets with those not proven first. No client in here: panic uses it."""

from __future__ import annotations

import time
from dataclasses import asdict

from console.cli.stop.daemons import show_after
from console.cli.terminal import out
from console.cli.terminal.plain import moment, plain
from console.cli.terminal.tables import Table, Text, new_table
from console.domain.errors import ExitCode
from console.domain.headline import headline_of
from console.domain.kill import Outcome, Receipt, StepStatus, Target
from console.domain.process.account import named_here
from console.domain.verdict import verdict
from console.domain.words import counted
from console.wording.limits import with_limits

_STEP_STYLES = {StepStatus.PENDING: "dim", StepStatus.OK: "green", StepStatus.FAILED: "bold red"}
"""The others are yellow."""
_OUTCOME_STYLES = {
    Outcome.PROVEN_ZERO: "green",
    Outcome.DYING: "bold red",
    Outcome.NOT_PROVEN: "bold red",
    Outcome.BEST_EFFORT: "yellow",
}
_ORDER = (Outcome.NOT_PROVEN, Outcome.DYING, Outcome.BEST_EFFORT, Outcome.PROVEN_ZERO)
STYLES = {ExitCode.DONE: "bold green", ExitCode.NOT_PROVEN: "bold red"}
"""By the verdict's exit code; the others are yellow."""
_ROWS = 60
"""Targets printed; the rest is counted (all are in --json)."""


def as_json(receipt: Receipt) -> dict[str, object]:
    """The stable keys (docs/reference/json.md), and the headline."""
    found, headline = verdict(receipt), headline_of(receipt, time.time())
    return {**receipt.as_json(), "verified_zero": found.verified_zero, "headline": headline, "exit_code": int(found.exit_code)}


def show_receipt(receipt: Receipt, *, as_json: bool) -> None:
    """Prints it, as JSON or for a person."""
    if as_json:
        out.emit(_json(receipt))
        return
    found, headline = verdict(receipt), headline_of(receipt, time.time())
    code = found.exit_code
    style = STYLES.get(code, "bold yellow")
    if receipt.only_seen and code is ExitCode.DONE:
        style = "bold yellow"
    out.show(Text(headline, style))
    when = moment(receipt.pressed_at, "seconds")
    out.show(
        out.words(f"{receipt.kill_id}  {when}  by {named_here(receipt.by)}", limit=300),
        out.words(f"reason: {with_limits(receipt.reason)}", limit=600),
    )
    if receipt.order:
        out.show(out.words(f"obeyed remote order {receipt.order}", limit=200))
    out.show(_steps(receipt), Text(""))
    if receipt.targets:
        out.show(_targets(receipt))
    if receipt.survivors:
        out.show(Text(""), _survivors(receipt))
    _show_outside(receipt)
    show_after(receipt)
    for words in receipt.amended[-_ROWS:]:
        out.show(out.words(f"amended: {words}", "dim", 300))
    for words in receipt.excluded[:_ROWS]:
        out.show(out.words(f"left alone: {words}", "dim", 300))
    if found.code_why:
        out.show(Text(f"exit {int(code)}, because {found.code_why}", style))


def _show_outside(receipt: Receipt) -> None:
    """What may live on with other programs."""
    if receipt.connections:
        out.show(Text(""), _connections(receipt))
    if receipt.suspects:
        out.show(Text(""), _suspects(receipt))
        out.say(f"A kill ends no suspect. To end the preselected ones: watchfloor kill --suspects {plain(receipt.kill_id, 60)}")
    if receipt.connections_state == "not recorded" or receipt.connections_detail:
        state = "connections not recorded: " if receipt.connections_state == "not recorded" else "connections: "
        out.show(out.words(state + receipt.connections_detail, "yellow", 1200))
    if receipt.uncovered:
        out.show(out.words(f"Work it gave to other programs is not covered: {', '.join(receipt.uncovered[:_ROWS])}", "yellow", 2000))


_json = as_json


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} ms"


def _steps(receipt: Receipt) -> Table:
    table = new_table()
    table.add_column("STEP")
    table.add_column("STATUS")
    table.add_column("AFTER", right=True)
    table.add_column("DETAIL")
    for step in receipt.steps:
        table.add_row(
            step.name.value,
            Text(step.status.value, _STEP_STYLES.get(step.status, "yellow")),
            _ms(step.ms),
            out.words(step.detail, limit=400),
        )
    return table


def in_order(targets: tuple[Target, ...]) -> list[Target]:
    """Not proven first, proven last."""
    return sorted(targets, key=lambda t: (_ORDER.index(t.outcome), t.agent_id))


def _targets(receipt: Receipt) -> Table:
    table = new_table()
    for name in ("TARGET", "CONTROL", "OUTCOME"):
        table.add_column(name)
    table.add_column("AFTER", right=True)
    table.add_column("EVIDENCE")
    rows = in_order(receipt.targets)
    for target in rows[:_ROWS]:
        table.add_row(
            out.words(target.agent_id, limit=70),
            out.words(target.control_level, limit=20),
            Text(target.outcome.words, _OUTCOME_STYLES[target.outcome]),
            _ms(target.ms),
            out.words(evidence_words(target), "dim", 300),
        )
    if len(rows) > _ROWS:
        table.add_row(f"and {len(rows) - _ROWS} more (--json lists all)", "", "", "", "")
    return table


def evidence_words(target: Target) -> str:
    """The proof in a line: how many processes were there, what the kernel says of the cgroup now."""
    evidence = target.evidence
    parts: list[str] = []
    before = evidence.get("pids_before")
    if isinstance(before, list):
        parts.append(f"{counted(len(before), 'process', 'processes')} before")
    for name in ("processes_before", "populated", "cgroup", "container", "container_state", "why", "note"):
        if evidence.get(name) not in (None, ""):
            parts.append(f"{name.replace('_', ' ')} {evidence[name]}")
    return ", ".join(parts)


def _connections(receipt: Receipt) -> Table:
    """Programs outside, each with what is known of it."""
    table = _titled("Connections to other programs: what these did for the agent is not killed", "AGENT", "PROGRAM", "PID", "BY", "NOTE")
    for c in receipt.connections[:_ROWS]:
        where = f"{c.kind} {c.remote or c.local}"
        table.add_row(*(out.words(value, limit=120) for value in (c.agent_id, c.peer_program, c.peer_pid or "-", where, c.note)))
    if len(receipt.connections) > _ROWS:
        table.add_row(f"and {len(receipt.connections) - _ROWS} more (--json lists all)", "", "", "", "")
    return table


def _suspects(receipt: Receipt) -> Table:
    table = _titled("Suspects: processes outside that may be an agent's work", "AGENT", "PID", "PRESELECTED", "COMMAND", "WHY")
    for s in receipt.suspects[:_ROWS]:
        row = (s.agent_id, s.pid, "yes" if s.preselected else "no", s.command, s.why)
        table.add_row(*(out.words(value, limit=300) for value in row))
    return table


def show_suspects(receipt: Receipt, *, as_json: bool) -> None:
    """The suspects alone; nothing is done to them."""
    if as_json:
        out.emit({"kill_id": receipt.kill_id, "suspects": [asdict(one) for one in receipt.suspects]})
    elif receipt.suspects:
        out.show(_suspects(receipt))
    else:
        out.say("No suspects: nothing outside looks like an agent's work.")


def _titled(title: str, *names: str) -> Table:
    table = Table(Text(title, "bold yellow"))
    for name in names:
        table.add_column(name)
    return table


def _survivors(receipt: Receipt) -> Table:
    table = Table(Text("Still alive", "bold red"))
    for name in ("AGENT", "PID", "STATE", "WAITS IN", "WHY", "COMMAND"):
        table.add_column(name)
    for s in receipt.survivors[:_ROWS]:
        row = (s.agent_id, s.pid, s.state, s.wchan, s.why, s.cmdline)
        table.add_row(*(out.words(value, limit=120) for value in row))
    return table
