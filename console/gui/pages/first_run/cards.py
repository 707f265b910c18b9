"""The cards of the first page: whether a stop would work now, what the mode cannot do, what holds by default, what works here."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from console.api.agents.first_run import DefaultView
from console.api.messages import StatusView
from console.gui.models.switch import Light, Switch
from console.gui.pages.first_run.path_lines import PathLines
from console.gui.theme import fonts
from console.gui.widgets.facts import Card, Fact, Facts
from console.gui.widgets.text import Text
from console.gui.widgets.words import age, count

MOST = 12
"""Defaults and engines ever shown."""


class ArmedCard(Card):
    """The armed light in words, and each way with its proof and its age."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent=parent)
        self.light = Text("Not known yet", 17, fonts.SEMIBOLD, mark="triangle")
        self._worst = Text("", 12, fonts.REGULAR, "text2")
        self.paths = PathLines()
        self.column.addWidget(self.light)
        self.column.addSpacing(4)
        self.column.addWidget(self._worst)
        self.column.addSpacing(10)
        self.column.addWidget(self.paths)

    def say(self, switch: Switch, state: Light, words: str, now: float) -> None:
        """``now`` in seconds since the epoch."""
        armed = state == "armed"
        self.light.say(words, "text" if armed else "warn", "dot" if armed else "triangle")
        worst = switch.tests.worst_s if armed and switch.tests is not None else None
        self._worst.setText(f"A panic would work now: {worst:.1f} s at worst" if worst is not None else "")
        self._worst.setVisible(worst is not None)
        self.paths.say(switch.paths(now), now, known=state != "unknown")


class ModeCard(Card):
    """What user mode cannot promise; not there where there is nothing to say."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("warn", parent)
        self.words = Text("", 12, fonts.REGULAR, "warn", wrap=True, mark="triangle")
        self.column.addWidget(self.words)
        self.column.addSpacing(4)
        self._head = Text("The host's own instance would change this", 12, fonts.MEDIUM, "text")
        self.gains = [Text("", 12, fonts.REGULAR, "text2", wrap=True) for _ in range(MOST)]
        for text in (self._head, *self.gains):
            self.column.addWidget(text)
        self.column.addSpacing(4)
        self.column.addWidget(Text("How: watchfloor status. Part by part: watchfloor doctor", 12, fonts.MEDIUM, "text", wrap=True))

    def say(self, switch: Switch) -> None:
        note = (switch.view.mode_note if switch.view else "") or (switch.status.mode_note if switch.status else "")
        self.words.setText(note)
        installing = switch.status.installing if switch.status else None
        gains = installing.gains[:MOST] if installing else []
        self._head.setVisible(bool(gains))
        for number, text in enumerate(self.gains):
            text.setVisible(number < len(gains))
            if number < len(gains):
                gain = gains[number]
                text.setText(f"{gain.name.capitalize()}: {gain.now} → {gain.then}")
        self.setVisible(bool(note))


class DefaultsCard(Card):
    """What holds for an agent whose start names nothing else."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent=parent)
        self.column.addWidget(Text("Until you say otherwise", 13, fonts.SEMIBOLD))
        self.column.addSpacing(6)
        self.facts = Facts(28, ruled=True)
        self.column.addWidget(self.facts)
        self.problem = Text("", 12, fonts.REGULAR, "warn", wrap=True, mark="triangle")
        self.column.addWidget(self.problem)

    def say(self, defaults: list[DefaultView], status: StatusView | None, now: float, why: str) -> None:
        """``why``: these are not known, because of it; then none is shown."""
        facts = [Fact(d.name, d.words, left_role="text2", right_role="warn" if d.amber else "text") for d in defaults[:MOST]]
        self.facts.say([] if why else [*facts, audit_fact(status, now)])
        self.problem.setText(f"Not known: {why}" if why else "")
        self.problem.setVisible(bool(why))


def audit_fact(status: StatusView | None, now: float) -> Fact:
    """How much is in the audit log, and whether its chain was found whole, and when."""
    if status is None:
        return Fact("Audit", "not known", left_role="text2", right_role="warn")
    records = f"{count(status.audit_records)} {'record' if status.audit_records == 1 else 'records'}"
    if status.audit_whole is None:
        return Fact("Audit", f"{records}, log not checked yet", left_role="text2", right_role="warn")
    if not status.audit_whole:
        return Fact("Audit", f"{records}, log broken", left_role="text2", right_role="danger")
    return Fact("Audit", f"{records}, log intact {age(status.audit_checked_at, now)}", left_role="text2", right_role="text")


class EnginesCard(Card):
    """What can hold an agent on this host, or why not."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent=parent)
        self.column.addWidget(Text("What works here", 13, fonts.SEMIBOLD))
        self.column.addSpacing(6)
        self.facts = Facts(28, ruled=True)
        self.column.addWidget(self.facts)

    def say(self, status: StatusView | None, *, known: bool) -> None:
        """Not ``known``: the state is stale."""
        engines = list(status.engines.items())[:MOST] if status is not None else []
        if known:
            facts = [Fact(n, w or "works", "ring" if w else "check", right_role="text2" if w else "text") for n, w in engines]
        else:
            facts = [Fact(n, "not known", "triangle", "warn", right_role="warn") for n, _ in engines]
        self.facts.say(facts)
