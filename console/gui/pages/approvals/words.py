"""What the page says of a request: titles made from the judged call, never from the agent's own words."""

from __future__ import annotations

import json
import re

from console.api.policy.approvals import ApprovalDetailView, ApprovalPart, ApprovalRow, GrantRow
from console.domain.agent import AgentId
from console.domain.calls.approval import digest_of
from console.domain.calls.permission import PermissionRequest
from console.gui.models.operators import person
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.words import plural

AMBER_SHARE = 0.25
"""Of the time to decide: below it the clock is amber."""
VERDICTS = {"allow": ("allow", "check", "text2"), "ask": ("ask", "triangle", "warn"), "deny": ("deny", "ban", "danger")}
"""verdict -> (word, shape, colour); another one is amber."""
_ENDS = {
    "denied": ("Denied", "cross", "text"),
    "expired": ("Expired", "cross", "warn"),
    "void": ("Void", "ban", "text2"),
    "waiting": ("Waits", "triangle", "warn"),
}
_COMMANDS = frozenset(("program", "parse"))
_WORST = ("deny", "ask", "allow")
_TITLE = 90


def end_words(row: ApprovalRow) -> tuple[str, str, str]:
    """(word, shape, colour) of what became of a request."""
    if row.state in ("approved", "used"):
        return ("Session" if row.scope == "session" else "Once"), "check", "text"
    return _ENDS.get(row.state, ("Unknown", "triangle", "warn"))


def gone_words(row: ApprovalRow) -> str:
    """What became of a request that is shown: ``denied by ann (uid 1000): too wide``."""
    word = {"approved": f"approved {_scope(row)}", "used": f"approved {_scope(row)} and used", "expired": "expired: denied automatically"}
    who = f" by {person(row.decided_by)}" if row.decided_by else ""
    why = f": {row.words}" if row.words else ""
    return f"{word.get(row.state, row.state)}{who}{why}"


def _scope(row: ApprovalRow) -> str:
    return "for the session" if row.scope == "session" else "once"


def clock_words(seconds: float) -> str:
    """``3:48``; hours only when there are some."""
    whole = int(max(0.0, seconds))
    return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}" if whole >= 3600 else f"{whole // 60}:{whole % 60:02d}"


def is_late(left_s: float, ttl_s: float) -> bool:
    """Whether less than a quarter of the time is left."""
    return left_s < max(1.0, ttl_s) * AMBER_SHARE


def numbered(parts: list[ApprovalPart]) -> list[tuple[int, ApprovalPart]]:
    """Each part with the number of the command it belongs to; parts before any command belong to the first.

    A command that an ask rule names and no allow rule does is judged by two parts of the same text: it is one command.
    """
    out: list[tuple[int, ApprovalPart]] = []
    number, last = 0, ""
    for part in parts:
        begins = part.step in _COMMANDS and part.text != last
        number += begins or number == 0
        last = part.text if begins else last
        out.append((number, part))
    return out


def title_of(detail: ApprovalDetailView) -> str:
    """What would be done, from the judged call: ``cargo publish, in a shell line of 3 commands``."""
    row, parts = detail.row, detail.parts
    commands = [part for part in parts if part.step in _COMMANDS]
    if commands:
        worst = min((p for p in parts if p.step in _COMMANDS or p.step == "danger"), key=lambda p: (_rank(p), p.step != "danger"))
        count = numbered(parts)[-1][0]
        many = f", in a shell line of {count} commands" if count > 1 else ""
        return f"{_head(worst.text)}{many}"
    if parts:
        worst = min(parts, key=_rank)
        more = f", and {plural(len(parts) - 1, 'more part')}" if len(parts) > 1 else ""
        return f"{safe_text(_one_line(worst.text), _TITLE)}{more}"
    return f"{safe_text(_one_line(row.tool), 60)}, checked by its name alone"


def _rank(part: ApprovalPart) -> int:
    return _WORST.index(part.verdict) if part.verdict in _WORST else 0


def _head(text: str) -> str:
    """The program and, where it is a plain word, what it is told to do."""
    words = text.split(maxsplit=2)[:2]
    plain = len(words) == 2 and words[1].isascii() and words[1].replace("-", "").isalpha() and not words[1].startswith("-")
    return safe_text(" ".join(words if plain else words[:1]), _TITLE)


def call_line(row: ApprovalRow | GrantRow) -> str:
    """One line for lists: the danger, how many lines there are beyond the first one, and the whole call's beginning."""
    name = "" if row.tool == "shell" else f"{row.tool} "
    first, _, rest = row.argument.partition("\n")
    more = f"⏎{rest.count(chr(10)) + 1:+,} " if rest else ""
    shown = re.sub(" {5,}", lambda run: f" [{len(run.group()):,} spaces] ", (name + first)[:8000])
    danger = f"{row.danger.upper()}  " if isinstance(row, ApprovalRow) and row.danger else ""
    return f"{danger}{more}{safe_text(shown, 160)}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def load_words(per_hour: float, share: float | None) -> str:
    """How much people are asked, and how much of it a rule could have answered; empty: nothing was asked."""
    return "" if share is None else f"{per_hour:.1f} questions/h; a rule could answer {share:.0%}"


def expired_words(row: ApprovalRow) -> str:
    """The notice that a request was not answered in time."""
    return f"A request of {safe_text(row.agent_name or row.agent_id, 60)} expired and was denied: {call_line(row)}"


def whole_input(detail: ApprovalDetailView) -> str:
    """The tool's whole input where it says more than the argument; bound as well, so it is shown as well."""
    text = detail.detail
    if not text:
        return ""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(given, dict) and list(given.values()) == [detail.row.argument]:
        return ""
    return text


def is_bound(detail: ApprovalDetailView) -> bool:
    """Whether the digest is that of what is shown: computed here, not believed."""
    row = detail.row
    request = PermissionRequest(row.tool, row.argument, row.cwd, detail.detail)
    return digest_of(request, AgentId(row.agent_id), row.session) == row.digest


def digest_words(digest: str) -> str:
    """``9f3c 41d0 … e21a``."""
    shown = safe_text(digest, 80)
    return f"{shown[:4]} {shown[4:8]} … {shown[-4:]}"
