"""The two lists: earlier kills, and other hosts' answers."""

from __future__ import annotations

from console.api.messages import HostView, KillSwitchView, ReceiptRow
from console.domain.errors import ExitCode
from console.gui.kit.table import Cell, Shape
from console.gui.models.operators import person
from console.gui.pages.kill_switch.words import PATH_STATES, result_words
from console.gui.theme import fonts
from console.gui.widgets.words import clock, day_clock, took


def confirmed_after(row: ReceiptRow) -> str:
    """The time of the headline: until the last of its agents was confirmed dead."""
    return "—" if row.proven_ms is None else took(row.proven_ms)


def scope_words(scope: str) -> str:
    """``everything``, one agent, or the first of a tree and how many more."""
    if scope == "all":
        return "everything"
    first, *rest = scope.split(",")
    return f"{first} and {len(rest)} more" if rest else first


def _answer(row: HostView) -> Shape:
    return ("acknowledged", "check", "text2") if row.acknowledged else (row.detail or "silent", "triangle", "warn")


def _host_result(row: HostView) -> Shape:
    if row.exit_code is None:
        return "unknown", "triangle", "warn"
    return row.short, *(("check", "text2") if row.exit_code == ExitCode.DONE else ("triangle", "warn"))


def hosts_note(view: KillSwitchView) -> tuple[str, str, str]:
    """(words, colour, shape) in place of an empty list: hosts only answer an order, so none is listed before one was given."""
    path = next((path for path in view.paths if path.name == "remote"), None)
    if path is None or path.state == "not_configured":
        return "No remote kill is configured: this console speaks for this host alone.", "text2", ""
    word = PATH_STATES[path.state][0].lower()
    why = f" ({path.detail})" if path.detail else ""
    words = f"No host has an order to answer. This host's own remote path: {word}{why}. After an order every host answers here."
    return (words, "text2", "") if path.state == "proven" else (words, "warn", "triangle")


RECEIPTS: tuple[Cell[ReceiptRow], ...] = (
    Cell("when", "When", 112, words=lambda row: day_clock(row.pressed_at), role="text2", mono=True, sort=lambda row: row.pressed_at),
    Cell("scope", "Scope", share=3, words=lambda row: scope_words(row.scope), sort="words"),
    Cell("result", "Result", share=4, words=lambda row: result_words(row)[0], shape=result_words, quiet="text", sort="words"),
    Cell("took", "Confirmed after", 104, right=True, words=confirmed_after, weight=fonts.MEDIUM, sort=lambda row: row.proven_ms),
    Cell("by", "By", 84, hide_below=480, words=lambda row: person(row.by), role="text2", sort="words"),
)
HOSTS: tuple[Cell[HostView], ...] = (
    Cell("host", "Host", share=3, words=lambda row: row.host, mono=True, sort="words"),
    Cell("answer", "Acknowledged", share=4, words=lambda row: _answer(row)[0], shape=_answer, quiet="text", sort="words"),
    Cell("zero", "Result", share=4, words=lambda row: _host_result(row)[0], shape=_host_result, quiet="text", sort="words"),
    Cell("at", "At", 84, words=lambda row: clock(row.at) if row.at else "never", role="text2", mono=True, sort=lambda row: row.at),
)
