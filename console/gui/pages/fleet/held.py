"""How an agent is held, in its detail pane: its sandbox measure by measure, the names of its environment, what its type may use."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.agents.agent_types import SourcesFileView, SourcesView
from console.api.environment import EnvironmentView
from console.api.messages import AgentDetailView, HardeningView
from console.domain.errors import ConsoleError
from console.gui.kit.layout import column
from console.gui.kit.pane import section
from console.gui.pages.interface import Desk
from console.gui.theme import fonts
from console.gui.widgets.lines import Line, Lines
from console.gui.widgets.text import Text
from console.gui.widgets.words import plural

READ_EVERY_S = 30.0
_NAMES = 6
"""Names of the environment shown before the rest is asked for."""
_STATES = {"given": ("check", "text2"), "not_available": ("ring", "text"), "missing": ("cross", "danger")}
_ORIGINS = {
    "default": "every agent has it",
    "type": "named for its type",
    "launch": "given at its launch",
    "watchfloor": "made by Watchfloor",
}


def measure_lines(hardening: list[HardeningView]) -> list[Line]:
    """What is missing first, then what could not be checked, what is not to be had here, and what is given."""
    order = {"missing": 0, "unknown": 1, "not_available": 2}
    return [_measure(view) for view in sorted(hardening, key=lambda view: order.get(view.state, 3))]


def _measure(view: HardeningView) -> Line:
    mark, role = _STATES.get(view.state, ("triangle", "warn"))
    return Line(view.line or f"{view.name}: {view.state}", mark, role, quiet=view.state == "given")


def measure_head(hardening: list[HardeningView]) -> tuple[str, str, str]:
    """(words, colour, shape): how many measures hold. Nothing read is never read as nothing wrong."""
    if not hardening:
        return "Not known: nothing was read back from its sandbox.", "warn", "triangle"
    given = sum(view.state == "given" for view in hardening)
    words = f"{given} of {plural(len(hardening), 'protection')} active (checked)"
    bad = any(view.state in ("missing", "unknown") for view in hardening)
    return words, "warn" if bad else "text2", "triangle" if bad else ""


def variable_lines(view: EnvironmentView) -> list[Line]:
    """Names and where each is from; never a value. Secrets first."""
    lines = [
        Line(f"{v.name} · {_ORIGINS.get(v.origin, 'not known from where')}{', secret' if v.secret else ''}", mono=True, quiet=True)
        for v in sorted(view.variables, key=lambda v: (not v.secret, v.name))
    ]
    return [*lines, *(Line(f"Left out: {words}", "ring", "text") for words in view.left_out)]


def variable_head(view: EnvironmentView | None) -> tuple[str, str, str]:
    """(words, colour, shape)."""
    if view is None:
        return "Not known: this agent was not started by Watchfloor, or its record is gone.", "text2", "ring"
    secrets = sum(v.secret for v in view.variables)
    named = f"{plural(len(view.variables), 'name')}, {plural(secrets, 'secret')}. Values are never shown."
    return named, "text2", ""


def type_lines(view: SourcesFileView) -> list[Line]:
    """What its ``sources.json`` narrows; a broken one with file, place and remedy; what cannot be enforced, each with why."""
    if not view.ok:
        return [Line(f"{view.error} {view.remedy}".strip(), "triangle", "warn")]
    return [
        *(Line(f"Not enforced: {words}", "triangle", "warn") for words in view.not_enforced),
        *(Line(words, "check", quiet=True) for words in view.enforced),
    ]


class HeldCard(QWidget):
    """Three sections of the pane; the files of the types are read again every 30 s while an agent with a type is shown."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self._agent_id = self._type = ""
        self._asked_at: float | None = None
        self._files: dict[str, SourcesFileView] | None = None
        self._folder = self._error = ""
        self.sandbox, self.environment, self.of_type = (Text("Not read yet.", 12, fonts.REGULAR, "text2", wrap=True) for _ in range(3))
        self.measures, self.names, self.narrows = Lines(0), Lines(_NAMES), Lines(4)
        sandbox = (*section("Sandbox").parts, self.sandbox, 4, self.measures)
        environment = (*section("Environment").parts, self.environment, 4, self.names)
        column(*sandbox, *environment, *section("What its type may use").parts, self.of_type, 4, self.narrows, on=self)

    def clear(self, agent_id: str) -> None:
        """Another agent is looked at; nothing of the one before stays."""
        self._agent_id, self._type = agent_id, ""
        for head, lines in ((self.sandbox, self.measures), (self.environment, self.names), (self.of_type, self.narrows)):
            head.say("Not read yet.", "text2", "")
            lines.say([])
            lines.fold()

    def show_detail(self, detail: AgentDetailView) -> None:
        """The shown agent's; another's is ignored."""
        if detail.agent.id != self._agent_id:
            return
        if detail.agent.control_level == "observed" and not detail.hardening:
            self.sandbox.say("None: it is only observed.", "warn", "triangle")
        else:
            self.sandbox.say(*measure_head(detail.hardening))
        self.measures.say(measure_lines(detail.hardening))
        environment = detail.environment
        self.environment.say(*variable_head(environment))
        self.names.say(variable_lines(environment) if environment is not None else [])
        self._type = environment.agent_type if environment is not None else ""
        self._read_types()
        self._show_type()

    def _read_types(self) -> None:
        now = self._desk.clock()
        if self._type and (self._asked_at is None or not 0 <= now - self._asked_at <= READ_EVERY_S):
            self._asked_at = now
            self._desk.requests.ask(ep.SOURCES).while_alive(self).then(self._came).failed(self._failed)

    def _came(self, view: SourcesView) -> None:
        self._files, self._folder, self._error = {one.agent_type: one for one in view.types}, view.folder, ""
        self._show_type()

    def _failed(self, error: ConsoleError) -> None:
        self._files, self._error = None, str(error)
        self._show_type()

    def _show_type(self) -> None:
        found = self._files.get(self._type) if self._files is not None else None
        self.narrows.say(type_lines(found) if self._type and found is not None else [])
        if not self._type:
            self.of_type.say("It has no type: nothing narrows it but its sandbox and the allowlist.", "text2", "")
        elif self._error:
            self.of_type.say(f"{self._type}: not known. {self._error}", "warn", "triangle")
        elif self._files is None:
            self.of_type.say(f"{self._type}: being read.", "text2", "ring")
        elif found is None:
            self.of_type.say(f"{self._type}: there is no {self._type}.json in {self._folder}.", "text2", "ring")
        else:
            self.of_type.say(
                f"{self._type}.json{'' if found.ok else ': refused, nothing of this type starts'}", "text2" if found.ok else "warn"
            )
