"""What verbs share on the command line: --state-dir and --json, and the places they lead to. Light: panic imports it."""

from __future__ import annotations

from typing import Annotated

from console.cli.syntax import Option
from console.domain.errors import ConsoleError, Denied
from console.domain.roles.rights import Right, refusal
from console.settings.places import Places, choose_state_dir, find_places

StateDir = Annotated[str | None, Option("--state-dir", metavar="DIR", help="State directory of the instance (or $WATCHFLOOR_STATE_DIR).")]
Json = Annotated[bool, Option("--json", help="Print JSON with schema_version.")]
DangerousOk = Annotated[
    str, Option("--dangerous-ok", metavar="REASON", help="Send it though it names dangerous operations; recorded with why.")
]
WaitWatch = Annotated[bool, Option("--wait-watch", help="Answer after the return watch; exit 9 if a process ran again.")]
Reason = Annotated[str, Option("--reason", metavar="WORDS", help="Why; recorded.")]


def seek_places(state_dir: str | None) -> Places | None:
    """The places of an instance, or None when there is none yet. Makes nothing. Raises ConsoleError on what cannot be a state directory."""
    folder, _ = choose_state_dir(state_dir)
    if folder.exists() and not folder.is_dir():
        raise ConsoleError(f"The state directory {folder} cannot be used: it is not a folder.", "Name a folder with --state-dir.")
    return find_places(state_dir, create=False)


def existing_places(state_dir: str | None) -> Places:
    """The places of an instance that exists. Raises NotFound."""
    places = seek_places(state_dir)
    if places is None:
        from console.killswitch.client.moved_instance import why_no_instance

        raise why_no_instance(choose_state_dir(state_dir)[0])
    return places


def only_root(places: Places | None, verb: str, instead: str = "") -> None:
    """Raises Denied for a member of the roles' groups, where ``verb`` needs files of the host's instance. ``instead``: what helps."""
    if places is not None and places.by_role:
        denied = refusal(Right.ADMINISTER, f"sudo watchfloor {verb}")
        raise Denied(denied.what, f"{denied.remedy}{f'. {instead}' if instead else ''}")
