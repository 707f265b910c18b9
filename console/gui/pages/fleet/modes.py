"""How the selected agent's session came to its network mode, as a timeline; read when it is selected and every few seconds after."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.messages import AgentView
from console.api.network import ModeHistoryView
from console.domain.errors import ConsoleError
from console.gui.kit.layout import column
from console.gui.models.modes import Moment, Segment, moments, segments, spoken
from console.gui.pages.interface import Desk
from console.gui.theme import fonts
from console.gui.widgets.text import Text
from console.gui.widgets.timeline import SHOWN, Line, Part, Timeline
from console.gui.widgets.words import clock, day_clock, long_span, plural

READ_EVERY_S = 5.0
_DAY_S = 20 * 3600.0
_LABELS = {"FULL": "FULL", "PROXIED": "Proxied", "NONE": "None"}


class ModeCard(QWidget):
    """Another agent's answer is not shown; what cannot be read is said, and nothing old stands in for it."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self._agent = ("", "")
        self._stamp: tuple[str, bool, str] = ("", False, "")
        self._ended_at: float | None = None
        self._asked_at: float | None = None
        self.timeline = Timeline(self)
        self.words = Text("", 12, fonts.REGULAR, "text2", wrap=True)
        column(self.timeline, self.words, spacing=4, on=self)

    def show_row(self, view: AgentView) -> None:
        """The selected agent's session; asks again when the last answer is old, or its mode is another."""
        now, agent = self._desk.clock(), (view.session, view.id)
        stamp = (view.network_mode, view.network_enforced, view.isolated)
        fresh = self._asked_at is not None and 0 <= now - self._asked_at < READ_EVERY_S
        if fresh and self._agent == agent and self._stamp == stamp:
            return
        if self._agent != agent:
            self._show_nothing("Reading…" if view.session else "It has no session.", "text2", "")
        self._agent, self._stamp, self._ended_at, self._asked_at = agent, stamp, view.ended_at, now
        if view.session:
            asked = self._desk.requests.ask(ep.MODES, view.session, agent=view.id).while_alive(self)
            asked.then(lambda found: self._came(found, view.id)).failed(lambda error: self._failed(error, view.id))

    def _came(self, view: ModeHistoryView, agent_id: str) -> None:
        if (view.session, agent_id) != self._agent:
            return
        now = self._desk.clock()
        until = now if self._ended_at is None else min(now, self._ended_at)
        found, lasted = moments(view), segments(view, until)
        began = lasted[0].start
        shown = [line_of(moment, now) for moment in found[:SHOWN]]
        self.timeline.say(
            parts_of(lasted),
            (day_clock(began), "now" if until == now else f"ended {clock(until)}"),
            shown,
            more_words(view, len(found)),
            spoken(found),
        )
        self.timeline.setVisible(True)
        self.words.say("" if found else "Nothing ever asked for a stricter mode.", "text2", "")
        self.words.setVisible(not found)

    def _failed(self, error: ConsoleError, agent_id: str) -> None:
        if agent_id == self._agent[1]:
            self._show_nothing(f"Not known: {error}", "warn", "triangle")

    def _show_nothing(self, words: str, role: str, mark: str) -> None:
        self.timeline.say([], ("", ""), [], "", "")
        self.timeline.setVisible(False)
        self.words.say(words, role, mark)
        self.words.setVisible(True)


def parts_of(lasted: list[Segment]) -> list[Part]:
    """The strip: how long which mode held."""
    total = max(1e-9, sum(s.end - s.start for s in lasted))
    parts = []
    for segment in lasted:
        label = _LABELS.get(segment.mode, segment.mode) if segment.enforced else "not enforced"
        kind = "open" if not segment.enforced or segment.mode == "FULL" else "middle" if segment.mode == "PROXIED" else "closed"
        held = label if segment.enforced else f"FULL, {label} ({segment.mode} was asked for)"
        tip = f"{held} for {long_span(segment.end - segment.start)}, from {day_clock(segment.start)}"
        parts.append(Part((segment.end - segment.start) / total, label, kind, tip))
    return parts


def line_of(moment: Moment, now: float) -> Line:
    """One moment as it is painted: what it came to, then on whose word and why."""
    words = " · ".join(p for p in (moment.note, moment.words) if p)
    when = clock(moment.at) if abs(now - moment.at) < _DAY_S else day_clock(moment.at)
    return Line(when, moment.title, words, moment.shape, moment.role, moment.bad, f"{day_clock(moment.at)}: {moment.title}. {words}")


def more_words(view: ModeHistoryView, found: int) -> str:
    """What is not shown."""
    hidden = max(0, found - SHOWN) + view.left_out
    earlier = f"{plural(hidden, 'earlier change')}" if hidden else ""
    return f"and {earlier}" if earlier else ""
