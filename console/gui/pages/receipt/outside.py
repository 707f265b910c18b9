"""What a kill may have left with other programs: connections, suspects, and agents of which that is not known."""

from __future__ import annotations

from console.domain.kill import Receipt
from console.domain.verdict import not_watched_words
from console.gui.widgets.facts import Fact

NAMED = 20


def connection_lines(receipt: Receipt) -> list[Fact]:
    """The programs that agents were connected to, and what is not known of that."""
    lines = []
    for one in receipt.connections[:NAMED]:
        program = one.peer_program or "unknown program"
        lines.append(Fact(f"{program}, pid {one.peer_pid}" if one.peer_pid else program, one.agent_id, "triangle", "warn", mono=True))
        lines.append(Fact(f"{one.kind} {one.remote or one.local}", "", left_role="text2", mono=True, indent=True))
        if one.note:
            lines.append(Fact(one.note, "", left_role="text2", indent=True))
    lines += _more(len(receipt.connections))
    if receipt.connections_state == "not recorded":
        lines.append(Fact("Connections not recorded", "", "triangle", "warn", left_role="warn"))
    if receipt.connections_detail:
        lines.append(Fact(receipt.connections_detail, "", left_role="text2", indent=True))
    if receipt.uncovered:
        lines.append(Fact("Work it gave to other programs is not covered", "", "ring"))
        named = receipt.uncovered[:NAMED]
        lines += [Fact(", ".join(named[at : at + 3]), "", left_role="text2", mono=True, indent=True) for at in range(0, len(named), 3)]
    return lines + _more(len(receipt.uncovered))


def daemon_lines(receipt: Receipt) -> list[Fact]:
    """Programs that host a session or start it again, what was done about each, and the command that drops the session or job."""
    lines = []
    for one in receipt.daemons[:NAMED]:
        lines.append(Fact(f"{one.name}, pid {one.pid}" if one.pid else one.name, one.action, mono=True))
        lines.append(Fact(one.reason, "", left_role="text2", indent=True))
        if one.other_sessions:
            lines.append(Fact(f"other sessions: {', '.join(one.other_sessions[:NAMED])}", "", left_role="text2", indent=True))
        if one.command:
            lines.append(Fact(one.command, "", left_role="text", mono=True, indent=True))
    return lines + _more(len(receipt.daemons))


def return_lines(receipt: Receipt) -> list[Fact]:
    """Processes of a killed session that ran again, or may have."""
    lines = []
    for one in receipt.returns[:NAMED]:
        role = "danger" if one.certain else "warn"
        what = one.command or "its transcript grew"
        lines.append(Fact(what, one.agent_id, "triangle", role, mono=True))
        then = "shown only" if not one.certain else "killed, confirmed dead" if one.proven else "NOT confirmed dead"
        lines.append(Fact(f"pid {one.pid} · {one.seconds:.0f} s after · by {one.by} · {then}", "", left_role=role, indent=True))
    lines += _more(len(receipt.returns))
    if receipt.not_watched:
        lines.append(Fact(not_watched_words(receipt.not_watched), "", "triangle", "warn", left_role="warn"))
    return lines


def suspect_lines(receipt: Receipt) -> list[Fact]:
    """Processes outside that may be an agent's work, with the command that ends the preselected ones."""
    lines = []
    for one in receipt.suspects[:NAMED]:
        lines.append(Fact(one.command or one.exe, one.agent_id, "triangle", "warn", mono=True))
        chosen = "preselected" if one.preselected else "not preselected"
        lines.append(Fact(f"pid {one.pid} · {chosen}", "", left_role="warn", indent=True))
        lines.append(Fact(one.why, "", left_role="text2", indent=True))
    lines += _more(len(receipt.suspects))
    if lines:
        lines.append(Fact(f"watchfloor kill --suspects {receipt.kill_id}", "", left_role="text", mono=True, indent=True))
    return lines


def _more(n: int) -> list[Fact]:
    return [Fact(f"and {n - NAMED} more", "", left_role="warn", indent=True)] if n > NAMED else []
