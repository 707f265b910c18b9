"""Verbs whose work is in rooms that this one may not import: ``secrets keys``, ``remote release``, ``doctor``. They run as a program."""

from __future__ import annotations

from typing import Annotated

from console.cli.handover import become, folded, folder_arguments
from console.cli.options import Json, Reason, StateDir, only_root, seek_places
from console.cli.syntax import Argument, Option, Verbs, example
from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.domain.errors import UsageProblem
from console.wording.agent_kinds import EXAMPLE, PLACES

keys_app = Verbs("The keys that sign and release remote kill orders.", shows="show")
_OF_FILES = {
    "cost": ("cost", "watchfloor budget list shows what the host's agents used; of your own: WATCHFLOOR_INSTANCE=own watchfloor cost"),
    "keys": ("secrets keys", ""),
    "release": ("remote release", ""),
    "watch": ("remote watch", "watchfloor status shows the remote kill"),
    "tools": ("policy tools", ""),
    "install-hook": (
        "install-hook",
        "For your own programs: WATCHFLOOR_INSTANCE=own watchfloor install-hook PROGRAM",
    ),
}
"""Verbs that read or write the instance's files themselves: how root types each, and what helps a member instead."""
hooks_app = Verbs("Hooks of Watchfloor in the settings of programs.")


def oneshot(verb: str, *arguments: str, state_dir: str | None, as_json: bool) -> int:
    """Runs ``python -m console.supervisor oneshot VERB ...`` in our place. Raises Denied for a member whose verb reads root's files."""
    if verb in _OF_FILES:
        typed, instead = _OF_FILES[verb]
        only_root(seek_places(state_dir), typed, instead)
    return become("console.supervisor", "oneshot", verb, *arguments, *folder_arguments(state_dir), *(["--json"] if as_json else []))


@keys_app.command("init")
@example("--fleet office")
def init(
    fleet: Annotated[str | None, Option("--fleet", metavar="NAME", help="Fleet the keys are for.")] = None,
    quorum: Annotated[int, Option("--quorum", metavar="N", help="Distinct keys an un-kill takes; N keys are made.")] = 1,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Make this instance's keys, and write the signed baseline to the bucket when one is configured."""
    more = [*(["--fleet", fleet] if fleet else []), "--quorum", str(quorum)]
    return oneshot("keys", "init", *more, state_dir=state_dir, as_json=as_json)


@keys_app.command("show")
def show(state_dir: StateDir = None, as_json: Json = False) -> int:
    """The public keys and where the private ones are."""
    return oneshot("keys", "show", state_dir=state_dir, as_json=as_json)


@keys_app.command("rotate")
def rotate(state_dir: StateDir = None, as_json: Json = False) -> int:
    """A new signing key; hosts trust it once they have the new public file."""
    return oneshot("keys", "rotate", state_dir=state_dir, as_json=as_json)


@keys_app.command("revoke")
@example("k-1b2c3d4e --reason 'it left with its owner'")
def revoke(
    kid: Annotated[str, Argument(metavar="KEY", help="Its id, as secrets keys show names it: a fleet's, or the host's own.")],
    reason: Reason,
    key: Annotated[list[str] | None, Option("--key", metavar="FILE", help="A private key kept elsewhere that signs it.")] = None,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Take out a key that leaked: on record, signed by one that remains. What it signs from then on is worth nothing here."""
    more = [word for file in key or [] for word in ("--key", file)]
    return oneshot("keys", "retire", f"--kid={kid}", f"--reason={reason}", *more, state_dir=state_dir, as_json=as_json)


@example("--reason 'the leak is closed'")
def release(
    reason: Annotated[str, Option("--reason", metavar="WORDS", help="Why it is safe to run again; recorded in the release.")] = "",
    review: Annotated[bool, Option("--review", help="Show what a release would end, and sign nothing.")] = False,
    order: Annotated[
        str | None, Option("--order", metavar="ORDER", help="GENERATION:sha256:HASH as you reviewed it; without: asked for.")
    ] = None,
    key: Annotated[list[str] | None, Option("--key", metavar="FILE", help="A private key kept elsewhere; repeatable.")] = None,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask; the order must then be named with --order.")] = False,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Sign the end of the remote kill order; then rearm each host."""
    more = [*(["--review"] if review else []), *(["--order", order] if order else []), *(["--yes"] if yes else [])]
    more += [word for file in key or [] for word in ("--key", file)]
    return oneshot("release", f"--reason={reason}", *more, state_dir=state_dir, as_json=as_json)


def doctor(state_dir: StateDir = None, as_json: Json = False) -> int:
    """What this machine can do, how firmly it can hold an agent, and what would raise that. Exit: 0 a stop is proven, 8 best effort."""
    if as_json or not out.is_terminal():
        return oneshot("doctor", state_dir=state_dir, as_json=as_json)
    return folded("console.supervisor", "oneshot", "doctor", *folder_arguments(state_dir))


@example(f"{EXAMPLE} --dry-run")
def install_hook(
    program: Annotated[str, Argument(metavar="PROGRAM", help=f"{', '.join(PLACES)}.")],
    settings: Annotated[str | None, Option("--settings", metavar="FILE", help="Its settings file, if not in its usual place.")] = None,
    undo: Annotated[bool, Option("--undo", help="Take the hook out again.")] = False,
    check: Annotated[bool, Option("--check", help="Say whether it is installed; exit 1 if not.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Show the diff; change nothing.")] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask.")] = False,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Put every tool call of your own program before Watchfloor: shows the diff, keeps what was there, can be undone."""
    if program not in PLACES:
        raise UsageProblem(f"There is no hook for {plain(program, 40)!r}.", f"Programs: {', '.join(PLACES)}.")
    flags = [name for name, on in (("--undo", undo), ("--check", check), ("--dry-run", dry_run), ("--yes", yes)) if on]
    more = [f"--settings={settings}"] if settings else []
    if not (undo or check or dry_run):
        from console.cli.embedded import start_own

        start_own(state_dir)  # without a supervisor the new hook would block every call
    return oneshot("install-hook", program, *more, *flags, state_dir=state_dir, as_json=as_json)


@hooks_app.command("list")
def list_hooks(
    every: Annotated[bool, Option("--all", help="Of every account whose settings you may read.")] = False,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Each file that holds a hook of Watchfloor, with its account and program."""
    return oneshot("hooks", "list", *(["--all"] if every else []), state_dir=state_dir, as_json=as_json)


@hooks_app.command("remove")
@example("--mine")
def remove_hooks(
    mine: Annotated[bool, Option("--mine", help="All hooks of your own account.")] = False,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Take every hook of your own account out; what else is in those files stays."""
    return oneshot("hooks", "remove", *(["--mine"] if mine else []), state_dir=state_dir, as_json=as_json)
