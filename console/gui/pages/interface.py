"""Define what every page is and gets. A page shows and asks. It never sees a socket, and it enforces nothing.

A page draws from ``Desk`` (models and requests) and lists its actions as data. The window calls it on these events:

* ``on_show``: the page comes to the front.
* ``handle``: a delta arrived (also while the page is hidden).
* ``resync``: everything may have changed.
* ``on_tick``: once a second while the page is in front.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from console.api.messages import Delta
from console.domain.errors import ConsoleError
from console.gui.models.fleet import Fleet
from console.gui.models.switch import Switch
from console.gui.notices import Notices
from console.gui.pages.declared import PageSpec
from console.gui.requests import Requests
from console.gui.theme.tokens import NARROW

EndSuspects = Callable[[str, list[int], Callable[[dict[str, Any]], object], Callable[[ConsoleError], object]], None]
"""(kill id, pids, what gets the answer, what gets the refusal)"""


@dataclass(frozen=True, slots=True)
class Desk:
    """What a page works with; given by the window, one for all pages."""

    requests: Requests
    notices: Notices
    fleet: Fleet
    switch: Switch
    goto: Callable[[str, str], None]
    """``goto(page name, argument)``: for example ``goto("receipt", kill_id)``, ``goto("fleet", agent_id)``."""
    clock: Callable[[], float]
    """Seconds since the epoch."""
    end_suspects: EndSuspects
    """Kills suspects of a kill through the guard, as ``watchfloor kill --suspects`` does."""
    ask_sync: Callable[[], None]
    """Reads fleet, status and kill switch again soon (after something was changed)."""


@dataclass(frozen=True, slots=True)
class Badge:
    """What stands at the right of a navigation item; kind is plain, warn or danger."""

    words: str
    kind: str = "plain"
    icon: str = ""


class Memory(Protocol):
    """What a person set on a page, for the next start: sort, filter, order. Plain values of JSON."""

    def remembered(self) -> dict[str, Any]:
        """What is kept."""

    def recall(self, kept: dict[str, Any]) -> None:
        """Takes back what ``remembered`` gave; a value that does not fit is ignored."""


class Page(QWidget):
    """Base of all pages."""

    spec: ClassVar[PageSpec]
    badge_changed = Signal()
    memory: Memory | None = None
    """The part of the page that is remembered."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.desk = desk
        self.handlers: dict[str, Callable[[], object]] = {}
        """What each action of ``spec`` does. An action that a widget carries out by itself, such as moving in a list, is not in it."""
        self.setObjectName("ground")
        self.setAccessibleName(self.spec.title)

    def keys(self) -> tuple[tuple[str, str], ...]:
        """(key cap, words) of the status bar: the actions that have a hint."""
        return tuple((a.shown_key, a.hint) for a in self.spec.verbs if a.hint)

    def badge(self) -> Badge | None:
        """Emit ``badge_changed`` when this would answer otherwise."""
        return None

    def on_show(self, argument: str = "") -> None:
        """The page came to the front; ``argument`` names what to select."""

    def on_hide(self) -> None:
        """Another page came to the front."""

    def handle(self, delta: Delta) -> None:
        """One delta of the event stream, also while hidden. Fleet and switch models are up to date already."""

    def resync(self) -> None:
        """The stream had a gap or began: read again what this page keeps itself."""

    def show_names(self) -> None:
        """Names of operators came, while in front: show again what stands outside lists. Lists paint them by themselves."""
        self.resync()

    def on_close(self) -> None:
        """The window closes."""

    def on_models(self) -> None:
        """Fleet or switch changed; at most ten times a second, and only while in front."""

    def on_tick(self, now: float) -> None:
        """Once a second while in front: let ages count."""

    def why_not(self, action_id: str) -> str:
        """Empty when the action can be done now, else why not."""
        return ""

    def do(self, action_id: str) -> None:
        """Carries out an action of ``spec``; why it cannot be done now is told."""
        why_not = self.why_not(action_id)
        if why_not:
            self.desk.notices.say("info", why_not)
        elif action_id in self.handlers:
            self.handlers[action_id]()

    def is_ready(self) -> bool:
        """Whether what the page shows has been read (a screenshot waits for it)."""
        return True

    @property
    def is_narrow(self) -> bool:
        """Detail panes open over the table below this window width."""
        return self.window().width() < NARROW
