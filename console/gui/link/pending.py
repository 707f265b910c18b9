"""An answer that is on its way: one value or one ConsoleError, later, on the GUI thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import shiboken6
from PySide6.QtCore import QObject

from console.domain.errors import ConsoleError

T = TypeVar("T")


class Pending(Generic[T]):
    """``requests.ask(ep.LINT).then(show).failed(warn)``. Callbacks may be added after the answer came."""

    def __init__(self) -> None:
        self._then: list[Callable[[T], object]] = []
        self._failed: list[Callable[[ConsoleError], object]] = []
        self._owner: QObject | None = None
        self._value: list[T] = []
        self._error: ConsoleError | None = None

    @property
    def is_done(self) -> bool:
        return bool(self._value) or self._error is not None

    def while_alive(self, owner: QObject) -> Pending[T]:
        """Forgets the callbacks once ``owner`` (a dialog) is gone."""
        self._owner = owner
        return self

    def then(self, callback: Callable[[T], object]) -> Pending[T]:
        """Called with the value."""
        if self._value and self._wanted():
            callback(self._value[0])
        elif not self.is_done:
            self._then.append(callback)
        return self

    def failed(self, callback: Callable[[ConsoleError], object]) -> Pending[T]:
        """Called with the error, whose ``what`` and ``remedy`` are for the person."""
        if self._error is not None and self._wanted():
            callback(self._error)
        elif not self.is_done:
            self._failed.append(callback)
        return self

    def resolve(self, value: T) -> None:
        """The answer came (link only)."""
        if self.is_done:
            return
        self._value.append(value)
        for callback in self._then if self._wanted() else ():
            callback(value)

    def reject(self, error: ConsoleError) -> None:
        """It failed (link only)."""
        if self.is_done:
            return
        self._error = error
        for callback in self._failed if self._wanted() else ():
            callback(error)

    def _wanted(self) -> bool:
        return self._owner is None or shiboken6.isValid(self._owner)
