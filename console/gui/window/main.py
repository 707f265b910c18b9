"""The window: builds the parts, leads from page to page, and gives every key its action."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import time

import shiboken6
from PySide6.QtCore import Signal
from PySide6.QtGui import QCloseEvent, QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QStackedWidget, QWidget

from console.gui.actions import ActionSpec
from console.gui.actions.catalogue import why_not_by_role
from console.gui.kit.layout import column, row
from console.gui.link.events import Events
from console.gui.link.http import Link
from console.gui.models.fleet import Fleet
from console.gui.models.operators import person
from console.gui.models.switch import Switch
from console.gui.notices import Notices
from console.gui.pages.interface import Desk, Page
from console.gui.pages.registry import PAGES
from console.gui.requests import Requests
from console.gui.theme.tokens import NARROW
from console.gui.timers import every
from console.gui.widgets.columns import titles_in_front
from console.gui.widgets.split import split_in_front
from console.gui.window.bars import Foot, TopBar
from console.gui.window.help import HelpDialog
from console.gui.window.keys import EVERYWHERE, Shortcuts
from console.gui.window.nav import Nav
from console.gui.window.pages import Pages
from console.gui.window.palette import Found, KeySheet, Palette
from console.gui.window.state import Frame, StateView
from console.gui.window.sync import Sync
from console.panic.control import PanicControl
from console.panic.guard_link import GuardLink
from console.panic.machine import PanicMachine
from console.panic.orders import GuardPort
from console.settings.places import Places


@dataclass(frozen=True, slots=True)
class Wires:
    """The connections of one console."""

    link: Link
    events: Events
    guard: GuardLink


def wire(places: Places | None) -> Wires:
    """Connections to the instance of ``places``; None: there is none, and every request fails."""
    link = Link(places.operator_sock if places else None, named=person)
    return Wires(link, Events(link), GuardLink(places.guard_sock if places else None))


class Window(QWidget):
    """``theme_asked`` is emitted for a live switch of the theme, ``instance_found`` with the places of one that came later."""

    theme_asked = Signal()
    instance_found = Signal(object)

    def __init__(self, places: Places | None, notices: Notices) -> None:
        super().__init__()
        self.setObjectName("ground")
        self.setWindowTitle("Watchfloor")
        self.resize(1440, 900)
        self.setMinimumSize(800, 560)
        self.places = places
        self.wires = wire(places)
        self.notices = notices
        self.fleet, self.switch = Fleet(), Switch()
        requests = Requests(self.wires.link)
        self.sync = Sync(requests, self.wires.events, self.wires.guard, self.fleet, self.switch, notices, time)
        self.port = GuardPort(self.wires.guard, places.state_dir if places else None, "console", "panic from the console", self)
        self.machine = PanicMachine(self.port)
        self.desk = Desk(requests, notices, self.fleet, self.switch, self.goto, time, self.port.end_suspects, self.sync.read_all)
        self.stack = QStackedWidget(self)
        self.pages = Pages(PAGES, self.desk, self.stack, self.sync)
        self.page: Page | None = None
        self._build(places)
        frame = Frame(
            self.top,
            self.banner,
            self.strip,
            self.old,
            self.nav,
            self.status,
            self.plate,
            self.machine,
            self.port,
            self.wires.guard,
            self.switch,
            notices,
            self.sync,
            self.goto,
        )
        self.state = StateView(frame, self)
        self.shortcuts = Shortcuts(self, self.do)
        self.shortcuts.add(self.verbs())
        for kind in PAGES:
            self.shortcuts.add(kind.spec.verbs, kind.spec.name)
        self._connect()

    def _build(self, places: Places | None) -> None:
        self.plate = PanicControl(self.machine, self)
        self.top, self.foot = TopBar(self.plate, self), Foot(self)
        self.banner, self.strip, self.old, self.status = self.top.banner, self.foot.strip, self.foot.old, self.foot.status
        self.nav = Nav([kind.spec for kind in self.pages.kinds.values() if kind.spec.group], self)
        column(self.top, (row(self.nav, (self.stack, 1)), 1), self.foot, on=self)

    def _connect(self) -> None:
        self.nav.chosen.connect(lambda name: self.goto(name, ""))
        self.top.search.clicked.connect(lambda: self.do("console.find"))
        self.sync.changed.connect(self._models_changed)
        self.wires.link.heard.connect(self.notices.answered)
        self.pages.made.connect(lambda page: _show_badges(self.nav, page))
        self.sync.named.connect(lambda: self.page.show_names() if self.page is not None else None)
        self._clock = every(self, 1000, self._second)
        self._clock.start()

    def start(self, page: str = "fleet") -> None:
        """Shows ``page`` and begins to talk to supervisor and guard."""
        self.goto(page if page in self.pages.kinds else "fleet", "")
        self.pages.begin()
        for notice in self.notices.all:
            self.strip.show_notice(notice)
        self.sync.start()

    def adopt(self, places: Places) -> None:
        """An instance appeared after the console was opened."""
        self.wires.link.lead_to(places.operator_sock)
        self.wires.guard.lead_to(places.guard_sock)
        self.port.lead_to(places.state_dir)
        self.sync.start()
        self.instance_found.emit(places)

    def goto(self, name: str, argument: str) -> None:
        """Brings a page to the front; an unknown name is ignored."""
        if name not in self.pages.kinds:
            return
        page = self.pages[name]
        if self.page is not None and self.page is not page:
            self.page.on_hide()
        self.page = page
        self.stack.setCurrentWidget(page)
        self.nav.select(page.spec.under or name)
        self.shortcuts.front(name)
        page.on_show(argument)
        self._show_keys()

    def verbs(self) -> list[ActionSpec]:
        """What the palette offers now: pages to go to, this page's actions, and what works everywhere."""
        places = [
            ActionSpec(f"go.{p.spec.name}", f"Go to {p.spec.title}", f"Ctrl+{number}")
            for number, p in enumerate((p for p in self.pages.kinds.values() if p.spec.group), 1)
        ]
        here = self.page.spec.verbs if self.page else ()
        return [*here, *places, *(a for a in EVERYWHERE if all(a.title != own.title for own in here))]

    def why_not(self, action_id: str) -> str:
        """Empty when the action can be done now."""
        if action_id == "console.dismiss":
            return "" if self.strip.notice else "There is no notice."
        by_role = why_not_by_role(action_id, self.switch.rights)
        if action_id == "console.new-agent":
            return by_role or (self.pages["fleet"].why_not("fleet.run") if "fleet" in self.pages.kinds else "There is no fleet here.")
        page = self.pages.there.get(self._page_of(action_id))  # one that was never opened says why not when it is
        return by_role or (page.why_not(action_id) if page is not None else "")

    def _page_of(self, action_id: str) -> str:
        """The name of the page that lists the action, the one in front before others; empty for none."""
        front = [self.page.spec] if self.page is not None else []
        specs = (*front, *(kind.spec for kind in PAGES))
        return next((spec.name for spec in specs if any(a.id == action_id for a in spec.verbs)), "")

    def do(self, action_id: str) -> None:
        """Carries an action out, from key, palette or button."""
        everywhere: dict[str, Callable[[], object]] = {
            "console.find": lambda: Palette(_everything(self), self.why_not, self.fleet, self._found, self).open(),
            "console.help": lambda: HelpDialog(self.page.spec.help if self.page else "", self).show(),
            "console.keys": lambda: KeySheet(_all_keys(self), self).open(),
            "console.panic": self.machine.arm,
            "console.theme": self.theme_asked.emit,
            "console.dismiss": self.strip.dismiss,
            "console.reload": self.sync.read_all,
        } | _fitting(self)
        if by_role := why_not_by_role(action_id, self.switch.rights):
            self.notices.say("info", by_role)
        elif action_id.startswith("go."):
            self.goto(action_id.removeprefix("go."), "")
        elif action_id == "console.new-agent":
            self.do("fleet.run")
        elif action_id in everywhere:
            if action_id == "console.panic":
                self.plate.setFocus()
            everywhere[action_id]()
        elif name := self._page_of(action_id):
            page = self.pages[name]
            if page is not self.page:
                self.goto(page.spec.name, "")
            if why_not := page.why_not(action_id):
                self.notices.say("info", why_not)
            else:
                page.do(action_id)
                self._show_keys()

    def _found(self, found: Found) -> None:
        act, what = (lambda one: self.goto("fleet", one), found.agent_id) if found.agent_id else (self.do, found.verb)
        act(what)

    def _show_keys(self) -> None:
        if self.page is not None:
            self.status.show_keys((*self.page.keys(), ("?", "all keys")))

    def _models_changed(self) -> None:
        self.state.refresh()
        if self.page is not None:
            self.page.on_models()
        for name, page in self.pages.there.items():
            if name in self.nav.items:
                self.nav.items[name].show_badge(page.badge())
        self._show_keys()

    def _second(self) -> None:
        self.state.refresh()
        if self.page is not None:
            self.page.on_tick(time())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        narrow = self.width() < NARROW
        self.nav.set_rail(narrow)
        self.top.set_narrow(narrow)

    def closeEvent(self, event: QCloseEvent) -> None:
        self._clock.stop()
        self.pages.close()
        self.sync.stop()
        self.wires.link.close()
        _leave_clipboard()
        super().closeEvent(event)


def _show_badges(nav: Nav, page: Page) -> None:
    """Of a page that was just made, now and from now on."""
    if item := nav.items.get(page.spec.name):
        page.badge_changed.connect(lambda: item.show_badge(page.badge()))
        item.show_badge(page.badge())


def _fitting(window: Window) -> dict[str, Callable[[], object]]:
    """What fits the page in front to its user."""
    return {
        "console.columns": lambda: _open_columns(window),
        "console.line-back": lambda: _move_line(window, -1),
        "console.line-on": lambda: _move_line(window, 1),
    }


def _open_columns(window: Window) -> None:
    """Below the titles of the list; where none is on the page, a sentence."""
    titles = titles_in_front(window.stack)
    if titles is None:
        window.notices.say("info", "No list on this page has columns.")
        return
    menu = titles.menu()
    menu.popup(titles.mapToGlobal(titles.rect().bottomLeft()))
    menu.setActiveAction(menu.actions()[0])


def _move_line(window: Window, by: int) -> None:
    split = split_in_front(window.stack)
    if split is None:
        window.notices.say("info", "No two parts of this page have a line between them.")
    else:
        split.move_line(by)


def _everything(window: Window) -> list[ActionSpec]:
    """What the palette finds: what works here, then the actions of the other pages, each after the name of its page."""
    kinds = [kind for kind in window.pages.kinds.values() if window.page is None or kind.spec is not window.page.spec]
    others = [(kind.spec.title, a) for kind in kinds for a in kind.spec.verbs if a.key or not a.cap]
    return [*window.verbs(), *(replace(a, title=f"{title}: {a.title}", key="", cap="") for title, a in others)]


def _all_keys(window: Window) -> list[tuple[str, Sequence[ActionSpec]]]:
    here = len(window.page.spec.verbs) if window.page else 0
    return [
        ("Everywhere", window.verbs()[here:]),
        *((kind.spec.title, kind.spec.verbs) for kind in window.pages.kinds.values() if kind.spec.verbs),
    ]


def _leave_clipboard() -> None:
    """What was copied becomes Qt's own: data made here would be taken apart after the interpreter has ended, which crashes (shiboken)."""
    clipboard = QGuiApplication.clipboard()
    for mode in (clipboard.Mode.Clipboard, clipboard.Mode.Selection):
        data = clipboard.mimeData(mode)
        if data is not None and shiboken6.createdByPython(data):
            clipboard.setText(data.text(), mode)
