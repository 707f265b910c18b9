"""Verbs that need machinery but no daemon: keys, release, watch, doctor. Run as ``python -m console.supervisor oneshot VERB ...``."""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable

from console.domain.errors import UsageProblem
from console.killswitch.client.moved_instance import why_no_instance
from console.settings.layers import in_force
from console.settings.options import Options
from console.settings.places import Places, choose_state_dir, find_places
from console.supervisor.verbs.printing import show

Run = Callable[[Places | None, argparse.Namespace], int]
Add = Callable[[argparse.ArgumentParser], None]


def _nothing(_parser: argparse.ArgumentParser) -> None:
    pass


def _keys() -> tuple[Run, Add]:
    from console.supervisor.verbs import signing

    return signing.keys, signing.keys_arguments


def _release() -> tuple[Run, Add]:
    from console.supervisor.verbs import signing

    return signing.release, signing.release_arguments


def _watch() -> tuple[Run, Add]:
    from console.supervisor.verbs import watch

    return watch.watch, watch.watch_arguments


def _sign_rearm() -> tuple[Run, Add]:
    from console.supervisor.verbs import rearm_signing

    return rearm_signing.sign_rearm, rearm_signing.sign_rearm_arguments


def _tools() -> tuple[Run, Add]:
    from console.supervisor.verbs import tools

    return tools.tools_verb, tools.tools_arguments


def _cost() -> tuple[Run, Add]:
    from console.supervisor.verbs import cost

    return cost.cost, cost.cost_arguments


def _install_hook() -> tuple[Run, Add]:
    from console.supervisor.verbs import install_hook

    return install_hook.install_hook, install_hook.install_arguments


def _hooks() -> tuple[Run, Add]:
    from console.supervisor.verbs import hooks

    return hooks.hooks, hooks.hooks_arguments


# Each verb's module is imported when the verb is asked for: Google's client alone takes a second to load.
VERBS: dict[str, Callable[[], tuple[Run, Add]]] = {
    "keys": _keys,
    "release": _release,
    "doctor": lambda: (_doctor, _nothing),
    "watch": _watch,
    "sign-rearm": _sign_rearm,
    "tools": _tools,
    "cost": _cost,
    "install-hook": _install_hook,
    "hooks": _hooks,
}


def oneshot(what: str, rest: list[str]) -> int:
    """Runs one verb; prints words, or one JSON object with --json."""
    if what not in VERBS:
        raise UsageProblem(f"There is no oneshot verb {what[:40]!r}.", f"Verbs: {', '.join(VERBS)}.")
    run, add_arguments = VERBS[what]()
    gc.freeze()
    gc.enable()  # it was off while this was loaded
    parser = argparse.ArgumentParser(prog=f"watchfloor {what}")
    parser.add_argument("--state-dir")
    parser.add_argument("--json", action="store_true")
    add_arguments(parser)
    given = parser.parse_args(rest)
    return run(_places(what, given), given)


def _places(what: str, given: argparse.Namespace) -> Places | None:
    """Only what begins something makes an instance: a folder's name that was mistyped is not found, and nothing is made there."""
    begins = what == "install-hook" or (what, getattr(given, "action", "")) in (("keys", "init"), ("hooks", "remove"))
    places = find_places(given.state_dir, create=begins)
    folder, is_default = choose_state_dir(given.state_dir)
    # What programs spent stands in their own files: a person asks for it before anything was started.
    if places is None and what not in ("doctor", "watch", "hooks") and not (what == "cost" and is_default):
        raise why_no_instance(folder)
    return places


def _doctor(places: Places | None, given: argparse.Namespace) -> int:
    """Exit code 0 when a stop of what is started here by default can be proven, 8 when it is a best effort."""
    from console.supervisor.verbs.doctor import diagnose

    if places is not None and places.by_role:  # a member reads no file of the host's instance, and its account has no instance
        places = None
    found = diagnose(places, in_force(places).options if places is not None else Options())
    show(given, found.as_json() | {"at": time.time()}, found.lines())
    return int(found.exit_code)
