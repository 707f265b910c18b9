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


def hooks_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    parser.add_argument("action", choices=("list", "remove"))
    parser.add_argument("--all", action="store_true", help="of every account that can be read")
    parser.add_argument("--mine", action="store_true", help="all of your own account")


def hooks(places: Places | None, given: argparse.Namespace) -> int:
    """0: listed, or taken out. Raises NotFound: there was none to take out; ConsoleError kinds."""
    if given.action == "list":
        found = [one for login, home in _homes(every=given.all) for one in _standing(login, home)]
        lines = [f"{one.account}: {one.program}: {one.file}" for one in found] or [NO_HOOKS]
        show(given, {"hooks": [asdict(one) for one in found]}, lines)
        return 0
    if not given.mine or given.all:
        raise UsageProblem("Only your own hooks can be taken out.", "watchfloor hooks remove --mine")
    assert places is not None
    taken, left = [], []
    for one in _standing(_login(os.geteuid()), Path.home()):
        try:
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
    """Hooks below a home; a file that cannot be read or understood holds none that we know of."""
    for program, hook in HOOKS.items():
        file = home / hook.place
        with suppress(OSError, ConsoleError):
            if hook.installed(read_foreign(file, FILE_MAX).data, str(file)):
                yield Standing(login, program, str(file))


def _login(uid: int) -> str:
    with suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return str(uid)
