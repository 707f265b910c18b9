"""Watch the files of the settings while the instance runs, refuse starts while they are broken from the start, and put changes on record.

What is in force was read at the start and stays until the next one: a file that breaks in between takes nothing away.
"""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from console.api.settings import SettingBody, SettingRow, SettingsView
from console.domain.engine.command import Record
from console.domain.errors import Conflict, ConsoleError, Denied, UsageProblem
from console.domain.words import counted
from console.services.notices.shown import Notice
from console.settings.admin_files import DROP_INS, MAIN, Fault, Refused, find_files, folder, shown
from console.settings.layers import Effective, Setting, changed, keep, last_values, planned, resolve, values_of, write_own
from console.settings.places import Places

log = logging.getLogger(__name__)
LOOK_S = 5.0
"""Between two looks at the files."""
NAMED = 5
"""Keys that a sentence names."""
BROKEN_START = "These settings were broken when Watchfloor started, so no agent starts until it is started again with good files."


class Scribe(Protocol):
    """Who writes the audit."""

    def record(self, record: Record) -> None: ...
    def record_first(self, record: Record) -> None: ...


@dataclass(frozen=True, slots=True)
class Looked:
    """What the files say now."""

    faults: tuple[Fault, ...] = ()
    pending: tuple[str, ...] = ()
    """Keys whose values take effect at the next start."""
    own_trouble: str = ""
    """What is wrong with the account's file."""

    @property
    def words(self) -> str:
        """For an operator; empty: nothing is to be told."""
        if self.faults:
            more = counted(len(self.faults) - 1, "more fault", "more faults") if len(self.faults) > 1 else ""
            remedy = self.faults[0].remedy
            remedy = remedy if remedy.endswith((".", "?")) else f"{remedy}."
            return f"{self.faults[0]} {remedy}{f' {more}: watchfloor config check names them.' if more else ''}"
        if self.own_trouble:
            return self.own_trouble
        if self.pending:
            names = ", ".join(self.pending[:NAMED]) + (" and more" if len(self.pending) > NAMED else "")
            return f"Changed settings take effect when Watchfloor is started again: {names}."
        return ""


class SettingsDesk:
    """One instance's settings. On the loop's thread; files are read beside it."""

    __slots__ = ("settings", "_places", "_scribe", "_notice", "_looked", "_seen", "_changing")

    def __init__(self, places: Places, settings: Effective, scribe: Scribe, notice: Notice) -> None:
        self.settings = settings
        self._places, self._scribe, self._notice = places, scribe, notice
        self._looked = Looked(settings.faults)
        self._seen: object = None
        self._changing = asyncio.Lock()

    @property
    def trouble(self) -> str:
        """What an operator must know of the files; empty: they are what is in force."""
        looked = self._looked
        if self._is_blocked():
            return f"{looked.words} The last good settings are in force. {BROKEN_START}".strip()
        if looked.faults or looked.own_trouble:
            return f"{looked.words} The settings from before stay in force."
        return looked.words

    def refuse_start(self) -> None:
        """Raises Conflict while this instance was started with broken files, unless they are good now and say what is in force."""
        if self._is_blocked():
            raise Conflict(f"No agent starts: {self.trouble}", "watchfloor config check names every fault. Kills and limits work.")

    def begin(self) -> None:
        """Puts on record what changed since the last start, and keeps what is in force for the next one. Blocks."""
        settings = self.settings
        if settings.faults:
            words = f"{settings.faults[0]}; the last good settings are in force, and no agent starts"
            self._scribe.record(Record("supervisor", "settings.broken", words[:1000], verdict="deny", must=True))
            self._notice(self.trouble, "red")
            return
        before = last_values(self._places)
        for name, (old, new) in changed(before, values_of(settings.options)).items() if before is not None else ():
            origin = settings.settings[name].origin
            data = {"key": name, "old": old, "new": new, "origin": str(origin)}
            words = f"{name}: {_short(old)} -> {_short(new)}, by {origin}"
            self._scribe.record(Record("supervisor", "settings.in_force", words, data=data))
        for name in settings.ignored:
            self._notice(f"{name} of {self._places.settings_file} is ignored: {settings.settings[name].lock} locks it.")
        try:
            keep(self._places, settings.options)
        except OSError as error:
            self._notice(f"The settings in force could not be kept for a start with broken files: {error.strerror}.")

    async def keep_looking(self) -> None:
        """Look at the files now and then. Forever."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Looks once. A change for the worse, or the better, is told and on record."""
        seen = await asyncio.to_thread(self._signature)
        if seen == self._seen:
            return
        self._seen = seen
        before, self._looked = self._looked, await asyncio.to_thread(self._look)
        if self._looked.words == before.words:
            return
        if self._looked.faults or self._looked.own_trouble:
            self._scribe.record(Record("supervisor", "settings.broken", self._looked.words[:1000], must=True))
        elif before.faults or before.own_trouble:
            self._scribe.record(Record("supervisor", "settings.mended", self._looked.words or "the files of the settings are good again"))
        if self.trouble:
            self._notice(self.trouble)

    async def view(self) -> SettingsView:
        """Every setting, as it is in force and as the files have it now."""
        try:
            files: Effective | None = await asyncio.to_thread(resolve, self._places.settings_file)
        except ConsoleError:
            files = None
        rows = [self._row(one, files.settings[name] if files is not None else one) for name, one in self.settings.settings.items()]
        return SettingsView(file=shown(self._places.settings_file), trouble=self.trouble, rows=rows)

    async def change(self, body: SettingBody, by: str) -> SettingsView:
        """Changes one key in the account's file, on record first. It takes effect at the next start.

        Raises ConsoleError kinds: unknown, locked (with the file that locks it), of the wrong type, NotRecorded.
        """
        if not body.reset and body.value is None:
            raise UsageProblem(f"{body.key} needs a value.", "Name one, or reset it.")
        async with self._changing:
            await asyncio.to_thread(self._change, body, by)
            await self.look()
        return await self.view()

    def _change(self, body: SettingBody, by: str) -> None:
        value = None if body.reset else body.value
        try:
            own = planned(self._places, {body.key: value})
        except Denied as error:
            self._scribe.record(Record(by, "settings.refused", f"{error.what} ({body.reason})", verdict="deny", data={"key": body.key}))
            raise
        before = resolve(self._places.settings_file).settings[body.key].value
        new = "what other layers say" if body.reset else _short(value)
        words = f"{body.key}: {_short(before)} -> {new}: {body.reason}"
        data = {"key": body.key, "old": before, "new": value, "reset": body.reset, "reason": body.reason}
        self._scribe.record_first(Record(by, "settings.changed", words, verdict="ok", data=data))
        try:
            write_own(self._places, own)
        except ConsoleError as error:
            self._scribe.record(Record(by, "settings.not_changed", f"{body.key}: {error}", verdict="failed", data={"key": body.key}))
            raise

    def _row(self, now: Setting, files: Setting) -> SettingRow:
        key = now.key
        return SettingRow(
            key=key.name,
            group=key.group,
            group_words=key.group_words,
            words=key.words,
            kind=key.kind,
            choices=list(key.choices),
            takes=key.takes,
            unit=key.unit,
            value=now.value,
            default=key.default,
            origin=str(files.origin),
            layer=files.origin.layer,
            locked_by=str(files.lock) if files.lock is not None else "",
            is_waiting=files.value != now.value,
            next_value=files.value,
        )

    def _is_blocked(self) -> bool:
        looked = self._looked
        return bool(self.settings.faults) and bool(looked.faults or looked.own_trouble or looked.pending)

    def _look(self) -> Looked:
        try:
            now = resolve(self._places.settings_file)
        except Refused as error:
            return Looked(error.faults)
        except ConsoleError as error:
            return Looked(own_trouble=str(error))
        return Looked(pending=tuple(changed(values_of(self.settings.options), values_of(now.options))))

    def _signature(self) -> object:
        """What changes when any of the files does."""
        home = folder()
        try:
            files = find_files(home)
        except Refused as error:
            return str(error)
        return tuple(_looks(path) for path in (home, home / MAIN, home / DROP_INS, *files, self._places.settings_file))


def _looks(path: Path) -> tuple[object, ...]:
    try:
        seen = path.lstat()
    except OSError as error:
        return (str(path), error.errno)
    return (str(path), seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)


def _short(value: Any) -> str:
    return json.dumps(value)[:200]
