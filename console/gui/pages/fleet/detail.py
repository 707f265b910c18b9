"""The pane beside the fleet: one agent's budget, cost, network, last events, and what can be done to it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from PySide6.QtWidgets import QWidget

from console.api.messages import AgentDetailView, AgentView, EgressView
from console.gui.kit.layout import Part, scrolled
from console.gui.kit.pane import Offer, Pane, section
from console.gui.models.fleet import Fleet, Row, view_mode
from console.gui.models.modes import asked_mode, is_open, network_chip
from console.gui.models.operators import person
from console.gui.models.row import LIVE
from console.gui.pages.budgets.reasons import plain_reason
from console.gui.pages.fleet.adopt import why_not_adopt
from console.gui.pages.fleet.dry_run import DryRunCard
from console.gui.pages.fleet.egress_lines import RequestLines
from console.gui.pages.fleet.held import HeldCard
from console.gui.pages.fleet.hooks import hook_words
from console.gui.pages.fleet.modes import ModeCard
from console.gui.pages.fleet.verdicts import VerdictStream
from console.gui.pages.fleet.words import gauges, state_words
from console.gui.pages.fleet.workspace import WorkspaceCard
from console.gui.pages.interface import Desk
from console.gui.theme import fonts
from console.gui.widgets.buttons import Button
from console.gui.widgets.facts import Chips, ChipSpec, CostChart, Fact, Facts, Gauges
from console.gui.widgets.text import Text
from console.gui.widgets.words import clock

_ICONS = {"warn": "warning", "danger": "alert"}
_SHOWN_EVENTS = 8
_SHOWN_HOSTS = 6


OFFERS = (
    Offer("fleet.pause", "Freeze", "pause"),
    Offer("fleet.stop-tree", "Kill tree…", "stop", kind="danger"),
    Offer("fleet.isolate", "Isolate", "ban"),
)


class DetailPane(Pane):
    """One agent, from what the list knows and from its detail."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.workspace = WorkspaceCard(desk, self)
        self.modes = ModeCard(desk, self)
        self.requests = RequestLines(self)
        self.verdicts = VerdictStream(desk, self)
        self.dry_run = DryRunCard(desk, self)
        self.held = HeldCard(desk, self)
        self.agent_id = ""
        self.lay((scrolled(self, *self._head(desk), *self._body(), margins=(19, 13, 20, 12)), 1), offers=OFFERS)
        self.pause, self.isolate = self.offers["fleet.pause"], self.offers["fleet.isolate"]

    def _head(self, desk: Desk) -> tuple[Part, ...]:
        self._crumb = Text("", 11, fonts.REGULAR, "text2")
        self._name = Text("", 17, fonts.SEMIBOLD)
        self._chips = Chips()
        self._id = Text("", 11, fonts.REGULAR, "text3", mono=True, wrap=True)
        self._why = Text("", 12, fonts.REGULAR, "text2", wrap=True)
        self._note = Text("", 12, fonts.REGULAR, "warn", wrap=True, mark="triangle")
        self._cut = Text("", 12, fonts.MEDIUM, "text", wrap=True, mark="ban")
        self._hook = Text("", 12, fonts.REGULAR, "text2", wrap=True)
        self.ladder = self._leading("Freeze, isolate, kill over…", "down", "M", lambda: self.asked.emit("fleet.ladder"))
        self.adopt = self._leading("Adopt…", "lock", "U", lambda: self.asked.emit("fleet.adopt"))
        self.request = self._leading("What it asks", "approvals", "", lambda: desk.goto("approvals", self.agent_id))
        self.activity = self._leading("Activity", "list", "A", lambda: self.asked.emit("fleet.activity"))
        for one, following in pairwise((self.adopt, self.ladder, self.request, self.activity, self.dry_run.button)):
            QWidget.setTabOrder(one, following)  # as they stand, not as they were made
        said = (self._crumb, 4, self._name, 6, self._chips, 7, self._id, self._why, self._cut, self._note, self._hook)
        return (*said, 6, self.adopt, 6, self.ladder, 6, self.request, 6, self.activity, self.dry_run)

    def _leading(self, words: str, icon: str, key: str, work: Callable[[], object]) -> Button:
        button = Button(words, icon, keys=key, small=True, parent=self)
        button.clicked.connect(work)
        return button

    def _body(self) -> tuple[Part, ...]:
        self._no_caps = Text("No limit is set for this agent or its tree.", 12, fonts.REGULAR, "text2")
        self._budget = Gauges()
        self._chart = CostChart()
        self._hosts = Facts(22)
        self._no_hosts = Text("No requests yet.", 12, fonts.REGULAR, "text2")
        self._events = Facts(22, split=74)
        sections: tuple[tuple[str, tuple[QWidget, ...]], ...] = (
            ("Budget", (self._no_caps, self._budget)),
            ("Verdicts", (self.verdicts,)),
            ("Cost per minute", (self._chart,)),
            ("Network", (self._hosts, self._no_hosts)),
            ("Requests", (self.requests,)),
            ("Network mode", (self.modes,)),
            ("Workspace", (self.workspace, self.held)),
            ("Recent", (self._events,)),
        )
        return tuple(part for title, below in sections for part in (*section(title).parts, *below))

    def show_row(self, row: Row, fleet: Fleet) -> None:
        """What the list knows; the rest comes with ``show_detail``."""
        view = row.view
        if view.id != self.agent_id:
            self.agent_id = view.id
            self._chart.say([])
            self._hosts.say([])
            self.requests.clear()
            self.verdicts.show_agent(view.id)
            self.held.clear(view.id)
            self._events.say([])
            self._hook.hide()
            self._no_hosts.show()
        self._crumb.setText(_crumbs(row, fleet))
        self._name.setText(row.name)
        word, _, role = state_words(view)
        state = ChipSpec(word, _ICONS.get(role, ""), role if role in _ICONS else "plain")
        reach = network_chip(view, long=True)
        if not row.is_live:
            reach = ChipSpec(f"{reach.text} until its end", reach.icon)
        self._chips.say([state, reach, ChipSpec(f"Depth {view.depth} of 3")])
        seen = f"seen by {', '.join(view.seen_by)}" if view.seen_by else ""
        process = f"pid {view.pid}" if view.pid else ""
        self._id.setText(" · ".join(p for p in (view.control_level, view.id, process, view.container_id[:12], seen) if p))
        self._why.setText(_why(view))
        self._why.setVisible(bool(_why(view)))
        cut = f"Isolated by {person(view.isolated)}. Reconnect gives back what its session allows." if view.isolated and row.is_live else ""
        if cut and view_mode(view) == "FULL":
            self._cut.say(f"Isolation was asked for by {person(view.isolated)}, but it is NOT enforced.", "warn", "triangle")
        else:
            self._cut.say(cut, "text", "ban")
        self._cut.setVisible(bool(cut))
        note = _doubts(view)
        self._note.setText(note)
        self._note.setVisible(bool(note))
        self.adopt.setVisible(not why_not_adopt(row))
        self.dry_run.show_row(view, row.is_live)
        self.request.setVisible(view.state == "needs_ok")
        lines = gauges(view)
        self._budget.say(lines)
        self._no_caps.setVisible(not lines)
        if self.isVisible():
            self.workspace.show_session(view.session)
            self.modes.show_row(view)

    def show_detail(self, detail: AgentDetailView) -> None:
        """Chart, hosts and events of the agent that is shown; another's is ignored."""
        if detail.agent.id != self.agent_id:
            return
        self._chart.say(detail.cost_per_minute)
        hosts = _hosts(detail.egress)
        self._hosts.say(hosts[:_SHOWN_HOSTS])
        self._no_hosts.setVisible(not hosts)
        self.requests.say(detail.egress)
        self.held.show_detail(detail)
        self._hook.setText(hook_words(detail))
        self._hook.setVisible(bool(hook_words(detail)))
        latest = sorted(detail.events, key=lambda event: -event.at)[:_SHOWN_EVENTS]
        self._events.say([Fact(clock(e.at), e.text, mono=True, left_role="text3", right_role="text") for e in latest])

    def allow(self, can: dict[str, str], row: Row) -> None:
        """``can``: action id -> why not, or empty."""
        frozen = row.view.state == "frozen"
        self.isolate.set_face("Reconnect" if row.view.isolated else "Isolate", "" if row.view.isolated else "ban")
        self.pause.set_face("Resume" if frozen else "Freeze", "play" if frozen else "pause")
        self.judge(lambda action: can.get(action, ""))


def _crumbs(row: Row, fleet: Fleet) -> str:
    names: list[str] = []
    at = fleet.rows.get(row.view.parent_id or "")
    while at is not None and len(names) < 4:
        names.append(at.name)
        at = fleet.rows.get(at.view.parent_id or "")
    return "  ›  ".join([*reversed(names), ""]) if names else "root agent"


def _why(view: AgentView) -> str:
    if view.causes:
        return f"Frozen by: {', '.join(view.causes)}. {plain_reason(view.state_reason)}".strip()
    return plain_reason(view.state_reason)


def _doubts(view: AgentView) -> str:
    """What cannot be promised of this agent, in words; empty when all holds."""
    doubts = []
    if view.control_level == "observed":
        doubts.append("Only observed: stopping it is best effort, not confirmed.")
    elif view.best_effort:
        doubts.append(f"Stopping it is best effort, not confirmed: {view.best_effort}.")
    if is_open(view):
        doubts.append(f"{asked_mode(view)} was asked for, but nothing enforces it here.")
    doubts.append(view.network_note if doubts else "")
    if view.profile_note and view.state in LIVE:
        doubts.append(f"Its rules ({view.profile}): {view.profile_note}.")
    return " ".join(filter(None, doubts))


def _hosts(egress: list[EgressView]) -> list[Fact]:
    """One line for each host: blocked ones first."""
    seen: dict[str, tuple[int, int]] = {}
    for record in egress:
        good, bad = seen.get(record.host, (0, 0))
        seen[record.host] = (good + record.allowed, bad + (not record.allowed))
    lines = []
    for host, (good, bad) in sorted(seen.items(), key=lambda item: -item[1][1]):
        if bad:
            words = f"blocked {bad}×" + (f", allowed {good}×" if good else "")
            lines.append(Fact(host, words, "ban", "danger", right_role="danger", mono=True))
        else:
            lines.append(Fact(host, "allowed" if good == 1 else f"allowed {good}×", "check", mono=True))
    return lines
