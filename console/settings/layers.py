"""The layers of the settings: built-in default, the administrator's files, the account's file, the environment. Later ones win.

A key that an administrator locks keeps the value of the administrator's files, whatever comes after them. While one of those files is
broken, the settings that were last in force count, and no other layer is read.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from console.domain.errors import ConsoleError, Denied, NotFound, UsageProblem
from console.domain.message import Malformed
from console.domain.process.durable import replace_file
from console.domain.roles.rights import Role
from console.settings.admin_files import LOCKED, AdminFile, Fault, Refused, find_files, folder, read_file, shown
from console.settings.options import ENGINE, MODE, Options, docker_host, load_options, read_options, save_options
from console.settings.places import Places
from console.settings.table import KEYS, SECTIONS, Key, flat, nested

Layer = Literal["default", "administrator", "account", "environment", "last"]
_WORDS = {"default": "built-in default", "last": "last good settings"}
_ENGINE_KEY = "engine_socket"
_OF_OPERATORS = {"policy": "rules and profiles are", "allowlist": "entries of the allowlist are"}
"""What is no setting, by the word that a person would try to lock."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value, or a lock, comes from."""

    layer: Layer
    file: str = ""
    """The file, or the name of the variable."""
    line: int = 0
    """0: not known."""

    def __str__(self) -> str:
        return _WORDS.get(self.layer) or f"{self.file}:{self.line}".removesuffix(":0")


@dataclass(frozen=True, slots=True)
class Setting:
    """One key with the value in force."""

    key: Key
    value: Any
    origin: Origin
    lock: Origin | None = None
    """What locks it; None: nothing."""


@dataclass(frozen=True, slots=True)
class Administrated:
    """What the administrator's files say, all of them together."""

    values: dict[str, tuple[Any, Origin]] = field(default_factory=dict)
    locks: dict[str, Origin] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Effective:
    """The settings in force."""

    options: Options
    settings: dict[str, Setting]
    faults: tuple[Fault, ...] = ()
    """What is wrong with the administrator's files; then these are the last good settings."""
    ignored: tuple[str, ...] = ()
    """Keys that the account's file sets and the administrator locks."""

    def refuse_locked(self, name: str) -> None:
        """Raises Denied, with the file that locks it, for a key that this account may not change."""
        lock = self.settings[name].lock
        if lock is not None:
            raise Denied(f"{name} cannot be changed here: {lock} locks it.", "Ask the administrator of this host to change it there.")


def read_administrated(home: Path | None = None) -> Administrated:
    """All files of the folder, /etc/watchfloor unless named. Never raises: what is wrong is in ``faults``."""
    found = Administrated()
    try:
        found.files.extend(find_files(home or folder()))
    except Refused as error:
        found.faults.extend(error.faults)
    for path in found.files:
        try:
            _add(found, read_file(path))
        except Refused as error:
            if os.path.lexists(path):  # else it went away since the folder was read
                found.faults.extend(error.faults)
    return found


def check_file(path: Path) -> list[Fault]:
    """What is wrong with the text of one file; its owner does not matter."""
    found = Administrated()
    try:
        _add(found, read_file(path, of_root=False))
    except Refused as error:
        found.faults.extend(error.faults)
    return found.faults


def resolve(settings_file: Path | None, home: Path | None = None) -> Effective:
    """All layers together. ``settings_file``: the account's; None: there is none.

    Raises Refused for the administrator's files, ConsoleError for the account's.
    """
    admin = read_administrated(home)
    if admin.faults:
        raise Refused(*admin.faults)
    own = own_values(settings_file) if settings_file is not None else {}
    settings = {name: _layered(key, admin, own, settings_file) for name, key in KEYS.items()}
    try:
        options = Options.read(nested({name: one.value for name, one in settings.items()}))
    except Malformed as error:  # each value was checked by itself before
        raise ConsoleError(f"The settings do not fit together: {error}.", "watchfloor config check") from error
    ignored = tuple(name for name in admin.locks if name in own and own[name] != settings[name].value)
    return Effective(options, settings, ignored=ignored)


def in_force(places: Places | None, home: Path | None = None) -> Effective:
    """The same, and while an administrator's file is broken the last good settings. Raises ConsoleError for the account's file."""
    try:
        return resolve(places.settings_file if places is not None else None, home)
    except Refused as error:
        faults = error.faults
    options = _last_good(places)
    values = values_of(options)
    rows = {name: Setting(key, values[name], Origin("last")) for name, key in KEYS.items()}
    return Effective(options, rows, faults)


def in_force_file(places: Places) -> Path:
    """All settings as they were at the last good start. The guard reads it too (killswitch/service.py)."""
    return places.state_dir / "settings-in-force.json"


def keep(places: Places, options: Options) -> None:
    """Keeps the settings in force for a start with a broken file, and for the guard. Raises OSError."""
    data = json.dumps(options.as_data(), indent=2).encode()
    try:
        if in_force_file(places).read_bytes() == data:
            return
    except OSError:
        pass
    replace_file(in_force_file(places), data, MODE)


def last_values(places: Places) -> dict[str, Any] | None:
    """What was in force at the last good start, by key; None: nothing is known of one."""
    try:
        return values_of(load_options(in_force_file(places))) if in_force_file(places).exists() else None
    except (ConsoleError, OSError):
        return None


def values_of(options: Options) -> dict[str, Any]:
    """Every value by its key."""
    return flat(options.as_data())


def changed(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """(old, new) of each key that differs."""
    return {name: (before.get(name), value) for name, value in after.items() if before.get(name) != value}


def own_values(settings_file: Path) -> dict[str, Any]:
    """What the account's file sets, by key. Raises ConsoleError."""
    options, given = read_options(settings_file)
    values = values_of(options)
    return {name: values[name] for name in flat(given)}


def change(places: Places, changes: dict[str, Any]) -> None:
    """Writes values into the account's file; None takes a key out of it. Raises ConsoleError kinds: unknown, locked, of the wrong type."""
    write_own(places, planned(places, changes))


def planned(places: Places, changes: dict[str, Any]) -> dict[str, Any]:
    """What the account's file would set after the changes. Nothing is written. Raises as `change`."""
    now = resolve(places.settings_file)
    own = own_values(places.settings_file)
    for name, value in changes.items():
        key = KEYS.get(name)
        if key is None:
            raise NotFound(f"There is no setting {name[:80]}.", _nearest(name) or "watchfloor config show lists them.")
        if value != now.settings[name].value:
            now.refuse_locked(name)
        if value is None:
            own.pop(name, None)
        elif problem := key.problem(value):
            raise UsageProblem(problem, f"watchfloor config show {name} describes it.")
        else:
            own[name] = value
    return own


def write_own(places: Places, own: dict[str, Any]) -> None:
    """Writes the account's file. Raises ConsoleError."""
    try:
        save_options(places.settings_file, own)
    except Malformed as error:
        raise UsageProblem(f"The settings do not fit together: {error}.", "watchfloor config show") from error
    except OSError as error:
        raise ConsoleError(f"{places.settings_file} cannot be written: {error.strerror}.", "Look at the disk.") from error


def parse_value(key: Key, text: str) -> Any:
    """A value as a person types it: a word for a text or a choice, JSON for all else. Raises UsageProblem."""
    if key.kind in ("text", "choice"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageProblem(
            f"{key.name} takes {key.takes}, not {text[:80]!r}.", f"watchfloor config show {key.name} describes it."
        ) from error


def _layered(key: Key, admin: Administrated, own: dict[str, Any], settings_file: Path | None) -> Setting:
    value, origin = admin.values.get(key.name, (key.default, Origin("default")))
    lock = admin.locks.get(key.name)
    if lock is None and key.name in own:
        value, origin = own[key.name], Origin("account", shown(settings_file or ""))
    if key.name == _ENGINE_KEY and not value:
        # DOCKER_HOST counts where no file names a socket, as before; a lock keeps it out.
        if lock is not None:
            value = ENGINE
        elif docker_host():
            value, origin = docker_host(), Origin("environment", "DOCKER_HOST")
    return Setting(key, value, origin, lock)


def _last_good(places: Places | None) -> Options:
    """What was in force at the last good start; without it the built-in defaults."""
    try:
        return load_options(in_force_file(places)) if places is not None else Options()
    except ConsoleError:
        return Options()


def _add(found: Administrated, file: AdminFile) -> None:
    """One file on top of those before it."""
    name, lines = shown(file.path), file.lines()
    for dotted, value in flat(file.data).items():
        line = lines.get(tuple(dotted.split(".")), 0) or lines.get((dotted,), 0)
        if dotted == LOCKED:
            _lock(found, value, Origin("administrator", name, line))
        elif (key := KEYS.get(dotted)) is None:
            found.faults.append(_unknown(name, dotted, line))
        elif problem := key.problem(value):
            found.faults.append(Fault(name, problem, f"watchfloor config show {dotted} describes it.", line))
        else:
            found.values[dotted] = value, Origin("administrator", name, line)


def _lock(found: Administrated, patterns: Any, origin: Origin) -> None:
    if not isinstance(patterns, list) or not all(isinstance(one, str) for one in patterns):
        found.faults.append(Fault(origin.file, "locked takes a list of keys.", 'locked = ["panic.*", "heartbeat_s"]', origin.line))
        return
    for pattern in patterns:
        names = [name for name in KEYS if fnmatchcase(name, pattern)]
        if not names:
            words = f"locked names {pattern[:80]!r}, and there is no such setting."
            elsewhere = _elsewhere(origin.file, pattern, origin.line)
            hint = _nearest(pattern) or "watchfloor config show lists them."
            found.faults.append(elsewhere or Fault(origin.file, words, hint, origin.line))
        for name in names:
            found.locks.setdefault(name, origin)


def _unknown(file: str, dotted: str, line: int) -> Fault:
    if dotted in SECTIONS:
        return Fault(file, f"{dotted} is a section, not a setting.", f"[{dotted}] on a line of its own begins it.", line)
    if (elsewhere := _elsewhere(file, dotted, line)) is not None:
        return elsewhere
    section, _, last = dotted.rpartition(".")
    if last == LOCKED:  # TOML adds a key to the section above it, wherever a person meant it to be
        return Fault(file, f"locked is in the section {section[:80]!r}, and locks nothing there.", "Put it above the first section.", line)
    return Fault(file, f"there is no setting {dotted[:80]!r}.", _nearest(dotted) or "watchfloor config show lists them.", line)


def _elsewhere(file: str, name: str, line: int) -> Fault | None:
    """The fault of a name that stands for what operators change at work; None: it stands for nothing of the kind."""
    what = _OF_OPERATORS.get(name.partition(".")[0])
    if what is None:
        return None
    # A nearest name would be wrong here: who wants to lock the policy must not lock the panic, and believe it done.
    words = f"{name[:80]!r}: {what} no settings. These files neither set nor lock them."
    return Fault(file, words, f"Let root run the host's instance: there only root and the group {Role.OPERATOR.group} change them.", line)


def _nearest(name: str) -> str:
    """``Did you mean X?``; empty: nothing is near."""
    if name in SECTIONS:
        return f"Did you mean {name}.*?"
    near = get_close_matches(name, [*KEYS, *(f"{section}.*" for section in SECTIONS)], n=1, cutoff=0.6)
    return f"Did you mean {near[0]}?" if near else ""
