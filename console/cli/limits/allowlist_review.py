"""``watchfloor allowlist backtest | history | revert | export | import``: the allowlist as reviewed configuration."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from console.api.allowlist_review import BacktestBody, BacktestGroup, BacktestView, EntryChangeView, ImportBody, RevertBody
from console.api.messages import AllowlistEntryBody, AllowlistEntryView
from console.cli.link import build, connect
from console.cli.options import Json, Reason, StateDir
from console.cli.syntax import Argument, Option, Verbs, example
from console.cli.terminal import out
from console.cli.terminal.plain import moment, plain
from console.domain.errors import ConsoleError, NotFound, UsageProblem
from console.domain.process.account import named_here

FILE_MAX = 1 << 20
GROUPS_SHOWN = 40
Words = list[str] | None
Days = Annotated[int, Option("--days", min=1, max=365, help="How far back recorded requests are checked.")]


def add_review(app: Verbs) -> None:
    """The verbs below, as commands of ``allowlist``."""
    for name, verb in (("backtest", backtest), ("history", history), ("revert", revert), ("export", export), ("import", take_file)):
        app.command(name)(verb)


@example("api.example.com --days 7")
def backtest(
    host: Annotated[str, Argument(metavar="[HOST]", help="A destination to add, or to put in the place of --replaces.")] = "",
    port: Annotated[int, Option("--port", min=1, max=65535)] = 443,
    method: Annotated[Words, Option("--method", metavar="METHOD", help="Repeatable (plain HTTP).")] = None,
    path: Annotated[Words, Option("--path", metavar="PREFIX", help="Repeatable (plain HTTP).")] = None,
    replaces: Annotated[str, Option("--replaces", metavar="ENTRY", help="The entry that HOST would replace.")] = "",
    remove: Annotated[str, Option("--remove", metavar="ENTRY", help="Check the list without this entry.")] = "",
    version: Annotated[int, Option("--version", min=-1, help="Check an old version of the list.")] = -1,
    days: Days = 30,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """What a change would have allowed or blocked among the recorded requests. Nothing is changed."""
    entry = None
    if host:
        methods = [m.upper() for m in method or ()]
        entry = build(
            AllowlistEntryBody, host=host, port=port, methods=methods, paths=list(path or ()), reason="backtest", owner="backtest"
        )
    if sum((bool(host), bool(remove), version >= 0)) != 1:
        raise UsageProblem("A backtest takes one change.", "Give HOST, --remove ENTRY or --version N.")
    body = build(
        BacktestBody, entry=entry, replaces=replaces or None, remove=remove or None, version=version if version >= 0 else None, days=days
    )
    with connect(state_dir) as client:
        found = client.backtest(body)
    if as_json:
        out.emit_view(found)
    else:
        _show(found)
    return 0


def _show(found: BacktestView) -> None:
    out.say(plain(found.words, 300))
    _groups("would have passed", found.newly_allowed)
    _groups("would have been blocked", found.newly_blocked)
    if found.left_out:
        out.say(f"{found.left_out} more were blocked for where their name led or what they were; no entry changes that.")


def _groups(words: str, groups: list[BacktestGroup]) -> None:
    for group in groups[:GROUPS_SHOWN]:
        agents = ", ".join(plain(a, 64) for a in group.agents)
        out.say(f"  {words}: {group.count} x {plain(group.method, 10)} {plain(group.host, 260)}{plain(group.path, 120)} by {agents}")
    if len(groups) > GROUPS_SHOWN:
        out.say(f"  and {len(groups) - GROUPS_SHOWN} more destinations; --json shows them")


def history(
    limit: Annotated[int, Option("--rows", "-n", min=1, max=200)] = 20,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Versions of the list: who changed what, when and why."""
    with connect(state_dir) as client:
        seen = client.allowlist_history(limit)
    if as_json:
        out.emit_view(seen)
        return 0
    if not seen.versions:
        out.say("The list was never changed: it is empty.")
    for version in seen.versions:
        at = moment(version.at, "seconds")
        live = " (live)" if version.version == seen.live else ""
        damaged = "" if version.readable else " (stored damaged: reads as empty)"
        out.say(f"version {version.version}{live}{damaged}  {at}  {plain(named_here(version.by), 120)}: {plain(version.reason, 300)}")
        _changes(version.changes)
    return 0


def _changes(changes: list[EntryChangeView]) -> None:
    for change in changes:
        out.say(f"  {change.what} {plain(change.entry_id, 64)} {plain(change.host, 260)}")
        for f in change.fields:
            out.say(f"    {plain(f.field, 40)}: {plain(f.before, 200)} -> {plain(f.after, 200)}")


@example("3 --reason 'version 4 is too wide'")
def revert(
    version: Annotated[int, Argument(metavar="VERSION", min=0, help="As history shows it; 0 is the empty list.")],
    reason: Reason,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Go back to an old version; it becomes the newest one."""
    with connect(state_dir) as client:
        answer = client.revert_allowlist(build(RevertBody, version=version, reason=reason))
    if as_json:
        out.emit_view(answer)
    else:
        out.say(f"version {answer.version}: {plain(answer.words, 500)}")
    return 0


@example("allowlist.yaml")
def export(
    file: Annotated[str, Argument(metavar="[FILE]", help="The file to write; it is replaced. Without: print to the terminal.")] = "",
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Export the live allowlist as YAML, for review and version control."""
    with connect(state_dir) as client:
        seen = client.allowlist_file()
    if as_json:
        out.emit_view(seen)
    elif file:
        try:
            with Path(file).open("x", encoding="utf-8") as target:
                target.write(seen.text)
        except OSError as error:
            raise ConsoleError(f"{file} was not written: {error.strerror}.", "Give a path that does not exist yet.") from error
        out.say(f"version {seen.version} written to {plain(file, 300)}")
    else:
        sys.stdout.write(seen.text)
    return 0


@example("allowlist.yaml --reason 'reviewed'")
def take_file(
    file: Annotated[str, Argument(metavar="FILE", help="YAML as export writes it.")],
    reason: Annotated[str, Option("--reason", metavar="TEXT", help="Why; needed unless --dry-run.")] = "",
    replace: Annotated[bool, Option("--replace", help="The file is the whole list; without: its entries are added or changed.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Only show what would change, and the backtest.")] = False,
    days: Days = 30,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Take a reviewed file over: differences and backtest are shown, Envoy validates, then it is live."""
    try:
        with Path(file).open(encoding="utf-8") as source:
            text = source.read(FILE_MAX + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise NotFound(f"{file} cannot be read: {error}.", "Name a YAML file as allowlist export writes it.") from error
    with connect(state_dir, starts=True) as client:
        done = client.import_allowlist(build(ImportBody, text=text, reason=reason, replace=replace, dry_run=dry_run, days=days))
    if as_json:
        out.emit_view(done)
        return 0
    _changes(done.changes)
    if done.backtest is not None:
        _show(done.backtest)
    out.say(f"version {done.version}: {plain(done.words, 500)}" if done.applied else f"nothing was changed: {plain(done.words, 500)}")
    return 0


def marks_of(entry: AllowlistEntryView) -> list[str]:
    """What a reviewer should see, as lines; dangers first and in capitals."""
    return [f"{'DANGER' if mark.danger else 'note'}: {plain(mark.words, 200)}" for mark in entry.marks]
