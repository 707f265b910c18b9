"""The columns of the audit page, and how its records, actors and verdicts are shown."""

from __future__ import annotations

from collections.abc import Callable
from time import time as now

from console.api.records import AuditRow
from console.gui.kit.table import Cell, Shape, paint_icon
from console.gui.models.operators import person
from console.gui.theme import fonts
from console.gui.widgets.rows import Canvas
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.words import clock, day_clock

_GOOD = frozenset(("allow", "ok", "whole", "proven"))
_BAD = frozenset(("deny", "refused", "failed", "halt", "broken", "kill"))


def cells(name_of: Callable[[str], str]) -> tuple[Cell[AuditRow], ...]:
    """The columns; ``name_of`` gives the name of an agent, or its id again."""

    def paint_actor(canvas: Canvas, row: AuditRow) -> None:
        name, icon, person = actor_look(row.actor)
        name = name_of(name) if icon == "fleet" else name
        role, weight = ("text", fonts.MEDIUM) if person else ("text2", fonts.REGULAR)
        paint_icon(canvas, "actor", icon, name, role, icon_role="text2", weight=weight)

    return (
        Cell("seq", "No.", 88, words=lambda row: f"{row.seq:,}", role="text2", weight=fonts.MEDIUM),
        Cell("time", "Time", 120, words=record_moment, text=lambda row: row_moment(row.at, now()), role="text3", mono=True),
        Cell("actor", "Actor", 136, hide_below=520, words=lambda row: person(row.actor), paint=paint_actor),
        Cell("kind", "Kind", 128, hide_below=660, words=lambda row: row.kind, role="text2"),
        Cell("what", "What", words=lambda row: row.what),
        Cell("verdict", "Verdict", 92, words=lambda row: verdict_look(row.verdict)[0], shape=lambda row: verdict_look(row.verdict)),
        Cell(
            "hash", "Hash", 92, hide_below=740, words=lambda row: row.hash, text=lambda row: short_hash(row.hash), role="text3", mono=True
        ),
    )


def moment(at: float) -> str:
    """``14:02:19.204``."""
    return f"{clock(at)}.{int(at * 1000) % 1000:03d}"


def record_moment(row: AuditRow) -> str:
    """``28 Nov 14:02:19.204``."""
    return f"{day_clock(row.at)[:6]} {moment(row.at)}"


def row_moment(at: float, now: float) -> str:
    """The time alone of the last 20 hours; what is older has its day: ``21 Nov 09:00:12``."""
    return moment(at) if 0 <= now - at < 20 * 3600 else f"{day_clock(at)}{clock(at)[5:]}"


def verdict_look(verdict: str) -> Shape:
    """Word, shape and colour; a verdict this console does not know is amber, none is a dash."""
    word = safe_text(verdict, 30).replace("_", " ")
    if not verdict:
        return "—", "", "text3"
    if verdict in _GOOD:
        return word, "check", "text2"
    return (word, "ban", "danger") if verdict in _BAD else (word, "triangle", "warn")


def actor_look(actor: str) -> tuple[str, str, bool]:
    """(name, icon, whether a person). Actors are ``operator:uid``, ``agent:id`` and parts of the supervisor."""
    kind, _, name = actor.partition(":")
    if kind == "agent":
        return name or actor, "fleet", False
    if kind == "operator":
        return person(actor), "user", True
    return actor, "shield", False


def short_hash(text: str) -> str:
    """``a17f 90c2``."""
    return f"{text[:4]} {text[4:8]}"
