"""Whether tool calls of other people's programs are judged before they happen: only what was seen is called enforced."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from console.api.hook_messages import HooksView
from console.api.messages import AgentDetailView
from console.domain.errors import ConsoleError
from console.gui.requests import Requests
from console.gui.theme import fonts
from console.gui.widgets.facts import Card
from console.gui.widgets.lines import Line, Lines
from console.gui.widgets.text import Text
from console.gui.widgets.words import age

READ_MS = 3000
PROGRAMS = {"claude-code": "Claude Code", "codex": "Codex"}
NEVER = "not enforced: no call has reached the supervisor"
_SOURCES = {"claude_code": "claude-code", "codex": "codex"}
_MOST = 6


def hook_lines(view: HooksView, now: float) -> list[Line]:
    """One line a program: since when calls of its hook reach us, or that none did. ``now`` in seconds since the epoch."""
    heard = {hook.program: hook for hook in view.programs}
    lines = []
    for name in list(dict.fromkeys((*PROGRAMS, *heard)))[:_MOST]:
        hook = heard.get(name)
        title = PROGRAMS.get(name, name)
        if hook is None or not hook.calls:
            lines.append(Line(f"{title}: {NEVER}", "ring", "text"))
        else:
            lines.append(Line(f"{title}: {hook.calls:,} calls reached us, the last {age(hook.last_at, now)}", "dot"))
    return lines


def hook_words(detail: AgentDetailView) -> str:
    """Of one agent, in the supervisor's words; empty: it is no program that has hooks."""
    if detail.hook:
        return f"Tool calls: {detail.hook}."
    program = next((_SOURCES[name] for name in (detail.agent.source, *detail.agent.seen_by) if name in _SOURCES), "")
    if not program or detail.agent.state == "ended":
        return ""
    return f"Tool calls: {NEVER}. To have them judged: watchfloor install-hook {program}."


class HookCard(Card):
    """Reads while it is seen."""

    def __init__(self, requests: Requests, clock: Callable[[], float], parent: QWidget | None = None) -> None:
        super().__init__(parent=parent)
        self._requests, self._clock = requests, clock
        self.column.addWidget(Text("Tool calls judged before they happen", 13, fonts.SEMIBOLD))
        self.column.addSpacing(4)
        self.state = Text("Not known yet.", 12, fonts.REGULAR, "text2", wrap=True)
        self.column.addWidget(self.state)
        self.column.addSpacing(6)
        self.lines = Lines()
        self.column.addWidget(self.lines)
        self._poll = QTimer(self)
        self._poll.setInterval(READ_MS)
        self._poll.timeout.connect(self.read)

    def read(self) -> None:
        """Asks once."""
        self._requests.programs.hooks().while_alive(self).then(self._came).failed(self._unknown)

    def _came(self, view: HooksView) -> None:
        self.state.say("By the hook of watchfloor install-hook, or as started here.", "text2", "")
        self.lines.say(hook_lines(view, self._clock()))

    def _unknown(self, error: ConsoleError) -> None:
        self.state.say(f"Not known: {error.what}", "warn", "triangle")
        self.lines.say([])

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.read()
        self._poll.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._poll.stop()
