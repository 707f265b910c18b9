"""``watchfloor config`` and ``watchfloor logs``: settings and newest log lines of an instance. Neither needs a supervisor."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel

from console.cli.options import Json, StateDir, existing_places
from console.cli.syntax import Argument, Option
from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.cli.terminal.tables import new_table
from console.domain.errors import ConsoleError, NotFound
from console.settings.options import Options, load_options
from console.settings.places import Places

_LINE = 2000
"""Letters of a line that are printed."""


def config(
    name: Annotated[str, Argument(metavar="NAME", help="One setting, or the beginning of its name; without it, every setting.")] = "",
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Show each setting with its value and its default. The supervisor reads them when it starts."""
    places = existing_places(state_dir)
    defaults = _values(Options(), "")
    rows = {key: value for key, value in _values(load_options(places.settings_file), "").items() if key.startswith(name)}
    if not rows:
        raise NotFound(f"There is no setting {plain(name, 80)}.", "watchfloor config lists them.")
    if as_json:
        out.emit({"file": str(places.settings_file), "settings": rows})
        return 0
    table = new_table("SETTING", "VALUE", "DEFAULT")
    for key, value in rows.items():
        is_own = value != defaults.get(key)
        shown = json.dumps(defaults.get(key)) if is_own else "the same"
        table.add_row(out.words(key), out.words(json.dumps(value), "bold" if is_own else "", 200), out.words(shown, limit=200))
    out.show(table)
    out.say(f"Change them in {places.settings_file}, then start the supervisor again.")
    return 0


def _values(section: BaseModel, lead: str) -> dict[str, Any]:
    """Dotted name -> value; a section is taken apart."""
    found: dict[str, Any] = {}
    for key in type(section).model_fields:
        value = getattr(section, key)
        if isinstance(value, BaseModel):
            found |= _values(value, f"{lead}{key}.")
        else:
            found[lead + key] = section.model_dump(mode="json", include={key})[key]
    return found


def logs(
    rows: Annotated[int, Option("--rows", "-n", min=1, max=10_000, help="Lines of each log.")] = 50,
    text: Annotated[str, Option("--filter", metavar="TEXT", help="Only lines that hold it.")] = "",
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Print the newest lines of the supervisor's log and of the guard's, oldest first."""
    found = {name: _newest(file, rows, text) for name, file in _files(existing_places(state_dir)).items()}
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
