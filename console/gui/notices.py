"""The one bridge for messages to the person: it keeps what is said before a window listens, and repeats nothing."""

from __future__ import annotations

import sys
import traceback
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import Literal

from PySide6.QtCore import QObject, Signal

from console.domain.errors import ConsoleError, Unreachable
from console.gui.widgets.safe_text import safe_text

Level = Literal["info", "amber", "red"]
KEPT = 200
_SAME_WITHIN_S = 5.0


@dataclass(frozen=True, slots=True)
class Notice:
    """One message. ``receipt`` names the kill whose receipt it leads to."""

    level: Level
    text: str
    remedy: str = ""
    receipt: str = ""


class Notices(QObject):
    """``said`` is emitted for each new notice; ``all`` keeps the last ones, newest last."""

    said = Signal(object)
    withdrawn = Signal(str)
    """The text of a notice that holds no longer."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.all: list[Notice] = []
        self._last: tuple[Notice, float] | None = None
        self._unanswered = ""
        """The notice about a supervisor that does not answer."""

    def say(self, level: Level, text: str, remedy: str = "", receipt: str = "") -> None:
        """Tells the person; the same notice again within 5 s is dropped."""
        notice = Notice(level, safe_text(text, 400), safe_text(remedy, 400), receipt)
        if self._last is not None and self._last[0] == notice and monotonic() - self._last[1] < _SAME_WITHIN_S:
            return
        self._last = (notice, monotonic())
        self.all = [*self.all[-KEPT + 1 :], notice]
        self.said.emit(notice)

    def withdraw(self, text: str) -> None:
        """Takes a notice back whose cause is over."""
        text = safe_text(text, 400)
        self.all = [notice for notice in self.all if notice.text != text]
        self._last = None
        self.withdrawn.emit(text)

    def fail(self, error: ConsoleError) -> None:
        """A refusal or failure, in its own words. Fits ``Pending.failed``."""
        if isinstance(error, Unreachable):
            self._unanswered = error.what
        self.say("amber", error.what, error.remedy)

    def answered(self) -> None:
        """The supervisor answers: that it does not holds no longer."""
        if self._unanswered:
            text, self._unanswered = self._unanswered, ""
            self.withdraw(text)

    def catch_slot_errors(self) -> None:
        """Exceptions that leave a slot reach the person too, and stderr in full."""

        def door(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            traceback.print_exception(kind, error, trace, file=sys.stderr)
            if isinstance(error, ConsoleError):
                self.fail(error)
            elif issubclass(kind, Exception):
                self.say(
                    "red", f"The console itself failed: {kind.__name__}.", "Agents and guard are not touched by this. Restart the console."
                )

        sys.excepthook = door
