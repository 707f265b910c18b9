"""``watchfloor config`` and ``watchfloor logs``: settings and newest log lines of an instance. Looking needs no supervisor."""

from __future__ import annotations

import json
import os
import stat
from collections import deque
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, cast

from console.api.client.api_client import ApiClient
from console.cli.link import build, connect
from console.cli.options import Json, StateDir, existing_places, only_root, seek_places
from console.cli.shaping import shaped
from console.cli.syntax import UNSHAPED, Argument, Option, Shape, Verbs, example
from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.cli.terminal.tables import Text, new_table
from console.domain.errors import ConsoleError, ExitCode, NotFound
from console.settings.admin_files import Fault, find_misnamed, folder, shown
from console.settings.layers import (
    Effective,
    Layer,
    Origin,
    Setting,
    check_file,
    in_force,
    own_values,
    parse_value,
    read_administrated,
)
from console.settings.options import Options
from console.settings.places import HOSTS_STATE, Places, choose_state_dir
from console.settings.table import KEYS

app = Verbs("Settings: what is in force, where it comes from, what is wrong with the files; changes of one.")
_LINE = 2000
"""Letters of a line that are printed."""


@app.command("show")
@example("panic. --origin")
def show(
    name: Annotated[str, Argument(metavar="NAME", help="One setting, or the beginning of its name; without it, every setting.")] = "",
    origin: Annotated[bool, Option("--origin", help="Also show where each value comes from: file and line.")] = False,
    shape: Shape = UNSHAPED,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Show each setting with its value and default, and which ones the administrator of this host locks."""
    places = seek_places(state_dir)
    now = _of_host(places) if places is not None and places.by_role else in_force(places)
    rows = [row for key, row in now.settings.items() if key.startswith(name)]
    if not rows:
        raise NotFound(f"There is no setting {plain(name, 80)}.", "watchfloor config show lists them.")
    if as_json:
        out.emit(_as_json(places, now, rows))
        return 0
    table = new_table("SETTING", "VALUE", "DEFAULT", "LOCKED", *(["ORIGIN"] if origin else []))
    for row in rows:
        table.add_row(*_cells(row), *([out.words(row.origin, limit=120)] if origin else []))
    out.show(shaped(table, shape))
    _say_faults(now)
    if places is not None and not places.by_role and not now.faults:
        out.say_folded(f"Settings of this account are in {plain(places.settings_file, 500)}. They take effect when the supervisor starts.")
    return 0


def _of_host(places: Places) -> Effective:
    """The settings of the host's instance as its supervisor gives them: a member reads no file of it. Raises what the client raises."""
    with ApiClient(places) as client:
        view = client.settings()
    if view.trouble:
        out.note(plain(view.trouble, 1000))
    rows = {}
    for row in view.rows:
        file, _, line = row.origin.rpartition(":")
        is_place = bool(file) and line.isascii() and line.isdigit()
        origin = Origin(cast(Layer, row.layer), file if is_place else row.origin, int(line) if is_place else 0)
        lock = Origin("administrator", row.locked_by) if row.locked_by else None
        if row.key in KEYS:
            rows[row.key] = Setting(KEYS[row.key], row.value, origin, lock)
    return Effective(Options(), rows)


def _cells(row: Setting) -> list[Text]:
    default, is_own = row.key.default, row.value != row.key.default
    shown = json.dumps(default) if is_own else "the same"
    style = "bold" if is_own else ""
    lock = out.words(row.lock, "yellow", 120) if row.lock is not None else out.words("-")
    return [out.words(row.key.name), out.words(json.dumps(row.value), style, 200), out.words(shown, limit=200), lock]


def _as_json(places: Places | None, now: Effective, rows: list[Setting]) -> dict[str, Any]:
    origins = {
        row.key.name: {
            "layer": row.origin.layer,
            "file": row.origin.file,
            "line": row.origin.line,
            "locked_by": str(row.lock) if row.lock is not None else "",
        }
        for row in rows
    }
    return {
        "file": str(places.settings_file) if places is not None else "",
        "settings": {row.key.name: row.value for row in rows},
        "origins": origins,
        "faults": [asdict(fault) for fault in now.faults],
    }


def _say_faults(now: Effective) -> None:
    for fault in now.faults:
        out.note(plain(f"{fault} {fault.remedy}", 1000))
    if now.faults:
        out.note("Shown are the settings that were last in force.")


@app.command("check")
@example("/etc/watchfloor/conf.d/10-limits.toml")
def check(
    file: Annotated[
        Path | None, Argument(metavar="FILE", help="One TOML file of any owner; without it, every file that counts here.")
    ] = None,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Check the files of the settings: keys, types, ranges, duplicates, owner. Exit 0: good, 1: a fault, each one named."""
    if file is not None and not os.path.lexists(file):
        raise NotFound(f"There is no file {plain(file, 300)}.", "Name a TOML file, or none to check the files that count here.")
    places = seek_places(state_dir) if file is None else None
    faults = check_file(file) if file is not None else _every_fault(places)
    unread = [shown(places.settings_file)] if places is not None and places.by_role else []
    misnamed = find_misnamed(folder()) if file is None else []
    if as_json:
        out.emit({"ok": not faults, "faults": [asdict(fault) for fault in faults], "unread": [*unread, *misnamed]})
    for fault in faults if not as_json else ():
        out.show(out.words(fault, "bold red", 1000))
        out.say(f"  {plain(fault.remedy, 1000)}")
    if not faults and not as_json:
        out.say("No fault was found in the files that this account can read." if unread else "No fault was found.")
    for name in unread:
        out.note(f"Not checked, because only root reads it: {name}. Check it with: sudo watchfloor config check")
    for name in misnamed if not as_json else ():
        out.note(f"Not read, because its name does not end in .toml: {plain(name, 300)}")
    return int(ExitCode.FAILURE if faults else ExitCode.DONE)


Why = Annotated[str, Option("--reason", metavar="WORDS", help="Why; recorded with the old and the new value.")]
_OF_THE_HOST = "sudo systemctl restart watchfloor"
_OF_ONES_OWN = "press Ctrl-C in watchfloor supervisor, and run it again."
Key = Annotated[str, Argument(metavar="NAME", help="The setting, as config show names it.")]


@app.command("set")
@example("spawn.max_depth 4 --reason 'deeper trees for the release'")
def set_value(
    name: Key,
    value: Annotated[str, Argument(metavar="VALUE", help="A word for a text, else JSON: 7, true, '{\"cost\": 5}'.")],
    reason: Why,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Set a value in this account's file, on record. It takes effect when the supervisor starts again."""
    key = KEYS.get(name)
    return _changed(name, parse_value(key, value) if key is not None else value, False, reason, state_dir, as_json)


@app.command("reset")
@example("spawn.max_depth --reason 'the release is out'")
def reset(name: Key, reason: Why, state_dir: StateDir = None, as_json: Json = False) -> int:
    """Take a value out of this account's file, on record: the administrator's value or the default counts again."""
    return _changed(name, None, True, reason, state_dir, as_json)


def _changed(name: str, value: Any, is_reset: bool, reason: str, state_dir: str | None, as_json: bool) -> int:
    from console.api.settings import SettingBody

    view = connect(state_dir).change_setting(build(SettingBody, key=name, value=value, reset=is_reset, reason=reason))
    row = next(row for row in view.rows if row.key == name)
    if as_json:
        out.emit(row.as_data())
        return 0
    when = "takes effect when the supervisor starts again" if row.is_waiting else "is in force"
    out.say_folded(f"{plain(name)} = {plain(json.dumps(row.next_value), 300)} {when}.")
    if row.is_waiting:
        is_hosts = choose_state_dir(state_dir)[0] == HOSTS_STATE
        out.note(f"Now {plain(json.dumps(row.value), 300)} holds. To start it again: {_OF_THE_HOST if is_hosts else _OF_ONES_OWN}")
        if not is_hosts and (pid := _pid(state_dir)):
            out.note(f"If another verb started it: kill {pid}. The next verb starts it again; agents go on meanwhile.")
    return 0


def _pid(state_dir: str | None) -> int:
    """Of the supervisor, as its lock says; 0: that cannot be read."""
    places = seek_places(state_dir)
    try:
        return int(json.loads(places.supervisor_lock.read_text())["pid"]) if places is not None else 0
    except (OSError, ValueError, LookupError, TypeError):
        return 0


def _every_fault(places: Places | None) -> list[Fault]:
    admin = read_administrated()
    named = {fault.file for fault in admin.faults}
    others = [file for file in admin.files if shown(file) not in named]
    faults = [*admin.faults, *(fault for file in others if (fault := _unread_by_accounts(file)) is not None)]
    try:
        if places is not None and not places.by_role:
            own = own_values(places.settings_file)
            for name, lock in admin.locks.items():
                if name in own and own[name] != admin.values.get(name, (KEYS[name].default, None))[0]:
                    words = f"{name} is set here and ignored: {lock} locks it."
                    faults.append(Fault(shown(places.settings_file), words, "Take it out of this file."))
    except ConsoleError as error:
        faults.append(Fault(shown(places.settings_file) if places is not None else "", error.what, error.remedy))
    return faults


def _unread_by_accounts(file: Path) -> Fault | None:
    """A file that root reads and other accounts do not: each instance of theirs starts no agent, and root would not see why."""
    try:
        is_read = file.stat().st_mode & stat.S_IROTH
    except OSError:  # named already
        return None
    what, remedy = "other accounts cannot read it, so their instances start no agent.", f"chmod 0644 {shown(file)}"
    return None if is_read else Fault(shown(file), what, remedy)


@example("-n 100 --filter error")
def logs(
    rows: Annotated[int, Option("--rows", "-n", min=1, max=10_000, help="Lines of each log.")] = 50,
    text: Annotated[str, Option("--filter", metavar="TEXT", help="Only lines that hold it.")] = "",
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Print the newest lines of the supervisor's log and of the guard's, oldest first."""
    places = existing_places(state_dir)
    only_root(places, "logs", "watchfloor audit tail shows what is on record")
    found = {name: _newest(file, rows, text) for name, file in _files(places).items()}
    if as_json:
        out.emit(found)
        return 0
    for name, lines in found.items():
        for line in lines:
            out.say(f"{name}: {plain(line, _LINE)}")
    if not any(found.values()):
        out.note("No log has such a line." if text else "Nothing was logged yet.")
    return 0


def _files(places: Places) -> dict[str, Path]:
    return {"supervisor": places.log_file, "guard": places.guard_dir / "guard.log"}


def _newest(file: Path, rows: int, text: str) -> list[str]:
    """The last lines that hold the text; of a log that is not there, none."""
    try:
        with file.open(encoding="utf-8", errors="replace") as log:
            return [line.rstrip("\n")[:_LINE] for line in deque((one for one in log if text in one), maxlen=rows)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ConsoleError(f"{file} cannot be read: {error.strerror}.", "Run it as the user that runs the supervisor.") from error
