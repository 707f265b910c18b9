"""How the selected agent's session came to its network mode, as a timeline; read when it is selected and every few seconds after."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout, QWidget

from console.api.sandbox_messages import ModeHistoryView
from console.domain.errors import ConsoleError
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
        self._asked_at: float | None = None
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        self.timeline = Timeline(self)
        self.words = Text("", 12, fonts.REGULAR, "text2", wrap=True)
        column.addWidget(self.timeline)
        column.addWidget(self.words)

    def show_agent(self, session: str, agent_id: str) -> None:
        """The session of the selected agent; asks again when the last answer is old."""
        now = self._desk.clock()
        fresh = self._asked_at is not None and 0 <= now - self._asked_at < READ_EVERY_S
        if fresh and self._agent == (session, agent_id):
            return
        if self._agent != (session, agent_id):
            self._agent = (session, agent_id)
            self._show_nothing("Reading…" if session else "It has no session.", "text2", "")
        self._asked_at = now
        if session:
            asked = self._desk.requests.network.modes(session, agent_id).while_alive(self)
            asked.then(lambda view: self._came(view, agent_id)).failed(lambda error: self._failed(error, agent_id))

    def again(self) -> None:
        """Something changed: the next look asks again."""
        self._asked_at = None

    def _came(self, view: ModeHistoryView, agent_id: str) -> None:
        if (view.session, agent_id) != self._agent:
            return
        now = self._desk.clock()
        found, lasted = moments(view), segments(view, now)
        began = lasted[0].start
        shown = [line_of(moment, now) for moment in found[:SHOWN]]
        self.timeline.say(parts_of(lasted), (day_clock(began), "now"), shown, more_words(view, len(found)), spoken(found))
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
