"""``watchfloor install-hook KIND``: shows the diff, keeps what was there, and can be undone."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

from console.domain.errors import Conflict, ConsoleError, NotFound, UsageProblem
from console.domain.process.durable import make_folder, replace_file
from console.services.hooks.installation import command_for, diff_of, put_hook_or_refuse, records, settings_of
from console.settings.places import Places
from console.sources.hook_settings import cannot_run
from console.sources.kind import Hook
from console.sources.kinds import HOOKS
from console.supervisor.verbs.printing import show


def install_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    parser.add_argument("program", choices=tuple(HOOKS))
    parser.add_argument("--settings", metavar="FILE", help="the program's settings file, if it is not in its usual place")
    parser.add_argument("--undo", action="store_true", help="take the hook out again")
    parser.add_argument("--check", action="store_true", help="say whether it is installed; change nothing")
    parser.add_argument("--dry-run", action="store_true", help="show the diff; change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def install_hook(places: Places | None, given: argparse.Namespace) -> int:
    """0: done, or installed (--check). 1: not installed (--check). Raises ConsoleError kinds."""
    assert places is not None
    hook = HOOKS[given.program]
    file = Path(given.settings).absolute() if given.settings else Path.home() / hook.place
    before = settings_of(file)
    if given.check:
        return _check(given, hook, file, before)
    if given.undo:
        bare = hook.removed(before, str(file))
        if bare == before:
            raise NotFound(f"{file} has no hook of Watchfloor's.", "Nothing was changed.")
        kept = as_it_was(places, hook, file, before)
        after = bare if kept is None else kept
    else:
        after = hook.added(before, command_for(places, given.program), str(file))
    diff = diff_of(file, before, after)
    told: dict[str, Any] = {"program": given.program, "file": str(file), "changed": before != after, "diff": diff}
    if before == after:
        if not (given.undo or given.dry_run):
            put_hook_or_refuse(places)  # the settings may be as they should be, and the file that they name gone
        show(given, told, [f"{file} is as it should be already."])
        return 0
    if given.dry_run:
        show(given, told | {"changed": False}, [*diff, "", "nothing was changed (--dry-run)"])
        return 0
    _confirm(given, diff)
    if not given.undo:
        put_hook_or_refuse(places)
    keep_record(places, file, before, after)
    write_settings(file, before, after)
    words = "taken out of" if given.undo else "installed in"
    lines = [] if given.json or not given.yes else diff
    show(given, told, [*lines, f"the hook is {words} {file}", *_next_words(given)])
    return 0


def _check(given: argparse.Namespace, hook: Hook, file: Path, data: bytes) -> int:
    command = hook.installed(data, str(file))
    words = [f"installed in {file}: {command}"] if command else [f"{file} has no hook of Watchfloor's"]
    skipped = hook.why_skipped(data, file) if command else ""
    words += [f"{given.program} skips it: {skipped}"] if skipped else []
    broken = cannot_run(command)
    words += [f"{broken}. Install it again: watchfloor install-hook {given.program}"] if broken else []
    told = {"program": given.program, "file": str(file), "installed": bool(command), "command": command, "skipped": skipped}
    show(given, told | {"broken": broken}, words)
    return 0 if command and not skipped and not broken else 1


def _confirm(given: argparse.Namespace, diff: list[str]) -> None:
    if given.yes:
        return
    if given.json or not sys.stdin.isatty():
        raise UsageProblem("Nothing was changed: a confirmation needs a terminal.", "Check with --dry-run, then use --yes.")
    print(*diff, "Write it? [y/N] ", sep="\n", end="", flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):  # Ctrl-D gives an empty line: no
        raise Conflict("Nothing was changed.", "")


def keep_record(places: Places, file: Path, before: bytes, after: bytes) -> None:
    """The rollback record, on disk before the change (promise 5)."""
    record = {
        "file": str(file),
        "at": time.time(),
        "existed": file.exists(),
        "before": before.decode("utf-8", "surrogateescape"),
        "before_sha256": hashlib.sha256(before).hexdigest(),
        "after_sha256": hashlib.sha256(after).hexdigest(),
    }
    try:
        make_folder(places.hooks_dir, 0o755)
        replace_file(places.hooks_dir / f"record-{time.time_ns()}.json", json.dumps(record).encode(), 0o600)
    except OSError as error:
        raise ConsoleError(f"No rollback record could be written: {error.strerror}.", "Nothing was changed.") from error


def as_it_was(places: Places, hook: Hook, file: Path, now: bytes) -> bytes | None:
    """Return the file's bytes from before the hook, if it was not changed since; None: only our part is removed."""
    digest = hashlib.sha256(now).hexdigest()
    kept = [r["before"] for r in records(places) if r.get("file") == str(file) and r.get("after_sha256") == digest]
    return kept[-1] if kept and not hook.installed(kept[-1], str(file)) else None


def write_settings(file: Path, before: bytes, after: bytes) -> None:
    """Raises Conflict: they were changed since ``before`` was read; ConsoleError."""
    try:
        make_folder(file.parent)
        if settings_of(file) != before:
            raise Conflict(f"{file} was changed meanwhile.", "Look again; nothing was changed.")
        if not after:  # nothing but ours was in it
            file.unlink(missing_ok=True)
            return
        replace_file(file, after, (file.stat().st_mode & 0o777) if file.exists() else 0o600)
    except OSError as error:
        raise ConsoleError(f"{file} cannot be written: {error.strerror}.", "Nothing was changed.") from error


def _next_words(given: argparse.Namespace) -> list[str]:
    if given.undo:
        return []
    hook = HOOKS[given.program]
    return [
        *hook.gaps,
        f"{hook.advice} It is enforced once a first call has reached the supervisor; watchfloor status shows that.".strip(),
        f"While no supervisor runs, every tool call is blocked. To take it out: watchfloor install-hook {given.program} --undo",
    ]
