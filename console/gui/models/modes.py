"""Network modes as people see them: words, shapes and chips, and one session's history as segments of time and as lines. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from console.api.messages import AgentView
from console.api.network import ModeChangeView, ModeHistoryView
from console.gui.models.operators import person
from console.gui.models.row import LIVE, is_exposed, view_mode
from console.gui.widgets.facts import ChipSpec
from console.gui.widgets.words import took

MODES: dict[str, tuple[str, str, str]] = {
    "FULL": ("FULL", "ring", "text2"),
    "PROXIED": ("Proxied", "dot", "ok"),
    "NONE": ("None", "ban", "text2"),
}
"""mode -> (word, shape, colour); the shapes of the page's head."""
UNKNOWN = ("Unknown", "triangle", "warn")
SEVERITY = {"FULL": 0, "PROXIED": 1, "NONE": 2}


def asked_mode(view: AgentView) -> str:
    """The mode it should have, enforced or not; a supervisor of the version before did not say."""
    return view.network_asked or view.network_mode


def is_open(view: AgentView) -> bool:
    """A stricter mode was asked for, and nothing enforces it here."""
    return not view.network_enforced and asked_mode(view) != "FULL"


def mode_words(mode: str) -> tuple[str, str, str]:
    """(word, shape, colour)."""
    return MODES.get(mode, UNKNOWN)


def network_chip(view: AgentView, *, long: bool = False) -> ChipSpec:
    """FULL alone is no alarm. With SECRET or CONFIDENTIAL data, or where a stricter mode is not enforced, it is amber."""
    mode = view_mode(view)
    if mode == "FULL":
        lacks = is_open(view) or (view.state in LIVE and not view.network_enforced)
        words = "FULL, not enforced" if long and lacks else "FULL"
        loud = is_exposed(view) or is_open(view)
        return ChipSpec(words, "warning" if loud else "full", "warn" if loud and view.state in LIVE else "plain")
    if view.isolated:
        return ChipSpec("Isolated", "ban", "accent")
    if mode == "PROXIED":
        return ChipSpec("Proxied", "proxied")
    return ChipSpec("No network" if long else "None", "ban")


# --- one session's history ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Segment:
    """A time in which one mode held."""

    start: float
    end: float
    mode: str
    enforced: bool
    """False: it was asked for and nothing held it, so it was FULL."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of the timeline."""

    at: float
    title: str
    words: str
    shape: str
    role: str
    note: str = ""
    """What the act came to: verified, or not enforceable here."""
    bad: bool = False


@dataclass(slots=True)
class _Held:
    """What holds while the changes are walked, oldest first."""

    ratchet: str = "FULL"
    isolated: bool = False
    enforced: bool = True

    @property
    def mode(self) -> str:
        return "NONE" if self.isolated else self.ratchet

    def take(self, change: ModeChangeView) -> None:
        if change.cause == "isolated":
            self.isolated = True
        elif change.cause == "reconnected":
            self.isolated = False
        elif change.cause != "enforced" and SEVERITY.get(change.mode, -1) > SEVERITY.get(self.ratchet, 2):
            self.ratchet = change.mode
        if change.cause == "enforced" and change.enforced is not None:
            self.enforced = change.enforced


def segments(history: ModeHistoryView, now: float) -> list[Segment]:
    """Which mode held when, oldest first, from the agent's start to ``now``; what came before its start holds from there on."""
    changes = oldest_first(history)
    begin = history.began_at if history.began_at is not None else (changes[0].at if changes else now)
    held, out, at = _Held(), list[Segment](), begin
    for change in changes:
        moment = min(max(change.at, begin), now)
        before = (held.mode, held.enforced)
        held.take(change)
        if (held.mode, held.enforced) != before:
            if moment > at:
                out.append(Segment(at, moment, before[0], before[1] or before[0] == "FULL"))
            at = max(at, moment)
    if now > at or not out:
        out.append(Segment(at, max(now, at), held.mode, held.enforced or held.mode == "FULL"))
    return out


def oldest_first(history: ModeHistoryView) -> list[ModeChangeView]:
    """The changes in the order of time, the newer of two at one moment last."""
    changes = history.changes[::-1]
    changes.sort(key=lambda change: change.at)
    return changes


def moments(history: ModeHistoryView) -> list[Moment]:
    """The timeline's lines, newest first; a proof stands with the act it proves."""
    out: list[Moment] = []
    level = "PUBLIC"
    for change in oldest_first(history):
        if change.cause == "enforced":
            _prove(out, change)
            continue
        raised, level = (change.sensitivity, change.sensitivity) if change.sensitivity else ("", level)
        out.append(_moment(change, raised))
    return out[::-1]


def _moment(change: ModeChangeView, raised: str) -> Moment:
    word, shape, role = mode_words(change.mode) if change.mode else (f"{raised.capitalize()} data", "ring", "text2")
    words = person(change.words)
    by = f"{person(change.by)}: " if change.by else ""
    match change.cause:
        case "isolated":
            return Moment(change.at, "Isolated", f"by {by}{words}".rstrip(": "), "ban", "accent")
        case "reconnected":
            return Moment(change.at, f"{word}, reconnected", f"by {by}{words}".rstrip(": "), shape, role)
        case "data":
            return Moment(change.at, word, f"{raised or 'no more'} data: {words}, by {person(change.by)}", shape, role)
        case "launch":
            said = f"because this session holds {raised} data" if raised else words
            return Moment(change.at, word, said, shape, role)
    return Moment(change.at, word, f"{raised} data: {words}" if raised else words, shape, role)


def _prove(out: list[Moment], change: ModeChangeView) -> None:
    """Joins a proof to the newest line; what is not held is amber, whatever the line said."""
    took_words = f" in {took(change.ms)}" if change.ms is not None else ""
    note = f"verified{took_words}" if change.enforced else f"NOT enforceable here{': ' + change.words if change.words else ''}"
    if out and not out[-1].note and change.at - out[-1].at < 60:
        last = out[-1]
        role = last.role if change.enforced else "warn"
        shape = last.shape if change.enforced else "triangle"
        out[-1] = Moment(last.at, last.title, last.words, shape, role, note, bad=not change.enforced)
        return
    word, shape, role = mode_words(change.mode)
    if not change.enforced:
        shape, role = "triangle", "warn"
    out.append(Moment(change.at, word, "checked again", shape, role, note, bad=not change.enforced))


def spoken(found: Sequence[Moment]) -> str:
    """For a screen reader."""
    return "; ".join(f"{moment.title}, {moment.words}{', ' + moment.note if moment.note else ''}" for moment in found)
