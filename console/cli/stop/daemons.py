"""Daemons and shared programs around agents, and what ran again after a kill, in lines for a person. All of it is hostile text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.domain.kill import Receipt, Return
from console.domain.verdict import not_watched_words
from console.domain.words import counted

if TYPE_CHECKING:
    from console.api.agents.daemons import DaemonView

NAMED = 20


def show_daemons(found: Iterable[DaemonView]) -> None:
    """Before an adoption or a kill."""
    for one in list(found)[:NAMED]:
        where = f" (process {one.pid})" if one.pid else ""
        out.say(f"outside of {_list(one.agents)}: {plain(one.name, 200)}{where}: {plain(one.plan, 300)}")
        if one.other_sessions:
            out.say(f"  other sessions in it: {_list(one.other_sessions)}")
        if one.command:
            out.say(f"  to do it by hand: {plain(one.command, 300)}")


def show_after(receipt: Receipt) -> None:
    """Of a receipt: daemons, and what the return watch saw."""
    for one in receipt.daemons[:NAMED]:
        where = f" (process {one.pid})" if one.pid else ""
        out.show(out.words(f"daemon {one.action}: {one.name}{where}: {one.reason}", limit=400))
        if one.other_sessions:
            out.show(out.words(f"  other sessions in it: {', '.join(one.other_sessions)}", limit=300))
        if one.command:
            out.show(out.words(f"  to remove the session or job by hand: {one.command}", limit=500))
    for row in receipt.returns[:NAMED]:
        out.show(out.words(_returned(row), "bold red" if row.certain else "yellow", 400))
    if receipt.not_watched:
        out.show(out.words(not_watched_words(receipt.not_watched), "yellow", 400))
    if len(receipt.returns) > NAMED:
        out.show(out.words(f"and {len(receipt.returns) - NAMED} more (--json lists all)"))


def _returned(row: Return) -> str:
    if not row.pid:
        return f"may have run again: {row.agent_id}, {row.seconds:.0f} s after the kill: {row.why}"
    what = "may have run again" if not row.certain else "RAN AGAIN"
    then = "" if not row.certain else "; killed and confirmed dead" if row.proven else "; NOT confirmed dead"
    parent = f"parent {row.parent} ({row.parent_program})"
    return f"{what}: {row.agent_id}, process {row.pid}, {parent}, {row.seconds:.1f} s after the kill, by {row.by}{then}: {row.command}"


def _list(words: list[str]) -> str:
    more = f" and {counted(len(words) - 5, 'more', 'more')}" if len(words) > 5 else ""
    return ", ".join(plain(word, 80) for word in words[:5]) + more
