"""``watchfloor hooks list | remove``: hooks of ours that stand in the settings of programs, and taking all of one's own out."""

from __future__ import annotations

import argparse
import os
import pwd
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from console.domain.errors import ConsoleError, NotFound, UsageProblem
from console.services.hooks.installation import settings_of
from console.settings.places import Places
from console.sources.home_dirs import read_foreign
from console.sources.hook_settings import FILE_MAX
from console.sources.kinds import HOOKS
from console.supervisor.verbs.install_hook import as_it_was, keep_record, write_settings
from console.supervisor.verbs.printing import show

NO_HOOKS = "No program's settings hold a hook of Watchfloor's."


@dataclass(frozen=True, slots=True)
class Standing:
    """A hook of ours in a program's settings."""

    account: str
    program: str
    file: str
    why_unknown: str = ""
    """Why it is not known whether one stands there; empty: it does."""


def hooks_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    parser.add_argument("action", choices=("list", "remove"))
    parser.add_argument("--all", action="store_true", help="of every account that can be read")
    parser.add_argument("--mine", action="store_true", help="all of your own account")


def hooks(places: Places | None, given: argparse.Namespace) -> int:
    """0: listed, or taken out. Raises NotFound: there was none to take out; ConsoleError kinds."""
    if given.action == "list":
        found = [one for login, home in _homes(every=given.all) for one in _standing(login, home)]
        lines = [f"{one.account}: {one.program}: {one.file}{one.why_unknown and f' (not known: {one.why_unknown})'}" for one in found]
        lines = lines or [NO_HOOKS]
        show(given, {"hooks": [asdict(one) for one in found]}, lines)
        return 0
    if not given.mine or given.all:
        raise UsageProblem("Only your own hooks can be taken out.", "watchfloor hooks remove --mine")
    assert places is not None
    taken, left = [], []
    for one in _standing(_login(os.geteuid()), Path.home()):
        try:
            if one.why_unknown:
                raise ConsoleError(one.why_unknown)
            _take_out(places, one)
            taken.append(one)
        except ConsoleError as error:
            left.append(f"{one.file}: {error}")
    told = {"removed": [asdict(one) for one in taken], "left": left}
    if left:
        raise ConsoleError(f"{len(left)} hooks are still there: {'; '.join(left)[:1000]}", f"{len(taken)} were taken out.")
    if not taken:
        raise NotFound(NO_HOOKS, "Nothing was changed.")
    show(given, told, [f"taken out of {one.file}" for one in taken])
    return 0


def _take_out(places: Places, one: Standing) -> None:
    hook, file = HOOKS[one.program], Path(one.file)
    before = settings_of(file)
    bare = hook.removed(before, one.file)
    kept = as_it_was(places, hook, file, before)
    after = bare if kept is None else kept
    keep_record(places, file, before, after)
    write_settings(file, before, after)


def _homes(*, every: bool) -> Iterator[tuple[str, Path]]:
    """(login, home) of our own account, or of each that has one."""
    if not every:
        yield _login(os.geteuid()), Path.home()
        return
    seen: set[str] = set()
    for row in pwd.getpwall():
        if row.pw_dir not in seen and row.pw_dir.startswith("/") and row.pw_dir != "/":
            seen.add(row.pw_dir)
            yield row.pw_name, Path(row.pw_dir)


def _standing(login: str, home: Path) -> Iterator[Standing]:
    """Hooks below a home, and files of which that is not known: what cannot be read or understood may hold one."""
    for program, hook in HOOKS.items():
        file = home / hook.place
        try:
            found = read_foreign(file, FILE_MAX)
            if not found.whole:
                yield Standing(login, program, str(file), f"it is larger than {FILE_MAX} bytes")
            elif hook.installed(found.data, str(file)):
                yield Standing(login, program, str(file))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError:
            if login == _login(os.geteuid()):  # another account's is nothing that we were asked about
                yield Standing(login, program, str(file), "it cannot be read")
        except ConsoleError as error:
            yield Standing(login, program, str(file), error.what)
        except OSError as error:
            yield Standing(login, program, str(file), str(error.strerror or error))


def _login(uid: int) -> str:
    with suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return str(uid)
